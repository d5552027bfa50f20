"""Films of episodes, drawn when somebody looks, one at a time, by a process of their own.

A process renders for one environment in its life, so the server never draws itself. Films lie in
the cache and not in the run: a log stays as it was written.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final, Literal, TypeAlias

from zetta.runtime.errors import InfraError

FilmState: TypeAlias = Literal["absent", "waiting", "drawing", "ready", "failed"]
DEADLINE_S: Final = 1800.0
"""For one film; a slow machine draws a long episode in minutes."""
WAITING_MOST: Final = 16
LINE_MOST: Final = 400
CACHE_BYTES: Final = 2 << 30
REMEMBERED: Final = 200
"""Failures that are kept."""

DrawCommand: TypeAlias = Callable[[Path, Path], Sequence[str]]
"""Returns the command that draws the log in a folder into a file, and says in JSON what failed."""


@dataclass(frozen=True, slots=True)
class Film:
    """Where a film stands."""

    state: FilmState
    why: str = ""
    """Why there is none, in words."""
    progress: str = ""
    """How far the drawing is, as the process that draws says it."""


class Films:
    """Draws films one after the other, the one that was asked for last first."""

    def __init__(self, folder: Path, draw: DrawCommand | None, most: int = CACHE_BYTES) -> None:
        """Prepare.

        Args:
            folder: of the films; it is made when one is drawn.
            draw: see `DrawCommand`; None where nothing can be drawn.
            most: bytes of all films; the ones looked at longest ago go.
        """
        self._folder, self._draw, self._most = folder, draw, most
        self._notes = folder / f".{os.getpid()}.notes"
        self._waiting: OrderedDict[str, Path] = OrderedDict()
        self._failed: OrderedDict[str, str] = OrderedDict()
        self._drawing = ""
        self._child: subprocess.Popen[bytes] | None = None
        self._change = threading.Condition()
        self._closed = False
        self._thread: threading.Thread | None = None

    def path(self, key: str) -> Path:
        """Return where a film lies once it is ready; `key` is a name of ours, no path."""
        return self._folder / f"{key}.mp4"

    def state(self, key: str) -> Film:
        """Return where a film stands."""
        with self._change:
            if key == self._drawing:
                return Film("drawing", progress=_last_line(self._notes))
            if key in self._waiting:
                return Film("waiting")
            if self.path(key).exists():
                return Film("ready")
            why = self._failed.get(key)
            return Film("absent") if why is None else Film("failed", why)

    def states(self) -> dict[str, str]:
        """Return what is being drawn and what waits."""
        with self._change:
            drawing = {self._drawing: "drawing"} if self._drawing else {}
            return {**dict.fromkeys(self._waiting, "waiting"), **drawing}

    def want(self, key: str, log: Path) -> Film:
        """Ask for the film of a log."""
        state = self.state(key)
        if state.state in ("ready", "drawing", "waiting"):
            if state.state == "ready":
                with contextlib.suppress(OSError):
                    os.utime(self.path(key))  # looked at now
            return state
        if self._draw is None:
            return Film("failed", "this server was started without anything that draws")
        with self._change:
            if self._closed:
                return Film("absent")
            self._failed.pop(key, None)
            self._waiting[key] = log
            while len(self._waiting) > WAITING_MOST:
                self._waiting.popitem(last=False)
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="films", daemon=True)
                self._thread.start()
            self._change.notify_all()
        return Film("waiting")

    def close(self) -> None:
        """Stop drawing."""
        with self._change:
            self._closed = True
            self._waiting.clear()
            self._change.notify_all()
            child = self._child
        if child is not None:
            _end(child)
        if self._thread is not None:
            self._thread.join(10.0)

    def _work(self) -> None:
        while True:
            with self._change:
                while not self._waiting and not self._closed:
                    self._change.wait()
                if self._closed:
                    return
                key, log = self._waiting.popitem()
                self._drawing = key
            why = self._film(key, log)
            with self._change:
                self._drawing = ""
                if why and not self._closed:
                    self._failed[key] = why
                    while len(self._failed) > REMEMBERED:
                        self._failed.popitem(last=False)

    def _film(self, key: str, log: Path) -> str:
        """Draw one film; return what went wrong."""
        assert self._draw is not None
        # Another server may draw the same film into the same cache.
        fresh = self._folder / f".{key}.{os.getpid()}.drawing.mp4"
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            fresh.unlink(missing_ok=True)
            with self._notes.open("wb") as notes:
                why = self._run(self._draw(log, fresh), notes)
            if why:
                return why
            fresh.replace(self.path(key))
            self._tidy(key)
        except (OSError, InfraError) as error:
            return f"the film cannot be kept: {error}"
        finally:
            for path in (fresh, self._notes):
                with contextlib.suppress(OSError):
                    path.unlink(missing_ok=True)
        return ""

    def _run(self, command: Sequence[str], notes: BinaryIO) -> str:
        child = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=notes,
            start_new_session=True,
        )  # fmt: skip
        with self._change:
            self._child = child
            closed = self._closed
        if closed:
            _end(child)
        try:
            said, _ = child.communicate(timeout=DEADLINE_S)
        except subprocess.TimeoutExpired:
            _end(child)
            child.communicate()
            return f"it was not drawn within {DEADLINE_S / 60:.0f} minutes"
        finally:
            with self._change:
                self._child = None
        if child.returncode == 0:
            return ""
        try:
            return str(json.loads(said)["error"]["message"])
        except (ValueError, KeyError, TypeError):
            return f"the process that draws ended with code {child.returncode}"

    def _tidy(self, newest: str) -> None:
        """Take films away that were looked at longest ago, until the rest fits."""
        films = sorted(self._folder.glob("*.mp4"), key=lambda path: path.stat().st_mtime)
        left = sum(path.stat().st_size for path in films)
        for path in films:
            if left <= self._most or path == self.path(newest):
                return
            left -= path.stat().st_size
            path.unlink(missing_ok=True)


def _last_line(path: Path) -> str:
    """Return the last line that was written whole; empty where there is none.

    >>> _last_line(Path("/nowhere"))
    ''
    """
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - LINE_MOST))
            lines = file.read().decode(errors="replace").splitlines()
    except OSError:
        return ""
    return lines[-1].strip() if lines else ""


def _end(child: subprocess.Popen[bytes]) -> None:
    """End a process and whatever it has started."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
