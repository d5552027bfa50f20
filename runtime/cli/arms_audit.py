"""`zetta arms audit`: whether the log of an arm is whole, and what was not sent as it was asked."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Final

import typer

from zetta.hw_drivers.arm import FOLLOWED
from zetta.hw_drivers.arm_latch import LATCH
from zetta.hw_drivers.audit import verify
from zetta.runtime.cli import output
from zetta.runtime.cli.arms_options import AsJson

STOP_AGAIN: Final = "stop again"
"""A stop that came while one was latched: the same once more, or somebody else's."""


def command(
    folder: Annotated[Path, typer.Argument(help="Folder of the log, as the robot file names it.")],
    as_json: AsJson = False,
) -> None:
    """Check the chain of an audit log and count what is in it; exit 1 where a line was changed."""
    found = verify(folder)
    counted: Counter[str] = Counter(_entries(folder))
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


def _entries(folder: Path) -> Iterator[str]:
    """Yield what each line tells of: the verdict of a decision, or the event.

    A stop is sent more than once, so that one of them arrives, and where the kernel stops by itself
    the server stops as well: what comes while it is stopped is no other stop, but the same again.
    """
    stopped, tick = False, 0
    for line in _lines(folder):
        event, verdict, at = line.get("event"), line.get("verdict"), line.get("tick")
        if isinstance(at, int):
            stopped, tick = stopped and at >= tick, at  # ticks count from 0 at each start
        if event == "decision":
            stopped = stopped and verdict not in FOLLOWED
            yield str(verdict)
        elif event == "stop":
            again = stopped or line.get("driver") == LATCH
            stopped = True
            yield STOP_AGAIN if again else str(event)
        else:
            stopped = stopped and event != "clear"
            yield str(event)


def _lines(folder: Path) -> Iterator[Mapping[str, object]]:
    for path in sorted(folder.glob("audit-*.jsonl")):
        with path.open(encoding="utf-8") as lines:
            yield from (json.loads(line) for line in lines if line.endswith("\n"))
