"""`zetta arms audit`: whether the log of an arm is whole, and what was not sent as it was asked."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from zetta.hw_drivers.audit import verify
from zetta.runtime.cli import output
from zetta.runtime.cli.arms_options import AsJson


def command(
    folder: Annotated[Path, typer.Argument(help="Folder of the log, as the robot file names it.")],
    as_json: AsJson = False,
) -> None:
    """Check the chain of an audit log and count what is in it; exit 1 where a line was changed."""
    found = verify(folder)
    counted: Counter[str] = Counter()
    for path in sorted(folder.glob("audit-*.jsonl")):
        with path.open(encoding="utf-8") as lines:
            counted.update(_what(line) for line in lines if line.endswith("\n"))
    if as_json:
        rows: dict[str, output.Json] = dict(sorted(counted.items()))
        output.emit(
            {
                "folder": str(folder),
                "lines": found.lines,
                "first": found.first,
                "dropped": found.dropped,
                "head": found.head,
                "entries": rows,
            }
        )
        return
    output.answer(
        f"{found.lines} lines in {found.files} files, none changed or taken out from line "
        f"{found.first} on; {found.dropped} found no room"
    )
    output.answer(
        output.table(["entry", "times"], [[what, f"{n}"] for what, n in counted.most_common()])
    )
    output.answer(f"its head is {found.head}; keep it elsewhere to see whether the end is cut off")


def _what(line: str) -> str:
    """Return what a line tells of: the verdict of a decision, or the event."""
    plain = json.loads(line)
    return str(plain.get("verdict") if plain.get("event") == "decision" else plain.get("event"))
