"""Prints the table of `docs/commands.md`: `python -m zetta.primitives.commands_document FILE`."""

from __future__ import annotations

import sys
from pathlib import Path

from zetta.primitives.command_grammar import ROWS, RULES
from zetta.runtime.signals_document import with_table


def commands_table() -> str:
    """Return the grammar as Markdown: a row for each command, then the rules."""
    lines = ["| line | what it does | example |", "|---|---|---|"]
    lines += [f"| {_code(row.usage)} | {row.says} | {_code(row.example)} |" for row in ROWS]
    return "\n".join([*lines, "", *(f"- {rule}" for rule in RULES)]) + "\n"


def _code(text: str) -> str:
    """Return `text` as code in a cell, where a bar would end the cell."""
    return f"`{text}`".replace("|", "\\|")


if __name__ == "__main__":
    path = Path(sys.argv[1])
    path.write_text(
        with_table(path.read_text(encoding="utf-8"), commands_table()), encoding="utf-8"
    )
