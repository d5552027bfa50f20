"""Let go, and pull the handle."""


def precondition(w, p):
    return now(w.part_confidence) >= p.sure and now(w.part_moved) < p.opened


def recover(robot, w, p):
    if now(w.closed_for) > 0.0:
        yield from robot.open()
    for _ in range(2):
        opened = yield from robot.pull("part")
        if opened:
            return
        yield from robot.retreat(p.rise)


def reentry(w, p):
    return now(w.part_moved) > p.opened
