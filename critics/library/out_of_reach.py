"""The object has fallen or rolled to where the hand cannot get: there is nothing left to do."""

WINDOW_S = 3.0


def check(w, p):
    # It was thrown about, it is in sight, and nobody carries it.
    if now(w.object_moved) < 0.30 or minimum(w.object_confidence) < 0.6:
        return ok()
    if maximum(w.object_age) > 1.0 or once(w.holding > 0.5):
        return ok()
    if minimum(w.object_above) > 0.60:
        return abort("the object lies far below the hand")
    if minimum(w.object_offset) > 0.90:
        return abort("the object lies out of reach")
    return ok()
