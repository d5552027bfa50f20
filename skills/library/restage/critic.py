"""The hand has not got the object and makes no progress."""

WINDOW_S = 4.0
SKILL = "restage"
REFRACTORY_S = 2.0


def check(w, p):
    if not held((w.policy_drives > 0.5) and (w.holding < 0.5), p.stall):
        return ok()
    if now(w.object_confidence) < p.sure:
        return ok()
    if now(w.object_moved) > p.taken:
        if now(w.object_to_receptacle) < p.delivered:
            return ok()
    across = max(spread(w.ee_x, p.stall), spread(w.ee_y, p.stall))
    still = max(across, spread(w.ee_z, p.stall)) < p.still
    near = now(w.object_distance) < p.near or now(w.object_offset) < p.near * 0.5
    if still and near and now(w.open_for) > p.stall:
        return recover("the hand stands still beside the object")
    if still and held((w.policy_drives > 0.5) and (w.ee_speed < 0.02), p.idle):
        return recover("the hand stands still and the object is not where it belongs")
    if not near or now(w.open_for) < p.hover or now(w.object_above) > p.near:
        return ok()
    aside = maximum(w.object_offset, p.hover)
    if spread(w.ee_z, p.hover) < p.still and aside < p.near * 0.5 and now(w.object_above) > 0.01:
        return recover("the hand hovers over the object and does not go down")
    return ok()
