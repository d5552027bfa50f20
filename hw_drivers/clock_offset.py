"""How far two monotonic clocks are apart, from questions and answers, and how sure that is.

The method of NTP (RFC 5905, section 8): of a question sent at `t0` and answered at `t3` by our
clock, received at `t1` and answered at `t2` by theirs, the offset lies within half of the time that
was spent under way. The quickest of the last exchanges bounds it best.

Two clocks whose exchanges contradict each other do not run alike: one has jumped, or drifts.
Nothing is then known until some exchanges in a row agree again.
"""

from __future__ import annotations

import math
from collections import deque
from typing import Final

SAMPLES: Final = 16
"""Exchanges that are remembered: old ones say little about clocks that drift."""
DRIFT: Final = 1e-4
"""How fast two clocks may run apart, seconds for each second: quartz keeps within 1e-4."""


AGREE: Final = 3
"""Exchanges that must agree with the one before, after a contradiction."""
ROUNDING_S: Final = 1e-6


class ClockOffset:
    """The offset of their clock from ours.

    >>> offset = ClockOffset()
    >>> offset.add(10.0, 110.25, 110.25, 10.5)
    >>> offset.seconds, offset.bound(10.5)
    (100.0, 0.25)
    """

    def __init__(self) -> None:
        self._samples: deque[tuple[float, float, float]] = deque(maxlen=SAMPLES)
        self._best = (math.inf, 0.0, 0.0)
        self._doubts = 0

    @property
    def trusted(self) -> bool:
        """Whether the last exchanges agree."""
        return self._doubts == 0

    def doubt(self) -> None:
        """Take note that something else has shown `seconds` to be wrong."""
        self._doubts = AGREE

    def add(self, t0: float, t1: float, t2: float, t3: float) -> None:
        """Take one exchange: sent, received there, answered there, received here."""
        under_way = (t3 - t0) - (t2 - t1)
        if not (t2 >= t1 and under_way >= -ROUNDING_S):  # answered before it was asked: no clock
            self.doubt()
            return
        half, seconds = max(0.0, under_way) / 2.0, ((t1 - t0) + (t2 - t3)) / 2.0
        if self._samples:
            apart = abs(seconds - self._best[1])
            if apart > half + self._best[0] + DRIFT * (t3 - self._best[2]) + ROUNDING_S:
                self._samples.clear()
                self._doubts = AGREE + 1
            self._doubts = max(0, self._doubts - 1)
        self._samples.append((half, seconds, t3))
        # What was measured long ago has become less sure.
        self._best = min(self._samples, key=lambda s: s[0] + DRIFT * (t3 - s[2]))

    @property
    def seconds(self) -> float:
        """Their clock minus ours."""
        return self._best[1]

    def bound(self, now: float) -> float:
        """Return how wrong `seconds` may be at `now` of our clock.

        Infinite without an exchange, and while the exchanges contradict each other.
        """
        half, _, t = self._best
        if not self.trusted:
            return math.inf
        return half + DRIFT * max(0.0, now - t) if math.isfinite(half) else math.inf
