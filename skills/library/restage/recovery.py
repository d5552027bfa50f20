"""Rise and stand above the object."""


def precondition(w, p):
    return now(w.holding) < 0.5 and now(w.object_confidence) >= p.sure


def recover(robot, w, p):
    yield from robot.open()
    yield from robot.retreat(p.height)
    yield from robot.above("object", p.height)


def reentry(w, p):
    above = now(w.object_above) > p.height * 0.5 and now(w.object_above) < p.height * 2.0
    return above and now(w.object_offset) < 0.04 and now(w.holding) < 0.5
