"""The empty hand stays away from an object that is not where it belongs."""

WINDOW_S = 4.0
SKILL = "keeps-away-regrasp"
REFRACTORY_S = 2.0


def check(w, p):
    if now(w.object_to_receptacle) < p.away:
        return ok()
    if held((w.object_offset > p.far) and (w.holding < 0.5), p.patience) and delta(w.object_offset, p.patience) > 0.0 - p.nearing:
        return recover("the empty hand comes no nearer to the object")
    return ok()
