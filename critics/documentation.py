"""The reference of the language, printed from the tables that the checker itself uses."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from zetta.critics.expressions import BIGGEST
from zetta.critics.language import MAX_REASON
from zetta.critics.operators import OPERATORS, Operator
from zetta.critics.problems import MAX_BYTES
from zetta.critics.sections import CONSTANTS
from zetta.critics.values import (
    LONGEST_WINDOW_S,
    MAX_DEPTH,
    MAX_STATEMENTS,
    MAX_WORK,
    READ_WORK,
    SERIES_WORK,
    STEP_WORK,
)
from zetta.runtime.signals import SIGNALS

_KINDS = {"condition": "condition", "number": "number", "same": "as given", "either": "as given"}


def documentation() -> str:
    """Return the reference in Markdown."""
    return "\n".join((language_documentation(), _signals()))


def language_documentation() -> str:
    """Return the part of the reference that names no signal but in examples, in Markdown."""
    return "\n".join((_constants(), _operators(), _limits(), _places()))


def _constants() -> str:
    rows = [[f"`{name}`", meaning] for name, meaning in CONSTANTS.items()]
    return "## Constants\n\n" + markdown_table(["name", "what it says"], rows)


def _operators() -> str:
    windowed = [op for op in OPERATORS.values() if op.windowed]
    each = [op for op in OPERATORS.values() if not op.windowed]
    head = ["operator", "gives", "meaning", "formula", "work"]
    return (
        "## Operators over a window\n\n"
        + _paragraph(
            """`x` is a series of values, `condition`, `a` and `b` are series of conditions,
            `seconds` is a number or a parameter and may be left out: then it is `WINDOW_S`. In the
            formulas x[0] is the latest value, x[i] the one i ticks ago, k = seconds times control
            rate, to the nearest tick; `delta`, `rate`, `path_length`, `crossed` and `rose` look at
            least one tick back."""
        )
        + "\n"
        + markdown_table(head, [_row(op) for op in windowed])
        + "\n## Operators of one moment\n\n"
        + "They take numbers, and series tick by tick.\n\n"
        + markdown_table(head, [_row(op) for op in each])
    )


def _row(operator: Operator) -> list[str]:
    work = str(SERIES_WORK * operator.passes) if operator.windowed else f"{2 * STEP_WORK}"
    if operator.name == "now":
        work = "0"
    elif not operator.windowed:
        work += f" or {2 * SERIES_WORK}"
    return [
        f"`{operator.signature}`",
        _KINDS[operator.result],
        operator.meaning,
        f"`{operator.formula}`",
        work,
    ]


def _limits() -> str:
    rows = [
        ["text of a program", f"{MAX_BYTES // 1024} KiB of UTF-8"],
        ["statements", str(MAX_STATEMENTS)],
        ["depth of an expression, and of blocks within blocks", str(MAX_DEPTH)],
        ["longest window", f"{LONGEST_WINDOW_S:g} s"],
        ["largest number written down", f"{BIGGEST:g}"],
        ["length of a reason", f"{MAX_REASON} characters"],
        ["work of one call, along its most laborious way", f"{MAX_WORK} units"],
    ]
    return (
        "## Limits\n\n"
        + markdown_table(["what", "at most"], rows)
        + "\n"
        + _paragraph(
            f"""Work bounds the time of a call: a step between numbers or conditions counts
            {STEP_WORK}, reading a signal {READ_WORK} (and as much again for each age that
            `MAX_AGE_S` makes it look at), a step over a whole window (a sum of series, a
            comparison) {SERIES_WORK}, an operator what its table says. A local name that holds a
            series counts wherever it is used."""
        )
    )


def _places() -> str:
    return "## Places belong to scenes\n\n" + _paragraph(
        """A signal in metres whose name ends in `_x`, `_y` or `_z` is a place in the world. A
        number that is held against a place works in one scene only, so the language keeps places
        and distances apart: a place may be compared with, or subtracted from, a place along the
        same axis; a distance may be added to it; `delta`, `rate`, `spread` and `path_length` of a
        place are distances; `mean`, `minimum`, `maximum`, `ago`, `now`, `min` and `max` of places
        are places. Everything else is refused, literals and parameters alike: not
        `now(w.ee_z) < 0.9` but `now(w.ee_z) < now(w.object_z) + p.near`, or
        `now(w.object_above) < p.near`."""
    )


def _signals() -> str:
    text = "## Signals\n\n" + _paragraph(
        """[signals.md](signals.md) says what each of them is. The level of a critic is that of the
        highest signal it names, in `ARMED_WHEN` and through `MAX_AGE_S` too."""
    )
    levels = dict.fromkeys(spec.level for spec in SIGNALS.values())
    rows = [
        [level, ", ".join(f"`{s.name}`" for s in SIGNALS.values() if s.level == level)]
        for level in levels
    ]
    return text + "\n" + markdown_table(["level", "signals"], rows)


def _paragraph(text: str) -> str:
    return textwrap.fill(" ".join(text.split()), 100, break_on_hyphens=False) + "\n"


def markdown_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table.

    >>> print(markdown_table(["a"], [["|x|"]]), end="")
    | a |
    |---|
    | \\|x\\| |
    """
    lines = [columns, *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    text = ["| " + " | ".join(line) + " |" for line in lines]
    return "\n".join([text[0], "|" + "---|" * len(columns), *text[1:]]) + "\n"
