"""The hand closed beside the object and has not got it, or has come to the receptacle without it."""

WINDOW_S = 2.0
SKILL = "regrasp"
REFRACTORY_S = 1.0


def check(w, p):
    # What was held and got lost is for pick-up-again.
    if once(w.holding > 0.5):
        return ok()
    if now(w.object_confidence) < p.sure:
        return ok()
    if now(w.object_moved) > p.taken:
        if now(w.object_to_receptacle) < p.delivered:
            return ok()
    near = maximum(w.object_offset, 1.0) < p.near
    if now(w.gripper_flips) >= p.tries and near and held(w.policy_drives > 0.5, 1.0):
        return recover("the hand opens and closes beside the object and does not get it")
    if maximum(w.gripper_opening, 0.25) > p.shut:
        return ok()
    tried = once((w.open_for > 0.0) and (w.object_offset < p.near) and (w.object_above < p.depth))
    empty = held(w.closed_on_nothing > 0.5, p.empty_for)
    if tried and empty:
        return recover("closed on nothing beside the object")
    # A hand that pushes is closed too, but then the object moves.
    if now(w.object_moved) > p.taken or now(w.object_age) > p.fresh:
        return ok()
    # Whatever is in the hand has come along since it was last seen.
    along = now(w.object_age) * maximum(w.ee_speed, 0.5)
    if tried and now(w.object_offset) - along > p.near:
        return recover("the hand goes away without the object")
    if not empty or now(w.closed_for) < p.empty_for + 1.0:
        return ok()
    if now(w.object_to_receptacle) < p.delivered * 1.5:
        return ok()
    if maximum(w.receptacle_offset, 0.5) < p.delivered:
        return recover("the hand has come to the receptacle without the object")
    if now(w.closed_for) > p.idle:
        return recover("the hand stays closed and empty")
    return ok()
