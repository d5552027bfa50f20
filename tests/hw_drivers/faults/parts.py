"""Processes around one arm, what its journal says, and what a fault must come to."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tests.hw_drivers.arm_parts import until

WATCHDOG_S, SLACK_S = 0.2, 0.05
TTL_S = 0.1
STILL_M_S = 0.005
LONG_S = 90.0
"""How long a program may take to begin on a busy machine."""
HERE = Path(__file__).parent
ROOT = HERE.parents[2]

SIDE = os.environ.get("ZETTA_TEST_SIDE", "simple")
"""Robot side that is tried: `simple`, or `python:MODULE:FACTORY`."""
LIMITS = os.environ.get("ZETTA_TEST_LIMITS", "simple")

SETUP = """
name = "bench"
url = "{url}"
limits = "{limits}"
[[tasks]]
instruction = "sway"
max_steps = 100000
"""
CAMERA = """
[cameras.front]
source = "{source}"
height = 24
width = 32
intrinsics = [[30, 0, 16], [0, 30, 12], [0, 0, 1]]
T_parent_cam = [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]
"""


@dataclass(frozen=True, slots=True)
class Event:
    """One line of a journal."""

    t: float
    kind: str
    numbers: tuple[float, ...]


class Child:
    """A process of ours; its output goes to a file."""

    def __init__(self, folder: Path, name: str, command: Sequence[str]) -> None:
        self.said = folder / f"{name}-{time.monotonic_ns()}.txt"
        self.noted = self.said.with_suffix(".err")
        with self.said.open("wb") as out, self.noted.open("wb") as err:
            self.process = subprocess.Popen(list(command), stdout=out, stderr=err, cwd=ROOT)

    def first_line(self) -> str:
        """Wait for the first line that it prints."""
        try:
            until(lambda: b"\n" in self.said.read_bytes() or self.gone, "the first line", LONG_S)
            assert not self.gone, self.text
        except BaseException:
            self.end()
            raise
        return self.said.read_text(encoding="utf-8").splitlines()[0]

    @property
    def gone(self) -> bool:
        return self.process.poll() is not None

    @property
    def text(self) -> str:
        """All that it said so far."""
        return self.said.read_text(errors="replace") + self.noted.read_text(errors="replace")

    def send(self, number: signal.Signals) -> None:
        os.kill(self.process.pid, number)

    def end(self, number: signal.Signals = signal.SIGKILL) -> None:
        if not self.gone:
            self.process.send_signal(signal.SIGCONT)
            self.process.send_signal(number)
        self.process.wait(20.0)


class Robot(Child):
    """The robot's side with its journal."""

    def __init__(self, folder: Path, *options: str, side: str = SIDE, limits: str = LIMITS) -> None:
        self.journal = folder / f"journal-{time.monotonic_ns()}.txt"
        self.limits = limits
        self._read, self._events = 0, list[Event]()
        command = [sys.executable, "-m", "tests.hw_drivers.faults.robot_child"]
        command += ["--side", side, "--limits", limits, "--journal", str(self.journal)]
        super().__init__(folder, "robot", [*command, "--realtime", *options])
        self.ports = json.loads(self.first_line())
        self.host = "127.0.0.1"
        if "--host" in options:
            self.host = options[options.index("--host") + 1]
        self.url = f"tcp://{self.host}:{self.ports[0]}"

    def events(self, since: float = 0.0) -> list[Event]:
        """Return what was written down after `since`."""
        with self.journal.open("rb") as file:
            file.seek(self._read)
            whole, _, _ = file.read().rpartition(b"\n")
        self._read += len(whole) + bool(whole)
        for line in whole.decode().splitlines():
            t, kind, *numbers = line.split()
            self._events.append(Event(float(t), kind, tuple(map(float, numbers))))
        first = bisect_left(self._events, since - 1.0, key=lambda event: event.t)
        return [event for event in self._events[first:] if event.t >= since]

    def told(self, kind: str, since: float = 0.0) -> list[Event]:
        return [event for event in self.events(since) if event.kind == kind]

    def wait_moving(self, since: float = 0.0) -> None:
        """Wait until the hand has gone a few centimetres and is fast."""

        def moving() -> bool:
            lately = self.events(max(since, time.monotonic() - 0.5))
            reads = [e for e in lately if e.kind == "read"][-40:]
            told = [e.kind for e in lately if e.kind in ("send", "hold")]
            if len(reads) < 40 or len(told) < 8 or "hold" in told:
                return False
            way = np.subtract(reads[-1].numbers, reads[0].numbers)
            return float(np.linalg.norm(way)) / (reads[-1].t - reads[0].t) > 0.1

        until(moving, "the arm moves", LONG_S)


class Run(Child):
    """`zetta run` on an arm."""

    def __init__(self, folder: Path, robot: Robot, policy: str, camera: str = "") -> None:
        stem = f"run-{time.monotonic_ns()}"
        setup = folder / f"{stem}.toml"
        setup.write_text(
            SETUP.format(url=robot.url, limits=robot.limits)
            + (CAMERA.format(source=f"zmq:{camera}") if camera else "")
        )
        command = [sys.executable, "-m", "zetta.runtime.cli.main", "run", "--arm", str(setup)]
        super().__init__(
            folder, "run", [*command, "--policy", policy, "--out", str(folder / stem), "--json"]
        )


class PolicyServer(Child):
    """`zetta serve` with the policy that sways."""

    def __init__(self, folder: Path) -> None:
        command = [sys.executable, "-m", "zetta.runtime.cli.main", "serve", "--json"]
        policy = f"python:{HERE / 'swaying.py'}:make"
        super().__init__(
            folder, "serve", [*command, "--policy", policy, "--bind", "tcp://127.0.0.1:*"]
        )
        self.url = str(json.loads(self.first_line())["endpoint"]).replace("tcp", "zmq")


class CameraProcess(Child):
    """A camera that sends pictures."""

    def __init__(self, folder: Path) -> None:
        super().__init__(
            folder, "camera", [sys.executable, "-m", "tests.hw_drivers.faults.camera_child"]
        )
        self.url = self.first_line()


class Program(Child):
    """A program that sways the arm."""

    def __init__(
        self, folder: Path, robot: Robot, before: Sequence[str] = (), keys: str = ""
    ) -> None:
        self.sent = folder / f"sent-{time.monotonic_ns()}.txt"
        # Its pauses would be another fault, on a machine that is busy with other things.
        before = [
            *(["chrt", "-f", "10"] if shutil.which("chrt") and not os.geteuid() else []),
            *before,
        ]
        command = [*before, sys.executable, "-m", "tests.hw_drivers.faults.program_child"]
        command += [robot.url, robot.limits, str(self.sent), *([keys] if keys else [])]
        super().__init__(folder, "program", command)

    def times(self) -> list[tuple[float, int]]:
        """Return when which command was sent."""
        rows = [line.split() for line in self.sent.read_text().splitlines()]
        return [(float(row[0]), int(row[1])) for row in rows if len(row) == 2]


@contextmanager
def ending(*children: Child) -> Iterator[None]:
    """End processes with the block."""
    try:
        yield
    finally:
        for child in children:
            child.end()


@dataclass(frozen=True, slots=True)
class Held:
    """How an arm came to hold."""

    after_fault_s: float
    """From the fault to being told."""
    after_command_s: float
    """From the last command that was taken to being told."""
    still_s: float
    """From the fault until the hand was slower than 5 mm/s."""
    longest_turn_s: float
    """The longest time in which the robot's side did not run; a busy machine shows there."""
    at: float


def held(robot: Robot, fault: float, kind: str = "hold") -> Held:
    """Wait until the arm is told to hold after `fault`, and for it to stand; nothing is sent then.

    Raises:
        AssertionError: it was sent somewhere after it was told.
    """
    until(lambda: bool(robot.told(kind, fault)), "the arm is told to hold")
    until(lambda: robot.gone or still_at(robot, fault) < np.inf, "the arm stands")
    time.sleep(0.1)  # for what must not come
    first = robot.told(kind, fault)[0].t
    events = robot.events(fault - 2.0)
    asked = [e.t for e in events if e.kind == "asked" and e.t <= first]
    assert not [e for e in events if e.kind == "send" and e.t > first]
    turns = np.diff([e.t for e in events if e.kind == "read" and fault - 0.3 <= e.t <= first + 0.1])
    return Held(
        first - fault,
        first - asked[-1],
        still_at(robot, fault) - fault,
        float(turns.max(initial=0.0)),
        first,
    )


def still_at(robot: Robot, since: float) -> float:
    """Return when the hand was slower than 5 mm/s for good; infinite where it is not yet."""
    reads = robot.told("read", since)
    t = np.array([e.t for e in reads])
    if len(t) < 10 or t[-1] - t[0] < 0.05:
        return np.inf
    grid = np.arange(t[0], t[-1], 0.01)
    places = np.array([np.interp(grid, t, [e.numbers[k] for e in reads]) for k in range(3)])
    speed = np.linalg.norm(np.diff(places, axis=1), axis=0) / 0.01
    fast = np.flatnonzero(speed >= STILL_M_S)
    last = -1 if fast.size == 0 else int(fast[-1])
    return np.inf if last >= len(speed) - 3 else float(grid[last + 1])


def assert_nothing_stale(robot: Robot, program: Program, since: float) -> None:
    """Every command that was taken after `since` had been sent within its time to live."""
    taken = robot.told("asked", since)
    sent = program.times()  # read later, for the program goes on
    for event in taken:
        times = [t for t, seq in sent if seq == event.numbers[0] and t <= event.t]
        assert times, f"command {event.numbers[0]:g} was taken and not sent"
        assert event.t - times[-1] <= TTL_S + 0.02


def assert_begins_where_it_stands(robot: Robot, since: float) -> None:
    """The first target after a hold is where the hand is."""
    first = robot.told("send", since)[0]
    before = [e for e in robot.told("read", since - 1.0) if e.t <= first.t][-1]
    assert np.linalg.norm(np.subtract(first.numbers, before.numbers)) < 0.01


def report(name: str, rows: Sequence[Held]) -> None:
    """Print what was measured."""
    ms = {
        field: [1000.0 * getattr(row, field) for row in rows]
        for field in ("after_fault_s", "after_command_s", "still_s", "longest_turn_s")
    }
    said = ", ".join(f"{k[:-2]} {min(v):.0f} to {max(v):.0f} ms" for k, v in ms.items())
    print(f"\n{name}, {len(rows)} times: {said}")


def wait_quietly(seconds: float) -> None:
    """Let a fault last."""
    with contextlib.suppress(InterruptedError):
        time.sleep(seconds)
