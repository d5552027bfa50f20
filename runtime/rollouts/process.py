"""A worker process as its pool sees it."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import selectors
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from zetta.runtime.core import RunSpec
from zetta.runtime.errors import InfraError, WorkerDied
from zetta.runtime.rollouts.launchers import Pulse
from zetta.runtime.rollouts.messages import decode, encode, spec_to_json

START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from zetta.runtime.rollouts.worker import main; "
    "main(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))"
)
LOG_TAIL_LINES = 3


class WorkerProcess:
    """One spawned process, spoken to over two private pipes.

    A fresh interpreter is started (nothing is forked), in a session of its own, so that it and
    all its children can be ended together. When this side goes away, it ends itself.
    """

    def __init__(
        self, name: str, factory: str, log: Path, environment: Mapping[str, str] | None
    ) -> None:
        """Start the process; its stdout and stderr are appended to `log`.

        Raises:
            InfraError: the operating system refuses another process.
        """
        self.name = name
        self.pulse = Pulse()
        self.log = log
        self._unread = b""
        read_here, write_there = _pipe()
        read_there, write_here = _pipe()
        paths = json.dumps([str(Path(p).absolute()) for p in sys.path])
        arguments = [sys.executable, "-c", START, paths, factory, str(read_there), str(write_there)]
        try:
            with log.open("ab") as out:
                self._process = subprocess.Popen(
                    arguments,
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=subprocess.STDOUT,
                    env=None if environment is None else dict(environment),
                    pass_fds=(read_there, write_there),
                    start_new_session=True,
                )
        except OSError as error:
            for descriptor in (read_here, write_here):
                os.close(descriptor)
            raise InfraError(f"cannot start {name}: {error}; try fewer workers") from error
        finally:
            os.close(read_there)
            os.close(write_there)
        os.set_blocking(read_here, False)
        self._read, self._write = read_here, write_here
        self._open = [read_here, write_here]

    @property
    def pid(self) -> int:
        """Process id, which is also the id of its process group."""
        return self._process.pid

    @property
    def handle(self) -> int:
        """The descriptor that becomes readable when the worker speaks or dies."""
        return self._read

    def run(self, job_id: int, spec: RunSpec) -> None:
        """Ask for one episode."""
        self._send({"do": "run", "id": job_id, "spec": spec_to_json(spec)})

    def identify(self, specs: Sequence[RunSpec]) -> None:
        """Ask what the factory would run."""
        self._send({"do": "identify", "id": 0, "specs": [spec_to_json(s) for s in specs]})

    def stop(self) -> None:
        """Ask the worker to end by itself."""
        self._send({"do": "stop"})

    def messages(self) -> list[dict[str, Any]]:
        """Return what has arrived; phases and ticks are noted here on the way.

        Raises:
            WorkerDied: the process has ended and everything it said has been returned.
        """
        ended = self._fill()
        *lines, self._unread = self._unread.split(b"\n")
        arrived = [decode(line) for line in lines]
        if ended and not arrived:
            raise WorkerDied(self.last_words(f"ended ({self._exit_text()})"))
        self.pulse.note(arrived)
        return arrived

    def last_words(self, what: str) -> str:
        """Return one sentence: who, what happened, in which phase, and the end of its log."""
        tail = self._log_tail()
        said = f"; its last output: {tail}" if tail else ""
        return f"{self.name} {what} while {self.pulse.phase}{said}"

    def ended(self) -> bool:
        """Say whether the process is gone."""
        return self._process.poll() is not None

    def kill(self) -> None:
        """End the process and its children at once; harmless when they have ended."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        while self._open:
            os.close(self._open.pop())

    def _send(self, message: Mapping[str, object]) -> None:
        with contextlib.suppress(BrokenPipeError):  # its death is met when reading
            os.write(self._write, encode(message))

    def _fill(self) -> bool:
        """Read what is there; return True at the end of the stream."""
        while True:
            try:
                chunk = os.read(self._read, 65536)
            except BlockingIOError:
                return False
            if not chunk:
                return True
            self._unread += chunk

    def _exit_text(self) -> str:
        try:
            code = self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            return "it closed its pipe"
        return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"

    def _log_tail(self) -> str:
        with self.log.open("rb") as log:
            log.seek(max(0, log.seek(0, os.SEEK_END) - 4000))
            lines = log.read().decode(errors="replace").splitlines()
        spoken = [line.strip() for line in lines if line.strip() and not line.startswith("-- ")]
        return " | ".join(spoken[-LOG_TAIL_LINES:])


class ProcessSite:
    """Worker processes of this machine: there is always room for one more."""

    def __init__(
        self, factory: str, log_dir: Path, environment: Mapping[str, str] | None = None
    ) -> None:
        """Workers run the factory of that dotted name and print into files of `log_dir`."""
        self._factory, self._log_dir, self._environment = factory, log_dir, environment
        self._started = 0

    def has_room(self) -> bool:
        """Say yes: the pool knows how many workers are wanted."""
        return True

    def start(self, name: str) -> WorkerProcess:
        """Start a process.

        Raises:
            InfraError: the operating system refuses another process.
        """
        self._started += 1
        self._log_dir.mkdir(parents=True, exist_ok=True)
        log = self._log_dir / f"{self._started:03d}-{_portable(name)}.log"
        return WorkerProcess(name, self._factory, log, self._environment)

    def wait(self, handles: Sequence[Any], within_s: float) -> None:
        """Wait until one of the descriptors is readable, at most `within_s`."""
        with selectors.DefaultSelector() as selector:
            for handle in handles:
                selector.register(handle, selectors.EVENT_READ)
            selector.select(within_s)

    def close(self) -> None:
        """Hold nothing: each process is ended by its pool."""


def _portable(name: str) -> str:
    return "".join(c if c.isalnum() else "-" for c in name).strip("-")


def _pipe() -> tuple[int, int]:
    """Return a pipe whose ends are none of the standard descriptors, even where those are closed.

    The worker gets its own standard descriptors, which would overwrite an end numbered below 3.
    """
    ends = []
    for low in os.pipe():
        ends.append(fcntl.fcntl(low, fcntl.F_DUPFD_CLOEXEC, 3))
        os.close(low)
    return ends[0], ends[1]
