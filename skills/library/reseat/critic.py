"""Something is held, and it does not get to the receptacle."""

WINDOW_S = 4.5
SKILL = "reseat"
REFRACTORY_S = 2.0


def check(w, p):
    if not held((w.holding > 0.5) and (w.policy_drives > 0.5), p.course):
        return ok()
    if now(w.receptacle_confidence) < p.sure:
        return ok()
    if now(w.receptacle_offset) > p.far:
        if delta(w.receptacle_offset, p.course) > p.astray:
            return recover("the hand carries away from the receptacle")
        down = delta(w.ee_z, p.course) < 0.0 - p.descent
        if down and delta(w.receptacle_offset, p.course) > 0.0 - p.nearing:
            return recover("the hand goes down far from the receptacle")
        carried = max(spread(w.ee_x, p.course), spread(w.ee_y, p.course))
        if carried > p.carried and max(spread(w.ee_x, p.halt), spread(w.ee_y, p.halt)) < p.still:
            return recover("the hand has stopped short of the receptacle")
    # A policy that was handed the object is given less time to finish than one that took it.
    if now(w.interventions) > 0.5 and now(w.since_handback) > p.alone:
        if since(w.holding > 0.5, w.policy_drives < 0.5):
            return recover("the policy was given the object and does not deliver it")
    if held((w.holding > 0.5) and (w.receptacle_offset < p.over), p.dwell):
        return recover("the hand stays over the receptacle and does not let go")
    if not held(w.holding > 0.5, p.patience):
        return ok()
    if now(w.receptacle_offset) > p.over and delta(w.receptacle_offset, p.patience) > 0.0 - p.nearing:
        return recover("the hand carries without coming nearer to the receptacle")
    return ok()
