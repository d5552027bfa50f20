"""The hand closed beside the object and caught nothing."""

WINDOW_S = 2.5
SKILL = "regrasp"
REFRACTORY_S = 1.0


def check(w, p):
    if not held(w.closed_on_nothing > 0.5, p.empty_for):
        return ok()
    # What was held and got lost is for pick-up-again.
    if once(w.holding > 0.5):
        return ok()
    if now(w.object_confidence) < p.sure:
        return ok()
    if not once((w.open_for > 0.0) and (w.object_offset < p.near) and (w.object_above < p.depth)):
        return ok()
    if now(w.object_moved) > p.taken:
        if now(w.object_to_receptacle) < p.delivered:
            return ok()
    return recover("closed on nothing beside the object")
