"""Reads `docs/deploy.md` as what it is: commands for two computers, and what they should say."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

HOSTS: Final = ("gpu", "robot")
FENCE: Final = re.compile(r"^( *)```(.*)$")
SPAN: Final = re.compile(r"`([^`\n]+)`")
PLACE_ROW: Final = re.compile(r"^\| `([^`]+)` \|")
CABLE: Final = "cable"
CABLE_LINE: Final = re.compile(r"^<!-- cable (pulled|plugged)( slow)? -->$")
"""Where the reader's hand is at the cable; it names no computer."""
PLACES_TITLE: Final = "## Names in this guide"


class GuideError(AssertionError):
    """The guide is written in a way that no test could carry out."""


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block of commands, or of a file's content."""

    line: int
    """Where it begins in the guide, from 1."""
    host: str
    text: str
    marks: tuple[str, ...] = ()
    expected: tuple[str, ...] = ()
    """Lines that it should print, in this order; `…` stands for anything."""

    @property
    def by_reader(self) -> bool:
        """Say whether no test can carry it out."""
        return "by-reader" in self.marks

    @property
    def waits(self) -> bool:
        """Say whether it is repeated until it prints what is expected."""
        return "again" in self.marks

    @property
    def slow(self) -> bool:
        """Say whether it is left out where a test has to be short."""
        return "slow" in self.marks

    @property
    def interrupts(self) -> bool:
        """Say whether the reader ends what runs there with Ctrl-C."""
        return "interrupt" in self.marks

    @property
    def terminal(self) -> str:
        """Name the second terminal that it is for; empty for the first."""
        return self.value("terminal")

    @property
    def exit_code(self) -> int:
        """Tell how it should end."""
        return int(self.value("exit") or 0)

    def value(self, name: str) -> str:
        """Return what stands behind `name=` among the marks."""
        return next((m.partition("=")[2] for m in self.marks if m.startswith(f"{name}=")), "")

    @property
    def commands(self) -> tuple[str, ...]:
        """Split into commands; a backslash at the end of a line continues it."""
        joined = re.sub(r"\s*\\\n\s*", " ", self.text)
        lines = (line.strip() for line in joined.splitlines())
        return tuple(line for line in lines if line and not line.startswith("#"))


MARKS: Final = re.compile(r"by-reader|again|slow|interrupt|terminal=\w+|exit=\d+")


@dataclass(frozen=True, slots=True)
class Guide:
    """A guide, ready to be carried out."""

    places: tuple[str, ...]
    """Names that stand for the reader's own, such as addresses and folders."""
    blocks: tuple[Block, ...]
    spans: tuple[tuple[int, str], ...]
    """Code within sentences, with its line."""


def read_guide(path: Path) -> Guide:
    """Read a guide.

    Raises:
        GuideError: something in it looks like a command and could not be carried out.
    """
    lines = path.read_text(encoding="utf-8").splitlines()
    fences = list(_fences(lines))
    inside = {n for f in fences for n in range(f.first, f.last + 1)}
    prose = [(n, line) for n, line in enumerate(lines, 1) if n not in inside]
    for number, line in prose:
        if line.startswith(("    ", "\t")) and not line.strip().startswith(("-", "|")):
            raise GuideError(f"line {number}: indented code names no computer; use ```sh HOST")
    handled = [(n, CABLE_LINE.match(line)) for n, line in prose]
    cables = [Block(n, CABLE, "", tuple(found[0].split()[2:-1])) for n, found in handled if found]
    blocks = sorted([*_blocks(fences), *cables], key=lambda block: block.line)
    spans = tuple((n, span) for n, line in prose for span in SPAN.findall(line))
    return Guide(_places(lines), tuple(blocks), spans)


@dataclass(frozen=True, slots=True)
class _Fence:
    first: int
    last: int
    words: tuple[str, ...]
    text: str


def _fences(lines: list[str]) -> Iterator[_Fence]:
    opened = 0
    words: tuple[str, ...] = ()
    for number, line in enumerate(lines, 1):
        found = FENCE.match(line)
        if found is None:
            continue
        if not opened:
            opened, words = number, tuple(found.group(2).split())
            continue
        if found.group(2).strip():
            raise GuideError(f"line {number}: a fence begins inside the one of line {opened}")
        text = "\n".join(lines[opened : number - 1]) + "\n"
        yield _Fence(opened, number, words, text)
        opened = 0
    if opened:
        raise GuideError(f"line {opened}: this fence has no end")


def _blocks(fences: list[_Fence]) -> Iterator[Block]:
    """Yield the blocks of commands, each with what it should print."""
    waiting: Block | None = None
    for fence in fences:
        language, *rest = fence.words or ("",)
        if language == "text" and rest:
            if waiting is not None:
                yield waiting
                waiting = None
            expected = tuple(line for line in fence.text.splitlines() if line.strip())
            yield Block(fence.first, "", "", _marks(fence, rest), expected)
            continue
        if language == "text":
            if waiting is None:
                raise GuideError(f"line {fence.first}: no command prints this")
            expected = tuple(line for line in fence.text.splitlines() if line.strip())
            yield Block(waiting.line, waiting.host, waiting.text, waiting.marks, expected)
            waiting = None
            continue
        if waiting is not None:
            yield waiting
            waiting = None
        if language == "toml":
            continue  # shows a part of a file; nothing is typed
        if language != "sh" or not rest or rest[0] not in HOSTS:
            raise GuideError(
                f"line {fence.first}: a block is ```sh {'|'.join(HOSTS)}, ```text (what it prints) "
                f"or ```toml (part of a file), got ```{' '.join(fence.words)}"
            )
        waiting = Block(fence.first, rest[0], fence.text, _marks(fence, rest[1:]))
    if waiting is not None:
        yield waiting


def _marks(fence: _Fence, words: list[str]) -> tuple[str, ...]:
    strange = [mark for mark in words if not MARKS.fullmatch(mark)]
    if strange:
        raise GuideError(f"line {fence.first}: unknown mark {strange[0]!r}")
    return tuple(words)


def _places(lines: list[str]) -> tuple[str, ...]:
    """Return the names of the table at the top."""
    if PLACES_TITLE not in lines:
        raise GuideError(f"the guide has no section {PLACES_TITLE!r}")
    begin = lines.index(PLACES_TITLE) + 1
    section = lines[begin : next(
        (n for n in range(begin, len(lines)) if lines[n].startswith("## ")), len(lines)
    )]  # fmt: skip
    return tuple(found.group(1) for line in section if (found := PLACE_ROW.match(line)))


def substituted(text: str, places: Mapping[str, str]) -> str:
    """Put the test's own places for those of the guide.

    >>> substituted("cp /a/b /a/bc 10.0.0.1", {"/a/b": "/x", "10.0.0.1": "::1"})
    'cp /x /a/bc ::1'
    """
    if not places:
        return text
    names = sorted(places, key=len, reverse=True)
    pattern = "|".join(re.escape(name) for name in names)
    return re.sub(rf"(?<![\w.])({pattern})(?![\w-])", lambda m: places[m.group(1)], text)


def missing(expected: tuple[str, ...], printed: str) -> str:
    """Return the first expected line that was not printed in its turn; empty when all were.

    >>> missing(("a … c", "d"), "x\\n  a b c\\nd e\\n"), missing(("d", "a"), "a\\nd\\n")
    ('', 'a')
    """
    left = iter(" ".join(line.split()) for line in printed.splitlines())
    for line in expected:
        wanted = ".*".join(re.escape(" ".join(part.split())) for part in line.split("…"))
        if not any(re.search(wanted, seen) for seen in left):
            return line
    return ""
