"""Let go, and turn the knob."""


def precondition(w, p):
    return now(w.part_confidence) >= p.sure


def recover(robot, w, p):
    if now(w.closed_for) > 0.0:
        yield from robot.open()
    for _ in range(2):
        turned = yield from robot.turn("part")
        if turned:
            return
        yield from robot.retreat(p.rise)


def reentry(w, p):
    return now(w.part_offset) < p.far and now(w.open_for) > 0.0
