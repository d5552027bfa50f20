"""The policy goes to and fro, flips the gripper, or contradicts itself."""

WINDOW_S = 3.0
SKILL = "fresh-sample"
REFRACTORY_S = 3.0


def check(w, p):
    if now(w.policy_drives) < 0.5:
        return ok()
    if now(w.gripper_flips) >= p.flips:
        return recover("the policy flips the gripper")
    if held((w.wander > p.wander) and (w.path_1s > p.way), p.dither):
        return recover("the hand goes to and fro")
    if not held((w.wander > p.wander * 0.5) and (w.path_1s > p.way), 0.5):
        return ok()
    if minimum(w.chunk_disagreement, p.dither) > p.torn:
        return recover("successive plans contradict each other")
    return ok()
