"""Numbers, names and values as people type them: `0-9`, `0,2,5-7`, `NAME=VALUE`."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Final

from zetta.runtime.errors import ConfigError

_OF_THE_POLICY_BEFORE: Final = re.compile(r"\w+(=.*)?")
"""A bare word, such as the name of an arm, or an option with its value."""


def parse_numbers(text: str, option: str) -> tuple[int, ...]:
    """Return the numbers of `text` in the order given, each once.

    >>> parse_numbers("0-2,7", "--tasks")
    (0, 1, 2, 7)

    Raises:
        ConfigError: not such a list, or a number is named twice.
    """
    numbers: list[int] = []
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            raise ConfigError(f"{option} takes numbers such as 0-9 or 0,2,5-7, got {text!r}")
        low, high = int(first), int(last or first)
        if low > high:
            raise ConfigError(f"{option}: the range {part.strip()} runs backwards")
        numbers.extend(range(low, high + 1))
    if len(set(numbers)) < len(numbers):
        raise ConfigError(f"{option} names a number twice: {text!r}")
    return tuple(numbers)


def number_text(numbers: tuple[int, ...]) -> str:
    """Return the shortest text that `parse_numbers` reads back as `numbers`.

    >>> number_text((0, 1, 2, 7))
    '0-2,7'
    """
    runs: list[tuple[int, int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1] = (runs[-1][0], number)
        else:
            runs.append((number, number))
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in runs)


def parse_names(text: str, option: str) -> tuple[str, ...]:
    """Return the comma-separated names of `text`.

    Raises:
        ConfigError: a name is empty or given twice.
    """
    return _each_once([part.strip() for part in text.split(",")], text, option)


def parse_policies(text: str, option: str, known: Collection[str]) -> tuple[str, ...]:
    """Return the comma-separated policies of `text`, whose own commas come after an `@`.

    A bare word or NAME=VALUE that is no known policy belongs to the policy before it.

    >>> parse_policies("random@left,right,echo", "--policies", ("random", "echo"))
    ('random@left,right', 'echo')

    Raises:
        ConfigError: a name is empty or given twice.
    """
    names: list[str] = []
    for part in (each.strip() for each in text.split(",")):
        belongs = part not in known and _OF_THE_POLICY_BEFORE.fullmatch(part)
        if belongs and names and "@" in names[-1]:
            names[-1] += f",{part}"
        else:
            names.append(part)
    return _each_once(names, text, option)


def _each_once(names: Sequence[str], text: str, option: str) -> tuple[str, ...]:
    if not all(names) or len(set(names)) < len(names):
        raise ConfigError(f"{option} takes names separated by commas, each once, got {text!r}")
    return tuple(names)


def number(text: str, what: str) -> float:
    """Return `text` as a finite number.

    Raises:
        ConfigError: it is none.
    """
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not abs(value) < float("inf"):
        raise ConfigError(f"{what} is a number, got {text!r}")
    return value


def named_values(texts: Sequence[str]) -> dict[str, str]:
    """Return what `--option` was given, by name; the last one of a name counts.

    Raises:
        ConfigError: one is not `NAME=VALUE`.
    """
    return dict(_name_and_value(text) for text in texts)


def _name_and_value(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise ConfigError(f"--option takes NAME=VALUE, got {text!r}")
    return name, value
