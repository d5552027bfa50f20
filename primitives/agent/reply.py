"""What a model replies, read tolerantly and bounded: one JSON object somewhere in its text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from zetta.runtime.loose_json import objects_in

MEMORY_MOST: Final = 2500
"""Characters of what a model may keep for itself."""
FIELD_MOST: Final = 800
"""Characters of any other text."""
COMMAND_MOST: Final = 300
TEXT_MOST: Final = 200_000
"""Characters of a reply that are read at all."""
_THOUGHTS: Final = re.compile(r"<(think|thinking|thought)>.*?(</\1>|\Z)", re.DOTALL | re.IGNORECASE)
"""Servers without a place of its own for it put a model's thinking into the text."""


class ReplyProblem(ValueError):
    """Why a reply is none, in a sentence that its author can use."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A reply that was read."""

    commands: tuple[str, ...]
    scene: str = ""
    progress: str = ""
    memory: str = ""
    plan: str = ""
    remarks: tuple[str, ...] = ()
    """What was cut, for the model to know."""


def read_reply(text: str, commands_most: int) -> Reply:
    """Return the reply that stands in a text, alone, fenced or among words.

    >>> read_reply('Sure! {"plan": "look", "commands": ["wait", ""]}', 4).commands
    ('wait',)

    Args:
        text: what the model wrote.
        commands_most: commands that are kept, the first ones.

    Raises:
        ReplyProblem: there is no reply in it, or several that differ.
    """
    found = _reply_in(_THOUGHTS.sub(" ", text[:TEXT_MOST]))
    commands = _commands(found.get("commands"))
    if not commands:
        raise ReplyProblem('"commands" is empty; give at least one command, if only `wait`')
    remarks = []
    if len(commands) > commands_most:
        remarks.append(
            f"the answer had {len(commands)} commands and {commands_most} are allowed; "
            f"the first {commands_most} were kept"
        )
        commands = commands[:commands_most]
    if any(len(command) > COMMAND_MOST for command in commands):
        raise ReplyProblem(f"a command is longer than {COMMAND_MOST} characters")
    memory = _text(found.get("memory"))
    if len(memory) > MEMORY_MOST:
        remarks.append(f"the memory had {len(memory)} characters and was cut to {MEMORY_MOST}")
    short = {name: _text(found.get(name))[:FIELD_MOST] for name in ("scene", "progress", "plan")}
    return Reply(commands, memory=memory[:MEMORY_MOST], remarks=tuple(remarks), **short)


def _reply_in(text: str) -> Mapping[str, object]:
    if not text.strip():
        raise ReplyProblem("it holds no text")
    found = [one for one in objects_in(text) if isinstance(one, dict)]
    replies = [one for one in found if "commands" in one]
    if not replies:
        raise ReplyProblem(
            'the JSON object in it has no "commands"' if found
            else "there is no whole JSON object in it"
        )  # fmt: skip
    if any(one["commands"] != replies[0]["commands"] for one in replies):
        raise ReplyProblem(
            f"there are {len(replies)} JSON objects with different commands in it; "
            "answer for this turn only"
        )
    return replies[-1]


def _commands(given: object) -> tuple[str, ...]:
    if isinstance(given, str):
        given = given.splitlines()
    if not isinstance(given, list):
        raise ReplyProblem(f'"commands" is {_kind(given)}; expected a list of texts')
    for one in given:
        if not isinstance(one, str):
            raise ReplyProblem(f'"commands" holds {_kind(one)}; expected texts only')
    return tuple(line for line in map(_line, given) if line)


def _text(given: object) -> str:
    """Return a field as a text; a list of texts becomes its lines, anything else is shown."""
    match given:
        case None:
            return ""
        case str():
            return _printable(given)
        case list() if all(isinstance(one, str) for one in given):
            return _printable("\n".join(given))
        case _:
            return _printable(json.dumps(given, ensure_ascii=False))


def _line(text: str) -> str:
    return " ".join(_printable(text).split())


def _printable(text: str) -> str:
    """Drop what cannot be printed or written as UTF-8, such as half of a surrogate pair."""
    return "".join(_letters(text)).strip()


def _letters(text: str) -> Iterable[str]:
    return (c if c.isprintable() or c == "\n" else " " for c in text)


def _kind(value: object) -> str:
    match value:
        case None:
            return "missing"
        case bool():
            return "true or false"
        case int() | float():
            return "a number"
        case str():
            return "a text"
        case list():
            return "a list"
        case _:
            return "an object"
