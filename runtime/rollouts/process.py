"""A worker process as its pool sees it."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from zetta.runtime.core import RunSpec
from zetta.runtime.errors import InfraError, WorkerDied
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
        self.phase = "starting"
        self.heard_at = time.monotonic()
        self.warm = False  # no episode has ticked yet: imports and building take their time
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

    def fileno(self) -> int:
        """Return the descriptor that becomes readable when the worker speaks or dies."""
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
        if arrived:
            self.heard_at = time.monotonic()
        elif ended:
            raise WorkerDied(self.last_words(f"ended ({self._exit_text()})"))
        for message in arrived:
            if message["say"] == "phase":
                self.phase = str(message["text"])
            elif message["say"] == "tick":
                self.warm = True
                self.phase = f"{self.phase.partition(', tick')[0]}, tick {message['index']}"
        return arrived

    def last_words(self, what: str) -> str:
        """Return one sentence: who, what happened, in which phase, and the end of its log."""
        tail = self._log_tail()
        said = f"; its last output: {tail}" if tail else ""
        return f"{self.name} {what} while {self.phase}{said}"

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


def _pipe() -> tuple[int, int]:
    """Return a pipe whose ends are none of the standard descriptors, even where those are closed.

    The worker gets its own standard descriptors, which would overwrite an end numbered below 3.
    """
    ends = []
    for low in os.pipe():
        ends.append(fcntl.fcntl(low, fcntl.F_DUPFD_CLOEXEC, 3))
        os.close(low)
    return ends[0], ends[1]
