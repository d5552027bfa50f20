"""The drawer is open, and the hand does nothing that will close it."""

WINDOW_S = 4.0
SKILL = "close-drawer"
REFRACTORY_S = 2.0


def check(w, p):
    if now(w.part_confidence) < p.sure or maximum(w.part_age, 0.5) > p.fresh:
        return ok()
    if now(w.part_moved) > p.closed or not held(w.policy_drives > 0.5, p.settle):
        return ok()
    if minimum(w.part_offset, p.settle) > p.far:
        if held((w.policy_drives > 0.5) and (w.part_offset > p.far), 1.0):
            if delta(w.part_offset, 1.0) > p.astray:
                return recover("the hand goes away from the handle")
        if held((w.policy_drives > 0.5) and (w.ee_speed < p.still), p.rest):
            return recover("the hand rests away from the handle")
    if held((w.policy_drives > 0.5) and (w.ee_speed < p.still), p.idle):
        return recover("the hand rests at the handle")
    if now(w.budget_used) > p.patience and now(w.part_moved) < p.closed * 0.5:
        return recover("much time has passed and the drawer is open")
    return ok()
