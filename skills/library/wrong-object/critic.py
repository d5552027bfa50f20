"""The hand heads, goes down, or has closed, where the named object is not."""

WINDOW_S = 1.5
SKILL = "wrong-object"
REFRACTORY_S = 2.0


def check(w, p):
    if minimum(w.object_confidence, 1.0) < p.sure or now(w.object_age) > p.fresh:
        return ok()
    if minimum(w.object_offset, p.settle) < p.far or not held(w.policy_drives > 0.5, p.settle):
        return ok()
    if now(w.object_moved) > p.taken:
        if now(w.object_to_receptacle) < p.delivered:
            return ok()
    if now(w.holding) > 0.5:
        # Far from the object when the hand closed and ever since: what it holds is something else.
        # A command that flips while something is held closes no open hand.
        closing = (w.closed_for < 0.2) and (w.object_offset > p.far)
        closing = closing and (w.gripper_opening > p.wide)
        if since((w.closed_for > 0.0) and (w.object_offset > p.far), closing):
            return recover("the hand has taken something else than the object")
        return ok()
    if held((w.policy_drives > 0.5) and (w.holding < 0.5), 1.0):
        aside = max(spread(w.ee_x, 1.0), spread(w.ee_y, 1.0))
        if aside > p.way and delta(w.object_offset, 1.0) > 0.0 - p.nearer:
            return recover("the hand makes way and comes no nearer to the object")
    if once(w.holding > 0.5):
        return ok()
    # The policy has chosen to close here; nobody closes on the way.
    if held(w.command_gripper > 0.5, p.closing) and now(w.closed_for) < 1.0:
        return recover("the hand closes where the object is not")
    low = max(p.reach, now(w.object_height) * 0.6)
    if not held((w.object_above < p.depth) and (w.object_above + w.object_height < low), p.settle):
        return ok()
    if maximum(w.object_above) - now(w.object_above) < p.descent:
        return ok()
    if delta(w.object_offset, p.settle) < 0.0 - p.nearing:
        return ok()
    return recover("the hand is down where the object is not")
