"""Prints the table of `docs/signals.md`: `python -m zetta.runtime.signals_document FILE`."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from zetta.runtime.signals import OTHER, SIGNALS, SignalSpec

BEGIN: Final = "<!-- table -->"
END: Final = "<!-- end of table -->"


def signals_table(signals: Mapping[str, SignalSpec] = SIGNALS) -> str:
    """Return the registry as Markdown; the second arm's signals are one line."""
    lines = ["| signal | unit | from | to | level | what |", "|---|---|---|---|---|---|"]
    lines += [
        f"| `{spec.name}` | {spec.unit} | {spec.low:.4g} | {spec.high:.4g} | {spec.level} "
        f"| {spec.doc} |"
        for spec in signals.values()
        if not spec.name.startswith(OTHER)
    ]
    others = [name.removeprefix(OTHER) for name in signals if name.startswith(OTHER)]
    if others:
        lines.append(
            f"| `{OTHER}{others[0]}` ... `{OTHER}{others[-1]}` | | | | proprio "
            f"| The same {len(others)} signals of the other arm of a robot with two. |"
        )
    return "\n".join(lines) + "\n"


def with_table(document: str, table: str) -> str:
    """Return `document` with `table` between its two marks.

    Raises:
        ValueError: it lacks the marks.
    """
    before, found, rest = document.partition(BEGIN)
    _, ended, after = rest.partition(END)
    if not (found and ended):
        raise ValueError(f"the document lacks the lines {BEGIN} and {END}")
    return f"{before}{BEGIN}\n\n{table}\n{END}{after}"


if __name__ == "__main__":
    path = Path(sys.argv[1])
    path.write_text(with_table(path.read_text(encoding="utf-8"), signals_table()), encoding="utf-8")
