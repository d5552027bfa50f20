"""Let go, rise, and grasp the object; the policy goes on with it."""


def precondition(w, p):
    return now(w.object_confidence) >= p.seen


def recover(robot, w, p):
    yield from robot.open()
    yield from robot.retreat(p.rise)
    taken = yield from robot.grasp("object")
    if not taken:
        yield from robot.retreat(p.rise)
        yield from robot.grasp("object")


def reentry(w, p):
    return now(w.holding) > 0.5
