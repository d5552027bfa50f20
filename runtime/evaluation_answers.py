"""What an evaluation answers in JSON: the records behind `results.json`, and their making."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from zetta.runtime.evaluation_results import Row
from zetta.runtime.evaluation_tables import ArmCount, Comparison, Count, SuiteCount, Tables
from zetta.runtime.records import to_json
from zetta.runtime.success_rates import Interval, MacroAverage


@dataclass(frozen=True, slots=True)
class CountAnswer:
    """One task under one arm."""

    successes: int
    n: int
    interval: Interval
    mean_ticks: float | None


@dataclass(frozen=True, slots=True)
class SuiteAnswer:
    """One suite under one arm."""

    successes: int
    n: int
    interval: Interval
    mean_ticks: float | None
    macro: MacroAverage | None
    tasks: Mapping[str, CountAnswer]


@dataclass(frozen=True, slots=True)
class ArmAnswer:
    """One arm over everything."""

    successes: int
    n: int
    interval: Interval
    mean_ticks: float | None
    policy: str
    bundle: str
    render: str
    suites: Mapping[str, SuiteAnswer]
    macro: MacroAverage | None
    errors: int
    success_at_reset: int
    sources: Mapping[str, float]
    mean_inferences: float | None
    interventions: int
    mean_dispersion: float | None
    reasons: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class ComparisonAnswer:
    """Two arms on their pairs."""

    baseline: str
    arm: str
    suite: str | None
    pairs: int
    both: int
    wins: int
    harms: int
    neither: int
    difference: float
    interval: Interval
    p_two_sided: float
    p_one_sided: float
    p_one_sided_by_scene: float | None
    macro_difference: MacroAverage


@dataclass(frozen=True, slots=True)
class TimingAnswer:
    """How long it took: the one thing in which two runs of one plan differ."""

    wall_s: float
    median_wall_s: float | None
    ticks_per_s: float | None
    late_ticks: int
    retries: int


def tables_json(tables: Tables) -> dict[str, Any]:
    """Return counts and paired tests as plain JSON, in the shape of `results.json`."""
    return {
        "arms": {arm.arm.name: to_json(_arm(arm)) for arm in tables.arms},
        "comparisons": [to_json(_comparison(each)) for each in tables.comparisons],
    }


def timing(rows: Sequence[Row]) -> TimingAnswer:
    """Return how long some episodes took."""
    walls = [row.record.wall_s for row in rows if row.record is not None]
    ticks = sum(row.record.ticks for row in rows if row.record is not None)
    return TimingAnswer(
        wall_s=sum(walls),
        median_wall_s=median(walls) if walls else None,
        ticks_per_s=ticks / sum(walls) if sum(walls) else None,
        late_ticks=sum(row.record.late_ticks for row in rows if row.record is not None),
        retries=sum(max(0, row.attempts - 1) for row in rows),
    )


def _arm(arm: ArmCount) -> ArmAnswer:
    return ArmAnswer(
        successes=arm.total.successes,
        n=arm.total.n,
        interval=arm.total.interval,
        mean_ticks=arm.total.mean_ticks,
        policy=arm.arm.policy,
        bundle=arm.arm.bundle,
        render=arm.arm.render,
        suites={suite.suite: _suite(suite) for suite in arm.suites},
        macro=arm.macro,
        errors=arm.errors,
        success_at_reset=arm.success_at_reset,
        sources=dict(arm.sources),
        mean_inferences=arm.mean_inferences,
        interventions=arm.interventions,
        mean_dispersion=arm.dispersion,
        reasons=dict(arm.reasons),
    )


def _suite(suite: SuiteCount) -> SuiteAnswer:
    total = suite.total
    tasks = {str(index): _count(count) for index, count in suite.tasks}
    return SuiteAnswer(
        total.successes, total.n, total.interval, total.mean_ticks, suite.macro, tasks
    )


def _count(count: Count) -> CountAnswer:
    return CountAnswer(count.successes, count.n, count.interval, count.mean_ticks)


def _comparison(comparison: Comparison) -> ComparisonAnswer:
    return ComparisonAnswer(
        baseline=comparison.baseline,
        arm=comparison.arm,
        suite=comparison.suite,
        pairs=comparison.pairs,
        both=comparison.both,
        wins=comparison.test.wins,
        harms=comparison.test.harms,
        neither=comparison.neither,
        difference=comparison.difference,
        interval=comparison.interval,
        p_two_sided=comparison.test.p_two_sided,
        p_one_sided=comparison.test.p_one_sided,
        p_one_sided_by_scene=comparison.p_scenes,
        macro_difference=comparison.macro,
    )
