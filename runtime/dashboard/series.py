"""An episode as lines over time: signals, poses and commands, and what happened at which tick."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from zetta.runtime.archives import UNREADABLE
from zetta.runtime.episode_log import TICKS, EpisodeHeader
from zetta.runtime.errors import ConfigError
from zetta.runtime.records import to_json
from zetta.runtime.signals import ORACLE
from zetta.runtime.tick_tables import SIGNAL

POINTS_MOST: Final = 4000
"""Values of one line that are sent; of more, the lowest and the highest of each stretch."""
SERIES_MOST: Final = 24
EVENTS_MOST: Final = 2000
ACTION: Final = "action."
Levels = Mapping[str, tuple[str, str, str]]


@dataclass(frozen=True, slots=True)
class Line:
    """What can be drawn."""

    name: str
    group: str
    """`signal`, `arm` or `action`."""
    level: str = "proprio"
    unit: str = ""
    doc: str = ""


def lines_of(folder: Path, header: EpisodeHeader, levels: Levels) -> list[Line]:
    """Return every line of an episode.

    Raises:
        ConfigError: the log cannot be read.
    """
    names = _schema(folder).names
    lines = []
    for name in names:
        if name.startswith(SIGNAL):
            plain = name.removeprefix(SIGNAL)
            level, unit, doc = levels.get(plain, ("", "", ""))
            if plain.startswith(ORACLE):
                level = "oracle"
            lines.append(Line(plain, "signal", level or "policy", unit, doc))
    for arm in header.spec.arms:
        lines += [Line(f"{arm}.ee_pos.{axis}", "arm", unit="m") for axis in "xyz"]
        lines.append(Line(f"{arm}.opening", "arm", unit="m"))
    lines += [Line(ACTION + name, "action") for name in header.spec.action.names]
    return lines


def events_of(folder: Path) -> dict[str, Any]:
    """Return who drove when, what critics said, and when the robot was held or guarded.

    Raises:
        ConfigError: the log cannot be read.
    """
    wanted = ("index", "t", "source", "verdicts", "held", "guard")
    schema = _schema(folder)
    table = _table(folder, [name for name in wanted if name in schema.names])
    ticks: list[int] = table.column("index").to_pylist()
    sources: list[str] = table.column("source").to_pylist()
    said = []
    for tick, verdicts in zip(ticks, table.column("verdicts").to_pylist(), strict=True):
        for verdict in verdicts:
            said.append({**verdict, "evidence": dict(verdict["evidence"]), "tick": tick})
    notes = [
        {"tick": tick, "kind": kind, "text": text}
        for kind in ("held", "guard")
        if kind in table.column_names
        for tick, text in zip(ticks, table.column(kind).to_pylist(), strict=True)
        if text
    ]
    return {
        "ticks": len(ticks),
        "stretches": _stretches(ticks, sources),
        "verdicts": to_json(said[:EVENTS_MOST]),
        "notes": notes[:EVENTS_MOST],
    }


def _stretches(ticks: Sequence[int], sources: Sequence[str]) -> list[dict[str, Any]]:
    found = []
    for source, group in groupby(zip(ticks, sources, strict=True), key=lambda pair: pair[1]):
        members = [tick for tick, _ in group]
        found.append({"source": source, "first": members[0], "last": members[-1]})
    return found


def values_of(folder: Path, header: EpisodeHeader, names: Sequence[str]) -> dict[str, Any]:
    """Return the values of some lines, by tick.

    Raises:
        ConfigError: too many lines are asked for, there is no such line, or the log cannot be read.
    """
    if len(names) > SERIES_MOST:
        raise ConfigError(f"{len(names)} lines are too many at once; ask for {SERIES_MOST}")
    known = set(_schema(folder).names)
    columns = {name: _column(name, header, known) for name in names}
    table = _table(folder, sorted({column for column, _ in columns.values()} | {"index"}))
    index = table.column("index").to_numpy()
    lines = {}
    for name, (column, part) in columns.items():
        chosen = _numbers(table.column(column), part)
        ticks, values = thinned(index, chosen)
        known_values = [each if math.isfinite(each) else None for each in values.tolist()]
        lines[name] = {"ticks": ticks.tolist(), "values": known_values}
    return {"lines": lines}


def _column(name: str, header: EpisodeHeader, known: set[str]) -> tuple[str, int | None]:
    """Return the column of a line, and which of its parts it is."""
    if SIGNAL + name in known:
        return SIGNAL + name, None
    actions = header.spec.action.names
    if name.startswith(ACTION) and name.removeprefix(ACTION) in actions:
        return "action", actions.index(name.removeprefix(ACTION))
    for arm in header.spec.arms:
        if name == f"{arm}.opening":
            return name, None
        for part, axis in enumerate("xyz"):
            if name == f"{arm}.ee_pos.{axis}":
                return f"{arm}.ee_pos", part
    raise ConfigError(f"this episode has no line {name[:80]!r}")


def _numbers(column: pa.ChunkedArray, part: int | None) -> npt.NDArray[np.float64]:
    joined = column.combine_chunks()
    if part is None:
        return np.asarray(joined.to_numpy(zero_copy_only=False), dtype=np.float64)
    rows = len(joined)
    table = joined.flatten().to_numpy(zero_copy_only=False).reshape(rows, -1) if rows else None
    return np.zeros(0) if table is None else np.asarray(table[:, part], dtype=np.float64)


def thinned(
    index: npt.NDArray[Any], values: npt.NDArray[np.float64], most: int = POINTS_MOST
) -> tuple[npt.NDArray[Any], npt.NDArray[np.float64]]:
    """Return at most `most` points; of each stretch its lowest and highest, so no peak is lost.

    >>> ticks, values = thinned(np.arange(8), np.array([0.0, 9, 0, 0, 0, 0, -7, 0]), most=4)
    >>> ticks.tolist(), values.tolist()
    ([0, 1, 4, 6], [0.0, 9.0, 0.0, -7.0])
    """
    if len(values) <= most:
        return index, values
    chosen = []
    for piece in np.array_split(np.arange(len(values)), most // 2):
        part = np.nan_to_num(values[piece], nan=0.0)
        chosen += sorted({int(piece[part.argmin()]), int(piece[part.argmax()])})
    return index[chosen], values[chosen]


def _schema(folder: Path) -> pa.Schema:
    try:
        return pq.read_schema(folder / TICKS)
    except UNREADABLE as error:
        raise ConfigError(f"the ticks of this log cannot be read: {error}") from error


def _table(folder: Path, columns: Sequence[str]) -> pa.Table:
    try:
        return pq.read_table(folder / TICKS, columns=list(columns))
    except UNREADABLE as error:
        raise ConfigError(f"the ticks of this log cannot be read: {error}") from error
