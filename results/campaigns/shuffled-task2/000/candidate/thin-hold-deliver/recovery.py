"""Carry what is held to the receptacle and let it go there."""


def precondition(w, p):
    return now(w.holding) > 0.5 and now(w.receptacle_confidence) >= p.seen


def recover(robot, w, p):
    yield from robot.place("receptacle")


def reentry(w, p):
    return now(w.holding) < 0.5
