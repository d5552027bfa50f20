"""What a failure looked like around its divergence, as numbers that can be compared.

Every number is taken in the unit of its column, as successes of the same phase spread it, and
clipped, so that one wild value does not decide alone. Columns of simulator truth are called
`truth.<name>`; everything else is a signal that a critic may read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from zetta.runtime.core import Array
from zetta.runtime.signals import SIGNALS
from zetta.skills.evolve.progress_signals import SETTLE, Course

WINDOW_S: Final = 0.5
"""Before the divergence and after it."""
CLIP: Final = 5.0
TRUTH: Final = "truth."
FLOOR_SHARE: Final = 0.02
"""Of a signal's sensible range; a smaller spread is taken for this."""
PLACED: Final = frozenset(
    f"{thing}_{axis}" for thing in ("ee", "object", "receptacle", "part") for axis in "xyz"
) | {"elapsed", "budget_used", "skill_share", "since_handback", "interventions", "policy_drives"}
"""Signals that say where and when a scene is, and not what goes on in it."""


@dataclass(frozen=True, slots=True)
class FailureFeatures:
    """Failures as rows of numbers."""

    names: tuple[str, ...]
    rows: Array
    """Shape (failures, names), in spreads of successes, within [-5, 5]."""


def features_of(
    failures: Sequence[Course],
    moments: Sequence[int],
    successes: Sequence[Course],
) -> FailureFeatures:
    """Return failures as numbers over a window around their divergence.

    Args:
        failures: of one kind.
        moments: the tick of divergence of each.
        successes: of the same kind.
    """
    columns = (*(TRUTH + name for name in SETTLE), *_signal_names([*failures, *successes]))
    spreads = _Spreads(columns, successes)
    rows = [_row(c, tick, columns, spreads) for c, tick in zip(failures, moments, strict=True)]
    names = (*(f"{name}, after" for name in columns), *(f"{name}, change" for name in columns))
    return FailureFeatures(names, np.array(rows))


def _signal_names(courses: Sequence[Course]) -> tuple[str, ...]:
    """Return the signals that all episodes have, and that do not come from simulator truth."""
    shared = set.intersection(*(set(course.episode.signals) for course in courses))
    return tuple(
        name for name in sorted(shared - PLACED)
        if name in SIGNALS and SIGNALS[name].level != "oracle"
    )  # fmt: skip


def _columns(course: Course, columns: Sequence[str]) -> Array:
    """Return columns of an episode. Shape (T, columns)."""
    order = list(SETTLE)
    return np.stack(
        [
            course.values[:, order.index(name.removeprefix(TRUTH))]
            if name.startswith(TRUTH)
            else course.episode.signals[name]
            for name in columns
        ],
        axis=1,
    )


class _Spreads:
    """What successes usually do in each phase: middle and half spread of every column."""

    def __init__(self, columns: Sequence[str], successes: Sequence[Course]) -> None:
        self._floor = np.array([_floor(name) for name in columns])
        tables = [_columns(course, columns) for course in successes]
        self._all = np.concatenate(tables)
        self._phase = np.concatenate([course.phases for course in successes])
        self._known: dict[int, tuple[Array, Array]] = {}

    def of(self, phase: int) -> tuple[Array, Array]:
        """Return middle and unit of every column; of all phases where no success was there."""
        if phase not in self._known:
            rows = self._all[self._phase == phase]
            rows = rows if len(rows) else self._all
            # A column that is NaN throughout has no middle: its distance is then 0.
            filled = np.where(np.isfinite(rows).any(axis=0), rows, 0.0)
            low, middle, high = np.nanquantile(filled, (0.1, 0.5, 0.9), axis=0)
            self._known[phase] = (middle, np.maximum((high - low) / 2.0, self._floor))
        return self._known[phase]


def _floor(name: str) -> float:
    if name.startswith(TRUTH):
        return SETTLE[name.removeprefix(TRUTH)]
    spec = SIGNALS[name]
    return FLOOR_SHARE * (spec.high - spec.low)


def _row(course: Course, tick: int, columns: Sequence[str], spreads: _Spreads) -> Array:
    width = max(round(WINDOW_S * course.episode.control_hz), 1)
    table = _columns(course, columns)
    middle, unit = spreads.of(int(course.phases[tick]))
    after = _mean(table[tick : tick + width])
    before = _mean(table[max(tick - width, 0) : max(tick, 1)])
    row = np.concatenate([(after - middle) / unit, (after - before) / unit])
    known = np.nan_to_num(row, nan=0.0, posinf=CLIP, neginf=-CLIP)
    return np.asarray(np.clip(known, -CLIP, CLIP))


def _mean(rows: Array) -> Array:
    """Return the mean of the finite values of each column; NaN where there is none."""
    finite = np.isfinite(rows)
    count = finite.sum(axis=0)
    total = np.where(finite, rows, 0.0).sum(axis=0)
    return np.asarray(np.where(count > 0, total / np.maximum(count, 1), np.nan))
