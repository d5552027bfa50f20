"""What a policy server counts."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Final

import numpy as np

WINDOW: Final = 1000
"""Latest inferences that times are taken over."""


@dataclass(frozen=True, slots=True)
class EngineStats:
    """How the engine fares."""

    sessions: int
    waiting: int
    """Calls that were not begun yet."""
    inferences: int
    """Chunks that were given."""
    batches: int
    """Calls of the policy."""
    padded: int
    """Rows that were computed for nobody."""
    late: int
    """Requests that were not begun, because their deadline had passed."""
    failed: int
    """Requests at which the policy raised."""
    resets: int
    infer_p50_ms: float
    """Median of the latest calls of the policy; NaN before the first."""
    infer_p99_ms: float


@dataclass(slots=True)
class Tally:
    """The counters behind `EngineStats`; only the worker writes."""

    inferences: int = 0
    batches: int = 0
    padded: int = 0
    late: int = 0
    failed: int = 0
    resets: int = 0
    times_s: deque[float] = field(default_factory=lambda: deque(maxlen=WINDOW))

    def add(self, count: int, rows: int, seconds: float) -> None:
        """Count one call of the policy for `count` sessions."""
        self.inferences += count
        self.batches += 1
        self.padded += max(0, rows - count)
        self.times_s.append(seconds)

    def stats(self, sessions: int, waiting: int) -> EngineStats:
        """Return the counters as they are."""
        times = np.array(list(self.times_s)) * 1000.0
        p50, p99 = np.quantile(times, (0.5, 0.99)) if times.size else (np.nan, np.nan)
        return EngineStats(
            sessions, waiting, self.inferences, self.batches, self.padded, self.late, self.failed,
            self.resets, float(p50), float(p99),
        )  # fmt: skip
