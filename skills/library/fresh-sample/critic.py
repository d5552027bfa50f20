"""The policy goes to and fro, flips the gripper, or contradicts itself."""

WINDOW_S = 3.0
SKILL = "fresh-sample"
REFRACTORY_S = 3.0


def check(w, p):
    # What a skill did is no doing of the policy.
    if not held(w.policy_drives > 0.5, 2.0):
        return ok()
    if now(w.gripper_flips) >= p.flips:
        return recover("the policy flips the gripper")
    # How often it went from end to end of the box that it stayed in, in the last two seconds.
    way = now(w.path_1s) + ago(w.path_1s, 1.0)
    box = max(max(spread(w.ee_x, 2.0), spread(w.ee_y, 2.0)), spread(w.ee_z, 2.0))
    if way < p.way * 2.0 or way < box * p.swings * 0.5:
        return ok()
    if way > box * p.swings:
        return recover("the hand goes to and fro")
    if minimum(w.chunk_disagreement, 1.0) > p.torn:
        return recover("successive plans contradict each other")
    return ok()
