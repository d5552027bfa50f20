"""Open, rise, look, grasp, and bring the object where it belongs."""


def precondition(w, p):
    return now(w.object_confidence) >= p.sure and now(w.object_to_receptacle) > p.beside


def recover(robot, w, p):
    yield from robot.open()
    yield from robot.retreat(p.rise)
    taken = yield from robot.grasp("object")
    if taken:
        yield from robot.place("receptacle")
        yield from robot.look("object")


def reentry(w, p):
    if now(w.receptacle_height) < p.flat:
        return now(w.holding) > 0.5 or now(w.object_to_receptacle) < p.beside
    return now(w.holding) > 0.5 or now(w.object_to_receptacle) < p.away
