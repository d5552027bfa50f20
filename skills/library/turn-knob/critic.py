"""The hand does nothing that will turn the knob."""

WINDOW_S = 4.0
SKILL = "turn-knob"
REFRACTORY_S = 2.0


def check(w, p):
    if now(w.part_confidence) < p.sure or maximum(w.part_age, 0.5) > p.fresh:
        return ok()
    if not held(w.policy_drives > 0.5, p.settle):
        return ok()
    if minimum(w.part_offset, p.settle) > p.far:
        if held(w.command_gripper > 0.5, p.closing) and now(w.closed_for) < 1.0:
            return recover("the hand closes where the knob is not")
        if held((w.policy_drives > 0.5) and (w.part_offset > p.far), 1.0):
            if delta(w.part_offset, 1.0) > p.astray:
                return recover("the hand goes away from the knob")
        if held((w.policy_drives > 0.5) and (w.ee_speed < p.still), p.rest):
            return recover("the hand rests away from the knob")
    if held((w.policy_drives > 0.5) and (w.ee_speed < p.still), p.idle) and now(w.holding) < 0.5:
        return recover("the hand rests at the knob")
    if now(w.budget_used) > p.patience and now(w.holding) < 0.5:
        return recover("much time has passed")
    return ok()
