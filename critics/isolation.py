"""A monitor whose critics run in a process of their own that can do nothing but judge.

For those who want that beside the static check of the programs. The process gets the texts of the
critics, compiles them there with the same check, and is then confined (`zetta.critics.confinement`)
before it sees the first signal. Verdicts, latches and refractory times are those of
`CriticMonitor`, which runs in it unchanged.

What goes wrong with the process is an error of the machinery and ends the episode without a score:
critics that are silently off would let the policy fail unwatched, and a process that was started
anew within an episode would make verdicts depend on the load of the machine.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from zetta.critics.confinement import why_not
from zetta.critics.isolation_messages import (
    READ_BYTES,
    CriticProgram,
    Setup,
    framed,
    read_message,
)
from zetta.critics.monitor import MonitorState, check_state
from zetta.runtime.core import Verdict, Window
from zetta.runtime.errors import ConfigError, InfraError, SpecMismatch, Timeout, WorkerDied
from zetta.runtime.signals import SignalHistory, SignalSpec
from zetta.runtime.wire import from_wire, to_wire

START: Final = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from zetta.critics.isolation_worker import serve; serve()"
)
START_S: Final = 60.0
"""How long the process may take to import and compile, on a busy machine."""
DEADLINE_S: Final = 1.0
"""How long a tick may take. Not a limit on critics, whose work is counted before they run: it tells
a process that hangs, and is so long that the load of the machine does not end episodes."""
LAST_WORDS_BYTES: Final = 4000
NEEDED: Final = ("LD_LIBRARY_PATH",)
"""Environment variables that the process gets: what its interpreter needs to start, no secrets."""


def check_isolation() -> None:
    """Refuse a machine on which critics cannot be isolated.

    Raises:
        ConfigError: not Linux on a known architecture, or a kernel without seccomp.
    """
    reason = why_not()
    if reason:
        raise ConfigError(f"{reason}; leave --critic-isolation out to run them in process")


class IsolatedMonitor:
    """A `core.Monitor` with a process behind it; use it as a context, or close it.

    Each episode has a fresh process. It ends with the thread that called `begin`.
    """

    def __init__(
        self,
        programs: Sequence[CriticProgram],
        control_hz: float,
        extra: Sequence[SignalSpec] = (),
        deadline_s: float = DEADLINE_S,
    ) -> None:
        """Compile the critics once here, so that what is wrong with them is said at once.

        Args:
            programs: the critics, in bundle order.
            control_hz: ticks per second.
            extra: signals that exist beside the built-in ones.
            deadline_s: how long the critics may take at a tick.

        Raises:
            ScreenError: a program is not in the language.
            ConfigError: a value of a parameter is out of bounds, or the machine cannot do this.
        """
        check_isolation()
        critics = [program.compile(control_hz, extra) for program in programs]
        self._critics = tuple(critic.name for critic in critics)
        self._may_say = {
            (critic.name, skill) for critic in critics for skill in (None, critic.skill)
        }
        self._signals = tuple(sorted({name for each in critics for name in each.signals}))
        self._setup = Setup(tuple(programs), control_hz, tuple(extra))
        self._deadline_s = deadline_s
        self._kept = SignalHistory((), control_hz).ticks
        self._names: tuple[str, ...] | None = None
        self._process: _Process | None = None

    def __enter__(self) -> IsolatedMonitor:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def pid(self) -> int | None:
        """Id of the process; None before the first episode and after `close`."""
        return None if self._process is None else self._process.pid

    def begin(self) -> None:
        """Forget the last episode: start a fresh process.

        Raises:
            InfraError: it cannot be started or confined.
        """
        self.close()
        self._process = _Process()
        self._names = None
        answer = self._ask(to_wire(self._setup), START_S)
        if "error" in answer:
            self.close()
            raise InfraError(f"critics cannot be isolated: {answer['error']}")
        if answer.get("critics") != list(self._critics):
            raise self._nonsense(SpecMismatch("it does not run the critics that it was given"))

    def judge(self, window: Window, driving: str) -> tuple[Verdict, ...]:
        """Return what is not `pass`, in bundle order, and one `pass` for each switching-off.

        Raises:
            WorkerDied: the process has ended.
            Timeout: it does not answer; it is ended.
            InfraError: it says what no critic of it can say; it is ended.
        """
        if self._names is None:
            request = self._history(window, driving)
        else:
            row = [window.last(name, 1).item() for name in self._names]
            request = {"row": row, "driving": driving}
        answer = self._ask(request, self._deadline_s)
        said = answer.get("verdicts")
        if said == []:
            return ()
        return self._checked(said)

    def state(self) -> MonitorState:
        """Return what is remembered now, between two ticks.

        Raises:
            InfraError: as in `judge`.
        """
        answer = self._ask({"do": "state"}, self._deadline_s)
        try:
            state = from_wire(MonitorState, answer.get("state"))
            check_state(state, self._critics)
        except SpecMismatch as error:
            raise self._nonsense(error) from error
        return state

    def restore(self, state: MonitorState) -> None:
        """Continue from `state`; the next tick brings all that its window remembers.

        Raises:
            SpecMismatch: it is the state of other critics.
            InfraError: as in `begin` and `judge`.
        """
        check_state(state, self._critics)
        if self._process is None:
            self.begin()
        self._ask({"do": "restore", "state": to_wire(state)}, self._deadline_s)
        self._names = None

    def close(self) -> None:
        """End the process; calling it again does nothing."""
        if self._process is not None:
            self._process.end()
            self._process = None

    def _history(self, window: Window, driving: str) -> dict[str, object]:
        """Return a request that brings all of the window, and the names that later rows follow."""
        known: list[str] = []
        columns: list[list[float]] = []
        for name in self._signals:
            with contextlib.suppress(KeyError):  # an episode lacks what its robot does not sense
                columns.append(window.last(name, self._kept).tolist())
                known.append(name)
        rows = list(zip(*columns, strict=True)) or [()] * self._kept
        self._names = tuple(known)
        return {"names": known, "rows": rows, "driving": driving}

    def _checked(self, said: object) -> tuple[Verdict, ...]:
        """Return verdicts that the critics may give.

        Raises:
            InfraError: there is something else.
        """
        try:
            if not isinstance(said, list):
                raise SpecMismatch(f"got {type(said).__name__}, expected a list of verdicts")
            verdicts = tuple(from_wire(Verdict, each) for each in said)
            for verdict in verdicts:
                if (verdict.critic, verdict.skill) not in self._may_say:
                    raise SpecMismatch(
                        f"got a verdict of {verdict.critic!r} for {verdict.skill!r}, which is of "
                        "no critic here"
                    )
        except SpecMismatch as error:
            raise self._nonsense(error) from error
        return verdicts

    def _ask(self, request: Mapping[str, object], within_s: float) -> dict[str, Any]:
        if self._process is None:
            raise InfraError("the isolated critics have no process; begin an episode first")
        try:
            return self._process.ask(request, within_s)
        except SpecMismatch as error:
            raise self._nonsense(error) from error
        except InfraError:
            self.close()
            raise

    def _nonsense(self, error: SpecMismatch) -> InfraError:
        self.close()
        return InfraError(f"the process of the isolated critics gave no sensible answer: {error}")


class _Process:
    """The process and the three pipes to it."""

    def __init__(self) -> None:
        paths = json.dumps([str(Path(path).absolute()) for path in sys.path])
        needed = {name: value for name, value in os.environ.items() if name in NEEDED}
        # Threads of a linear algebra library would only be more to confine.
        threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
        try:
            process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", START, paths],
                bufsize=0,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=needed | threads,
                cwd="/",
                start_new_session=True,
            )
        except OSError as error:
            raise InfraError(f"cannot start a process for critics: {error}") from error
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        self._process = process
        self._write, self._read = process.stdin.fileno(), process.stdout.fileno()
        self._errors = process.stderr.fileno()
        for descriptor in (self._write, self._read, self._errors):
            os.set_blocking(descriptor, False)
        self._readable, self._writable = select.poll(), select.poll()
        self._readable.register(self._read, select.POLLIN)
        self._writable.register(self._write, select.POLLOUT)
        # Whoever forgets to close a monitor leaves no process behind.
        self._end = weakref.finalize(self, _end, process)

    @property
    def pid(self) -> int:
        return self._process.pid

    def end(self) -> None:
        """Kill the process; it has nothing to lose."""
        self._end()

    def ask(self, request: Mapping[str, object], within_s: float) -> dict[str, Any]:
        """Return the answer to a request.

        Raises:
            SpecMismatch: it is none.
            WorkerDied: the process has ended.
            Timeout: no answer within `within_s`.
        """
        deadline = time.monotonic() + within_s
        try:
            left = memoryview(framed(request))
            while left:
                try:
                    left = left[os.write(self._write, left) :]
                except BlockingIOError:
                    self._wait(self._writable, deadline, within_s)
        except BrokenPipeError:
            raise WorkerDied(self._last_words()) from None
        arrived = b""
        while (answer := read_message(arrived)) is None:
            self._wait(self._readable, deadline, within_s)
            part = os.read(self._read, READ_BYTES)
            if not part:
                raise WorkerDied(self._last_words())
            arrived += part
        return answer

    def _wait(self, poll: select.poll, deadline: float, within_s: float) -> None:
        left_ms = max(0.0, deadline - time.monotonic()) * 1000
        if not poll.poll(left_ms):
            raise Timeout(
                f"the process of the isolated critics did not answer within {within_s:g} s; "
                "the episode has no score, run it again"
            )

    def _last_words(self) -> str:
        try:
            code = self._process.wait(timeout=5)
            how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        except subprocess.TimeoutExpired:
            how = "it closed its pipe"
        try:
            said = os.read(self._errors, LAST_WORDS_BYTES).decode(errors="replace")
        except BlockingIOError:
            said = ""
        lines = [line.strip() for line in said.splitlines() if line.strip()]
        last = f"; its last output: {lines[-1]}" if lines else ""
        return f"the process of the isolated critics ended ({how}){last}"


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()
