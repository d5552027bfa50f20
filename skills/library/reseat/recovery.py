"""Carry what is held to the receptacle and let it go there."""


def precondition(w, p):
    return now(w.holding) > 0.5 and now(w.receptacle_confidence) >= p.sure


def recover(robot, w, p):
    yield from robot.place("receptacle")


def reentry(w, p):
    over = now(w.receptacle_offset) < p.far and now(w.receptacle_above) > 0.0
    return over and now(w.holding) < 0.5
