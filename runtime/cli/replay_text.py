"""An episode in words: who drove when, what was held, what a safety kernel changed or refused."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from zetta.primitives.agent.cockpit import TurnRecord
from zetta.runtime.cli import output
from zetta.runtime.core import Tick
from zetta.runtime.episode_log import LoggedEpisode, read_episode

_NUMBER: Final = re.compile(r"[-+]?\d+(\.\d+)?(e[-+]?\d+)?")


@dataclass(frozen=True, slots=True)
class Stretch:
    """Ticks in a row of which the same is told."""

    first: int
    last: int
    source: str
    said: str
    """Why it was held, or what the kernel did at its first tick; empty where all went as asked."""


def stretches(ticks: Sequence[Tick]) -> list[Stretch]:
    """Return an episode as stretches; reasons that differ in numbers only are the same."""
    found: list[Stretch] = []
    before = ("", "")
    for tick in ticks:
        said = tick.guard or (f"held by the loop: {tick.held}" if tick.held else "")
        key = (tick.source, _NUMBER.sub("#", said))
        if found and key == before:
            last = found[-1]
            found[-1] = Stretch(last.first, tick.index, last.source, last.said)
        else:
            found.append(Stretch(tick.index, tick.index, tick.source, said))
        before = key
    return found


def stretch_lines(record: LoggedEpisode) -> Iterator[str]:
    """Yield a table of the stretches, and how many ticks were not sent as asked."""
    hz = record.header.spec.control_hz
    rows = [
        [f"{s.first}-{s.last}", f"{s.first / hz:.2f}", s.source, s.said or "as asked"]
        for s in stretches(record.ticks)
    ]
    if rows:
        yield output.table(["ticks", "from s", "who", "what became of it"], rows)
    said = kernel_said(record.ticks) or "none changed by a safety kernel"
    yield f"of {len(record.ticks)} actions {said}"


def kernel_said(ticks: Sequence[Tick]) -> str:
    """Return how many actions a safety kernel did not let pass as asked; empty for none."""
    verdicts = [tick.guard.partition(":")[0] for tick in ticks if tick.guard]
    counted = ", ".join(f"{verdicts.count(v)} {v}" for v in sorted(set(verdicts)))
    return f"by the safety kernel {counted}" if counted else ""


def kernel_line(folder: Path) -> str:
    """Return the same of a logged episode, and where the reasons are; empty for none."""
    ticks = read_episode(folder).ticks
    said = kernel_said(ticks)
    return f"of {len(ticks)} actions {said}; why: zetta replay {folder}" if said else ""


def stretches_json(record: LoggedEpisode) -> list[output.Json]:
    """Return the stretches for `--json`."""
    return [
        {"first": s.first, "last": s.last, "source": s.source, "said": s.said or None}
        for s in stretches(record.ticks)
    ]


def turn_lines(turns: Sequence[TurnRecord]) -> Iterator[str]:
    """Yield what was asked in each turn of a drive, what came of it and what was refused."""
    for turn in turns:
        yield f"turn {turn.index + 1}, tick {turn.tick}: {'; '.join(turn.answer.commands) or '-'}"
        yield from (f"  {result.summary}" for result in turn.results)
        yield from (f"  {refusal}" for refusal in turn.refusals)
