"""The grid on the table: a line every 10 cm with its number, a faint one every 5 cm."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from zetta.primitives.localize.table import Table
from zetta.primitives.overlays_sheet import Ink, Place, Run, Sheet
from zetta.runtime.core import Array

CELL = 0.10
"""Distance of two numbered lines, metres."""
_X_COLOUR, _Y_COLOUR = (255, 178, 102), (140, 226, 255)
_X_INK, _Y_INK = Ink(_X_COLOUR, 1.3, 0.8, 0.8), Ink(_Y_COLOUR, 1.3, 0.8, 0.8)
_FAINT = Ink((240, 240, 240), 0.9, 0.35, 0.0)
_LABEL_ROOM = 9.0
"""A number stands so far beyond the end of its line, pixels of a picture of 512."""


@dataclass(frozen=True, slots=True)
class GridLine:
    """A line of the grid: all points of the table with one x, or with one y."""

    axis: int
    """0: x is the same all along it; 1: y is."""
    value: float
    """Metres."""
    start: Array
    """World frame. Shape (3,)."""
    end: Array

    @property
    def label(self) -> str:
        """Its number, in cm."""
        return f"{'xy'[self.axis]} {round(100.0 * self.value)}"


def grid_lines(table: Table, spacing: float, offset: float = 0.0) -> Iterator[GridLine]:
    """Yield the lines at multiples of `spacing`, moved by `offset`, on a table. Metres."""
    for axis in (0, 1):
        first = int(np.ceil((table.low[axis] - offset) / spacing - 1e-6))
        last = int(np.floor((table.high[axis] - offset) / spacing + 1e-6))
        for step in range(first, last + 1):
            value = step * spacing + offset
            ends = np.array([[*table.low, table.height], [*table.high, table.height]])
            ends[:, axis] = value
            yield GridLine(axis, value, ends[0], ends[1])


def crossings(table: Table, spacing: float = CELL) -> Array:
    """Return where numbered lines cross, as world points. Shape (NX, NY, 3)."""
    lines = tuple(grid_lines(table, spacing))
    xs = [line.value for line in lines if line.axis == 0]
    ys = [line.value for line in lines if line.axis == 1]
    points = [(x, y, table.height) for x, y in itertools.product(xs, ys)]
    return np.array(points).reshape(len(xs), len(ys), 3)


def draw_fine_grid(sheet: Sheet, table: Table) -> None:
    """Draw a faint line in the middle between numbered ones."""
    for line in grid_lines(table, CELL, CELL / 2.0):
        sheet.line(line.start, line.end, _FAINT)


def draw_grid(sheet: Sheet, table: Table) -> tuple[GridLine, ...]:
    """Draw the numbered lines, and their numbers where they end or leave the picture.

    Returns:
        The lines for whose number there was room.
    """
    drawn = [
        (line, sheet.line(line.start, line.end, (_X_INK, _Y_INK)[line.axis]))
        for line in grid_lines(table, CELL)
    ]
    numbered = []
    # Round numbers first: where there is no room for all, they are the ones to keep.
    for line, runs in sorted(drawn, key=lambda each: _roundness(each[0].value)):
        colour = (_X_COLOUR, _Y_COLOUR)[line.axis]
        written = [sheet.text(p, line.label, colour) for p in _label_places(runs, sheet)]
        if any(written):
            numbered.append(line)
    return tuple(numbered)


def _roundness(value: float) -> tuple[bool, bool, float]:
    """Return a key that sorts 0 and multiples of 50 before those of 20 before the others."""
    whole = round(100.0 * value)
    return whole % 50 != 0, whole % 20 != 0, abs(value)


def _label_places(runs: list[Run], sheet: Sheet) -> Iterator[Place]:
    """Yield places just beyond the two ends of what is seen of a line."""
    if not runs:
        return
    start, end = np.array(runs[0][0]), np.array(runs[-1][1])
    length = float(np.linalg.norm(end - start))
    if length < 3.0 * _LABEL_ROOM * sheet.unit:
        return
    beyond = (end - start) / length * _LABEL_ROOM * sheet.unit
    for place in (start - beyond, end + beyond):
        yield (float(place[0]), float(place[1]))
