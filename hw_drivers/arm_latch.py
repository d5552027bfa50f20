"""A stop that outlives what caused it, until a person clears it."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Final

from zetta.runtime.errors import ConfigError

LATCH: Final = "latch"
"""In whose name a server stops that begins with a latched stop."""


class StopLatch:
    """Why the arm is stopped; with a file it outlives the process as well."""

    def __init__(self, path: Path | None) -> None:
        """Read the latch that an earlier process left.

        Raises:
            ConfigError: the file cannot be read, or its folder cannot be written.
        """
        self._path = path
        self.reason = ""
        if path is None:
            return
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.exists():
                self.reason = self._read(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise ConfigError(f"cannot use {path} as latch: {error.strerror}") from error

    def set(self, reason: str) -> None:
        """Latch a stop; the first reason stays."""
        if self.reason:
            return
        self.reason = reason or "no reason given"
        if self._path is not None:
            # A full disk must not undo a stop; the process itself remembers.
            with contextlib.suppress(OSError):
                new = self._path.with_suffix(".new")
                new.write_text(json.dumps({"stopped": self.reason}), encoding="utf-8")
                new.replace(self._path)

    def clear(self) -> None:
        """Forget the stop.

        Raises:
            ConfigError: the file cannot be removed; the stop stays.
        """
        if self._path is not None:
            try:
                self._path.unlink(missing_ok=True)
            except OSError as error:
                raise ConfigError(f"cannot remove {self._path}: {error.strerror}") from error
        self.reason = ""

    @staticmethod
    def _read(text: str) -> str:
        with contextlib.suppress(ValueError, KeyError, TypeError):
            return str(json.loads(text)["stopped"]) or "no reason given"
        return "an earlier process left a latch that cannot be read"
