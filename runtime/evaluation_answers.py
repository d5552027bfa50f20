"""What an evaluation answers in JSON: the parts of `results.json`."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Any

from zetta.runtime.evaluation_results import Row
from zetta.runtime.evaluation_tables import ArmCount, Comparison, Count, SuiteCount, Tables
from zetta.runtime.records import to_json


def tables_json(tables: Tables) -> dict[str, Any]:
    """Return counts and paired tests as plain JSON, in the shape of `results.json`."""
    return {
        "arms": {arm.arm.name: to_json(_arm(arm)) for arm in tables.arms},
        "comparisons": [to_json(_comparison(each)) for each in tables.comparisons],
    }


def timing_json(rows: Sequence[Row]) -> dict[str, Any]:
    """Return how long some episodes took: the one thing in which two runs of one plan differ."""
    walls = [row.record.wall_s for row in rows if row.record is not None]
    ticks = sum(row.record.ticks for row in rows if row.record is not None)
    return {
        "wall_s": sum(walls),
        "median_wall_s": median(walls) if walls else None,
        "ticks_per_s": ticks / sum(walls) if sum(walls) else None,
        "late_ticks": sum(row.record.late_ticks for row in rows if row.record is not None),
        "retries": sum(max(0, row.attempts - 1) for row in rows),
    }


def _arm(arm: ArmCount) -> dict[str, Any]:
    return {
        **_count(arm.total),
        "policy": arm.arm.policy,
        "bundle": arm.arm.bundle,
        "render": arm.arm.render,
        "suites": {suite.suite: _suite(suite) for suite in arm.suites},
        "macro": arm.macro,
        "errors": arm.errors,
        "success_at_reset": arm.success_at_reset,
        "sources": dict(arm.sources),
        "mean_inferences": arm.mean_inferences,
        "interventions": arm.interventions,
        "mean_dispersion": arm.dispersion,
        "reasons": dict(arm.reasons),
    }


def _suite(suite: SuiteCount) -> dict[str, Any]:
    tasks = {str(index): _count(count) for index, count in suite.tasks}
    return {**_count(suite.total), "macro": suite.macro, "tasks": tasks}


def _count(count: Count) -> dict[str, Any]:
    return {
        "successes": count.successes,
        "n": count.n,
        "interval": count.interval,
        "mean_ticks": count.mean_ticks,
    }


def _comparison(comparison: Comparison) -> dict[str, Any]:
    return {
        "baseline": comparison.baseline,
        "arm": comparison.arm,
        "suite": comparison.suite,
        "pairs": comparison.pairs,
        "both": comparison.both,
        "wins": comparison.test.wins,
        "harms": comparison.test.harms,
        "neither": comparison.neither,
        "difference": comparison.difference,
        "interval": comparison.interval,
        "p_two_sided": comparison.test.p_two_sided,
        "p_one_sided": comparison.test.p_one_sided,
        "p_one_sided_by_scene": comparison.p_scenes,
        "macro_difference": comparison.macro,
    }
