"""The object that was held is no longer held, and it is not where it belongs."""

WINDOW_S = 2.5
SKILL = "pick-up-again"
REFRACTORY_S = 1.0


def check(w, p):
    if now(w.holding) > 0.5 and delta(w.gripper_opening, 0.5) < p.forced:
        return ok()
    if share(w.holding > 0.5) < p.grip:
        return ok()
    if now(w.object_confidence) < p.sure or now(w.object_age) > p.fresh:
        return ok()
    lost = p.away
    astray = p.astray
    if now(w.receptacle_height) < p.flat:
        lost = p.beside
        astray = p.beside
    if now(w.object_to_receptacle) < lost:
        return ok()
    if since(w.closed_for > 0.0, w.holding > 0.5):
        if held(w.closed_on_nothing > 0.5, p.empty_for):
            return recover("the object slipped out of the hand")
        if delta(w.gripper_opening, 0.5) > p.forced:
            return recover("the hand was forced open")
    if now(w.open_for) > p.let_go and now(w.object_moved) > p.carried:
        if now(w.object_to_receptacle) > astray:
            return recover("the object was let go far from the receptacle")
    return ok()
