"""Open, rise, look and grasp."""


def precondition(w, p):
    return now(w.object_confidence) >= p.sure and now(w.object_to_receptacle) > p.away


def recover(robot, w, p):
    yield from robot.open()
    yield from robot.retreat(p.rise)
    yield from robot.grasp("object")


def reentry(w, p):
    return now(w.holding) > 0.5
