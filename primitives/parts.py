"""Drawers, doors, knobs and things that are pushed: motions on parts, from estimates alone.

Of a part, the first axis of its estimate points outward: the way in which a drawer opens.
"""

from __future__ import annotations

from zetta.primitives.motions import Arm, Steps
from zetta.runtime.core import Estimate, Outcome


def pull(arm: Arm, part: Estimate) -> Steps[Outcome]:
    """Pinch a handle and pull."""
    yield from ()
    return Outcome(False, "not yet")


def press(arm: Arm, role: str) -> Steps[Outcome]:
    """Push shut."""
    yield from ()
    return Outcome(False, "not yet")


def turn(arm: Arm, part: Estimate) -> Steps[Outcome]:
    """Twist on."""
    yield from ()
    return Outcome(False, "not yet")


def push(arm: Arm, thing: Estimate, place: Estimate, ground: float) -> Steps[Outcome]:
    """Push along the ground."""
    yield from ()
    return Outcome(False, "not yet")
