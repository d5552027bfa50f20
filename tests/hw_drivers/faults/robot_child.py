"""A robot's side in a process of its own, which writes down everything that its arm is told.

SIDE is `simple`, or `python:MODULE:FACTORY`; LIMITS as in a set-up. The journal has one line for
each event: its time (monotonic, that of all processes of this machine), its kind, and numbers.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import sys
import threading
import time
from pathlib import Path

from zetta.hw_drivers.arm import ArmFacts, ArmReading, ArmTarget, PoseTarget, RobotSide
from zetta.hw_drivers.arm_lead import Asked
from zetta.hw_drivers.arm_limits import load_limits
from zetta.hw_drivers.arm_messages import Endpoints
from zetta.hw_drivers.arm_server import ArmServer, ServerSettings
from zetta.hw_drivers.arm_serving import GuardSettings, guarded_server
from zetta.hw_drivers.python_arm import load
from zetta.hw_drivers.simple_side import SimpleSide
from zetta.runtime.curve_keys import read_server_keys


class Journal:
    """Appends lines to a file; whoever is killed loses none."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def __call__(self, kind: str, *numbers: float, t: float | None = None) -> None:
        now = time.monotonic() if t is None else t
        os.write(self._file, f"{now:.6f} {kind} {' '.join(map(repr, numbers))}\n".encode())


class WrittenDown:
    """A `RobotSide` that tells a journal what it was told."""

    def __init__(self, side: RobotSide, journal: Journal) -> None:
        self._side, self._journal, self._still = side, journal, ""

    @property
    def facts(self) -> ArmFacts:
        return self._side.facts

    def read(self) -> ArmReading:
        reading = self._side.read()
        self._journal("read", *map(float, reading.ee_pos), t=reading.t)
        return reading

    def send(self, target: ArmTarget) -> None:
        assert isinstance(target, PoseTarget)
        self._still = ""
        self._journal("send", *map(float, target.ee_pos))
        self._side.send(target)

    def hold(self) -> None:
        self._told("hold")
        self._side.hold()

    def stop(self) -> None:
        self._told("stop")
        self._side.stop()

    def clear(self) -> None:
        self._journal("clear")
        self._side.clear()

    def close(self) -> None:
        self._journal("close")
        self._side.close()

    def _told(self, what: str) -> None:
        if self._still != what:  # it is said in every turn
            self._still = what
            self._journal(what)


def listening(server: ArmServer, journal: Journal) -> None:
    """Write down also when which command was taken."""
    ask = server._lead.ask

    def told(asked: Asked, now: float) -> None:
        journal("asked", asked.seq)
        ask(asked, now)

    server._lead.ask = told  # type: ignore[method-assign]


def main() -> None:
    parser = argparse.ArgumentParser()
    for name in ("side", "limits", "journal", "latch", "keys", "audit"):
        parser.add_argument(f"--{name}", default="")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--ports", default="")
    parser.add_argument("--realtime", action="store_true")
    given = parser.parse_args()
    if given.realtime:
        with contextlib.suppress(PermissionError):
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(20))
    over = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: over.set())
    journal = Journal(given.journal)
    side = SimpleSide() if given.side == "simple" else load(given.side)
    ports = given.ports.split(",") if given.ports else ["*"] * 3
    ends = Endpoints(*(f"tcp://{given.host}:{port}" for port in ports))
    settings = ServerSettings(ends, latch=Path(given.latch) if given.latch else None)
    guard = GuardSettings(audit=Path(given.audit) if given.audit else None, after_kernel=True)
    keys = read_server_keys(Path(given.keys)) if given.keys else None
    written = WrittenDown(side, journal)
    with guarded_server(written, load_limits(given.limits), settings, guard, keys) as server:
        listening(server, journal)
        bound = server.endpoints
        ports = [e.rpartition(":")[2] for e in (bound.command, bound.state, bound.stop)]
        print(json.dumps(ports), flush=True)
        server.serve(over.is_set)


if __name__ == "__main__":
    sys.exit(main())
