"""Let go, and push the handle."""


def precondition(w, p):
    return now(w.part_confidence) >= p.sure and now(w.part_moved) < p.closed


def recover(robot, w, p):
    if now(w.holding) > 0.5:
        yield from robot.open()
    for _ in range(2):
        yield from robot.press("part")
        yield from robot.look("part")
        yield from robot.retreat(p.rise)
        if now(w.part_moved) > p.closed:
            return


def reentry(w, p):
    return now(w.part_moved) > p.closed
