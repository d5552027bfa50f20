"""The audit log: what was asked, what was sent, and why they differ, one JSON line each.

Each line carries the hash of the one before, so that a line that was changed, moved or taken out
is noticed; lines taken off the very end are not, unless somebody keeps the last hash
(`AuditLog.head`). Files are closed at a size and never deleted or reopened; the chain goes on from
file to file and from run to run.

The kernel only puts entries into a bounded queue. When the queue is full entries are dropped and
counted, and the next line says how many. A thread writes; everything is flushed to the system at
once and forced onto the disk at least each second, and at once for what matters afterwards: stops,
clears, approvals and refusals. When the disk fails, the next entry raises and the arm is led to
rest.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import math
import os
import queue
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final, TypeAlias

import numpy as np

from zetta.hw_drivers.decisions import AuditEntry, AuditSink, Command
from zetta.runtime.errors import ConfigError, InfraError, SpecMismatch

Line: TypeAlias = Mapping[str, object]

FIRST: Final = "0" * 64
"""What the first line of all names as the hash before it."""
SYNC_S: Final = 1.0
URGENT: Final = frozenset({"stop", "clear", "approve", "stopped", "refused"})
"""Verdicts that are forced onto the disk at once."""
MAX_NUMBERS: Final = 64
"""Numbers of one command that are kept: what is longer was refused for its length."""
PATTERN: Final = "audit-*.jsonl"


class AuditLog:
    """Writes entries into a folder; only one log writes into a folder at a time."""

    def __init__(self, folder: Path, max_bytes: int = 16 * 2**20, waiting: int = 4096) -> None:
        """Open a new file that goes on where the last one in `folder` ended.

        Args:
            folder: made if it is not there.
            max_bytes: a file is closed when it is as long.
            waiting: entries that may wait for the disk; more are dropped and counted.

        Raises:
            ConfigError: another log writes there, or the folder cannot be written.
            SpecMismatch: the last line in it is damaged.
        """
        if max_bytes <= 0 or waiting <= 0:
            raise ConfigError(f"sizes are above 0, got {max_bytes} bytes and {waiting} entries")
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._lock = (folder / ".lock").open("wb")
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._lock.close()
            raise ConfigError(f"another audit log writes into {folder}; choose a folder") from None
        except OSError as error:
            raise ConfigError(f"cannot write into {folder}: {error.strerror}") from error
        self._folder = folder
        self._max_bytes = max_bytes
        self._queue: queue.Queue[dict[str, object] | None] = queue.Queue(waiting)
        self._dropped = 0
        self._guard = threading.Lock()
        self._failure = ""
        self._finished = False
        self._number, self._count, self.head = _end_of(folder)
        self._file, self._size = self._next_file(), 0
        self._thread = threading.Thread(target=self._write, name="audit-log", daemon=True)
        self._thread.start()

    def __call__(self, entry: AuditEntry) -> None:
        """Keep an entry. Never waits.

        Raises:
            InfraError: the disk failed before.
        """
        if self._failure:
            raise InfraError(f"the audit log cannot be written: {self._failure}")
        plain = _plain(entry)
        with self._guard:
            if self._dropped:
                plain["dropped"] = self._dropped
            try:
                self._queue.put_nowait(plain)
            except queue.Full:
                self._dropped += 1
            else:
                self._dropped = 0

    def close(self, within_s: float = 10.0) -> None:
        """Write what waits and close; calling it again does nothing.

        Raises:
            InfraError: the disk failed, or did not take it all in time.
        """
        if self._lock.closed:
            return
        try:
            self._queue.put(None, timeout=within_s)
        except queue.Full:
            raise InfraError(f"the audit log did not write within {within_s:g} s") from None
        self._thread.join(within_s)
        if self._thread.is_alive():
            raise InfraError(f"the audit log did not write within {within_s:g} s")
        self._lock.close()
        if self._failure:
            raise InfraError(f"the audit log cannot be written: {self._failure}")

    def _write(self) -> None:
        """Write until the end is told. The only code that touches the files."""
        synced, dirty = time.monotonic(), False
        try:
            while True:
                try:
                    plain = self._queue.get(timeout=SYNC_S)
                except queue.Empty:
                    plain = {}
                if plain is None:
                    break
                if plain:
                    self._append(plain)
                    dirty = True
                late = time.monotonic() - synced >= SYNC_S
                if dirty and (late or plain.get("verdict") in URGENT):
                    os.fsync(self._file.fileno())
                    synced, dirty = time.monotonic(), False
            if self._dropped:
                self._append({"event": "end", "dropped": self._dropped})
            os.fsync(self._file.fileno())
            self._finished = True
        except OSError as error:
            self._failure = str(error)
        finally:
            if not self._finished:
                self._failure = self._failure or "its thread ended"
            self._file.close()

    def _append(self, plain: Mapping[str, object]) -> None:
        if self._size >= self._max_bytes:
            os.fsync(self._file.fileno())
            self._file.close()
            self._file, self._size = self._next_file(), 0
        line, digest = _chained({"n": self._count, **plain}, self.head)
        self._file.write(line)
        self._file.flush()
        self._size += len(line)
        self._count, self.head = self._count + 1, digest

    def _next_file(self) -> BinaryIO:
        self._number += 1
        return (self._folder / f"audit-{self._number:06d}.jsonl").open("xb")


class Changes:
    """Keeps of all entries those that say something: another driver, or not sent as asked.

    Of commands that pass as they are, the first by a driver and the first after another verdict.
    """

    def __init__(self, sink: AuditSink) -> None:
        self._sink = sink
        self._before = ("", "")

    def __call__(self, entry: AuditEntry) -> None:
        """Pass an entry on, or leave it out.

        Raises:
            InfraError: as the sink.
        """
        now = (entry.driver, entry.verdict)
        plain = entry.event == "decision" and entry.verdict == "as asked" and now == self._before
        self._before = now
        if not plain:
            self._sink(entry)


@dataclass(frozen=True, slots=True)
class AuditReport:
    """What a verified log holds."""

    files: int
    lines: int
    first: int
    """Number of the first line: above 0 where older files were moved away."""
    dropped: int
    """Entries that the log says it had no room for."""
    head: str
    """Hash of the last line."""


def verify(folder: Path) -> AuditReport:
    """Check the chain of all lines in a folder.

    Raises:
        ConfigError: there is no log.
        SpecMismatch: a line was changed, moved, taken out, or is damaged; it is named.
    """
    paths = _files(folder)
    if not paths:
        raise ConfigError(f"there is no audit log in {folder}")
    lines = dropped = 0
    first, before, number = 0, "", -1
    for path in paths:
        for at, raw in enumerate(path.read_bytes().splitlines(keepends=True), start=1):
            where = f"{path.name}:{at}"
            if not raw.endswith(b"\n"):
                # A crash tears the last line of a file; whoever opened the next one left it out.
                continue
            line = _checked(raw, where)
            if lines == 0:
                first, number = _number(line, "n"), _number(line, "n") - 1
                before = FIRST if first == 0 else str(line.get("prev"))
            if line.get("prev") != before or _number(line, "n") != number + 1:
                raise SpecMismatch(
                    f"{where}: a line before this one was taken out, changed or moved: "
                    f"after line {number} comes line {line.get('n')!r}"
                )
            number, before = number + 1, str(line["hash"])
            dropped += _number(line, "dropped")
            lines += 1
    return AuditReport(len(paths), lines, first, dropped, before or FIRST)


def _files(folder: Path) -> list[Path]:
    return sorted(folder.glob(PATTERN))


def _number(line: Line, key: str) -> int:
    value = line.get(key, 0)
    return value if isinstance(value, int) else 0


def _end_of(folder: Path) -> tuple[int, int, str]:
    """Return the number of the last file, of the next line, and the hash before it."""
    paths = _files(folder)
    for path in reversed(paths):
        whole = [raw for raw in path.read_bytes().splitlines(keepends=True) if raw.endswith(b"\n")]
        if whole:
            line = _checked(whole[-1], f"{path.name}:{len(whole)}")
            return _file_number(paths[-1]), _number(line, "n") + 1, str(line["hash"])
    return (_file_number(paths[-1]) if paths else 0), 0, FIRST


def _file_number(path: Path) -> int:
    digits = path.stem.rpartition("-")[2]
    if not digits.isdecimal():
        raise ConfigError(f"{path} is no file of an audit log; move it away")
    return int(digits)


def _chained(plain: Line, before: str) -> tuple[bytes, str]:
    """Return a line that names the hash before it, and its own hash."""
    body = _dump({**plain, "prev": before})
    digest = hashlib.sha256(body.encode()).hexdigest()
    return f'{body[:-1]}, "hash": "{digest}"}}\n'.encode(), digest


def _checked(raw: bytes, where: str) -> Line:
    """Return a line whose own hash is right.

    Raises:
        SpecMismatch: it is not.
    """
    try:
        line = json.loads(raw)
    except (ValueError, RecursionError):
        line = None
    if isinstance(line, dict) and isinstance(line.get("hash"), str):
        body = {key: value for key, value in line.items() if key != "hash"}
        if hashlib.sha256(_dump(body).encode()).hexdigest() == line["hash"]:
            return line
    raise SpecMismatch(f"{where}: this line was changed or is damaged")


def _dump(plain: Line) -> str:
    return json.dumps(plain, allow_nan=False)


def _plain(entry: AuditEntry) -> dict[str, object]:
    """Return an entry as JSON knows it, with copies of everything that may change."""
    return {
        "now": _real(entry.now),
        "tick": entry.tick,
        "event": entry.event,
        "driver": str(entry.driver)[:80],
        "verdict": entry.verdict,
        "asked": _command(entry.asked),
        "sent": _command(entry.sent),
        "reasons": list(entry.reasons),
    }


def _command(command: object) -> object:
    if command is None:
        return None
    if not isinstance(command, Command):
        return {"no command": type(command).__name__}
    try:
        numbers = np.ravel(np.asarray(command.values, dtype=np.float64))[:MAX_NUMBERS]
        values: object = _reals(numbers.tolist())
    except (TypeError, ValueError, OverflowError):
        values = f"no numbers: {type(command.values).__name__}"
    grip = command.grip
    numbers_of_grip = [getattr(grip, name, None) for name in ("opening", "speed", "force")]
    return {
        "kind": str(command.kind)[:40],
        "values": values,
        "grip": None if grip is None else _reals(numbers_of_grip),
    }


def _reals(numbers: Sequence[object]) -> list[object]:
    return [_real(number) for number in numbers]


def _real(number: object) -> object:
    """Return a finite number, or its text: JSON has no NaN."""
    if not isinstance(number, int | float):
        return type(number).__name__
    try:
        plain = float(number)
    except OverflowError:
        return "too large"
    return plain if math.isfinite(plain) else str(plain)
