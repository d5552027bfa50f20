"""How well failures are diagnosed, scored on faults that were planted in the toy.

Purity is the share of failures that bear the commonest fault of their group, pooled ones counted as
one more group. Baselines: the same group sizes with labels dealt at random; a divergence in the
middle of the episode; the milestone that is missed most often.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from statistics import median
from typing import Final

import numpy as np

from zetta.runtime.benchmarks import Figure
from zetta.runtime.cli import output
from zetta.runtime.cli.planted_faults import FAULTS, SUCCESS_SEED, FaultyWorlds, Planted
from zetta.skills.evolve.clusters import POOLED
from zetta.skills.evolve.diagnosis import Diagnosis, diagnose
from zetta.skills.evolve.divergence import divergence, fit_band
from zetta.skills.evolve.milestones import learn_habits
from zetta.skills.evolve.observed import ObservedEpisode
from zetta.skills.evolve.progress_signals import course_of

SUCCESSES: Final = 40
FRESH_SEED: Final = SUCCESS_SEED + 5_000
DEALS: Final = 200
"""Random deals of the baseline."""
NEAR_TICKS: Final = 5


def diagnosis_figures(policy: str, count: int, solved: int = SUCCESSES) -> list[Figure]:
    """Plant every fault in `count` scenes, diagnose, and compare with what was planted.

    Failures are compared with `solved` successes, and as many fresh ones with these.
    """
    worlds = FaultyWorlds(policy)
    output.note(f"{policy}: {solved} successes, {solved} fresh ones")
    successes = list(worlds.successes(solved))
    fresh = list(worlds.successes(solved, FRESH_SEED))
    planted: list[Planted] = []
    for fault in FAULTS:
        planted += worlds.failures(fault, count)
        output.note(f"{policy}: {fault}, {len(planted)} failures so far")
    diagnosis = diagnose([*successes, *(each.episode for each in planted)])
    prefix = policy.partition("/")[2] + " "
    return [
        Figure(prefix + "failures", float(len(planted)), f"of {len(FAULTS)} faults"),
        *score(prefix, planted, diagnosis),
        Figure(prefix + "fresh successes said to diverge", _said_to_diverge(successes, fresh), ""),
    ]


def score(prefix: str, planted: Sequence[Planted], diagnosis: Diagnosis) -> list[Figure]:
    """Return how a diagnosis compares with what was planted, both in the same order."""
    faults = [each.fault for each in planted]
    groups = [each.cluster for each in diagnosis.failures]
    middles = [abs(each.episode.ticks // 2 - each.onset) for each in planted]
    errors = [
        abs((said.ticks if said.divergence is None else said.divergence) - each.onset)
        for each, said in zip(planted, diagnosis.failures, strict=True)
    ]
    right = [
        said.missing == each.missing for each, said in zip(planted, diagnosis.failures, strict=True)
    ]
    commonest = Counter(each.missing for each in planted).most_common(1)[0][1] / len(planted)
    figures = [
        _higher(prefix + "purity of groups", purity(faults, groups), _dealt(faults, groups)),
        Figure(prefix + "groups", float(len(diagnosis.clusters)), f"of {len(set(faults))} faults"),
        Figure(prefix + "pooled", groups.count(POOLED) / len(groups), ""),
        Figure(prefix + "agreement", diagnosis.bands[0].agreement, "Rand", higher_is_better=True),
        _lower(prefix + "divergence, median error", median(errors), median(middles)),
        _lower(
            prefix + "divergence, 90 % error",
            float(np.quantile(errors, 0.9)),
            float(np.quantile(middles, 0.9)),
        ),
        _higher(prefix + f"within {NEAR_TICKS} ticks", _near(errors), _near(middles)),
        _higher(prefix + "first missing milestone", float(np.mean(right)), commonest),
    ]
    for fault in dict.fromkeys(faults):
        own = [error for error, name in zip(errors, faults, strict=True) if name == fault]
        figures.append(Figure(f"{prefix}{fault}: median error", median(own), "ticks"))
    return figures


def purity(faults: Sequence[str], groups: Sequence[int]) -> float:
    """Return the share of failures that bear the commonest fault of their group.

    >>> purity(["a", "a", "b", "b"], [0, 0, 0, 1])
    0.75
    """
    members: dict[int, Counter[str]] = {}
    for fault, group in zip(faults, groups, strict=True):
        members.setdefault(group, Counter())[fault] += 1
    return sum(each.most_common(1)[0][1] for each in members.values()) / len(faults)


def _dealt(faults: Sequence[str], groups: Sequence[int]) -> float:
    """Return the mean purity when the groups' labels are dealt at random."""
    rng = np.random.default_rng(0)
    return float(np.mean([purity(faults, list(rng.permutation(groups))) for _ in range(DEALS)]))


def _said_to_diverge(
    successes: Sequence[ObservedEpisode], fresh: Sequence[ObservedEpisode]
) -> float:
    habits = learn_habits(successes)
    band = fit_band([course_of(each, habits) for each in successes])
    said = [divergence(band, course_of(each, habits)) is not None for each in fresh]
    return float(np.mean(said))


def _near(errors: Sequence[int]) -> float:
    return float(np.mean([error <= NEAR_TICKS for error in errors]))


def _higher(name: str, value: float, baseline: float) -> Figure:
    return Figure(name, value, "", baseline, value / baseline if baseline else None, None, True)


def _lower(name: str, value: float, baseline: float) -> Figure:
    # An error of no tick at all has no ratio; half a tick is what a tick can tell.
    return Figure(name, value, "ticks", baseline, baseline / max(value, 0.5))
