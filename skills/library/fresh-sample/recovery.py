"""Stand still for a moment; the policy is reset when it gets the robot back."""


def precondition(w, p):
    return now(w.policy_drives) > 0.5


def recover(robot, w, p):
    yield from robot.hold(p.pause)


def reentry(w, p):
    return now(w.ee_speed) < 0.1
