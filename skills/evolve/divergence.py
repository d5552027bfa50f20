"""Where a failure leaves the band of successes: the earliest tick after which it never returns.

The band is the neighbourhood of what successes did while they awaited the same milestone. A failure
is compared with its nearest success in that phase, and not with quantiles on a normalised clock:
the phase in which an episode fails never ends, so its clock cannot be normalised, and successes
that come from several sides have an empty middle that a quantile band would call normal. The age
of the phase is one of the coordinates, so standing still for longer than any success leaves the
band too.

The threshold is conformal, for whole episodes: each success is compared with the others, its worst
debounced distance is its score, and the threshold is the score of rank ceil((n + 1)(1 - alpha)). A
new success then diverges with a chance of at most alpha, up to the small error of leaving one out
of n instead of having a set apart. Below 1 / alpha - 1 successes that rank does not exist; the
largest score is taken and the chance stated is 1 / (n + 1).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.spatial import cKDTree

from zetta.runtime.core import Array
from zetta.runtime.errors import ConfigError
from zetta.skills.evolve.progress_signals import SETTLE, Course

ALPHA: Final = 0.05
FEWEST_SUCCESSES: Final = 3
DEBOUNCE_S: Final = 0.1
"""A distance counts when it lasts so long."""
RETURN_S: Final = 0.5
"""Who comes back into the band for less than this has not come back."""
FAR: Final = 20.0
"""Distance from an empty phase: no success was ever there for a tick."""


@dataclass(frozen=True, slots=True)
class _Phase:
    """What successes did while they awaited one milestone."""

    scale: Array
    """Unit of each column. Shape (columns,)."""
    rows: Array
    """In these units. Shape (N, columns)."""
    owners: npt.NDArray[np.int64]
    """Which success each row comes from. Shape (N,)."""
    usual: float
    """Median over successes of their largest distance to the others."""


@dataclass(frozen=True, slots=True)
class Band:
    """What successes of one kind do, phase by phase."""

    phases: tuple[_Phase | None, ...]
    threshold: float
    """In units of the usual largest distance."""
    successes: int
    rate: float
    """Chance that a new success leaves the band for good, at most."""
    left: int
    """How many of these successes leave the band of the others for good."""


def fit_band(successes: Sequence[Course], alpha: float = ALPHA) -> Band:
    """Return the band of some successes of one kind.

    Raises:
        ConfigError: there are too few.
    """
    count = len(successes)
    if count < FEWEST_SUCCESSES:
        raise ConfigError(
            f"{count} successes show no band, expected at least {FEWEST_SUCCESSES}; add logs of "
            "solved episodes of the same tasks"
        )
    stages = sum(len(goal.milestones) for goal in successes[0].goals)
    phases = tuple(_fit_phase(successes, stage) for stage in range(stages))
    paths = [_distances(phases, course, own) for own, course in enumerate(successes)]
    scores = sorted(
        float(_debounced(path, course).max()) for path, course in zip(paths, successes, strict=True)
    )
    rank = math.ceil((count + 1) * (1.0 - alpha))
    threshold = scores[min(rank, count) - 1]
    rate = alpha if rank <= count else 1.0 / (count + 1)
    left = sum(
        _leaves(path, threshold, course) is not None
        for path, course in zip(paths, successes, strict=True)
    )
    return Band(phases, threshold, count, rate, left)


def distances(band: Band, course: Course) -> Array:
    """Return how far each tick is from the nearest success, in thresholds. Shape (T,)."""
    return _distances(band.phases, course, None) / band.threshold


def divergence(band: Band, course: Course) -> int | None:
    """Return the first tick from which on an episode stays outside the band.

    None for an episode that ends inside: it ran out of time on a way that successes took.
    """
    return _leaves(distances(band, course), 1.0, course)


def outermost(band: Band, course: Course, tick: int) -> str:
    """Return the column in which a tick is furthest from the nearest success of its phase."""
    phase = band.phases[int(course.phases[tick])]
    if phase is None:
        return "phase"
    row = course.values[tick] / phase.scale
    _, near = cKDTree(phase.rows).query(row)
    return list(SETTLE)[int(np.abs(row - phase.rows[int(near)]).argmax())]


# ---------------------------------------------------------------------------- fitting


def _fit_phase(successes: Sequence[Course], stage: int) -> _Phase | None:
    parts = [course.values[course.phases == stage] for course in successes]
    rows = np.concatenate(parts)
    if not len(rows):
        return None
    owners = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
    low, high = np.quantile(rows, (0.1, 0.9), axis=0)
    scale = np.maximum((high - low) / 2.0, np.array(list(SETTLE.values())))
    fitted = _Phase(scale, rows / scale, owners, 1.0)
    largest = [
        float(_to_nearest(fitted, part, own).max())
        for own, part in enumerate(parts)
        if len(part) and (owners != own).any()
    ]
    usual = float(np.median(largest)) if largest else 1.0
    return _Phase(scale, rows / scale, owners, max(usual, 1e-6))


def _to_nearest(phase: _Phase, values: Array, without: int | None) -> Array:
    """Return the distance of each row to the nearest one of a success. Shape (N,)."""
    rows = phase.rows if without is None else phase.rows[phase.owners != without]
    if not len(rows):
        return np.full(len(values), FAR)
    near, _ = cKDTree(rows).query(values / phase.scale)
    return np.asarray(near, dtype=np.float64)


def _distances(phases: Sequence[_Phase | None], course: Course, without: int | None) -> Array:
    found = np.full(course.episode.ticks, FAR)
    for stage, phase in enumerate(phases):
        rows = course.phases == stage
        if phase is not None and rows.any():
            found[rows] = _to_nearest(phase, course.values[rows], without) / phase.usual
    return found


def _debounced(path: Array, course: Course) -> Array:
    """Return the least of the last few distances at each tick. Shape (T,)."""
    width = max(round(DEBOUNCE_S * course.episode.control_hz), 1)
    padded = np.concatenate([np.full(width - 1, path[0]), path])
    return np.asarray(np.lib.stride_tricks.sliding_window_view(padded, width).min(axis=1))


def _leaves(path: Array, threshold: float, course: Course) -> int | None:
    """Return the start of the last stay outside; short returns do not end it."""
    hz = course.episode.control_hz
    inside = path <= threshold
    enough = max(round(RETURN_S * hz), 1)
    runs = np.convolve(inside, np.ones(enough))[: len(inside)] >= enough
    back = np.flatnonzero(runs)
    since = int(back[-1]) + 1 if len(back) else 0
    out = np.flatnonzero(~inside[since:])
    if not len(out) or len(inside) - since - int(out[0]) < round(DEBOUNCE_S * hz):
        return None
    return since + int(out[0])
