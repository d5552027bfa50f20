"""What a process of their own costs critics: the same ticks judged with it and without.

Wall time, not CPU time: most of the difference is waiting for the other process. The two take turns
at every tick, so that the load of the machine is the same for both.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

import numpy as np

from zetta.critics.bench_cases import typical_critics, wandering
from zetta.critics.confinement import why_not
from zetta.critics.isolation import IsolatedMonitor
from zetta.critics.isolation_messages import CriticProgram
from zetta.critics.monitor import CriticMonitor
from zetta.runtime.benchmarks import Figure
from zetta.runtime.core import Array, Monitor
from zetta.runtime.signals import SIGNALS, SignalHistory

CRITICS: Final = 6
"""As many as the starter bundle has."""
TICKS: Final = 600
WARM_UP: Final = 20
DRIVING: Final = "policy"


@dataclass(frozen=True, slots=True)
class _Judged:
    """One tick, judged twice."""

    spoke: bool
    own_s: float
    apart_s: float


def isolation_figures(control_hz: float = 20.0) -> list[Figure]:
    """Measure a tick of ordinary critics in a process of their own, against the same in process.

    Returns the medians in microseconds of the ticks at which no critic speaks, as in most of a
    run, and of those at which some do; nothing where a process cannot be confined. The ratio is
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
        ticks = _alternated(own, apart, control_hz)[WARM_UP:]
    return [
        _figure("critics_isolated_silent_p50", [tick for tick in ticks if not tick.spoke]),
        _figure("critics_isolated_speaking_p50", [tick for tick in ticks if tick.spoke]),
    ]


def _figure(name: str, ticks: Sequence[_Judged]) -> Figure:
    value = 1e6 * median(tick.apart_s for tick in ticks)
    baseline = 1e6 * median(tick.own_s for tick in ticks)
    return Figure(name, value, "us", baseline, baseline / value)


def _alternated(own: Monitor, apart: Monitor, control_hz: float) -> list[_Judged]:
    """Return what two monitors took for each tick of a made-up episode."""
    names = list(SIGNALS)
    history = SignalHistory(names, control_hz)
    low = np.array([SIGNALS[name].low for name in names])
    high = np.array([SIGNALS[name].high for name in names])
    rows: Array = low + wandering(len(names), TICKS, 0) * (high - low)
    ticks = []
    for row in rows:
        history.push(row)
        start = time.perf_counter()
        verdicts = own.judge(history, DRIVING)
        between = time.perf_counter()
        apart.judge(history, DRIVING)
        end = time.perf_counter()
        ticks.append(_Judged(bool(verdicts), between - start, end - between))
    return ticks
