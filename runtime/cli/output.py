"""What every verb does alike: answers on stdout, progress on stderr, one folder for each run.

With `--json`, stdout is reserved for the one object given to `emit`; whatever else prints there
(a simulator's C library, a child process, a stray `print`) lands on stderr.
"""

from __future__ import annotations

import contextlib
import fcntl
import io
import json
import os
import secrets
import shlex
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import IO, Final, TextIO, TypeAlias

from zetta.runtime.cli import colours
from zetta.runtime.cli.colours import Table
from zetta.runtime.errors import ConfigError, InfraError

Json: TypeAlias = "str | int | float | bool | Mapping[str, Json] | Sequence[Json] | None"
"""What `json.dumps` takes."""

LOCK_NAME: Final = ".lock"
PLAIN_PROGRESS_S: Final = 10.0
"""Seconds between progress lines when stderr is not a terminal."""


class _Stdout:
    """Where the one JSON object goes, and whether it has gone."""

    reserved: TextIO | None = None
    emitted: bool = False


class _Typed:
    """What the user typed after `zetta`."""

    args: tuple[str, ...] = ()


_held_locks: list[IO[str]] = []
"""Run folders of this command; the kernel frees them when the process ends, however it ends."""
_made_folders: dict[Path, tuple[Path, ...]] = {}
"""Folders on the way to each run folder that were not there before, the innermost first."""


@contextlib.contextmanager
def reserved_stdout(wanted: bool) -> Iterator[None]:
    """Keep stdout for `emit` while the block runs; every other print goes to stderr."""
    if not wanted:
        yield
        return
    before = sys.stdout
    before.flush()
    saved = os.dup(1) if _is_descriptor_one(before) else None
    _Stdout.emitted = False
    _Stdout.reserved = before if saved is None else os.fdopen(os.dup(saved), "w", encoding="utf-8")
    if saved is not None:
        os.dup2(2, 1)
    sys.stdout = sys.stderr
    try:
        yield
    finally:
        sys.stdout = before
        with contextlib.suppress(OSError):  # `emit` has said that nothing can be written
            _Stdout.reserved.flush()
        if saved is not None:
            with contextlib.suppress(OSError):
                _Stdout.reserved.close()
            os.dup2(saved, 1)
            os.close(saved)
        _Stdout.reserved = None


def reserved_stream() -> TextIO:
    """Return the stream that `reserved_stdout` keeps, for a verb whose stdout is a protocol."""
    assert _Stdout.reserved is not None
    return _Stdout.reserved


def _is_descriptor_one(stream: TextIO) -> bool:
    try:
        return stream.fileno() == 1
    except (io.UnsupportedOperation, OSError, ValueError):
        return False


def remember_command(args: Sequence[str]) -> None:
    """Keep what was typed after `zetta`, for results that carry their command."""
    _Typed.args = tuple(args)


def typed() -> tuple[str, ...]:
    """Return what was typed after `zetta`."""
    return _Typed.args


def command_line() -> str:
    """Return the command that is running, as it can be typed again."""
    return shlex.join(["zetta", *_Typed.args])


def emit(answer: Mapping[str, Json]) -> None:
    """Print the one JSON object of a verb run with `--json`.

    NaN and infinity have no place in JSON: write None instead.

    Raises:
        InfraError: stdout takes nothing.
        RuntimeError: called a second time under `--json`.
    """
    if _Stdout.reserved is None:
        _write(json.dumps(answer, allow_nan=False), sys.stdout)
        return
    if _Stdout.emitted:
        raise RuntimeError("a verb prints exactly one JSON object; emit was called twice")
    text = json.dumps(answer, allow_nan=False)
    _Stdout.emitted = True
    _write(text, _Stdout.reserved)


def emit_failure(kind: str, message: str) -> None:
    """Under `--json`, print `{"error": {kind, message}}` unless the verb has answered already."""
    if _Stdout.reserved is not None and not _Stdout.emitted:
        emit({"error": {"kind": kind, "message": message}})


def note(text: str) -> None:
    """Tell the user what is going on: one line on stderr."""
    print(text, file=sys.stderr, flush=True)


def answer(text: str, look: Callable[[str], str] | None = None) -> None:
    """Print a result for people on stdout (on stderr under `--json`).

    A table has colours of its own; `look` gives other text some, where there shall be any. A
    reader that has seen enough, as `head` has, is no error.

    Raises:
        InfraError: stdout takes nothing.
    """
    if colours.wanted(sys.stdout):
        text = text.coloured if isinstance(text, Table) else look(text) if look else text
    try:
        _write(text, sys.stdout)
    except InfraError as error:
        if not isinstance(error.__cause__, BrokenPipeError):
            raise
        # What is left in the buffer would fail once more when the interpreter ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _write(text: str, stream: TextIO) -> None:
    try:
        print(text, file=stream, flush=True)
    except OSError as error:
        raise InfraError(
            f"the answer cannot be written to stdout: {error.strerror}; what ran before is kept "
            "in its folder"
        ) from error


def table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    """Return plain aligned columns; `answer` colours them for a terminal.

    >>> print(table(["name", "n"], [["a", "1"], ["long", "22"]]))
    name  n
    a     1
    long  22
    """
    return Table.of(columns, rows)


Advance: TypeAlias = Callable[[int, str], None]
"""Called with how much is finished in all, and a short word on the present step."""


@contextlib.contextmanager
def progress(what: str, total: int) -> Iterator[Advance]:
    """Show a bar with count and time left on stderr; plain lines where that is no terminal."""
    if not colours.lively(sys.stderr):
        yield _plain_progress(what, total)
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[step]}"),
    )
    with Progress(*columns, console=Console(stderr=True)) as bar:
        job = bar.add_task(what, total=total, step="")
        yield lambda finished, step: bar.update(job, completed=finished, step=step)


def _plain_progress(what: str, total: int) -> Advance:
    start = time.monotonic()
    last = start

    def advance(finished: int, step: str) -> None:
        nonlocal last
        now = time.monotonic()
        if finished < total and now - last < PLAIN_PROGRESS_S:
            return
        last = now
        elapsed = now - start
        left = f"{elapsed / finished * (total - finished):.0f} s" if finished else "?"
        note(f"{what}: {finished}/{total}, {elapsed:.0f} s so far, {left} left {step}".rstrip())

    return advance


def run_folder(what: str, out: Path | None = None, resume: bool = False) -> Path:
    """Create the folder of one run and hold it until the command ends.

    Without `out` the folder is `./runs/<date>-<what>-<id>` and always new. With `out` it must be
    new or empty, or hold an earlier run when `resume` is set. Two processes never hold one folder.

    Raises:
        ConfigError: `out` is in use, is not empty, or is a file.
        InfraError: the folder cannot be written.
    """
    wanted = Path("runs") if out is None else out
    missing = tuple(f for f in (wanted.absolute(), *wanted.absolute().parents) if not f.exists())
    try:
        folder = _fresh_folder(what) if out is None else _given_folder(out)
        _made_folders[folder] = missing if out else (folder, *missing)
        if not resume:
            _refuse_used(folder)
        _hold(folder)
        if not resume:  # somebody may have been faster
            _refuse_used(folder)
    except OSError as error:
        where = out or Path("runs").absolute()
        raise InfraError(
            f"cannot write to {where}: {error.strerror}; choose another folder with --out"
        ) from error
    return folder


def _refuse_used(folder: Path) -> None:
    used = sorted(p.name for p in folder.iterdir() if p.name != LOCK_NAME)
    if used:
        raise ConfigError(
            f"{folder} already holds {used[0]!r}; choose a new folder with --out, or empty it"
        )


def _fresh_folder(what: str) -> Path:
    runs = Path("runs").absolute()
    runs.mkdir(parents=True, exist_ok=True)
    while True:
        stamp = datetime.now().astimezone().strftime("%Y-%m-%d")
        folder = runs / f"{stamp}-{what}-{secrets.token_hex(3)}"
        with contextlib.suppress(FileExistsError):
            folder.mkdir()  # atomic: whoever creates it owns it
            return folder


def _given_folder(out: Path) -> Path:
    if out.exists() and not out.is_dir():
        raise ConfigError(f"--out {out} is a file; give a folder")
    out.mkdir(parents=True, exist_ok=True)
    return out.absolute()


def _hold(folder: Path) -> None:
    lock = (folder / LOCK_NAME).open("a", encoding="utf-8")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        raise ConfigError(
            f"{folder} is in use by another run; wait for it or choose another --out"
        ) from None
    _held_locks.append(lock)


def discard_folder(folder: Path) -> None:
    """Take away a folder of `run_folder` into which nothing worth keeping was written.

    What was there before stays: an empty folder given as `--out` is left empty. It is not for a
    folder that is resumed.
    """
    for inside in folder.iterdir():
        if inside.is_dir():
            shutil.rmtree(inside)
        else:
            inside.unlink()
    for made in _made_folders.pop(folder, ()):
        with contextlib.suppress(OSError):  # somebody else has put something there
            made.rmdir()


def release_folders() -> None:
    """Let other runs have the folders of this command; those that hold nothing are taken away."""
    for folder in list(_made_folders):
        if folder.is_dir() and all(p.is_dir() or p.name == LOCK_NAME for p in folder.rglob("*")):
            discard_folder(folder)
    _made_folders.clear()
    while _held_locks:
        _held_locks.pop().close()
