"""The hand closed beside the object and caught nothing, or has come to the receptacle without it."""

WINDOW_S = 2.0
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
    if now(w.object_moved) > p.taken:
        if now(w.object_to_receptacle) < p.delivered:
            return ok()
    if once((w.open_for > 0.0) and (w.object_offset < p.near) and (w.object_above < p.depth)):
        return recover("closed on nothing beside the object")
    # A hand that pushes is closed too, but then the object moves.
    if now(w.object_moved) > p.taken or now(w.object_age) > p.fresh:
        return ok()
    if now(w.object_to_receptacle) < p.delivered * 1.5 or now(w.closed_for) < p.empty_for + 1.0:
        return ok()
    if maximum(w.receptacle_offset, 0.5) < p.delivered:
        return recover("the hand has come to the receptacle without the object")
    return ok()
