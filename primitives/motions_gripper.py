"""Opening and closing, and the evidence that something is held."""

from __future__ import annotations

from dataclasses import dataclass

from zetta.primitives.motions import Arm, Steps, cm
from zetta.runtime.core import Array, Outcome

STILL = 4e-4
"""Fingers that move less than this in a tick of 20 Hz stand still, metres."""
_FORCE_S = 0.15
"""Time after the fingers stand still in which the grip gets its force."""
_DELAY_S = 0.35
"""Time in which fingers that can move begin to."""
LOST = 0.5
"""Share of its grip opening under which the fingers get only when a thing has left them."""
THIN = 0.02
"""A grip of less than this is lost only with empty fingers: a rim of 9 mm settles to 5, metres."""
LOST_TICKS = 3
"""They are so for so many ticks of 20 Hz."""


@dataclass(frozen=True, slots=True)
class Squeeze:
    """How closing ended."""

    holding: bool
    opening: float
    moved: bool
    """The fingers moved, or were closed before."""


def squeeze(arm: Arm, position: Array, rotation: Array, seconds: float = 1.2) -> Steps[Squeeze]:
    """Close the fingers at a fixed pose until they stand still."""
    arm.closing = True
    start = before = arm.opening
    moved, still, slow = False, 0, arm.per_tick(STILL)
    for tick in range(arm.ticks(seconds)):
        yield from arm.toward(position, rotation)
        moved = moved or arm.opening < start - 0.002
        still = still + 1 if abs(arm.opening - before) < slow else 0
        before = arm.opening
        if still >= arm.lasting(2) and (moved or tick >= arm.ticks(_DELAY_S)):
            break
    moved = moved or start < 0.9 * arm.hand.opening
    holding = moved and arm.opening > arm.hand.empty
    if holding:
        yield from arm.wait(position, rotation, arm.ticks(_FORCE_S))
        holding = arm.opening > arm.hand.empty
    return Squeeze(holding, arm.opening, moved)


def close(arm: Arm) -> Steps[Outcome]:
    """Close the fingers where the hand is; completed when something is between them."""
    grip = yield from squeeze(arm, arm.position, arm.rotation)
    return grip_outcome(grip)


def grip_outcome(grip: Squeeze) -> Outcome:
    """Return how closing ended as an outcome."""
    if not grip.moved:
        return Outcome(False, f"the fingers did not move; they are {cm(grip.opening)} apart")
    if grip.holding:
        return Outcome(True, f"something {cm(grip.opening)} wide is between the fingers")
    return Outcome(False, "closed on nothing")


def release(arm: Arm, seconds: float = 0.6, wide: float | None = None) -> Steps[Outcome]:
    """Open the fingers where the hand is, until they are `wide` open or stand still."""
    arm.closing = False
    wide = 0.95 * arm.hand.opening if wide is None else min(wide, 0.95 * arm.hand.opening)
    position, rotation = arm.position, arm.rotation
    start = before = arm.opening
    still, slow = 0, arm.per_tick(STILL)
    for tick in range(arm.ticks(seconds)):
        if arm.opening >= wide:
            break
        yield from arm.toward(position, rotation)
        still = still + 1 if abs(arm.opening - before) < slow else 0
        before = arm.opening
        if still >= arm.lasting(3) and tick >= arm.ticks(_DELAY_S):
            break
    if arm.opening >= wide:
        return Outcome(True, f"opened to {cm(arm.opening)}")
    if arm.opening < start + 0.002:
        return Outcome(False, f"the fingers did not move; they are {cm(arm.opening)} apart")
    return Outcome(False, f"opened only to {cm(arm.opening)}")


class Grip:
    """Watches the opening while something is held: lost when the fingers close on."""

    def __init__(self, arm: Arm) -> None:
        """Begin to watch; the present opening is that of the grip."""
        self._arm = arm
        self._held = arm.opening
        self._low = 0

    def lost(self) -> bool:
        """Note the present opening; say whether the thing has left the fingers.

        The fall must be clear and last: one reading at a threshold says nothing.
        """
        least = self._arm.hand.empty
        if self._held > THIN:
            least = max(least, LOST * self._held)
        self._low = self._low + 1 if self._arm.opening < least else 0
        return self._low >= self._arm.lasting(LOST_TICKS)
