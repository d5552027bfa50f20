"""Let go, rise, grasp the object and bring it where it belongs."""


def precondition(w, p):
    return now(w.object_confidence) >= p.seen


def recover(robot, w, p):
    yield from robot.open()
    yield from robot.retreat(p.rise)
    taken = yield from robot.grasp("object")
    if not taken:
        yield from robot.retreat(p.rise)
        taken = yield from robot.grasp("object")
    if taken:
        yield from robot.place("receptacle")


def reentry(w, p):
    return now(w.holding) < 0.5 and now(w.closed_for) < 0.01
