"""The table top: how high it is and how far it reaches, from depth, or as an environment declares.

It is never taken from simulator truth: what is drawn for an agent must be there on a real robot.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np

from zetta.primitives.localize.clouds import HandShape, clouds
from zetta.primitives.localize.heights import height_grid
from zetta.runtime.core import Array, HeightGrid, Observation

TableSource: TypeAlias = Literal["depth", "declared"]

_BIN = 0.01
"""Heights that differ by less are one level, metres."""
_CELLS_LEAST = 50
"""Fewer cells of one height are no table."""
_OUTLIERS = 0.01
"""Share of its cells that may lie outside the table's outline, on each side."""
_REACH = 0.5
"""Half side of a table whose outline nobody saw, metres."""
_STEP = 0.05
"""An outline is rounded outwards to multiples of this, metres."""
_CENTRED = 0.10
"""A table whose outline nobody saw is centred on a multiple of this, metres."""


@dataclass(frozen=True, slots=True)
class Table:
    """A horizontal rectangle that things stand on. World frame, metres."""

    height: float
    low: tuple[float, float]
    """Least x and y."""
    high: tuple[float, float]
    source: TableSource = "depth"


def seen_table(grid: HeightGrid | None) -> Table | None:
    """Return the largest level surface that was seen; None without depth, or with none.

    Its height is the commonest one of all cells, to the median of those within a centimetre: things
    on the table, which a mean would count, and holes below it, which a low percentile would, do not
    move it. Whatever is level and covers more ground than the table is taken for it.
    """
    if grid is None:
        return None
    known = np.isfinite(grid.heights)
    heights = grid.heights[known]
    if len(heights) < _CELLS_LEAST:
        return None
    levels = np.round(heights / _BIN).astype(np.int64)
    values, counts = np.unique(levels, return_counts=True)
    # Noise spreads one height over neighbouring levels, so a level counts with both of them.
    around = np.array([counts[np.abs(values - v) <= 1].sum() for v in values])
    best = values[np.argmax(around + 1e-6 * counts)]
    near = known & (np.abs(grid.heights - best * _BIN) < 1.5 * _BIN)
    if near.sum() < _CELLS_LEAST:
        return None
    cells = np.argwhere(near)
    corners = grid.origin + np.quantile(cells, (_OUTLIERS, 1.0 - _OUTLIERS), axis=0) * grid.cell
    low = np.floor(corners[0] / _STEP + 0.1) * _STEP
    high = np.ceil((corners[1] + grid.cell) / _STEP - 0.1) * _STEP
    height = float(np.median(grid.heights[near]))
    return Table(height, _corner(low), _corner(high))


def table_in(observation: Observation) -> Table | None:
    """Return the table that depth pictures show, its height from all their points.

    A height grid holds the highest point of each cell, so with the noise of a real camera a table
    found in it alone is some millimetres too high; half of its points are above it, half below.
    """
    table = seen_table(height_grid(observation))
    if table is None:
        return None
    level = [_near(cloud.points[cloud.valid], table) for cloud in clouds(observation, HandShape())]
    heights = np.concatenate(level)
    return replace(table, height=float(np.median(heights))) if len(heights) else table


def _near(points: Array, table: Table) -> Array:
    """Return the heights of points inside the outline that may belong to the table. Shape (N,)."""
    inside = ((points[:, :2] > table.low) & (points[:, :2] < table.high)).all(axis=1)
    inside &= np.abs(points[:, 2] - table.height) < 2.0 * _BIN
    return np.asarray(points[inside, 2])


def declared_table(height: float, around: Array) -> Table:
    """Return a table of a known height, a metre square about a place.

    Args:
        height: world z, metres.
        around: x and y of where the hand works, such as the grip site at home. Shape (2 or 3,).
    """
    middle = np.round(around[:2] / _CENTRED) * _CENTRED
    return Table(height, _corner(middle - _REACH), _corner(middle + _REACH), "declared")


def _corner(xy: Array) -> tuple[float, float]:
    return (round(float(xy[0]), 3) + 0.0, round(float(xy[1]), 3) + 0.0)
