"""Critics on a log: what they would have said, tick by tick.

Critics are functions of the signals, and signals are logged, so a log gives the verdicts of the
live run again; and a log of a run without critics shows what they would have said in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from zetta.runtime.core import Monitor, Stop, Tick, Verdict
from zetta.runtime.errors import ConfigError
from zetta.runtime.loop import POLICY
from zetta.runtime.signals import SignalHistory


def moments(ticks: Sequence[Tick], control_hz: float) -> Iterator[tuple[Tick, SignalHistory]]:
    """Yield each tick of a log with the history that critics had at it.

    It is one history, which the next tick goes on filling.
    """
    names = tuple(ticks[0].signals) if ticks else ()
    history = SignalHistory(names, control_hz)
    for tick in ticks:
        history.push(np.array([tick.signals[name] for name in names]))
        yield tick, history


def replay_verdicts(
    ticks: Sequence[Tick], monitor: Monitor, control_hz: float, stop: Stop | None = None
) -> tuple[tuple[Verdict, ...], ...]:
    """Return what `monitor` says at each tick of a logged episode.

    Args:
        ticks: the log, whole.
        monitor: runs the critics; it is begun anew.
        control_hz: ticks per second of the log.
        stop: the tick after them at which critics ended the episode; it is judged last.

    Raises:
        ConfigError: the log holds no signals.
    """
    if ticks and not ticks[0].signals:
        raise ConfigError(
            "this log holds no signals; run the episode again with --signals or with a bundle"
        )
    monitor.begin()
    said = []
    driving = POLICY
    history = SignalHistory((), control_hz)
    for tick, history in moments(ticks, control_hz):
        said.append(monitor.judge(history, driving))
        driving = tick.source
    if stop is not None:
        if not ticks:
            history = SignalHistory(tuple(stop.signals), control_hz)
        history.push(np.array([stop.signals[name] for name in history.names]))
        said.append(monitor.judge(history, driving))
    return tuple(said)
