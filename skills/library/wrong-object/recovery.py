"""Set down what is held, rise, and grasp the named object."""


def precondition(w, p):
    return now(w.object_confidence) >= p.sure and now(w.object_offset) > p.far


def recover(robot, w, p):
    if now(w.holding) > 0.5:
        yield from robot.until_contact(0.0, 0.0, -0.12)
    yield from robot.open()
    yield from robot.retreat(p.rise)
    yield from robot.grasp("object")


def reentry(w, p):
    return now(w.holding) > 0.5 and now(w.object_offset) < p.far
