"""What differs between two packages, or two bundles: numbers by name, and everything as text."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from zetta.skills.bundle_folders import Member
from zetta.skills.package_files import PARAMETERS


@dataclass(frozen=True, slots=True)
class ChangedNumber:
    """One field of one parameter."""

    parameter: str
    """With the skill before it, where whole bundles are compared."""
    field: str
    before: str
    """Empty for a field that is new."""
    after: str


@dataclass(frozen=True, slots=True)
class Differences:
    """All that differs."""

    paths: tuple[str, ...]
    """Files that differ, or are on one side only."""
    numbers: tuple[ChangedNumber, ...]
    text: str
    """Unified diff of the files; empty when there is no difference."""


def contents_of(members: Sequence[Member]) -> dict[str, bytes]:
    """Return the files of a bundle by path, the skill's name first."""
    return {
        f"{member.name}/{path}": content
        for member in members
        for path, content in member.files.contents.items()
    }


def compare(
    first: Mapping[str, bytes], second: Mapping[str, bytes], before: str, after: str
) -> Differences:
    """Compare the files of two packages or bundles.

    Args:
        first: bytes by path.
        second: the same.
        before: what the first is called.
        after: what the second is called.

    >>> compare({"a.md": b"x\\n"}, {"a.md": b"x\\n"}, "one", "two").text
    ''
    """
    every = sorted({*first, *second})
    paths = tuple(path for path in every if first.get(path) != second.get(path))
    numbers = [
        number
        for path in paths
        if path.rpartition("/")[2] == PARAMETERS
        for number in _numbers(path, first.get(path, b""), second.get(path, b""))
    ]
    text = "".join(
        _unified(path, first.get(path), second.get(path), before, after) for path in paths
    )
    return Differences(paths, tuple(numbers), text)


def _numbers(path: str, first: bytes, second: bytes) -> Iterator[ChangedNumber]:
    prefix = path.removesuffix(PARAMETERS)
    old, new = _fields(first), _fields(second)
    for parameter, field in sorted({*old, *new}):
        pair = old.get((parameter, field), ""), new.get((parameter, field), "")
        if pair[0] != pair[1]:
            yield ChangedNumber(prefix + parameter, field, *pair)


def _fields(content: bytes) -> dict[tuple[str, str], str]:
    """Return the fields of every parameter as text; the text of a broken file is in the diff."""
    try:
        plain = tomllib.loads(content.decode("utf-8"))
    except (ValueError, RecursionError):
        return {}
    return {
        (name, field): str(value)
        for name, fields in plain.items()
        if isinstance(fields, dict)
        for field, value in fields.items()
    }


def _unified(path: str, first: bytes | None, second: bytes | None, before: str, after: str) -> str:
    old, new = _lines(first), _lines(second)
    if old is None or new is None:
        return f"{path} differs and is no text\n"
    lines = difflib.unified_diff(old, new, f"{before}/{path}", f"{after}/{path}")
    return "".join(line if line.endswith("\n") else line + "\n" for line in lines)


def _lines(content: bytes | None) -> list[str] | None:
    if content is None:
        return []
    try:
        return content.decode("utf-8").splitlines(keepends=True)
    except UnicodeDecodeError:
        return None
