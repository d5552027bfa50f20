"""The agent that says what another one said: the commands of a log, or of a text file."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Final

from zetta.primitives.agent.records import Answer, Turn
from zetta.runtime.errors import ConfigError

LARGEST: Final = 4_000_000
"""A file with more bytes is no list of commands."""


class ReplayAgent:
    """Gives the commands of each recorded turn, whatever comes of them; then `done`."""

    name = "replay"
    looks = False

    def __init__(self, path: Path, tell: Callable[[str], None] = lambda line: None) -> None:
        """Read `path`: a `drive.jsonl`, or text with one command a line and `#` comments.

        Args:
            path: the record.
            tell: hears what came of each turn, refusals too: nobody else reads them.

        Raises:
            ConfigError: there is no such file, or nothing in it.
        """
        self._turns, self._tell = _turns_of(path), tell

    def begin(self, instruction: str, arms: tuple[str, ...]) -> None:
        """Begin with the first turn; `Turn.index` says which one is due."""

    def decide(self, turn: Turn) -> Answer:
        """Tell what came of the turn before; return the commands of the same turn of the record."""
        for line in (*(result.summary for result in turn.results), *turn.remarks):
            self._tell(line)
        if turn.index < len(self._turns):
            return Answer(self._turns[turn.index])
        return Answer(("done",), progress="the record is over")

    def close(self) -> None:
        """Need nothing."""


def _turns_of(path: Path) -> tuple[tuple[str, ...], ...]:
    try:
        if path.stat().st_size > LARGEST:
            raise ConfigError(f"{path} has more than {LARGEST} bytes; it is no list of commands")
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no UTF-8 text"
        raise ConfigError(f"cannot read the commands of {path}: {why}") from error
    lines = [line.strip() for line in text.splitlines()]
    if path.suffix == ".jsonl":
        turns = tuple(_logged(line, path) for line in lines if line)
    else:
        turns = tuple((line,) for line in lines if line and not line.startswith("#"))
    if not any(turns):
        raise ConfigError(f"{path} holds no command; expected one a line, such as 'move z 5'")
    return turns


def _logged(line: str, path: Path) -> tuple[str, ...]:
    """Return the commands of one turn of a `drive.jsonl`."""
    try:
        commands = json.loads(line)["answer"]["commands"]
    except (ValueError, KeyError, TypeError) as error:
        raise ConfigError(f"{path} is no record of a drive: a line has no answer") from error
    if not isinstance(commands, list) or not all(isinstance(each, str) for each in commands):
        raise ConfigError(f"{path} is no record of a drive: commands are lines of text")
    return tuple(commands)
