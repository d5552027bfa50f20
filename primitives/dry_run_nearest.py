"""The nearest command of the same kind that would be carried out."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace

from zetta.primitives.commands import (
    DIRECTIONS,
    MOVE_MOST,
    POLICY_TICKS_MOST,
    TURN_MOST_DEG,
    ArmCommand,
    Both,
    Command,
    Gripper,
    Move,
    Point,
    Rotate,
    RunPolicy,
    Wait,
)

STEP = 0.005
"""Moves are shortened in steps of this, metres."""
TURN_STEP_DEG = 5.0
"""Turns are shortened in steps of this."""


def nearest(
    command: Command, refused_at: float, passes: Callable[[Command], bool]
) -> Command | None:
    """Return the longest command of the same kind that passes, or None.

    Args:
        command: what was refused.
        refused_at: the share of its way at which it was; nothing longer is tried.
        passes: says whether another command would be carried out instead.
    """
    others: Iterator[Command]
    if not isinstance(command, Both):
        others = _shorter(command, refused_at)
    elif passes(command.second):
        firsts = map(_of_arm, _shorter(command.first, refused_at))
        others = (replace(command, first=one) for one in firsts)
    else:
        seconds = map(_of_arm, _shorter(command.second, refused_at))
        others = (replace(command, second=one) for one in seconds)
    return next((other for other in others if passes(other)), None)


def _of_arm(command: Command) -> ArmCommand:
    assert isinstance(command, Move | Rotate | Point | Gripper)  # what alone may be shortened
    return command


def _shorter(command: Command, share: float) -> Iterator[Command]:
    """Yield commands of the same kind, the nearest first; none that would do next to nothing."""
    match command:
        case Move(displacement):
            yield from _moves(command, displacement, share)
        case Rotate(_, angle) if math.isfinite(angle):
            most = min(abs(math.degrees(angle)) * share, TURN_MOST_DEG)
            for steps in range(int(most / TURN_STEP_DEG + 1e-6), 0, -1):
                shorter = math.radians(steps * TURN_STEP_DEG)
                if shorter < abs(angle) - 1e-9:
                    yield replace(command, angle=math.copysign(shorter, angle))
        case Point(direction):
            asked = DIRECTIONS.index(direction)
            others = sorted(DIRECTIONS, key=lambda d: abs(DIRECTIONS.index(d) - asked))
            yield from (replace(command, direction=other) for other in others[1:])
        case Gripper(opening) if math.isfinite(opening):
            yield replace(command, opening=min(1.0, max(0.0, opening)))
        case RunPolicy(ticks):
            yield replace(command, ticks=min(POLICY_TICKS_MOST, max(1, ticks)))
        case Wait(seconds) if math.isfinite(seconds):
            yield replace(command, seconds=max(0.0, seconds))
        case _:
            pass


def _moves(command: Move, displacement: tuple[float, float, float], share: float) -> Iterator[Move]:
    """Yield shorter moves in the same direction, in whole millimetres along each axis."""
    length = math.sqrt(sum(part * part for part in displacement))
    longest = max((abs(part) for part in displacement), default=0.0)
    if not math.isfinite(length) or length == 0.0:
        return
    most = length * min(1.0, share, MOVE_MOST / longest)
    for steps in range(int(most / STEP + 1e-6), 0, -1):
        scale = steps * STEP / length
        x, y, z = (round(scale * part, 3) for part in displacement)
        if scale < 1.0 - 1e-9:
            yield replace(command, displacement=(x, y, z))
