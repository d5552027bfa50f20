"""From logged episodes to groups of failures: what was missed, since when, and what it looked like.

`diagnose` is a pure function of the episodes and a seed; its record goes to JSON and back through
`runtime.records`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from zetta.runtime.errors import ConfigError
from zetta.skills.evolve.clusters import POOLED, Grouping, group_failures, medoid
from zetta.skills.evolve.divergence import (
    FEWEST_SUCCESSES,
    Band,
    divergence,
    fit_band,
    outermost,
)
from zetta.skills.evolve.failure_features import TRUTH, FailureFeatures, features_of
from zetta.skills.evolve.milestones import learn_habits
from zetta.skills.evolve.observed import ObservedEpisode
from zetta.skills.evolve.progress_signals import Course, course_of

SHOWN: Final = 6
"""Features of a group that are kept, from either side."""


@dataclass(frozen=True, slots=True)
class FailureDiagnosis:
    """One failure."""

    episode: str
    task: str
    ticks: int
    missing: str
    """The first milestone that was never met."""
    goal: str
    """The goal it belongs to."""
    divergence: int | None
    """First tick from which on no success of the same phase was near; None when it ran out of time
    on a way that successes took."""
    away_in: str
    """The number that was furthest from the nearest success then; empty without a divergence."""
    cluster: int
    """Its group; -1 when it is pooled."""


@dataclass(frozen=True, slots=True)
class Difference:
    """How a group stands out in one feature, in spreads of successes of the same phase."""

    name: str
    cluster: float
    """Median over the group; 0 is the middle of successes."""
    others: float
    """Median over all other failures of this kind; NaN when there are none."""


@dataclass(frozen=True, slots=True)
class ClusterDiagnosis:
    """One group of failures."""

    index: int
    size: int
    missing: str
    """The milestone that all of them miss first."""
    divergence: float
    """Median tick; NaN when none diverged."""
    away_in: str
    """The number in which most of them left the band."""
    medoid: str
    """The episode that is nearest to all others."""
    recovered: float
    """Mean Jaccard index with its like among failures drawn again."""
    signals: tuple[Difference, ...]
    """What a critic can read, the most different from successes first."""
    truth: tuple[Difference, ...]
    """The same of simulator truth: for people, and for nothing that is deployed."""
    tasks: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class BandDiagnosis:
    """The successes that failures of one kind of task were compared with."""

    milestones: tuple[str, ...]
    successes: int
    rate: float
    """Chance that a new success is said to diverge, at most."""
    left: int
    """How many of these diverge from the others."""
    silhouette: float
    agreement: float
    """Mean adjusted Rand index of the groups of failures drawn again."""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What is known about the failures of some episodes."""

    failures: tuple[FailureDiagnosis, ...]
    clusters: tuple[ClusterDiagnosis, ...]
    """Largest first within each kind of task."""
    bands: tuple[BandDiagnosis, ...]
    """One for each kind of task: tasks whose milestones have the same names."""
    successes: int
    errors: tuple[str, ...] = ()
    """Episodes that the machinery cut short: no result, and not looked at."""
    left_out: tuple[str, ...] = ()
    """Failures of a kind of task with too few successes to compare with."""
    seed: int = 0

    @property
    def pooled(self) -> int:
        """Number of failures that belong to no group."""
        return sum(each.cluster == POOLED for each in self.failures)


_Part: TypeAlias = tuple[list[FailureDiagnosis], list[ClusterDiagnosis], BandDiagnosis]


def diagnose(
    episodes: Sequence[ObservedEpisode],
    errors: Sequence[str] = (),
    seed: int = 0,
    advance: Callable[[int], None] = lambda count: None,
) -> Diagnosis:
    """Diagnose the failures among some episodes.

    Args:
        episodes: successes and failures of the same policy, any tasks.
        errors: names of episodes that the machinery cut short.
        seed: of the draws that say how stable the groups are.
        advance: told how many episodes are measured.

    Raises:
        ConfigError: there are no failures, too few successes, or a goal is of no known kind.
    """
    successes = [each for each in episodes if each.success]
    _check(successes, episodes)
    habits = learn_habits(successes)
    kinds: dict[object, list[Course]] = {}
    for count, episode in enumerate(episodes, start=1):
        course = course_of(episode, habits)
        kinds.setdefault(course.kind, []).append(course)
        advance(count)
    parts: list[_Part] = []
    left_out: list[str] = []
    for courses in kinds.values():
        failed = [course.episode.name for course in courses if not course.episode.success]
        if failed and len(courses) - len(failed) < FEWEST_SUCCESSES:
            left_out += failed
        elif failed:
            parts.append(_diagnose_kind(courses, sum(len(part[1]) for part in parts), seed))
    if not parts:
        raise ConfigError(
            f"none of the {len(left_out)} failures has {FEWEST_SUCCESSES} successes with the same "
            "milestones to compare with; add logs of solved episodes of these tasks"
        )
    return Diagnosis(
        failures=tuple(each for failures, _, _ in parts for each in failures),
        clusters=tuple(each for _, clusters, _ in parts for each in clusters),
        bands=tuple(band for _, _, band in parts),
        successes=len(successes),
        errors=tuple(errors),
        left_out=tuple(left_out),
        seed=seed,
    )


def _check(successes: Sequence[ObservedEpisode], episodes: Sequence[ObservedEpisode]) -> None:
    if len(successes) == len(episodes):
        raise ConfigError(
            f"there is no failure among {len(episodes)} episodes, so nothing to diagnose; give "
            "logs of runs in which the policy failed"
        )
    if not successes:
        raise ConfigError(
            f"there is no success among {len(episodes)} episodes, so nothing to compare failures "
            f"with; add logs of at least {FEWEST_SUCCESSES} solved episodes of these tasks"
        )


def _diagnose_kind(courses: Sequence[Course], offset: int, seed: int) -> _Part:
    """Diagnose failures whose milestones have the same names; groups count from `offset`."""
    solved = [course for course in courses if course.episode.success]
    failed = [course for course in courses if not course.episode.success]
    band = fit_band(solved)
    ticks = [divergence(band, course) for course in failed]
    # A failure that never left the band is described by its end.
    moments = [c.episode.ticks - 1 if t is None else t for c, t in zip(failed, ticks, strict=True)]
    features = features_of(failed, moments, solved)
    grouping = group_failures(features, [_missing(course)[0] for course in failed], seed)
    failures = [
        _failure(band, course, tick, int(label) + offset if label != POOLED else POOLED)
        for course, tick, label in zip(failed, ticks, grouping.labels, strict=True)
    ]
    clusters = [
        _cluster(place, offset, failures, features, grouping)
        for place in range(len(grouping.recovered))
    ]
    said = BandDiagnosis(
        milestones=tuple(each.name for each in courses[0].progress.milestones),
        successes=band.successes,
        rate=band.rate,
        left=band.left,
        silhouette=grouping.silhouette,
        agreement=grouping.agreement,
    )
    return failures, clusters, said


def _failure(band: Band, course: Course, tick: int | None, cluster: int) -> FailureDiagnosis:
    name, goal = _missing(course)
    return FailureDiagnosis(
        episode=course.episode.name,
        task=course.episode.task,
        ticks=course.episode.ticks,
        missing=name,
        goal=goal,
        divergence=tick,
        away_in="" if tick is None else outermost(band, course, tick),
        cluster=cluster,
    )


def _missing(course: Course) -> tuple[str, str]:
    """Return the first missing milestone and its goal."""
    missing = course.progress.missing
    if missing is None:
        return "kept", "all goals at once"  # each was met at some time, and not all at once
    return missing.name, missing.goal


def _cluster(
    place: int,
    offset: int,
    failures: Sequence[FailureDiagnosis],
    features: FailureFeatures,
    grouping: Grouping,
) -> ClusterDiagnosis:
    members = [i for i, label in enumerate(grouping.labels) if label == place]
    own = [failures[i] for i in members]
    ticks = [each.divergence for each in own if each.divergence is not None]
    differences = _differences(features, grouping.labels == place)
    return ClusterDiagnosis(
        index=place + offset,
        size=len(own),
        missing=own[0].missing,
        divergence=float(np.median(ticks)) if ticks else float("nan"),
        away_in=Counter(each.away_in for each in own).most_common(1)[0][0],
        medoid=own[members.index(medoid(features, members))].episode,
        recovered=grouping.recovered[place],
        signals=tuple(d for d in differences if not d.name.startswith(TRUTH))[:SHOWN],
        truth=tuple(d for d in differences if d.name.startswith(TRUTH))[:SHOWN],
        tasks=dict(sorted(Counter(each.task for each in own).items())),
    )


def _differences(features: FailureFeatures, inside: npt.NDArray[np.bool_]) -> list[Difference]:
    """Return every feature, the most unlike successes first.

    Equals are ranked by how far they are from the other failures.
    """
    own = np.median(features.rows[inside], axis=0)
    lonely = bool(inside.all())
    others = np.full(len(own), np.nan) if lonely else np.median(features.rows[~inside], axis=0)
    apart = np.abs(own - np.nan_to_num(others))
    order = np.lexsort((np.arange(len(own)), -apart, -np.abs(own)))
    return [
        Difference(features.names[i], float(own[i]), float(others[i]))
        for i in order
        if own[i] != 0.0
    ]
