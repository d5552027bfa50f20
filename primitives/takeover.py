"""The whole task by primitives from the first tick on: what sensing and scripts do alone.

It is a baseline. A bundle that only replaces the policy by this has shown nothing about critics.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from zetta.primitives.motions import Steps
from zetta.primitives.robot import Robot
from zetta.primitives.roles import Errand
from zetta.runtime.core import Motion, Outcome

TRIES = 3
"""Attempts at one errand before the next one is begun."""
OPENED, CLOSED, TURNED = ("open", "pull"), ("close", "press"), ("turn_on", "turn_off")


def takeover(
    errands: Sequence[Errand],
    robot: Callable[[Errand], Robot],
    begin: Callable[[int], None] = lambda index: None,
) -> Motion:
    """Do errands one after the other.

    Args:
        errands: what the instruction asks for.
        robot: makes the robot of an errand.
        begin: called with the number of each errand, so that the localiser binds its roles.

    Returns:
        Completed when every errand said so; the goal itself is known to nobody here.
    """
    failed = []
    for index, errand in enumerate(errands):
        begin(index)
        outcome = Outcome(False)
        for _ in range(TRIES):
            outcome = yield from _attempt(errand, robot(errand))
            if outcome.completed:
                break
        if not outcome.completed:
            failed.append(f"{errand.verb}: {outcome.reason}")
    return Outcome(not failed, "; ".join(failed))


def _attempt(errand: Errand, robot: Robot) -> Steps[Outcome]:
    if errand.verb in OPENED:
        return (yield from robot.pull("part"))
    if errand.verb in CLOSED:
        return (yield from robot.press("part"))
    if errand.verb in TURNED:
        return (yield from robot.turn("part"))
    if errand.verb == "push":
        return (yield from robot.push("object"))
    taken = yield from robot.grasp("object")
    if not taken.completed or errand.receptacle is None:
        return taken
    return (yield from robot.place("receptacle"))
