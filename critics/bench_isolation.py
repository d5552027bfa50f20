"""What a process of their own costs critics: the same ticks judged with it and without.

Wall time, not CPU time: most of the difference is waiting for the other process. The two take turns
at every tick, so that the load of the machine is the same for both.
"""

from __future__ import annotations

import time
from statistics import median
from typing import Final

import numpy as np

from zetta.critics.bench_cases import typical_critics, wandering
from zetta.critics.confinement import why_not
from zetta.critics.isolation import IsolatedMonitor
from zetta.critics.isolation_messages import CriticProgram
from zetta.critics.monitor import CriticMonitor
from zetta.runtime.benchmarks import Figure
from zetta.runtime.core import Array, Monitor, Window
from zetta.runtime.signals import SIGNALS, SignalHistory

CRITICS: Final = 6
"""As many as the starter bundle has."""
TICKS: Final = 600
WARM_UP: Final = 20
DRIVING: Final = "policy"


def isolation_figures(control_hz: float = 20.0) -> list[Figure]:
    """Measure a tick of ordinary critics in a process of their own, against the same in process.

    Returns the medians in microseconds; nothing where a process cannot be confined. The ratio is
    how many times cheaper the process is, so it is below 1.
    """
    if why_not():
        return []
    texts = typical_critics()[:CRITICS]
    programs = [CriticProgram(f"typical-{k}", "typical", t, {}, {}) for k, t in enumerate(texts)]
    own = CriticMonitor([program.compile(control_hz) for program in programs])
    own.begin()
    with IsolatedMonitor(programs, control_hz) as apart:
        apart.begin()
        spent = _alternated(own, apart, control_hz)
    baseline, value = (1e6 * median(times[WARM_UP:]) for times in spent)
    return [Figure("critics_isolated_p50", value, "us", baseline, baseline / value)]


def _alternated(own: Monitor, apart: Monitor, control_hz: float) -> tuple[list[float], list[float]]:
    """Return the seconds that each monitor took at each tick of a made-up episode."""
    names = list(SIGNALS)
    history = SignalHistory(names, control_hz)
    low = np.array([SIGNALS[name].low for name in names])
    high = np.array([SIGNALS[name].high for name in names])
    rows: Array = low + wandering(len(names), TICKS, 0) * (high - low)
    spent: tuple[list[float], list[float]] = ([], [])
    for row in rows:
        history.push(row)
        for monitor, times in zip((own, apart), spent, strict=True):
            times.append(_timed(monitor, history))
    return spent


def _timed(monitor: Monitor, window: Window) -> float:
    start = time.perf_counter()
    monitor.judge(window, DRIVING)
    return time.perf_counter() - start
