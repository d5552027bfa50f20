"""The drawer is shut, and the hand does nothing that will open it."""

WINDOW_S = 4.0
SKILL = "open-drawer"
REFRACTORY_S = 2.0


def check(w, p):
    if now(w.part_confidence) < p.sure or maximum(w.part_age, 0.5) > p.fresh:
        return ok()
    if now(w.part_moved) > p.opened or not held(w.policy_drives > 0.5, p.settle):
        return ok()
    if minimum(w.part_offset, p.settle) > p.far:
        if held(w.command_gripper > 0.5, p.closing) and now(w.closed_for) < 1.0:
            return recover("the hand closes where the handle is not")
        if held((w.policy_drives > 0.5) and (w.part_offset > p.far), 1.0):
            if delta(w.part_offset, 1.0) > p.astray:
                return recover("the hand goes away from the handle")
        if held((w.policy_drives > 0.5) and (w.ee_speed < p.still), p.rest):
            return recover("the hand rests away from the handle")
    # Closing begins with a tick in which it has lasted for less than two.
    begun = (w.closed_for > 0.0) and (w.closed_for < 0.08) and (w.part_offset < p.far)
    slipped = now(w.closed_for) > 0.3 and now(w.gripper_opening) < p.empty
    if slipped and held(w.policy_drives > 0.5, 3.5) and count(begun, 3.5) >= p.tries:
        return recover("the fingers slip off the handle again and again")
    if held((w.policy_drives > 0.5) and (w.ee_speed < p.still), p.idle):
        return recover("the hand rests at the handle")
    if now(w.budget_used) > p.patience and now(w.holding) < 0.5:
        return recover("much time has passed and the drawer is shut")
    return ok()
