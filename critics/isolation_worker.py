"""The process of isolated critics: compiles them, gives up everything else, and judges.

`IsolatedMonitor` starts it and speaks to it over descriptors 0 and 1. It ends when these are
closed, and with the thread that started it. It keeps the history of signals itself, so a tick
brings one row.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from zetta.critics.confinement import confine, die_with_parent
from zetta.critics.isolation_messages import READ_BYTES, Setup, framed, read_message
from zetta.critics.monitor import CriticMonitor, MonitorState
from zetta.runtime.errors import SpecMismatch, ZettaError
from zetta.runtime.signals import SignalHistory
from zetta.runtime.wire import from_wire, to_wire


def serve() -> None:
    """Answer requests until the other side goes away, then end the process."""
    die_with_parent()
    setup = from_wire(Setup, _receive())
    try:
        judge = _Judge(setup)
        confine()
    except ZettaError as error:
        _send({"error": str(error)})
        os._exit(1)
    _send({"critics": list(judge.monitor.state().critics)})
    while True:
        _send(judge.answer(_receive()))


class _Judge:
    """The monitor and the history that it judges."""

    def __init__(self, setup: Setup) -> None:
        critics = [each.compile(setup.control_hz, setup.extra) for each in setup.programs]
        self.monitor = CriticMonitor(critics)
        self._control_hz = setup.control_hz
        self._history = SignalHistory((), setup.control_hz)

    def answer(self, request: dict[str, Any]) -> dict[str, object]:
        match request:
            case {"row": list(row), "driving": str(driving)}:
                self._history.push(np.array(row, dtype=np.float64))
                return self._verdicts(driving)
            case {"names": list(names), "rows": list(rows), "driving": str(driving)}:
                self._learn(names, rows)
                return self._verdicts(driving)
            case {"do": "state"}:
                return {"state": to_wire(self.monitor.state())}
            case {"do": "restore", "state": state}:
                self.monitor.restore(from_wire(MonitorState, state))
                return {}
        raise SpecMismatch(f"got a request of {', '.join(sorted(request))}")

    def _verdicts(self, driving: str) -> dict[str, object]:
        return {"verdicts": to_wire(self.monitor.judge(self._history, driving))}

    def _learn(self, names: Sequence[str], rows: Sequence[Sequence[float]]) -> None:
        """Begin the history anew with all that the loop remembers, oldest first."""
        self._history = SignalHistory(names, self._control_hz)
        for row in rows:
            self._history.push(np.array(row, dtype=np.float64))


def _send(message: dict[str, object]) -> None:
    left = memoryview(framed(message))
    while left:
        left = left[os.write(1, left) :]


def _receive() -> dict[str, Any]:
    arrived = b""
    while (message := read_message(arrived)) is None:
        part = os.read(0, READ_BYTES)
        if not part:
            os._exit(0)  # the loop has gone; nobody is left to hear anything
        arrived += part
    return message
