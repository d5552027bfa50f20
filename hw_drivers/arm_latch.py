"""A stop that outlives what caused it, until a person clears it who saw this very stop."""

from __future__ import annotations

import contextlib
import json
import secrets
from pathlib import Path
from typing import Final

from zetta.hw_drivers.arm import ArmReading
from zetta.runtime.errors import ConfigError, SafetyStop, SpecMismatch

LATCH: Final = "latch"
"""In whose name a server stops that begins with a latched stop."""
KNOWN: Final = 64
"""Stops that are told from each other; a repetition of an older one counts as another stop."""


class StopLatch:
    """Why the arm is stopped; with a file it outlives the process as well.

    Each stop has an id, and a clear names the one that its person saw. A clear that was on its way
    for long can so clear no stop that came meanwhile. Repetitions of a stop, which is sent more
    than once so that one arrives, are known by the token that they share.
    """

    def __init__(self, path: Path | None) -> None:
        """Read the latch that an earlier process left.

        Raises:
            ConfigError: the file cannot be read, or its folder cannot be written.
        """
        self._path = path
        self.reason = self._last = ""
        """The first reason; empty while no stop is latched."""
        self.stop = _new_id()
        """Id of the newest stop."""
        self._ids: dict[str, str] = {}
        self._own = ""
        if path is None:
            return
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.exists():
                self._read(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise ConfigError(f"cannot use {path} as latch: {error.strerror}") from error

    def set(self, reason: str, token: str = "") -> str:
        """Latch a stop and return its id; the first reason stays.

        Args:
            reason: why.
            token: what repetitions of one stop share; without one each is another stop.
        """
        if self.reason and token and token in self._ids:
            return self._ids[token]
        self._last = reason or "no reason given"
        self.reason, self.stop = self.reason or self._last, _new_id()
        known = list(self._ids.items())[1 - KNOWN :]
        self._ids = dict([*known, (token, self.stop)])
        if self._path is not None:
            # A full disk must not undo a stop; the process itself remembers.
            with contextlib.suppress(OSError):
                new = self._path.with_suffix(".new")
                kept = {"stopped": self.reason, "last": self._last, "stop": self.stop}
                new.write_text(json.dumps(kept), encoding="utf-8")
                new.replace(self._path)
        return self.stop

    def watch(self, reading: ArmReading) -> None:
        """Note whether the arm has stopped by itself, which is another stop each time."""
        if reading.mode != "stopped":
            self._own = ""
            return
        if not self._own and not self.reason:
            self.stop = _new_id()
        self._own = reading.reason or "the arm had stopped itself"

    @property
    def said(self) -> str:
        """Why the arm is stopped, by us or by itself, as a person reads it; empty if it is not."""
        if not self.reason:
            return self._own
        later = f"; and then {self._last}" if self._last != self.reason else ""
        return self.reason + later

    def named(self, stop: object) -> str:
        """Return why the arm is stopped, if `stop` is the id of that; empty if it is not stopped.

        Raises:
            SafetyStop: `stop` is another one.
            SpecMismatch: it is no id.
        """
        if not self.said:
            return ""
        if not isinstance(stop, str) or not stop:
            raise SpecMismatch(
                "a clear names the stop that its person saw, and this one names none; install the "
                "same version of zetta on both sides"
            )
        if stop != self.stop:
            raise SafetyStop(
                f"the stop {stop:.20} is not what is latched now: {self.said}; look at the arm "
                f"again, then: zetta arms clear URL --by YOUR-NAME --stop {self.stop}"
            )
        return self.said

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
        self._ids = {}

    def _read(self, text: str) -> None:
        self.reason = self._last = "an earlier process left a latch that cannot be read"
        with contextlib.suppress(ValueError, KeyError, TypeError, AttributeError):
            kept = json.loads(text)
            self.reason = str(kept["stopped"]) or "no reason given"
            self._last = str(kept.get("last") or self.reason)
            self.stop = str(kept.get("stop") or self.stop)  # a restart makes no other stop of it


def _new_id() -> str:
    return secrets.token_hex(3)
