"""The hand goes a long way and gets nowhere."""

WINDOW_S = 2.0
SKILL = "wanders-deliver"
REFRACTORY_S = 2.0


def check(w, p):
    if now(w.path_1s) > p.way and mean(w.wander, 0.5) > p.turns:
        return recover("the hand goes to and fro and gets nowhere")
    return ok()
