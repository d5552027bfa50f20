from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from zetta.runtime.core import Init
from zetta.runtime.evaluation_plan import Arm, Evaluation, Plan, arms_of, make_plan
from zetta.runtime.evaluation_reports import markdown, results_json
from zetta.runtime.evaluation_results import Row
from zetta.runtime.evaluation_tables import tabulate
from zetta.runtime.rollouts.factory import EpisodeRecord, Identity

SUITES = ("a", "b")
RECORD = EpisodeRecord(
    success=True,
    success_at_reset=False,
    reason="success",
    ticks=40,
    inferences=5,
    interventions=0,
    sources={"policy": 30, "skill:regrasp": 10},
    scene_digest="d",
    wall_s=1.0,
    dispersion=0.02,
)


def plan_of(arms: Sequence[Arm], policy_seeds: int = 1, tasks: int = 3, inits: int = 4) -> Plan:
    evaluation = Evaluation(
        sim="toy",
        tasks=tuple((suite, index) for suite in SUITES for index in range(tasks)),
        starts=tuple((Init(k), 0) for k in range(inits)),
        arms=tuple(arms),
        policy_seeds=tuple(range(policy_seeds)),
    )
    return make_plan(evaluation, Identity(policies={"p": "digest", "q": "other"}))


def rows_of(plan: Plan, outcome: Callable[[str, str, int, int], bool]) -> list[Row]:
    rows = []
    for episode in plan.episodes:
        spec = episode.spec
        assert isinstance(spec.layout, Init)
        success = outcome(episode.arm, spec.suite, spec.task, spec.layout.k)
        rows.append(Row(episode, replace(RECORD, success=success), 1))
    return rows


def better_on_first_tasks(arm: str, suite: str, task: int, k: int) -> bool:
    return (
        k < 2 or (arm == "b" and task == 0) or (arm == "none" and (suite, task, k) == ("b", 2, 3))
    )


TWO_ARMS = arms_of(["p"], ["none", "b"])


def test_counts_pairs_and_averages_are_those_of_the_rows() -> None:
    rows = rows_of(plan_of(TWO_ARMS), better_on_first_tasks)
    tables = tabulate(rows, TWO_ARMS)
    none, bundle = tables.arms
    assert (none.total.successes, none.total.n) == (13, 24)
    assert (bundle.total.successes, bundle.total.n) == (16, 24)
    assert [(s.suite, s.total.successes) for s in bundle.suites] == [("a", 8), ("b", 8)]
    assert dict(bundle.suites[0].tasks)[0].successes == 4
    assert none.sources == (("policy", 0.75), ("skill:regrasp", 0.25))
    assert none.macro is not None
    assert none.macro.mean == pytest.approx(13 / 24)
    both, first, second = tables.comparisons
    assert (both.suite, first.suite, second.suite) == (None, "a", "b")
    assert (both.both, both.test.wins, both.test.harms, both.neither) == (12, 4, 1, 7)
    assert both.difference == pytest.approx(3 / 24)
    assert (first.test.wins, first.test.harms) == (2, 0)
    assert both.p_scenes is None


def test_order_of_the_rows_changes_nothing() -> None:
    plan = plan_of(TWO_ARMS)
    rows = rows_of(plan, better_on_first_tasks)
    shuffled = random.Random(1).sample(rows, len(rows))
    assert tabulate(shuffled, TWO_ARMS) == tabulate(rows, TWO_ARMS)


def test_errors_and_goals_that_held_at_reset_are_counted_apart_and_leave_their_pairs() -> None:
    rows = rows_of(plan_of(TWO_ARMS), better_on_first_tasks)
    solved = replace(RECORD, success_at_reset=True)
    rows[0] = Row(rows[0].planned, None, 3, "the camera went away")
    rows[2] = Row(rows[2].planned, solved, 1)
    tables = tabulate(rows, TWO_ARMS)
    none = tables.arms[0]
    assert (none.errors, none.success_at_reset, none.total.n) == (1, 1, 22)
    assert tables.comparisons[0].pairs == 22
    text = markdown(plan_of(TWO_ARMS), tables, "zetta eval")
    assert "1 could not be run, 1 solved at reset: not scored" in text


def test_several_policy_seeds_are_also_tested_by_whole_scenes() -> None:
    plan = plan_of(TWO_ARMS, policy_seeds=3)
    tables = tabulate(rows_of(plan, lambda arm, suite, task, k: arm == "b" and k == 0), TWO_ARMS)
    found = tables.comparisons[0]
    assert found.test.wins == 18
    assert found.p_scenes == pytest.approx(1 / 64)  # six scenes, each won with all three seeds


def test_policies_are_compared_with_the_first_and_bundles_with_their_policy_alone() -> None:
    arms = arms_of(["p", "q"], ["none", "b"])
    tables = tabulate(rows_of(plan_of(arms), lambda *_: True), arms)
    compared = [(c.baseline, c.arm) for c in tables.comparisons if c.suite is None]
    assert compared == [("p:none", "p:b"), ("p:none", "q:none"), ("q:none", "q:b")]


def test_render_settings_are_compared_on_the_same_policy_and_bundle() -> None:
    arms = arms_of(["p"], ["none"], ["full", "fast"])
    tables = tabulate(rows_of(plan_of(arms), lambda *_: True), arms)
    assert [(c.baseline, c.arm) for c in tables.comparisons if c.suite is None] == [
        ("none@full", "none@fast")
    ]


def test_single_arm_has_no_comparison_and_its_json_keeps_the_contract() -> None:
    arms = arms_of(["p"], ["none"])
    plan = plan_of(arms)
    rows = rows_of(plan, better_on_first_tasks)
    answer = results_json(plan, tabulate(rows, arms), rows, "zetta eval")
    assert answer["comparisons"] == []
    assert set(answer["arms"]) == {"none"}
    assert {"successes", "n", "interval", "suites"} <= set(answer["arms"]["none"])
    assert answer["arms"]["none"]["suites"]["a"]["tasks"]["0"]["n"] == 4
    for provenance in (
        "versions",
        "conventions",
        "render_profile",
        "sensing",
        "command",
        "policies",
    ):
        assert provenance in answer


def test_tables_say_nothing_about_wall_time_or_retries() -> None:
    plan = plan_of(TWO_ARMS)
    rows = rows_of(plan, better_on_first_tasks)
    slow = [
        Row(row.planned, replace(row.record, wall_s=99.0), 3)
        for row in rows
        if row.record is not None
    ]
    texts = [markdown(plan, tabulate(some, TWO_ARMS), "zetta eval") for some in (rows, slow)]
    answers = [results_json(plan, tabulate(s, TWO_ARMS), s, "zetta eval") for s in (rows, slow)]
    assert texts[0] == texts[1]
    timings = [answer.pop("timing") for answer in answers]
    assert answers[0] == answers[1]
    assert timings[0] != timings[1]
