"""Let go, and pull the handle."""


def precondition(w, p):
    return now(w.part_confidence) >= p.sure and now(w.part_moved) < p.opened


def recover(robot, w, p):
    if now(w.closed_for) > 0.0:
        yield from robot.open()
    opened = yield from robot.pull("part")
    if not opened:
        yield from robot.retreat(p.rise)
        yield from robot.pull("part")


def reentry(w, p):
    return now(w.part_moved) > p.opened
