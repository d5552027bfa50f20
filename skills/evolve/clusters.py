"""Groups of failures that look alike, and how far to trust them.

Failures that miss different milestones first are never in one group: they need different help.
Within a milestone, Ward's method, which is deterministic, groups the features; the number of groups
is the one with the largest mean silhouette. Trust is measured by drawing the failures again with
replacement and grouping those: the adjusted Rand index says whether the whole partition comes back,
Jaccard's index whether one group does. A group with fewer than five failures, or one that does not
come back (mean Jaccard below 0.6), is pooled: nothing is built for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from zetta.runtime.core import Array
from zetta.skills.evolve.failure_features import FailureFeatures

FEWEST: Final = 5
"""Failures of a group that is more than an anecdote."""
MOST_GROUPS: Final = 12
DRAWS: Final = 50
STABLE: Final = 0.6
ALIKE: Final = 0.15
"""With a mean silhouette below this everything is one group."""
MOSTLY: Final = 0.5
"""A cut that leaves fewer than this share in groups of five or more makes anecdotes of a group."""
POOLED: Final = -1

Labels: TypeAlias = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Grouping:
    """Failures put into groups."""

    labels: Labels
    """Group of each failure, largest group first; -1 for the pooled. Shape (failures,)."""
    silhouette: float
    """Mean over failures, before pooling; NaN for a single group."""
    agreement: float
    """Mean adjusted Rand index of groupings of failures drawn again; 1 for a single group."""
    recovered: tuple[float, ...]
    """For each group, how well it comes back: mean Jaccard index over the draws."""


def group_failures(features: FailureFeatures, missing: Sequence[str], seed: int = 0) -> Grouping:
    """Return failures in groups; equal arguments give equal groups.

    Args:
        features: one row for each failure.
        missing: what each failure missed first; a group is of one kind.
        seed: of the draws that measure trust.
    """
    points, strata = features.rows, np.unique(list(missing), return_inverse=True)[1]
    raw = _partition(points, strata)
    silhouette = _silhouette(points, raw)
    agreement, recovered = _stability(points, strata, raw, np.random.default_rng(seed))
    sizes = np.bincount(raw)
    kept = [g for g in range(len(sizes)) if sizes[g] >= FEWEST and recovered[g] >= STABLE]
    kept.sort(key=lambda g: (-sizes[g], int(np.flatnonzero(raw == g)[0])))
    labels = np.full(len(raw), POOLED, dtype=np.int64)
    for place, group in enumerate(kept):
        labels[raw == group] = place
    return Grouping(labels, silhouette, agreement, tuple(recovered[g] for g in kept))


def medoid(features: FailureFeatures, members: Sequence[int]) -> int:
    """Return the member that is nearest to all others of its group."""
    points = features.rows[list(members)]
    apart = np.linalg.norm(points[:, None] - points[None], axis=2).sum(axis=1)
    return members[int(apart.argmin())]


def _partition(points: Array, strata: Labels) -> Labels:
    """Return the group of each point, counted from 0; strata are grouped one by one."""
    labels = np.zeros(len(points), dtype=np.int64)
    offset = 0
    for stratum in np.unique(strata):
        own = np.flatnonzero(strata == stratum)
        found = _best(points[own])
        labels[own] = found + offset
        offset += int(found.max()) + 1
    return labels


def _best(points: Array) -> Labels:
    """Return the groups of the number whose mean silhouette is largest."""
    distinct = len(np.unique(points, axis=0))
    best, found = ALIKE, np.zeros(len(points), dtype=np.int64)
    for count in range(2, min(MOST_GROUPS, distinct - 1, len(points) - 1) + 1):
        labels = _ward(points, count)
        if _in_groups(labels) < MOSTLY:
            continue
        score = _silhouette(points, labels)
        if score > best:
            best, found = score, labels
    return found


def _in_groups(labels: Labels) -> float:
    """Return the share of failures whose group is not too small."""
    sizes = np.bincount(labels)
    return float(sizes[sizes >= FEWEST].sum() / len(labels))


def _silhouette(points: Array, labels: Labels) -> float:
    """Return the mean silhouette; NaN where it has no meaning."""
    from sklearn.metrics import silhouette_score

    if not 2 <= len(np.unique(labels)) < len(labels):
        return float("nan")
    return float(silhouette_score(points, labels))


def _ward(points: Array, count: int) -> Labels:
    from sklearn.cluster import AgglomerativeClustering

    return np.asarray(AgglomerativeClustering(count).fit_predict(points), dtype=np.int64)


def _stability(
    points: Array, strata: Labels, labels: Labels, rng: np.random.Generator
) -> tuple[float, list[float]]:
    """Return the mean adjusted Rand index, and the mean Jaccard index of each group."""
    from sklearn.metrics import adjusted_rand_score

    groups = int(labels.max()) + 1
    if groups == 1:
        return 1.0, [1.0]
    agreements: list[float] = []
    overlaps: list[list[float]] = [[] for _ in range(groups)]
    for _ in range(DRAWS):
        drawn = np.unique(rng.integers(0, len(points), len(points)))
        if len(drawn) <= groups:
            continue
        again = _partition(points[drawn], strata[drawn])
        agreements.append(float(adjusted_rand_score(labels[drawn], again)))
        for group in range(groups):
            own = labels[drawn] == group
            if own.any():
                overlaps[group].append(max(_jaccard(own, again == g) for g in set(again)))
    mean = [float(np.mean(each)) if each else 0.0 for each in overlaps]
    return (float(np.mean(agreements)) if agreements else 0.0), mean


def _jaccard(first: npt.NDArray[np.bool_], second: npt.NDArray[np.bool_]) -> float:
    return float((first & second).sum() / (first | second).sum())
