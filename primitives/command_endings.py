"""How the motion of a command ended, before it is told as a result."""

from __future__ import annotations

from dataclasses import dataclass

from zetta.primitives.command_results import StopReason
from zetta.runtime.core import Array, Outcome

_STOPS: tuple[tuple[str, StopReason], ...] = (
    ("was not found", "not found"),
    ("closed on nothing", "slipped"),
    ("slipped", "slipped"),
    ("dropped", "slipped"),
    ("nothing is held", "slipped"),
    ("no grasp", "unreachable"),
    ("stands in the way", "unreachable"),
    ("time was up", "timeout"),
)
"""What a reason of a primitive says about why it stopped; anything else was stopped by contact."""


@dataclass(frozen=True, slots=True)
class Ending:
    """How one arm's part of a command ended."""

    completed: bool
    stop: StopReason
    detail: str
    asked: Array | None = None
    """Displacement that was asked for, world frame. Shape (3,)."""
    error: float | None = None
    """Metres left."""
    turn_error: float | None = None
    """Radians left."""
    notices: tuple[str, ...] = ()


def refused(detail: str) -> Ending:
    """Return the ending of a command that was not begun."""
    return Ending(False, "refused", detail)


def ending_of(outcome: Outcome) -> Ending:
    """Return how a primitive ended.

    >>> ending_of(Outcome(False, "the object was not found")).stop
    'not found'
    """
    if outcome.completed:
        return Ending(True, "reached", outcome.reason)
    stop: StopReason = "contact"
    for words, meaning in _STOPS:
        if words in outcome.reason:
            stop = meaning
            break
    return Ending(False, stop, outcome.reason)
