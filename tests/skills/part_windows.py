"""Rehearsals of hands at drawers and knobs, for the replay windows of the skills that work parts.

The cabinet stands in front of the hand and opens towards it, along y; the stove stands aside.
"""

from __future__ import annotations

from zetta.skills.rehearsals import TABLE_Z, Rehearsal, Thing

HANDLE = Thing(0.03, -0.24, (0.10, 0.02, 0.02), base=0.11)
KNOB = Thing(-0.18, 0.20, (0.05, 0.05, 0.03))


def drawer(seed: int, pace: float = 1.0, at: Thing = HANDLE) -> Rehearsal:
    """Return a hand before a cabinet."""
    return Rehearsal({"part": at}, seed=seed, pace=pace)


def stove(seed: int, pace: float = 1.0) -> Rehearsal:
    """Return a hand beside a stove."""
    return Rehearsal({"part": KNOB}, seed=seed, pace=pace)


def reach(r: Rehearsal, aside: tuple[float, float] = (0.0, 0.0)) -> None:
    """Come to the handle from before it."""
    r.wait(0.2)
    r.to("part", 0.02, 1.4, (aside[0], aside[1] + 0.10))
    r.to("part", -0.01, 0.7, aside)


def slide(r: Rehearsal, way: float, seconds: float) -> None:
    """Move hand and handle together along y, metres."""
    steps = round(seconds / 0.1)
    for _ in range(steps):
        r.places["part"][1] += way / steps
        r.move(r.hand[0], r.hand[1] + way / steps, r.hand[2] - TABLE_Z, 0.1)


def opens(seed: int = 70, pace: float = 1.0, wait: float = 0.2) -> Rehearsal:
    """Return a drawer that is pulled open; afterwards the hand goes home and rests."""
    r = drawer(seed, pace)
    reach(r)
    r.wait(wait)
    r.close(0.6, 0.012)
    slide(r, 0.15, 1.5)
    r.open(0.4)
    r.move(0.0, 0.10, 0.30, 1.2)
    r.wait(3.5)
    return r


def opens_second_try() -> Rehearsal:
    """Return a policy whose fingers slip off once."""
    r = drawer(71)
    reach(r)
    r.close(0.5)
    r.move(r.hand[0], r.hand[1] + 0.06, 0.11, 0.6)
    r.open(0.4)
    r.to("part", -0.01, 0.6)
    r.close(0.6, 0.012)
    slide(r, 0.15, 1.5)
    return r


def goes_to_old_place(seed: int, pace: float = 1.0) -> Rehearsal:
    """Return a hand that goes where the cabinet used to be."""
    r = drawer(seed, pace)
    r.wait(0.3)
    r.move(0.10, 0.18, 0.12, 1.8)
    r.wait(1.0)
    return r


def pulls_air() -> Rehearsal:
    """Return a hand that began away from the handle, and closes there."""
    r = Rehearsal({"part": HANDLE}, (0.20, 0.05, 0.25), seed=74)
    r.move(0.18, 0.03, 0.12, 1.2)
    r.close(0.8)
    r.wait(1.0)
    return r


def rests(thing: Thing, seed: int) -> Rehearsal:
    """Return a policy that halts on its way to a part."""
    r = Rehearsal({"part": thing}, seed=seed)
    r.to("part", 0.10, 1.6, (0.16, 0.10))
    r.wait(4.0)
    return r


def waits_first(r: Rehearsal) -> Rehearsal:
    """Return a hand that waits at home, rises, and then comes to the part."""
    r.wait(2.2)
    r.move(0.01, 0.01, 0.36, 0.8)
    r.to("part", 0.06, 1.8)
    return r


def in_vain() -> Rehearsal:
    """Return fingers that slip off the handle again and again."""
    r = drawer(76)
    reach(r)
    for _ in range(4):
        r.close(0.5)
        r.move(r.hand[0], r.hand[1] + 0.05, 0.11, 0.3)
        r.open(0.2)
        r.to("part", -0.01, 0.3)
    return r


def too_long(thing: Thing, seed: int) -> Rehearsal:
    """Return a hand that sways at a part until much of the time is over."""
    r = Rehearsal({"part": thing}, seed=seed)
    r.to("part", 0.03, 1.6, (0.03, 0.04))
    r.shiver(6.0, 0.02, period=1.5)
    return r


def shuts(seed: int = 80, pace: float = 1.0) -> Rehearsal:
    """Return an open drawer that is pushed shut; afterwards the hand goes home and rests."""
    r = drawer(seed, pace, Thing(0.03, -0.12, HANDLE.size, base=HANDLE.base))
    r.close(0.3)
    r.to("part", 0.03, 1.4, (0.0, 0.10))
    r.to("part", -0.01, 0.7, (0.0, 0.03))
    slide(r, -0.14, 1.4)
    r.move(r.hand[0], r.hand[1] + 0.15, 0.30, 1.2)
    r.wait(3.5)
    return r


def turns(seed: int = 90, pace: float = 1.0, wait: float = 0.2) -> Rehearsal:
    """Return a knob that is turned, held all the while."""
    r = stove(seed, pace)
    r.wait(0.2)
    r.to("part", 0.10, 1.6)
    r.to("part", -0.01, 0.8)
    r.wait(wait)
    r.close(0.6, 0.028)
    r.wait(1.2)
    return r


def turns_second_try() -> Rehearsal:
    """Return a policy that lets the knob go, and takes it better."""
    r = stove(91)
    r.to("part", 0.10, 1.6, (0.03, 0.0))
    r.to("part", 0.01, 0.8, (0.03, 0.0))
    r.close(0.4)
    r.open(0.4)
    r.to("part", -0.01, 0.6)
    r.close(0.6, 0.028)
    r.wait(1.0)
    return r


def takes_something() -> Rehearsal:
    """Return a hand that began away from the knob and takes a thing there."""
    r = Rehearsal({"part": KNOB}, (0.10, 0.10, 0.25), seed=93)
    r.move(0.08, 0.12, 0.05, 1.2)
    r.close(0.8, 0.043)
    r.wait(1.0)
    return r


def from_knob(seed: int, pace: float = 1.0) -> Rehearsal:
    """Return a hand that goes where the stove used to be."""
    r = stove(seed, pace)
    r.move(0.25, -0.15, 0.15, 1.8)
    r.wait(1.0)
    return r


def unseen(thing: Thing) -> Rehearsal:
    """Return a hand that rests where it should not; no camera sees the part."""
    r = Rehearsal({"part": thing}, seed=97)
    r.hidden.add("part")
    r.move(0.10, 0.10, 0.15, 1.6)
    r.wait(4.0)
    return r
