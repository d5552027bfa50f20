"""What a report consists of before it is laid out: headings, tables, plots, pictures and words.

Every table has a caption and every picture words beside it, because their records ask for them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final, Literal, TypeAlias

NUMBER: Final = re.compile(r"[-+−]?[\d.,]+(e-?\d+)?( ?%)?|–|")
TagTone: TypeAlias = Literal["good", "bad", "open", "plain"]
Tone: TypeAlias = Literal["plain", "small", "warning", "error", "oracle"]


@dataclass(frozen=True, slots=True)
class RateCell:
    """Successes over runs with a 95 % interval, drawn as a bar as well."""

    kind: ClassVar[str] = "rate"
    successes: int
    runs: int
    low: float
    high: float

    @property
    def value(self) -> float:
        """Share of successes; NaN without runs."""
        return self.successes / self.runs if self.runs else float("nan")


@dataclass(frozen=True, slots=True)
class Tag:
    """A word in a coloured box; the colour says nothing that the word does not."""

    kind: ClassVar[str] = "tag"
    text: str
    tone: TagTone = "plain"


@dataclass(frozen=True, slots=True)
class CodeCell:
    """Something that is read letter by letter: a digest, a name, a command."""

    kind: ClassVar[str] = "code"
    text: str


@dataclass(frozen=True, slots=True)
class SmallCell:
    """A text of less weight, such as a null."""

    kind: ClassVar[str] = "small"
    text: str


Cell: TypeAlias = str | RateCell | Tag | CodeCell | SmallCell


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under named columns; the first column names its row."""

    kind: ClassVar[str] = "table"
    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    total: tuple[Cell, ...] = ()
    """A last row that sums up; empty for none."""
    note: str = ""

    def __post_init__(self) -> None:
        """Hold that every row has a cell for each column.

        Raises:
            ValueError: one has not.
        """
        for row in (*self.rows, *((self.total,) if self.total else ())):
            if len(row) != len(self.columns):
                raise ValueError(f"{self.caption}: {len(row)} cells, {len(self.columns)} columns")

    @property
    def numeric(self) -> tuple[bool, ...]:
        """Whether a column holds nothing but numbers, which stand under each other."""
        return tuple(
            i > 0 and all(_is_number(row[i]) for row in self.rows) for i in range(len(self.columns))
        )


@dataclass(frozen=True, slots=True)
class Words:
    """A paragraph."""

    kind: ClassVar[str] = "words"
    text: str
    tone: Tone = "plain"


@dataclass(frozen=True, slots=True)
class Plot:
    """A figure as SVG that was drawn here, so it is trusted; see `plots`."""

    kind: ClassVar[str] = "plot"
    svg: str
    alt: str
    """What it shows, for who does not see it."""
    caption: str


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture that is embedded."""

    kind: ClassVar[str] = "picture"
    uri: str
    """`data:` with its content."""
    alt: str
    caption: str


@dataclass(frozen=True, slots=True)
class Listing:
    """A program or a command."""

    kind: ClassVar[str] = "listing"
    title: str
    """Empty where it is shown without one."""
    text: str
    is_open: bool = True


Block: TypeAlias = Table | Words | Plot | Picture | Listing


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and what stands under it."""

    title: str
    blocks: tuple[Block, ...] = ()
    parts: tuple[Section, ...] = ()
    tag: Tag | None = None

    def every(self) -> Iterator[Block]:
        """Yield the blocks of the section and of its parts."""
        yield from self.blocks
        for part in self.parts:
            yield from part.every()


@dataclass(frozen=True, slots=True)
class Document:
    """A whole report."""

    kind: str
    """`run`, `runs`, `evaluation` or `campaign`."""
    title: str
    lead: str
    sections: tuple[Section, ...]
    alarms: tuple[str, ...] = ()
    """Why not to trust it; said in red before everything else."""
    missing: tuple[str, ...] = ()
    """What should be there and is not."""
    oracle: bool = False
    """Whether something was allowed to read simulator truth."""

    def blocks(self) -> Iterator[Block]:
        """Yield every block, in the order of the page."""
        for each in self.sections:
            yield from each.every()


def facts(caption: str, pairs: Sequence[tuple[str, Cell]]) -> Table:
    """Return a table of names and values."""
    return Table(caption, ("what", "value"), tuple(pairs))


def _is_number(cell: Cell) -> bool:
    return isinstance(cell, str) and NUMBER.fullmatch(cell) is not None
