"""Stand still for a moment; the policy begins anew."""


def precondition(w, p):
    return now(w.policy_drives) > 0.5


def recover(robot, w, p):
    yield from robot.hold(p.sham_pause)


def reentry(w, p):
    return now(w.ee_speed) < 0.1
