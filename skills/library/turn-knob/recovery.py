"""Let go, and turn the knob."""


def precondition(w, p):
    return now(w.part_confidence) >= p.sure


def recover(robot, w, p):
    if now(w.closed_for) > 0.0:
        yield from robot.open()
    turned = yield from robot.turn("part")
    if not turned:
        yield from robot.retreat(p.rise)
        yield from robot.turn("part")


def reentry(w, p):
    return now(w.part_offset) < p.far and now(w.open_for) > 0.0
