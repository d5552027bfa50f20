"""Counts, intervals and paired tests from the rows of an evaluation.

Scored are the episodes that ran to an end and whose goal did not already hold at reset. Errors of
machinery and goals that held at reset are counted beside them, in every arm alike. Nothing here
depends on wall time, on retries or on how many workers there were.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from zetta.runtime.core import RunSpec
from zetta.runtime.evaluation_plan import Arm
from zetta.runtime.evaluation_results import Row
from zetta.runtime.rollouts.factory import EpisodeRecord
from zetta.runtime.success_rates import (
    Interval,
    MacroAverage,
    PairedTest,
    macro_average,
    mcnemar,
    newcombe_paired,
    sign_flip,
    wilson,
)

TaskName: TypeAlias = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Count:
    """How often it succeeded."""

    successes: int
    n: int
    mean_ticks: float | None
    """Over the scored episodes; None when there are none."""

    @property
    def rate(self) -> float | None:
        """Successes over episodes; None without episodes."""
        return self.successes / self.n if self.n else None

    @property
    def interval(self) -> Interval:
        """Wilson interval of the rate, 95 %."""
        return wilson(self.successes, self.n)


@dataclass(frozen=True, slots=True)
class SuiteCount:
    """One suite under one arm."""

    suite: str
    total: Count
    tasks: tuple[tuple[int, Count], ...]
    macro: MacroAverage | None
    """Average over the tasks that have scored episodes."""


@dataclass(frozen=True, slots=True)
class ArmCount:
    """One arm over everything."""

    arm: Arm
    total: Count
    suites: tuple[SuiteCount, ...]
    macro: MacroAverage | None
    errors: int
    success_at_reset: int
    sources: tuple[tuple[str, float], ...]
    """Share of the ticks that each source drove."""
    mean_inferences: float | None
    interventions: int
    dispersion: float | None
    """Mean over episodes of the chunks' mean dispersion, metres."""
    reasons: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two arms on the pairs that both ran, over all suites or one."""

    baseline: str
    arm: str
    suite: str | None
    both: int
    neither: int
    test: PairedTest
    difference: float
    interval: Interval
    p_scenes: float | None
    """One-sided, whole scenes exchanged; given where a scene was run with several policy seeds."""
    macro: MacroAverage
    """Difference averaged over tasks, with its interval over tasks."""

    @property
    def pairs(self) -> int:
        """How many pairs."""
        return self.both + self.neither + self.test.wins + self.test.harms


@dataclass(frozen=True, slots=True)
class Tables:
    """Everything an evaluation says."""

    arms: tuple[ArmCount, ...]
    comparisons: tuple[Comparison, ...]


def tabulate(
    rows: Sequence[Row], arms: Sequence[Arm], pairs: Iterable[tuple[Arm, Arm]] | None = None
) -> Tables:
    """Return the tables of complete rows; the order of `rows` does not matter to the numbers.

    Args:
        rows: complete ones.
        arms: what is counted.
        pairs: baseline and arm of each comparison; by default those that differ in one thing.
    """
    suites = sorted({row.planned.spec.suite for row in rows})
    scopes: list[str | None] = [None, *suites] if len(suites) > 1 else [None]
    compared = [
        comparison
        for baseline, arm in (_worth_comparing(arms) if pairs is None else pairs)
        for suite in scopes
        if (comparison := _compare(rows, baseline, arm, suite)) is not None
    ]
    return Tables(count_arms(rows, arms), tuple(compared))


def count_arms(rows: Sequence[Row], arms: Sequence[Arm]) -> tuple[ArmCount, ...]:
    """Return what each arm came to, without comparing any."""
    return tuple(_arm_count(arm, [r for r in rows if r.planned.arm == arm.name]) for arm in arms)


def _worth_comparing(arms: Sequence[Arm]) -> Iterable[tuple[Arm, Arm]]:
    """Pair each arm with the first one that differs from it in one thing alone.

    That thing is the bundle where there are several, else the render setting, else the policy.
    """
    for arm in arms:
        others = (
            [a for a in arms if (a.policy, a.render) == (arm.policy, arm.render)],
            [a for a in arms if (a.policy, a.bundle) == (arm.policy, arm.bundle)],
            [a for a in arms if (a.bundle, a.render) == (arm.bundle, arm.render)],
        )
        baseline = next((same[0] for same in others if same[0] != arm), None)
        if baseline is not None:
            yield baseline, arm


def _scored(rows: Iterable[Row]) -> list[tuple[RunSpec, EpisodeRecord]]:
    """Return what counts: episodes that ran to an end and did not begin solved."""
    found = ((row.planned.spec, row.record) for row in rows)
    return [(spec, rec) for spec, rec in found if rec is not None and not rec.success_at_reset]


def _count(records: Sequence[EpisodeRecord]) -> Count:
    ticks = sum(record.ticks for record in records) / len(records) if records else None
    return Count(sum(record.success for record in records), len(records), ticks)


def _arm_count(arm: Arm, rows: Sequence[Row]) -> ArmCount:
    records = [record for _, record in _scored(rows)]
    tasks = _by(rows, lambda row: (row.planned.spec.suite, row.planned.spec.task))
    suites = sorted({suite for suite, _ in tasks})
    counts = {task: _count([r for _, r in _scored(tasks[task])]) for task in sorted(tasks)}
    ticks = Counter[str]()
    for record in records:
        ticks.update(record.sources)
    spreads = [record.dispersion for record in records if record.dispersion is not None]
    return ArmCount(
        arm=arm,
        total=_count(records),
        suites=tuple(_suite_count(suite, counts) for suite in suites),
        macro=_macro(counts.values()),
        errors=sum(row.record is None for row in rows),
        success_at_reset=sum(r.record.success_at_reset for r in rows if r.record is not None),
        sources=tuple((name, n / ticks.total()) for name, n in sorted(ticks.items())),
        mean_inferences=_mean([record.inferences for record in records]),
        interventions=sum(record.interventions for record in records),
        dispersion=_mean(spreads),
        reasons=tuple(sorted(Counter(record.reason for record in records).items())),
    )


def _suite_count(suite: str, counts: dict[TaskName, Count]) -> SuiteCount:
    own = [(index, count) for (name, index), count in counts.items() if name == suite]
    n = sum(count.n for _, count in own)
    ticks = sum((count.mean_ticks or 0) * count.n for _, count in own)
    total = Count(sum(count.successes for _, count in own), n, ticks / n if n else None)
    return SuiteCount(suite, total, tuple(own), _macro(count for _, count in own))


def _macro(counts: Iterable[Count]) -> MacroAverage | None:
    rates = [count.rate for count in counts if count.rate is not None]
    return macro_average(rates) if rates else None


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _compare(rows: Sequence[Row], baseline: Arm, arm: Arm, suite: str | None) -> Comparison | None:
    """Return the comparison over the pairs that both arms ran, or None without pairs."""
    inside = [row for row in rows if suite is None or row.planned.spec.suite == suite]
    first, second = _outcomes(inside, baseline.name), _outcomes(inside, arm.name)
    pairs = {pair: (first[pair], second[pair]) for pair in first if pair in second}
    if not pairs:
        return None
    cells = Counter(pairs.values())
    both, wins = cells[True, True], cells[False, True]
    harms, neither = cells[True, False], cells[False, False]
    difference, interval = newcombe_paired(both, wins, harms, neither)
    by_scene: dict[Hashable, int] = defaultdict(int)
    by_task: dict[Hashable, list[int]] = defaultdict(list)
    for (task, scene, _), (before, after) in pairs.items():
        by_scene[task, scene] += after - before
        by_task[task].append(after - before)
    return Comparison(
        baseline=baseline.name,
        arm=arm.name,
        suite=suite,
        both=both,
        neither=neither,
        test=mcnemar(wins, harms),
        difference=difference,
        interval=interval,
        p_scenes=sign_flip(list(by_scene.values())) if len(by_scene) < len(pairs) else None,
        macro=macro_average([sum(each) / len(each) for each in by_task.values()]),
    )


def _outcomes(rows: Iterable[Row], arm: str) -> dict[tuple[TaskName, str, int], bool]:
    """Return success by task, scene and policy seed, in a fixed order."""
    own = _scored(row for row in rows if row.planned.arm == arm)
    return {
        ((spec.suite, spec.task), f"{spec.layout}/{spec.seed}", spec.policy_seed): record.success
        for spec, record in own
    }


def _by(rows: Iterable[Row], key: Callable[[Row], TaskName]) -> dict[TaskName, list[Row]]:
    groups: dict[TaskName, list[Row]] = defaultdict(list)
    for row in rows:
        groups[key(row)].append(row)
    return groups
