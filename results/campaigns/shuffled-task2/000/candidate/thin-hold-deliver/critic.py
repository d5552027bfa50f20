"""The fingers hold something thin: an edge, and not the object."""

WINDOW_S = 2.0
SKILL = "thin-hold-deliver"
REFRACTORY_S = 2.0


def check(w, p):
    if held(w.holding > 0.5, p.settle) and now(w.gripper_opening) < p.thin:
        return recover("the fingers hold an edge at most")
    return ok()
