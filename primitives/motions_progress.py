"""Whether a motion gets on: an error that shrinks, and speed against command."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass

from zetta.primitives.rates import TUNED_HZ, per_tick_at, ticks_at

_BRAKING = 0.03
"""Distance from its goal at which the hand begins to slow down, metres."""
_CRAWL = 5e-4
"""A hand that gets on by less than this in a tick of 20 Hz is stopped, metres."""
SHRINKS = 5e-4
"""An error that falls by less than this in a tick of 20 Hz does not shrink, metres."""


@dataclass(slots=True)
class Progress:
    """Notices that an error no longer shrinks."""

    patience: int
    least: float = SHRINKS
    """By how much it must fall in a tick."""
    best: float = math.inf
    idle: int = 0
    """Ticks since it last shrank."""

    def stalled(self, error: float) -> bool:
        """Note the present error; say whether it has not shrunk for longer than the patience."""
        self.idle = 0 if error < self.best - self.least else self.idle + 1
        self.best = min(self.best, error)
        return self.idle > self.patience


class Pace:
    """Speed against command: a hand that is told to move on and does not is stopped.

    It keeps less than a third of the speed that it had, or never gets under way.
    """

    def __init__(self, control_hz: float = TUNED_HZ) -> None:
        """Begin at a control rate."""
        self._steps: deque[float] = deque(maxlen=ticks_at(control_hz, 3))
        self._fastest, self._ticks = 0.0, 0
        self._first, self._crawl = ticks_at(control_hz, 5), per_tick_at(control_hz, _CRAWL)

    def stopped(self, step: float, left: float) -> bool:
        """Note how far the last tick brought the hand; say whether something stops it.

        Args:
            step: metres of the last tick along the way.
            left: metres of the way that were left before it.
        """
        self._steps.append(step)
        self._ticks += 1
        pace = sum(self._steps) / len(self._steps)
        self._fastest = max(self._fastest, pace)
        # The hand slows down by itself before the end of its way.
        expected = self._fastest * min(1.0, left / _BRAKING)
        return self._ticks >= self._first and pace < max(self._crawl, 0.3 * expected)
