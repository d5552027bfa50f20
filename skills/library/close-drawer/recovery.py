"""Let go, and push the handle."""


def precondition(w, p):
    return now(w.part_confidence) >= p.sure and now(w.part_moved) < p.closed


def recover(robot, w, p):
    if now(w.holding) > 0.5:
        yield from robot.open()
    shut = yield from robot.press("part")
    if not shut:
        yield from robot.retreat(p.rise)
        yield from robot.press("part")


def reentry(w, p):
    return now(w.part_moved) > p.closed
