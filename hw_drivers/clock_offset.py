"""How far two monotonic clocks are apart, from questions and answers, and how sure that is.

The method of NTP (RFC 5905, section 8): of a question sent at `t0` and answered at `t3` by our
clock, received at `t1` and answered at `t2` by theirs, the offset lies within half of the time that
was spent under way. The quickest of the last exchanges bounds it best.
"""

from __future__ import annotations

import math
from collections import deque
from typing import Final

SAMPLES: Final = 16
"""Exchanges that are remembered: old ones say little about clocks that drift."""
DRIFT: Final = 1e-4
"""How fast two clocks may run apart, seconds for each second: quartz keeps within 1e-4."""


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

    def add(self, t0: float, t1: float, t2: float, t3: float) -> None:
        """Take one exchange: sent, received there, answered there, received here."""
        under_way = max(0.0, (t3 - t0) - (t2 - t1))
        self._samples.append((under_way / 2.0, ((t1 - t0) + (t2 - t3)) / 2.0, t3))
        # What was measured long ago has become less sure.
        self._best = min(self._samples, key=lambda s: s[0] + DRIFT * (t3 - s[2]))

    @property
    def seconds(self) -> float:
        """Their clock minus ours."""
        return self._best[1]

    def bound(self, now: float) -> float:
        """Return how wrong `seconds` may be at `now` of our clock; infinite without an exchange."""
        half, _, t = self._best
        return half + DRIFT * max(0.0, now - t) if math.isfinite(half) else math.inf
