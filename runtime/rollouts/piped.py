"""A process that is spoken to over two private pipes and that ends when this side goes away."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from zetta.runtime.errors import InfraError, WorkerDied
from zetta.runtime.rollouts.launchers import Pulse
from zetta.runtime.rollouts.messages import decode, encode

START: Final = (
    "import json, sys; from importlib import import_module; given = json.loads(sys.argv[1]); "
    "sys.path[:] = given['paths']; module, _, main = given['main'].partition(':'); "
    "getattr(import_module(module), main)(*given['arguments'], *given['pipes'])"
)
LOG_TAIL_LINES: Final = 3


class PipedProcess:
    """One spawned process, spoken to over two private pipes.

    A fresh interpreter is started (nothing is forked), in a session of its own, so that it and
    all its children can be ended together. Its main function gets the two descriptors behind its
    arguments and ends the process when the first of them is closed.
    """

    def __init__(
        self,
        name: str,
        main: str,
        arguments: Sequence[str],
        log: Path,
        environment: Mapping[str, str] | None,
    ) -> None:
        """Start `main`, a dotted name; its stdout and stderr are appended to `log`.

        Raises:
            InfraError: the operating system refuses another process.
        """
        self.name = name
        self.pulse = Pulse()
        self.log = log
        self._unread = b""
        read_here, write_there = _pipe()
        read_there, write_here = _pipe()
        given = {
            "paths": [str(Path(p).absolute()) for p in sys.path],
            "main": main,
            "arguments": list(arguments),
            "pipes": [read_there, write_there],
        }
        try:
            with log.open("ab") as out:
                self._process = subprocess.Popen(
                    [sys.executable, "-c", START, json.dumps(given)],
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
        """The descriptor that becomes readable when the process speaks or dies."""
        return self._read

    def send(self, message: Mapping[str, object]) -> None:
        """Say something; that nobody is there any more is met when reading."""
        with contextlib.suppress(BrokenPipeError):
            os.write(self._write, encode(message))

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

    def leave(self, within_s: float) -> None:
        """Let go of the process, which then ends by itself, or is ended after `within_s`."""
        if self._write in self._open:
            self._open.remove(self._write)
            os.close(self._write)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(within_s)
        self.kill()

    def kill(self) -> None:
        """End the process and its children at once; calling it again does nothing."""
        if not self._open:  # by now its number may be another process's
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        while self._open:
            os.close(self._open.pop())

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


def portable(name: str) -> str:
    """Return `name` as a file may be called."""
    return "".join(c if c.isalnum() else "-" for c in name).strip("-")


def _pipe() -> tuple[int, int]:
    """Return a pipe whose ends are none of the standard descriptors, even where those are closed.

    The process gets its own standard descriptors, which would overwrite an end numbered below 3.
    """
    ends = []
    for low in os.pipe():
        ends.append(fcntl.fcntl(low, fcntl.F_DUPFD_CLOEXEC, 3))
        os.close(low)
    return ends[0], ends[1]
