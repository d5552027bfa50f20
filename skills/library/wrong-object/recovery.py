"""Set down what is held, rise, grasp the named object and bring it where it belongs."""


def precondition(w, p):
    return now(w.object_confidence) >= p.sure and now(w.object_offset) > p.far


def recover(robot, w, p):
    if now(w.holding) > 0.5:
        yield from robot.until_contact(0.0, 0.0, -0.12)
    yield from robot.open()
    yield from robot.retreat(p.rise)
    taken = yield from robot.grasp("object")
    # A policy that looked for the object elsewhere does not know this scene.
    if taken:
        yield from robot.place("receptacle")
        yield from robot.look("object")


def reentry(w, p):
    taken = now(w.holding) > 0.5 and now(w.object_offset) < p.far
    return taken or now(w.object_to_receptacle) < p.delivered
