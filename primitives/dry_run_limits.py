"""What a command may ask at most, whatever the robot."""

from __future__ import annotations

import math

from zetta.primitives.commands import (
    MOVE_MOST,
    POLICY_TICKS_MOST,
    TURN_MOST_DEG,
    BaseMove,
    BaseTurn,
    Both,
    Command,
    Gripper,
    Move,
    Rotate,
    RunPolicy,
    Wait,
)
from zetta.primitives.dry_run_reach import Blocked

_SLACK = 1e-9


def beyond_limits(command: Command) -> Blocked | None:
    """Return which limit of its own a command is beyond, or None.

    >>> beyond_limits(Move((0.0, 0.0, 0.35))).why
    'asks for 35.0 cm along one axis, at most 20 cm are carried out'
    """
    numbers = _numbers(command)
    if not all(math.isfinite(n) for n in numbers):
        return Blocked("limit", "holds a number that is not finite")
    match command:
        case Move(displacement):
            most = max(abs(part) for part in displacement)
            if most > MOVE_MOST + _SLACK:
                asked = f"asks for {100.0 * most:.1f} cm along one axis"
                return Blocked(
                    "limit", f"{asked}, at most {100.0 * MOVE_MOST:.0f} cm are carried out"
                )
        case Rotate(_, angle):
            degrees = abs(math.degrees(angle))
            if degrees > TURN_MOST_DEG + _SLACK:
                return Blocked(
                    "limit", f"asks for {degrees:.0f} degrees, at most {TURN_MOST_DEG:.0f}"
                )
        case Gripper(opening):
            if not 0.0 <= opening <= 1.0:
                return Blocked("limit", f"asks for an opening of {opening:g}, expected 0 to 1")
        case Wait(seconds):
            if seconds < 0.0:
                return Blocked("limit", f"asks to wait {seconds:g} s")
        case RunPolicy(ticks):
            if not 1 <= ticks <= POLICY_TICKS_MOST:
                return Blocked(
                    "limit", f"asks for {ticks} ticks, expected 1 to {POLICY_TICKS_MOST}"
                )
        case Both(first, second):
            return beyond_limits(first) or beyond_limits(second)
    return None


def _numbers(command: Command) -> tuple[float, ...]:
    match command:
        case Move(displacement):
            return displacement
        case Rotate(_, angle) | BaseTurn(angle):
            return (angle,)
        case Gripper(number) | Wait(number) | BaseMove(_, number):
            return (number,)
    return ()
