"""The gate decides by what the runs say, in a fixed order, and refuses what it cannot judge."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zetta.runtime.errors import ConfigError, GateError
from zetta.runtime.records import from_json, to_json
from zetta.skills.evolve.evidence import (
    CostEvidence,
    Evidence,
    PairedOutcome,
    SafetyCount,
    tally,
)
from zetta.skills.evolve.gates import GateVerdict, admit, decide, is_admitted, record
from zetta.skills.evolve.ledger import Ledger, Opening, open_gate
from zetta.skills.evolve.plans import (
    Budget,
    DeclaredEffect,
    GatePlan,
    ReliabilityPlan,
    check_plan,
    plan_gate,
    planned_power,
)
from zetta.skills.evolve.power import most_harms
from zetta.skills.evolve.reliability import Repetitions
from zetta.skills.evolve.sequential import sign_boundary
from zetta.skills.evolve.significance import tango
from zetta.skills.evolve.stages import (
    cost_ratio,
    judge_no_harm,
    judge_pass_k,
    judge_same_scene,
    judge_superiority,
)

SCENES = tuple(f"sealed-{i}" for i in range(31))
CHEAP = CostEvidence(0.05, 0.001, 5000, 0, (100.0, 90.0, 110.0), (100.0, 90.0, 110.0))
FRUGAL = replace(CHEAP, candidate=(80.0, 70.0, 88.0))


@cache
def default_plan() -> GatePlan:
    return plan_gate()


def pairs(
    outcomes: str, scenes: Sequence[str] = SCENES, fired: bool | None = None
) -> tuple[PairedOutcome, ...]:
    """Return pairs from letters: w win, h harm, b both solved, n neither."""
    cells = {"w": (False, True), "h": (True, False), "b": (True, True), "n": (False, False)}
    return tuple(
        PairedOutcome(i, scenes[i], i, *cells[each], fired=each in "wh" if fired is None else fired)
        for i, each in enumerate(outcomes)
    )


def elsewhere(outcomes: str, name: str = "kept") -> tuple[PairedOutcome, ...]:
    return pairs(outcomes, [f"{name}-{i}" for i in range(len(outcomes))])


def a_fix(**changed: object) -> Evidence:
    """Return what a good candidate shows."""
    found = Evidence(
        same_scene=elsewhere("w" * 12 + "n" * 8, "failed"),
        no_harm=elsewhere("b" * 40 + "n" * 19),
        parent=pairs("wb" * 15 + "n"),
        sham=pairs("wb" * 15),
        random=pairs("wb" * 15),
        cost=CHEAP,
    )
    return replace(found, **changed)  # type: ignore[arg-type]


def opened(plan: GatePlan | None = None, candidate: str = "c1") -> tuple[Opening, Ledger]:
    return open_gate(plan or default_plan(), Ledger("night"), candidate, SCENES)


def verdict_on(evidence: Evidence, plan: GatePlan | None = None) -> GateVerdict:
    plan = plan or default_plan()
    return decide(plan, opened(plan)[0], evidence)


def test_the_default_plan_costs_600_rollouts_for_each_skill() -> None:
    budget = default_plan().budget
    assert budget.rollouts == 600
    assert (budget.development, budget.search, 3 * budget.same_scene) == (60, 200, 60)
    assert (2 * budget.no_harm, 2 * budget.confirmation, 2 * budget.report) == (118, 62, 40)


def test_a_fix_is_promoted_with_a_reason_for_each_stage() -> None:
    verdict = verdict_on(a_fix())
    assert verdict.decision == "PROMOTE"
    assert [each.stage for each in verdict.stages] == [
        "same_scene",
        "no_harm",
        "parent",
        "sham",
        "random",
        "cost",
    ]
    assert all(each.reason for each in verdict.stages)
    # Seven straight wins stop the first test, so the rest of the block decides nothing.
    assert (verdict.counts.wins, verdict.counts.harms, verdict.counts.pairs) == (7, 0, 13)


@pytest.mark.parametrize(
    ("evidence", "decision", "stage"),
    [
        (a_fix(same_scene=elsewhere("whn" * 6 + "nn", "failed")), "REJECT", "same_scene"),
        (a_fix(same_scene=elsewhere("n" * 20, "failed")), "REJECT", "same_scene"),
        (a_fix(same_scene=elsewhere("w" * 12, "failed")), "INCONCLUSIVE", "same_scene"),
        (a_fix(no_harm=elsewhere("h" + "b" * 58)), "REJECT", "no_harm"),
        (a_fix(no_harm=elsewhere("h" + "b" * 3)), "REJECT", "no_harm"),
        (a_fix(no_harm=elsewhere("b" * 58)), "INCONCLUSIVE", "no_harm"),
        (a_fix(safety=(SafetyCount("collision", 0, 1),)), "REJECT", "no_harm"),
        (a_fix(safety=(SafetyCount("fall", 3, 1, catastrophic=True),)), "REJECT", "no_harm"),
        (a_fix(safety=(SafetyCount("drop", 2, 12),)), "REJECT", "no_harm"),
        (a_fix(parent=pairs("h" * 31)), "REJECT", "parent"),
        (a_fix(parent=pairs("b" * 31)), "INCONCLUSIVE", "parent"),
        (a_fix(parent=pairs("wwwww")), "INCONCLUSIVE", "parent"),
        (a_fix(sham=pairs("bb" * 15)), "INCONCLUSIVE", "sham"),
        (a_fix(sham=()), "INCONCLUSIVE", "sham"),
        (a_fix(random=pairs("bb" * 15)), "INCONCLUSIVE", "random"),
        (a_fix(cost=None), "INCONCLUSIVE", "cost"),
        (a_fix(cost=replace(CHEAP, critic_p99_s=0.006)), "REJECT", "cost"),
        (a_fix(cost=replace(CHEAP, late_ticks=50)), "REJECT", "cost"),
        (a_fix(cost=replace(CHEAP, ticks=2994)), "INCONCLUSIVE", "cost"),
        (a_fix(cost=replace(CHEAP, candidate=(9e2, 1e3, 1.2e3))), "REJECT", "cost"),
    ],
)
def test_each_stage_ends_the_gate_where_it_is_not_passed(
    evidence: Evidence, decision: str, stage: str
) -> None:
    verdict = verdict_on(evidence)
    assert (verdict.decision, verdict.stages[-1].stage) == (decision, stage)
    assert verdict.reason.startswith(stage)


def test_events_that_also_happen_under_the_parent_are_no_new_danger() -> None:
    assert verdict_on(a_fix(safety=(SafetyCount("drop", 5, 6),))).decision == "PROMOTE"


def test_a_cheaper_candidate_without_a_gain_is_a_simplification() -> None:
    same = pairs("b" * 31)
    assert verdict_on(a_fix(parent=same, cost=FRUGAL)).decision == "SIMPLIFY"
    assert verdict_on(a_fix(parent=same, cost=CHEAP)).decision == "INCONCLUSIVE"
    # The test for a gain is lost after three harms; only the whole block shows no net loss.
    made_up = pairs("hhh" + "b" * 25 + "www")
    assert verdict_on(a_fix(parent=made_up, cost=FRUGAL)).decision == "SIMPLIFY"
    assert verdict_on(a_fix(parent=made_up[:30], cost=FRUGAL)).decision == "REJECT"
    assert verdict_on(a_fix(parent=pairs("hhh" + "b" * 28), cost=FRUGAL)).decision == "REJECT"
    harmed = a_fix(parent=same, cost=FRUGAL, no_harm=elsewhere("h" + "b" * 58))
    assert verdict_on(harmed).decision == "REJECT"


def test_three_harms_are_forgiven_by_153_pairs_but_not_in_one_family() -> None:
    plan = plan_gate(budget=Budget(no_harm=153))
    block = elsewhere("h" * 3 + "w" * 6 + "b" * 144)
    assert judge_no_harm(block, (), plan).outcome == "pass"
    # A wider bound forgives eight harms, but a net loss of eight is too much for Tango's test.
    wide = replace(plan, harm_margin=0.1)
    assert judge_no_harm(elsewhere("h" * 8 + "b" * 145), (), wide).outcome == "fail"
    assert judge_no_harm(elsewhere("h" * 8 + "w" * 8 + "b" * 137), (), wide).outcome == "pass"
    # Wins do not buy off harms in the exact bound, and a single family is not averaged away.
    assert judge_no_harm(elsewhere("h" * 4 + "w" * 20 + "b" * 129), (), plan).outcome == "fail"
    family = tuple(replace(p, family="drawer" if i < 6 else "bowl") for i, p in enumerate(block))
    assert judge_no_harm(family, (), plan).outcome == "fail"
    assert "drawer" in judge_no_harm(family, (), plan).reason


@given(st.integers(5, 400), st.sampled_from([0.02, 0.05, 0.1]))
def test_at_equal_margins_the_exact_bound_is_the_stricter_test(pairs: int, margin: float) -> None:
    harms = most_harms(margin, pairs)
    if harms >= 0:
        assert tango(0, harms, pairs, margin).p <= 0.05


def test_seeds_of_one_scene_are_no_independent_evidence() -> None:
    plan = default_plan()
    names = [f"failed-{i // 10}" for i in range(20)]
    clustered = judge_same_scene(pairs("w" * 12 + "n" * 8, names), plan)
    assert clustered.figures[0].value == 0.25
    assert clustered.outcome == "fail"


@given(st.lists(st.sampled_from("whbn"), min_size=31, max_size=31), st.randoms())
@settings(max_examples=50, deadline=None)
def test_the_verdict_does_not_depend_on_which_worker_was_first(
    letters: list[str], order: random.Random
) -> None:
    block = pairs("".join(letters))
    shuffled = list(block)
    order.shuffle(shuffled)
    one = verdict_on(a_fix(parent=block, sham=block[:30], random=block[:30]))
    other = verdict_on(
        a_fix(parent=tuple(shuffled), sham=block[:30], random=tuple(reversed(block[:30])))
    )
    assert one == other


@given(st.lists(st.sampled_from("whbn"), min_size=8, max_size=31))
@settings(max_examples=50, deadline=None)
def test_pairs_that_ran_ahead_of_the_stop_change_nothing(letters: list[str]) -> None:
    plan, text = default_plan(), "".join(letters)
    full = judge_superiority("parent", pairs(text), plan.boundaries[0], plan)
    if full.outcome != "waiting":
        stopped = pairs(text)[: full.counts.pairs]
        assert judge_superiority("parent", stopped, plan.boundaries[0], plan) == full


@given(st.lists(st.sampled_from("whbn"), min_size=31, max_size=31), st.integers(0, 30))
@settings(max_examples=50, deadline=None)
def test_a_win_instead_of_a_harm_never_costs_the_promotion(letters: list[str], at: int) -> None:
    plan, boundary = default_plan(), default_plan().boundaries[0]
    worse = judge_superiority("parent", pairs("".join(letters)), boundary, plan)
    if letters[at] == "h":
        letters[at] = "w"
        better = judge_superiority("parent", pairs("".join(letters)), boundary, plan)
        assert worse.outcome != "pass" or better.outcome == "pass"


def test_a_quiet_candidate_that_changes_something_stops_everything() -> None:
    quiet = pairs("b" * 30 + "w", fired=False)
    with pytest.raises(GateError, match=r"pair 30 of the parent block .* stayed quiet"):
        verdict_on(a_fix(parent=quiet))
    traced = (replace(pairs("b")[0], same_trace=False), *pairs("b" * 31)[1:])
    with pytest.raises(GateError, match="pair 0 of the parent block"):
        verdict_on(a_fix(parent=traced))


def test_noise_is_counted_where_equal_seeds_are_declared_not_to_give_equal_runs() -> None:
    plan = plan_gate(deterministic=False)
    verdict = verdict_on(a_fix(parent=pairs("wb" * 15 + "n", fired=False)), plan)
    assert verdict.decision == "PROMOTE"
    assert verdict.counts.unattributed == 7


def test_a_missing_run_counts_against_the_candidate() -> None:
    lost = [PairedOutcome(0, "s", 0, None, True, True), PairedOutcome(1, "t", 1, False, None, True)]
    counts = tally(lost)
    assert (counts.both, counts.neither, counts.wins) == (1, 1, 0)
    assert (counts.missing_baseline, counts.missing_candidate) == (1, 1)


def test_errors_of_machinery_in_one_arm_alone_void_the_comparison() -> None:
    lost = tuple(replace(p, candidate=None) if p.index < 8 else p for p in a_fix().no_harm)
    verdict = verdict_on(a_fix(no_harm=lost))
    assert verdict.decision == "INCONCLUSIVE"
    assert "mend the machinery" in verdict.reason


def test_missing_doubled_and_foreign_runs_are_refused() -> None:
    block = a_fix().parent
    with pytest.raises(GateError, match="wait for the missing runs"):
        verdict_on(a_fix(parent=(block[0], *block[2:])))
    with pytest.raises(GateError, match="expected each of 0"):
        verdict_on(a_fix(parent=(block[0], *block)))
    with pytest.raises(GateError, match="run the sealed block"):
        verdict_on(a_fix(parent=elsewhere("w" * 31)))
    with pytest.raises(GateError, match="another run of the candidate"):
        verdict_on(a_fix(sham=pairs("w" + "n" + "wb" * 14)))
    twice = elsewhere("b" * 59)
    with pytest.raises(GateError, match="comes 2 times"):
        verdict_on(a_fix(no_harm=(twice[0], replace(twice[1], scene="kept-0"), *twice[2:])))


def test_the_first_pass_power_stage_needs_all_its_scenes() -> None:
    plan = ReliabilityPlan()
    kept = [Repetitions(f"s{i}", 8, 6, 6) for i in range(10)]
    lost = [Repetitions(f"s{i}", 8, 7, 4) for i in range(10)]
    assert judge_pass_k(kept, plan).outcome == "pass"
    assert judge_pass_k(lost, plan).outcome == "fail"
    assert judge_pass_k(kept[:9], plan).outcome == "waiting"
    asked = plan_gate(reliability=plan)
    assert verdict_on(a_fix(), asked).decision == "INCONCLUSIVE"
    assert verdict_on(a_fix(repetitions=tuple(kept)), asked).decision == "PROMOTE"


def test_the_ratio_of_costs_is_bounded_by_its_spread() -> None:
    steady = cost_ratio(replace(CHEAP, candidate=(200.0, 180.0, 220.0)))
    assert (steady.ratio, steady.upper) == pytest.approx((2.0, 2.0))
    spread = cost_ratio(replace(CHEAP, candidate=(100.0, 180.0, 440.0)))
    assert spread.ratio == pytest.approx(2.0)
    assert spread.upper > 4.0
    with pytest.raises(ValueError, match="costs come in pairs"):
        cost_ratio(replace(CHEAP, candidate=(1.0,)))


def test_a_gate_that_would_miss_the_declared_effect_does_not_open() -> None:
    plan = default_plan()
    check_plan(plan, 1)
    check_plan(plan, 2)
    assert planned_power(plan, 3).both < 0.80
    with pytest.raises(GateError, match="it needs 33 pairs instead of 31"):
        check_plan(plan, 3)
    check_plan(plan_gate(budget=Budget(confirmation=33)), 3)
    small = plan_gate(DeclaredEffect(0.7356, 0.9356, 0.02))
    with pytest.raises(GateError, match=r"73\.6% to 93\.6% .* it needs \d+ pairs"):
        opened(small)


def test_the_refusal_also_knows_how_many_no_harm_pairs_are_needed() -> None:
    with pytest.raises(GateError, match="give the no-harm stage 124 pairs instead of 59"):
        opened(plan_gate(DeclaredEffect(regression_harm=0.01)))
    with pytest.raises(GateError, match="no number"):
        opened(plan_gate(DeclaredEffect(regression_harm=0.05)))


def test_effects_that_cannot_be_are_refused() -> None:
    with pytest.raises(ConfigError, match="harms of at most"):
        DeclaredEffect(0.9, 0.95, 0.2)
    with pytest.raises(ConfigError, match="better than its parent"):
        DeclaredEffect(0.5, 0.4, 0.0)


def test_an_opening_spends_risk_whatever_comes_of_it() -> None:
    plan = default_plan()
    opening, ledger = opened()
    assert ledger.alpha_spent == pytest.approx(0.030396, abs=1e-6)
    closed = record(ledger, opening, verdict_on(a_fix(parent=pairs("b" * 31))))
    fresh = tuple(f"fresh-{i}" for i in range(31))
    again, after = open_gate(plan, closed, "c2", fresh)
    assert again.number == 2
    assert after.alpha_spent == pytest.approx(0.030396 + 0.007599, abs=2e-6)
    assert after.entries[0].decision == "INCONCLUSIVE"
    assert after.burned == set(SCENES) | set(fresh)


def test_a_gate_refuses_what_is_not_fresh() -> None:
    plan = default_plan()
    opening, ledger = opened()
    fresh = tuple(f"fresh-{i}" for i in range(31))
    with pytest.raises(GateError, match="still open"):
        open_gate(plan, ledger, "c2", fresh)
    closed = record(ledger, opening, verdict_on(a_fix()))
    with pytest.raises(GateError, match="gets one try"):
        open_gate(plan, closed, "c1", fresh)
    with pytest.raises(GateError, match="burned by an earlier opening"):
        open_gate(plan, closed, "c2", (SCENES[0], *fresh[1:]))
    with pytest.raises(GateError, match="seen already"):
        open_gate(plan, closed, "c2", fresh, seen={"fresh-3"})
    with pytest.raises(GateError, match="30 different scenes in 31 places"):
        open_gate(plan, closed, "c2", (fresh[1], *fresh[1:]))
    with pytest.raises(GateError, match="closed once"):
        record(closed, opening, verdict_on(a_fix()))


def test_a_plan_that_changes_after_it_was_sealed_is_refused() -> None:
    plan = default_plan()
    opening, ledger = opened()
    changed = replace(plan, margin=0.2)
    with pytest.raises(GateError, match="cannot change after it was sealed"):
        decide(changed, opening, a_fix())
    closed = record(ledger, opening, verdict_on(a_fix()))
    with pytest.raises(GateError, match="cannot change after it was sealed"):
        open_gate(changed, closed, "c2", tuple(f"fresh-{i}" for i in range(31)))


def test_a_plan_with_a_boundary_that_spends_too_much_is_refused() -> None:
    loose = replace(default_plan(), boundaries=(sign_boundary(0.2, 12),))
    with pytest.raises(GateError, match=r"make the plan with plan_gate"):
        opened(loose)
    forged = replace(default_plan().boundaries[0], wins=(1,) * 12)
    with pytest.raises(GateError, match=r"make the plan with plan_gate"):
        opened(replace(default_plan(), boundaries=(forged,)))


def test_what_is_not_admitted_needs_no_opening_and_what_is_waits_for_one() -> None:
    plan = default_plan()
    assert is_admitted(admit(plan, a_fix()))
    assert decide(plan, None, a_fix()).decision == "INCONCLUSIVE"
    bad = a_fix(no_harm=elsewhere("h" * 59))
    assert not is_admitted(admit(plan, bad))
    assert decide(plan, None, bad).decision == "REJECT"


def test_every_record_of_the_gate_survives_json() -> None:
    opening, ledger = opened()
    verdict = verdict_on(a_fix())
    for kind, value in (
        (GatePlan, default_plan()),
        (GatePlan, plan_gate(reliability=ReliabilityPlan())),
        (Evidence, a_fix(repetitions=(Repetitions("s", 8, 4, 5),))),
        (GateVerdict, verdict),
        (Ledger, record(ledger, opening, verdict)),
    ):
        assert from_json(kind, json.loads(json.dumps(to_json(value)))) == value
