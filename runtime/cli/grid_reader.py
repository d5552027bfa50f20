"""A stand-in for somebody who reads positions off a picture with a ruler, with and without a grid.

It knows pixels and the numbers that are written, and no calibration. It is no model of a language
model: it says how much position is in the picture for whoever reads it with some care.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from zetta.primitives.localize.table import Table
from zetta.primitives.overlays_grid import CELL, GridLine, draw_grid
from zetta.primitives.overlays_sheet import Ink, Sheet
from zetta.primitives.projection import project
from zetta.runtime.core import Array, Camera, Observation

Mask: TypeAlias = npt.NDArray[np.bool_]

_WHITE = Ink((255, 255, 255), 1.0, halo=0.0)
_WINDOW = 3
"""Both lines of a crossing show so near to it, pixels."""
_BRIGHT = 60


@dataclass(frozen=True, slots=True)
class Crossing:
    """Where two numbered lines cross, as it shows."""

    column: int
    """Counted along x of the table."""
    row: int
    """Counted along y of the table."""
    at: tuple[float, float]
    """Where the drawn lines cross in the picture, whole pixels."""

    @property
    def xy(self) -> tuple[float, float]:
        """What the numbers say: x and y, metres."""
        return (self.column * CELL, self.row * CELL)


def crossings_shown(observation: Observation, name: str, table: Table) -> tuple[Crossing, ...]:
    """Return the crossings of numbered lines that show in a picture.

    Their places come from drawn pixels: each set of lines is drawn on a black picture, and a
    crossing shows where both sets have pixels. What is hidden behind a thing, and lines for whose
    number there was no room, are no help to a reader and are left out.
    """
    numbered = draw_grid(_sheet(observation, name), table)
    masks = [_pixels_of(observation, name, [n for n in numbered if n.axis == a]) for a in (0, 1)]
    camera = _sheet(observation, name).camera
    found = []
    for line in (n for n in numbered if n.axis == 0):
        for other in (n for n in numbered if n.axis == 1):
            at = _shown_at(line, other, table, camera, masks)
            if at is not None:
                steps = round(line.value / CELL), round(other.value / CELL)
                found.append(Crossing(*steps, at))
    return tuple(found)


def _sheet(observation: Observation, name: str) -> Sheet:
    black = np.zeros_like(observation.images[name])
    return Sheet(black, observation.cameras[name], observation.depth.get(name))


def _pixels_of(observation: Observation, name: str, lines: Sequence[GridLine]) -> Mask:
    sheet = _sheet(observation, name)
    for line in lines:
        sheet.line(line.start, line.end, _WHITE)
    return np.asarray(sheet.finished()[..., 0] > _BRIGHT)


def _shown_at(
    line: GridLine, other: GridLine, table: Table, camera: Camera, masks: Sequence[Mask]
) -> tuple[float, float] | None:
    """Return the whole pixel nearest to the middle of where both lines have pixels."""
    point = np.array([line.value, other.value, table.height])
    ((x, y),), (depth,) = project(point, camera)
    if depth <= 0.0 or not np.isfinite([x, y]).all():
        return None
    left, top = int(x) - _WINDOW, int(y) - _WINDOW
    if min(left, top) < 0:
        return None
    window = (slice(top, int(y) + _WINDOW + 1), slice(left, int(x) + _WINDOW + 1))
    rows, columns = np.nonzero(masks[0][window] & masks[1][window])
    if not len(rows):
        return None
    return (left + round(float(columns.mean())) + 0.5, top + round(float(rows.mean())) + 0.5)


# --------------------------------------------------------------------------- readers


def read_with_grid(at: Array, shown: Sequence[Crossing]) -> Array | None:
    """Return x and y of a place of the picture, read off the nearest cell of the grid.

    Args:
        at: column and row. Shape (2,).
        shown: what crossings show, or are known by continuing their lines.

    Returns:
        Bilinear interpolation in the cell whose four corners are all known and whose middle is
        nearest, metres; beyond its edges it is continued. None where there is no such cell.
        Shape (2,).
    """
    by_step = {(c.column, c.row): np.array(c.at) for c in shown}
    best: tuple[float, tuple[int, int], list[Array]] | None = None
    for column, row in by_step:
        steps = [(column + i, row + j) for i, j in ((0, 0), (1, 0), (0, 1), (1, 1))]
        if not all(step in by_step for step in steps):
            continue
        corners = [by_step[step] for step in steps]
        far = float(np.linalg.norm(np.mean(corners, axis=0) - at))
        if best is None or far < best[0]:
            best = (far, (column, row), corners)
    if best is None:
        return None
    share = _inverse_bilinear(at, best[2])
    return np.asarray((np.array(best[1]) + share) * CELL)


def continued(shown: Sequence[Crossing]) -> tuple[Crossing, ...]:
    """Add the crossings that a thing hides: lines are straight, so a ruler laid along them tells.

    A line can be continued where at least two of its crossings show; what would lie beyond all
    that shows is not added.
    """
    if not shown:
        return ()
    places = np.array([c.at for c in shown])
    low, high = places.min(axis=0), places.max(axis=0)
    known = {(c.column, c.row) for c in shown}
    columns = {i: _line([c.at for c in shown if c.column == i]) for i, _ in known}
    rows = {j: _line([c.at for c in shown if c.row == j]) for _, j in known}
    added = []
    for i, j in itertools.product(columns, rows):
        one, other = columns[i], rows[j]
        if (i, j) in known or one is None or other is None:
            continue
        at = _meeting(one, other)
        if at is not None and (at >= low).all() and (at <= high).all():
            added.append(Crossing(i, j, (float(at[0]), float(at[1]))))
    return (*shown, *added)


def _line(places: Sequence[tuple[float, float]]) -> tuple[Array, Array] | None:
    """Return a point and the direction of the straight line nearest to some places."""
    if len(places) < 2:
        return None
    points = np.array(places)
    middle = points.mean(axis=0)
    return middle, np.linalg.svd(points - middle)[2][0]


def _meeting(one: tuple[Array, Array], other: tuple[Array, Array]) -> Array | None:
    ways = np.column_stack([one[1], -other[1]])
    if abs(float(np.linalg.det(ways))) < 0.05:
        return None  # nearly parallel, so nobody could tell where
    return np.asarray(one[0] + np.linalg.solve(ways, other[0] - one[0])[0] * one[1])


def _inverse_bilinear(at: Array, corners: Sequence[Array]) -> Array:
    """Return the shares along a cell's sides at which bilinear interpolation gives `at`."""
    origin, along, across = corners[0], corners[1] - corners[0], corners[2] - corners[0]
    twist = corners[3] - corners[1] - corners[2] + corners[0]
    share = np.linalg.solve(np.column_stack([along, across]), at - origin)
    for _ in range(8):  # Newton; cells are nearly parallelograms
        value = origin + share[0] * along + share[1] * across + share[0] * share[1] * twist
        slope = np.column_stack([along + share[1] * twist, across + share[0] * twist])
        share = share - np.linalg.solve(slope, value - at)
    return np.asarray(share)


def linear_map(places: Array, points: Array) -> Array:
    """Return the least-squares affine map from places of a picture to x and y.

    Fitted to the very places that are then read, it is the best that any reader without a sense
    of perspective could do, had it been told all the answers before.

    Args:
        places: column and row. Shape (N, 2).
        points: x and y, metres. Shape (N, 2).

    Returns:
        Shape (3, 2).
    """
    rows = np.column_stack([places, np.ones(len(places))])
    return np.asarray(np.linalg.lstsq(rows, points, rcond=None)[0])


def read_linearly(at: Array, affine: Array) -> Array:
    """Return x and y of a place of the picture by one affine map. Shape (2,)."""
    return np.asarray(np.append(at, 1.0) @ affine)


def read_exactly(at: Array, table: Table, camera: Camera) -> Array:
    """Return where the ray through a place of the picture meets the table: with the calibration.

    What is left of its error is that of pointing. Shape (2,).
    """
    k, pose = camera.intrinsics, camera.T_world_cam
    ray = pose[:3, :3] @ np.linalg.solve(k, np.append(at, 1.0))
    reach = (table.height - pose[2, 3]) / ray[2]
    return np.asarray(pose[:2, 3] + reach * ray[:2])
