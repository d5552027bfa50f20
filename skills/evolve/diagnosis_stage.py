"""The diagnosis of a generation: which failures it is about."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from zetta.runtime.episode_log import LoggedEpisode
from zetta.runtime.errors import ConfigError
from zetta.skills.evolve.diagnosis import ClusterDiagnosis, Diagnosis, diagnose
from zetta.skills.evolve.generation_records import Cost, Developed, Development, Diagnosed
from zetta.skills.evolve.observed import ObservedEpisode, observe_log

LARGE: Final = 0.6
"""A group with this share of the failures is worth a generation of its own."""
FEWEST: Final = 5
"""A smaller group is pooled with the others."""


def diagnose_development(
    development: Development,
    root: Path,
    read: Callable[[Developed], LoggedEpisode],
    avoided: Collection[str] = (),
) -> Diagnosed:
    """Diagnose the development block, and choose the failures that the generation is about.

    Args:
        development: episodes of the parent.
        root: the campaign's folder, in which their logs lie.
        read: returns a log, made again where it was lost.
        avoided: milestones that earlier generations were about, without success.
    """
    ended = [each for each in development.episodes if each.success is not None]
    observed = [_observed(root, each, read(each)) for each in ended]
    failed = [each for each in observed if not each.success]
    errors = [each.name for each in development.episodes if each.success is None]
    try:
        found = diagnose(observed, errors)
    except ConfigError as error:
        return _pooled(failed, None, f"all failures are one group: {error}")
    return _target(found, failed, avoided)


def _target(
    found: Diagnosis, failed: Sequence[ObservedEpisode], avoided: Collection[str]
) -> Diagnosed:
    free = [each for each in found.clusters if each.missing not in avoided]
    largest = max(free, key=lambda each: each.size, default=None)
    if largest is None or largest.size < max(FEWEST, LARGE * len(failed)):
        size = 0 if largest is None else largest.size
        return _pooled(
            failed, found, f"all failures are pooled: the largest group has {size} of {len(failed)}"
        )
    names = tuple(each.episode for each in found.failures if each.cluster == largest.index)
    return Diagnosed(largest, names, found, "the largest group", Cost())


def _pooled(failed: Sequence[ObservedEpisode], found: Diagnosis | None, note: str) -> Diagnosed:
    known = () if found is None else found.failures
    missing = Counter(each.missing for each in known).most_common(1)
    target = ClusterDiagnosis(
        index=-1,
        size=len(failed),
        missing=missing[0][0] if missing else "",
        divergence=float("nan"),
        away_in="",
        medoid=failed[0].name,
        recovered=float("nan"),
        signals=(),
        truth=(),
        tasks=dict(sorted(Counter(each.task for each in failed).items())),
    )
    return Diagnosed(target, tuple(each.name for each in failed), found, note, Cost())


def _observed(root: Path, episode: Developed, logged: LoggedEpisode) -> ObservedEpisode:
    return replace(observe_log(root / episode.log, logged), name=episode.name)
