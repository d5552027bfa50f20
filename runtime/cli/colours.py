"""Colours where a person looks at a terminal, plain text everywhere else.

`NO_COLOR` switches them off and `FORCE_COLOR` on, whatever stands behind the stream; else a
terminal has them unless it says that it is `dumb` (https://no-color.org, https://force-color.org).
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TextIO

GOOD, BAD, DOUBTFUL = "green", "red", "yellow"
MEANING: Final[Mapping[str, str]] = {
    **dict.fromkeys(("ok", "ready", "passed", "yes", "fits", "promote", "met"), GOOD),
    **dict.fromkeys(("missing", "failed", "broken", "!!", "no", "reject", "revoked"), BAD),
    **dict.fromkeys(
        ("--", "??", "?!", "optional", "needs assets", "incomplete", "outdated", "inconclusive"),
        DOUBTFUL,
    ),
}
"""Words that have a colour where they stand alone in a cell or at the head of a line."""
GAP: Final = "  "


def wanted(stream: TextIO) -> bool:
    """Return whether text for this stream is coloured."""
    if os.environ.get("NO_COLOR"):
        return False
    forced = os.environ.get("FORCE_COLOR", "")
    return forced not in ("", "0") or lively(stream)


def lively(stream: TextIO | None) -> bool:
    """Return whether lines of this stream can be drawn again in place: a terminal that is able."""
    return stream is not None and stream.isatty() and os.environ.get("TERM") != "dumb"


class Table(str):
    """Aligned columns in plain text, which also know how they look in colours."""

    __slots__ = ("coloured",)
    coloured: str

    @classmethod
    def of(cls, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
        """Return the table of these columns."""
        widths = [max(len(row[i]) for row in (columns, *rows)) for i in range(len(columns))]
        made = cls("\n".join(_line(row, widths, _plain) for row in (columns, *rows)))
        lines = [_line(columns, widths, _heading), *(_line(row, widths, paint) for row in rows)]
        made.coloured = "\n".join(lines)
        return made


def paint(word: str) -> str:
    """Return a word in the colour of what it means; most have none.

    >>> paint("ready"), paint("tomato")
    ('\\x1b[32mready\\x1b[0m', 'tomato')
    """
    colour = MEANING.get(word.strip().lower())
    if colour is None:
        return word
    import typer

    return typer.style(word, fg=colour)


def heads(text: str) -> str:
    """Return lines whose first word has the colour of what it means."""
    return re.sub(r"^\S+", lambda found: paint(found[0]), text, flags=re.M)


def markdown(text: str) -> str:
    """Return Markdown with its headings and the heads of its tables in bold."""
    lines = text.split("\n")
    for number, line in enumerate(lines):
        below = lines[number + 1] if number + 1 < len(lines) else ""
        if line.startswith("#") or (line.startswith("|") and re.match(r"\|[ :|-]+$", below)):
            lines[number] = _heading(line)
    return "\n".join(lines)


def _line(row: Sequence[str], widths: Sequence[int], look: Callable[[str], str]) -> str:
    """Return one line; what pads a cell has no colour, and none stands at the end."""
    cells = [(cell, " " * (width - len(cell))) for cell, width in zip(row, widths, strict=True)]
    last = max((i for i, (cell, _) in enumerate(cells) if cell), default=-1)
    told = [look(cell) + (pad if i < last else "") for i, (cell, pad) in enumerate(cells)]
    return GAP.join(told[: last + 1])


def _plain(text: str) -> str:
    return text


def _heading(text: str) -> str:
    import typer

    return typer.style(text, bold=True) if text else text
