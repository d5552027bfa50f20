"""Real time: ticks at the control rate by the monotonic clock, late ones counted."""

from __future__ import annotations

import time

from zetta.runtime.core import Clock


class MonotonicClock:
    """The wall's monotonic clock."""

    def now(self) -> float:
        """Return seconds since an arbitrary start."""
        return time.monotonic()

    def sleep_until(self, t: float) -> bool:
        """Wait for `t`; return False when it had already passed."""
        left = t - time.monotonic()
        if left < 0.0:
            return False
        time.sleep(left)
        return True


class Pacer:
    """Holds ticks to a rate. A late tick moves the whole schedule: nothing is caught up.

    Catching up would send two commands within one period, which an arm feels as a jump.
    """

    def __init__(self, clock: Clock, hz: float) -> None:
        self.late = 0
        self._clock = clock
        self._period = 1.0 / hz
        self._next: float | None = None

    def wait(self) -> None:
        """Wait for the next tick; the first one starts the schedule at once."""
        if self._next is None:
            self._next = self._clock.now()
        elif not self._clock.sleep_until(self._next):
            self.late += 1
            self._next = self._clock.now()
        self._next += self._period

    def left_s(self, share: float) -> float:
        """Return the seconds until `share` of this tick's period is over; 0 when it is."""
        if self._next is None:
            return share * self._period
        return max(0.0, self._next - (1.0 - share) * self._period - self._clock.now())
