"""Which pixels belong to one thing: clusters of votes. numpy only.

Pixels vote for the centre of their thing and for its size. Votes are gathered by place and size
together, so that a plate on a stove, or a bowl on a box, does not melt into what it stands on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from zetta.primitives.localize.tiny.geometry import Float32
from zetta.runtime.core import Array

Ints = npt.NDArray[np.int64]

CELL: Final = 0.01
"""Side of the cells in which votes are counted, metres."""
SIZE_WEIGHT: Final = 0.6
"""Metres between centres that count as much as one metre of difference in size."""
RADIUS_SHARE: Final = 0.2
"""Radius of a cluster by the diagonal of its thing."""
NEAREST, FARTHEST = 0.015, 0.07
"""Bounds of that radius, metres."""
LEAST_PIXELS: Final = 5
MOST: Final = 16
HEAVY: Final = 96
"""Cells from which clusters may start."""
ASKED: Final = 200
"""Pixels of a thing over which medians are taken; more would only cost time."""
_ROUNDS: Final = 3
_SHADOW: Final = 1.6
"""Votes within so many radii of a cluster found no other one."""


@dataclass(frozen=True, slots=True)
class Votes:
    """What N pixels say about the thing that is seen there."""

    pixels: Ints
    """Flat index among the coarse pixels. Shape (N,)."""
    points: Float32
    """Surface points, world. Shape (N, 3)."""
    centers: Float32
    """Centre of the thing, world. Shape (N, 3)."""
    extents: Float32
    """Full size of the thing, metres. Shape (N, 3)."""
    turns: Float32
    """Cosine and sine of twice the yaw. Shape (N, 2)."""
    parts: Float32
    """Centres of its parts, world. Shape (N, MOST_PARTS, 3)."""
    weights: Float32
    """How sure it is that a thing is seen. Shape (N,)."""


@dataclass(frozen=True, slots=True)
class Instance:
    """One thing, not named yet."""

    members: Ints
    """Rows of `Votes`. Shape (K,)."""
    center: Array
    extent: Array
    yaw: float
    clear_yaw: float
    """How clear the yaw is, in [0, 1]; about 0 for what is round."""
    weight: float
    """Mean of the members' weights."""


def instances(votes: Votes) -> list[Instance]:
    """Gather votes into things, the largest first."""
    found: list[Instance] = []
    if len(votes.weights) < LEAST_PIXELS:
        return found
    cells, cell_of, mass = _cells(votes)
    left = mass.copy()  # votes that belong to no thing yet
    seeds, fresh = _seeds(cells, left), True
    while left.sum() >= LEAST_PIXELS and len(found) < MOST:
        gathered = np.where(left[seeds.rows] > 0, seeds.near @ left, 0.0)
        if gathered.max() < LEAST_PIXELS:
            if fresh:
                break
            seeds, fresh = _seeds(cells, left), True
            continue
        fresh = False
        best = int(np.argmax(gathered))
        radius = float(seeds.radii[best])
        distance = _shifted(cells, left, cells[seeds.rows[best]], radius)
        members = np.flatnonzero(((distance < radius) & (left > 0))[cell_of])
        if len(members) >= LEAST_PIXELS:
            found.append(_instance(votes, members))
        left[distance < _SHADOW * radius] = 0.0
        left[seeds.rows[best]] = 0.0
    found.sort(key=lambda instance: -len(instance.members))
    return _distinct(found)


@dataclass(frozen=True, slots=True)
class _Seeds:
    """Heavy cells, each with the radius that its size calls for and the cells within it."""

    rows: Ints
    radii: Array
    near: Array
    """1 where a cell lies within the radius. Shape (seeds, cells)."""


def _seeds(cells: Array, left: Array) -> _Seeds:
    # The heaviest cells suffice: a thing's peak is one of them.
    rows = np.argsort(-left)[:HEAVY]
    rows = rows[left[rows] > 0]
    size = np.hypot(cells[rows, 3], cells[rows, 4]) / SIZE_WEIGHT
    radii = np.clip(RADIUS_SHARE * size, NEAREST, FARTHEST)
    own = (cells**2).sum(axis=1)
    square = own[rows, None] + own - 2 * (cells[rows] @ cells.T)
    return _Seeds(rows, radii, (square < (radii**2)[:, None]).astype(np.float64))


def _shifted(cells: Array, left: Array, middle: Array, radius: float) -> Array:
    """Return the distance of every cell from where the mean shift from `middle` ends."""
    for _ in range(_ROUNDS):
        near = _distance(cells, middle) < radius
        weights = left[near]
        if weights.sum() <= 0:
            break
        middle = weights @ cells[near] / weights.sum()
    return _distance(cells, middle)


def _cells(votes: Votes) -> tuple[Array, Ints, Array]:
    """Return the middles of the cells in use, the cell of each vote, and the mass of each cell."""
    rows = np.concatenate([votes.centers, SIZE_WEIGHT * votes.extents], axis=1).astype(np.float64)
    keys = np.rint(rows / CELL).astype(np.int64) + 512
    flat = np.zeros(len(keys), np.int64)
    for column in keys.T:
        flat = flat * 1024 + np.clip(column, 0, 1023)
    _, cell_of = np.unique(flat, return_inverse=True)
    mass = np.bincount(cell_of, votes.weights)
    middles = [np.bincount(cell_of, votes.weights * column) / mass for column in rows.T]
    return np.stack(middles, axis=1), cell_of.astype(np.int64), np.asarray(mass, np.float64)


def _distance(cells: Array, middle: Array) -> Array:
    away = cells - middle
    return np.asarray(np.sqrt(np.einsum("ij,ij->i", away, away)))


def _instance(votes: Votes, members: Ints) -> Instance:
    weights = votes.weights[members]
    some = members[:: max(1, len(members) // ASKED)]
    # A median: the rim of a thing often votes for its neighbour.
    turn = np.average(votes.turns[members], axis=0, weights=weights)
    return Instance(
        members=members,
        center=np.median(votes.centers[some], axis=0).astype(np.float64),
        extent=np.median(votes.extents[some], axis=0).astype(np.float64),
        yaw=float(np.arctan2(turn[1], turn[0]) / 2),
        clear_yaw=float(min(1.0, np.hypot(*turn))),
        weight=float(weights.mean()),
    )


def _distinct(found: list[Instance]) -> list[Instance]:
    """Drop fragments that lie in the middle of something larger of about their size."""
    kept: list[Instance] = []
    for one in found:
        size = float(np.max(one.extent))
        twins = (
            np.linalg.norm(one.center - other.center) < 0.3 * max(size, float(np.max(other.extent)))
            and np.abs(one.extent - other.extent).max() < 0.4 * float(np.max(other.extent))
            for other in kept
        )
        if not any(twins):
            kept.append(one)
    return kept
