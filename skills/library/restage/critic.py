"""The open hand is beside the object and makes no progress."""

WINDOW_S = 4.0
SKILL = "restage"
REFRACTORY_S = 2.0


def check(w, p):
    if now(w.open_for) < p.stall:
        return ok()
    if now(w.object_confidence) < p.sure:
        return ok()
    if now(w.object_distance) > p.near and now(w.object_offset) > p.near * 0.5:
        return ok()
    if now(w.object_moved) > p.taken:
        if now(w.object_to_receptacle) < p.delivered:
            return ok()
    if once(w.holding > 0.5, p.stall):
        return ok()
    across = max(spread(w.ee_x, p.stall), spread(w.ee_y, p.stall))
    if max(across, spread(w.ee_z, p.stall)) < p.still and now(w.object_distance) < p.near:
        return recover("the hand stands still beside the object")
    if now(w.open_for) < p.hover or now(w.object_above) > p.near:
        return ok()
    aside = maximum(w.object_offset, p.hover)
    if spread(w.ee_z, p.hover) < p.still and aside < p.near * 0.5 and now(w.object_above) > 0.01:
        return recover("the hand hovers over the object and does not go down")
    return ok()
