"""The stages of the gate: each a pure function from runs to one result with its reason."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import numpy as np
from scipy.special import stdtrit

from zetta.runtime.success_rates import (
    lower_bound,
    mcnemar,
    newcombe_paired,
    sign_flip,
    upper_bound,
)
from zetta.skills.evolve.evidence import (
    CostEvidence,
    PairedOutcome,
    SafetyCount,
    Tally,
    by_family,
    by_scene,
    check_fresh,
    check_quiet,
    count,
    in_order,
    tally,
)
from zetta.skills.evolve.plans import CostLimits, GatePlan, ReliabilityPlan, forgiven_harms
from zetta.skills.evolve.reliability import Repetitions, pass_power_kept
from zetta.skills.evolve.sequential import Boundary
from zetta.skills.evolve.significance import (
    harm_bound,
    infrastructure_imbalance,
    safety_excess,
    tango,
)

StageName: TypeAlias = Literal[
    "same_scene", "no_harm", "parent", "sham", "random", "cost", "pass_k"
]
Outcome: TypeAlias = Literal["pass", "fail", "undecided", "waiting", "void"]
"""`undecided`: the budget is spent and nothing is shown. `waiting`: more runs can decide. `void`:
errors of machinery make the comparison unfair."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A number with its name."""

    name: str
    value: float


@dataclass(frozen=True, slots=True)
class StageResult:
    """What one stage says."""

    stage: StageName
    outcome: Outcome
    reason: str
    counts: Tally = field(default_factory=Tally)
    figures: tuple[Figure, ...] = ()


def judge_same_scene(pairs: Sequence[PairedOutcome], plan: GatePlan) -> StageResult:
    """Filter on the failed scenes, where the parent runs again with fresh seeds.

    Several seeds of one scene change sign together (see `success_rates.sign_flip`). Spends no risk,
    because the sealed block holds other scenes.

    Raises:
        GateError: pairs are missing or a quiet pair differs.
    """
    block = _block(pairs, "same-scene", plan, plan.budget.same_scene)
    counts = tally(block)
    if counts.pairs < plan.budget.same_scene:
        return _waiting("same_scene", counts, plan.budget.same_scene)
    if not any(pair.fired for pair in block):
        return StageResult("same_scene", "fail", "the candidate never intervened", counts)
    sums = by_scene(block)
    clustered = len(sums) < counts.pairs
    p = sign_flip(sums) if clustered else mcnemar(counts.wins, counts.harms).p_one_sided
    passed = p <= plan.same_scene_p
    reason = (
        f"p = {p:.3g} against the parent on its failed scenes; "
        f"{'at most' if passed else 'above'} {plan.same_scene_p:g}"
    )
    return StageResult(
        "same_scene", "pass" if passed else "fail", reason, counts, (Figure("p", p),)
    )


def judge_no_harm(
    pairs: Sequence[PairedOutcome], safety: Sequence[SafetyCount], plan: GatePlan
) -> StageResult:
    """Ask that what worked still works: no net loss, few harms, no new danger.

    Both Tango's non-inferiority test and the exact bound of the harm rate must hold: the first
    forgives harms that wins make up for, the second does not, and it is exact where the first is
    asymptotic.

    Raises:
        GateError: pairs are missing, a scene comes twice, or a quiet pair differs.
    """
    block = _block(pairs, "no-harm", plan, plan.budget.no_harm)
    check_fresh(block, "no-harm")
    counts = tally(block)
    danger = _danger(safety)
    if danger is not None:
        return StageResult("no_harm", "fail", danger, counts)
    uneven = _uneven("no_harm", counts, plan)
    if uneven is not None:
        return uneven
    forgiven = forgiven_harms(plan)
    # The exact bound, known before the last run: no later pair undoes a harm.
    if counts.harms > forgiven:
        reason = f"{counts.harms} pairs harmed; {plan.budget.no_harm} pairs forgive {forgiven}"
        return StageResult("no_harm", "fail", reason, counts)
    if counts.pairs < plan.budget.no_harm:
        return _waiting("no_harm", counts, plan.budget.no_harm)
    return _no_harm_shown(block, counts, plan)


def _no_harm_shown(block: Sequence[PairedOutcome], counts: Tally, plan: GatePlan) -> StageResult:
    test = tango(counts.wins, counts.harms, counts.pairs, plan.margin)
    bound = harm_bound(counts.harms, counts.pairs, 1 - plan.no_harm_alpha)
    figures = (Figure("tango_z", test.z), Figure("tango_p", test.p), Figure("harm_bound", bound))
    for family, own in by_family(block):
        if lower_bound(own.harms, own.pairs) > plan.family_harm:
            reason = f"family {family!r} is harmed in {own.harms} of {own.pairs} pairs"
            return StageResult("no_harm", "fail", reason, counts, figures)
    if test.p > plan.no_harm_alpha:
        reason = (
            f"not shown to lose less than {plan.margin:.0%}: p = {test.p:.3g}, "
            f"harm of at most {bound:.1%}"
        )
        return StageResult("no_harm", "fail", reason, counts, figures)
    reason = f"loses less than {plan.margin:.0%}: p = {test.p:.3g}, harm of at most {bound:.1%}"
    return StageResult("no_harm", "pass", reason, counts, figures)


def judge_superiority(
    stage: Literal["parent", "sham", "random"],
    pairs: Sequence[PairedOutcome],
    boundary: Boundary,
    plan: GatePlan,
) -> StageResult:
    """Run the exact group-sequential sign test over the sealed block, in its sealed order.

    Pairs after the one that stops the test are ignored, so it does not matter how many ran at once.

    Raises:
        GateError: pairs are missing, a scene comes twice, or a quiet pair differs.
    """
    cap = plan.budget.confirmation if stage == "parent" else plan.budget.controls
    block = _block(pairs, stage, plan, cap)
    check_fresh(block, stage)
    counts = Tally()
    for pair in block:
        counts = count(pair, counts)
        if boundary.crossed(counts.wins, counts.harms):
            uneven = _uneven(stage, counts, plan)
            reason = f"better than {_article(stage)} after {counts.pairs} pairs: {_score(counts)}"
            return uneven or StageResult(stage, "pass", reason, counts)
        if not boundary.reachable(counts.wins, counts.harms, boundary.most_differing):
            reason = f"not better than {_article(stage)}: {_score(counts)} cannot be made up for"
            return _uneven(stage, counts, plan) or StageResult(stage, "fail", reason, counts)
        if not boundary.reachable(counts.wins, counts.harms, cap - counts.pairs):
            reason = (
                f"not shown to be better than {_article(stage)}: {_score(counts)} after "
                f"{counts.pairs} of {cap} pairs, and the rest cannot show it"
            )
            return StageResult(stage, "undecided", reason, counts)
    return _waiting(stage, counts, cap)


@dataclass(frozen=True, slots=True)
class CostRatio:
    """Cost of the candidate over that of its parent, on the same pairs."""

    ratio: float
    """Geometric mean."""
    upper: float
    """95 % one-sided."""


def cost_ratio(cost: CostEvidence) -> CostRatio:
    """Return the paired ratio of costs with Student's bound on the mean of its logarithm.

    Fewer than two pairs bound nothing.

    Raises:
        ValueError: the arms have different numbers of episodes, or a cost is not positive.
    """
    if len(cost.baseline) != len(cost.candidate) or min(cost.baseline + cost.candidate) <= 0:
        raise ValueError("costs come in pairs and are above 0")
    logs = np.log(np.array(cost.candidate) / np.array(cost.baseline))
    n = len(logs)
    if n < 2:
        return CostRatio(math.exp(float(logs.mean())), math.inf)
    half = float(stdtrit(n - 1, 0.95)) * float(logs.std(ddof=1)) / math.sqrt(n)
    return CostRatio(math.exp(float(logs.mean())), math.exp(float(logs.mean()) + half))


def judge_cost(cost: CostEvidence | None, gained: Tally, plan: GatePlan) -> StageResult:
    """Ask that critics keep the control period and that the gain is worth the cost.

    The gain's lower bound must reach `weight` times the upper bound of the relative extra cost,
    less `allowance`.

    Args:
        cost: of the candidate; None while it is not measured.
        gained: counts against the parent on the sealed block.
        plan: of the gate.

    Raises:
        ValueError: the costs are no pairs.
    """
    if cost is None:
        return StageResult("cost", "waiting", "costs are not measured", gained)
    timing = judge_timing(cost, plan.cost)
    if timing.outcome != "pass":
        return timing
    ratio = cost_ratio(cost)
    _, (low, _) = newcombe_paired(gained.both, gained.wins, gained.harms, gained.neither, 0.90)
    price = plan.cost.weight * (ratio.upper - 1) - plan.cost.allowance
    figures = (
        Figure("ratio", ratio.ratio),
        Figure("ratio_upper", ratio.upper),
        Figure("gain", low),
    )
    passed = low >= price
    reason = (
        f"a gain of at least {low:.1%} {'pays' if passed else 'does not pay'} for a cost of at "
        f"most {ratio.upper:.2f} times the parent's"
    )
    return StageResult("cost", "pass" if passed else "fail", reason, gained, figures)


def judge_timing(cost: CostEvidence, limits: CostLimits) -> StageResult:
    """Ask that critics are quick and ticks are rarely late, whatever the gain."""
    share = cost.critic_p99_s / cost.control_period_s
    late = upper_bound(cost.late_ticks, cost.ticks) if cost.ticks else 1.0
    figures = (Figure("critic_share", share), Figure("late_upper", late))
    if share > limits.critic_share:
        reason = (
            f"critics take {share:.1%} of the control period; {limits.critic_share:.0%} at most"
        )
        return StageResult("cost", "fail", reason, figures=figures)
    if late <= limits.late_rate:
        return StageResult("cost", "pass", f"at most {late:.2g} of ticks are late", figures=figures)
    reason = f"up to {late:.2g} of {cost.ticks} ticks are late; {limits.late_rate:g} at most"
    surely = lower_bound(cost.late_ticks, cost.ticks) > limits.late_rate
    return StageResult("cost", "fail" if surely else "waiting", reason, figures=figures)


def judge_pass_k(scenes: Sequence[Repetitions], plan: ReliabilityPlan) -> StageResult:
    """Ask that scenes are not solved less reliably: pass^k loses less than the margin."""
    enough = [each for each in scenes if each.runs >= plan.runs]
    if len(enough) < plan.scenes:
        reason = f"{len(enough)} of {plan.scenes} scenes have {plan.runs} runs in both arms"
        return StageResult("pass_k", "waiting", reason)
    difference, p = pass_power_kept(enough, plan.k, plan.margin)
    figures = (Figure("difference", difference), Figure("p", p))
    reason = (
        f"pass^{plan.k} changes by {difference:+.1%}; p = {p:.3g} that it loses {plan.margin:.0%}"
    )
    return StageResult("pass_k", "pass" if p <= plan.alpha else "fail", reason, figures=figures)


def is_simpler(pairs: Sequence[PairedOutcome], cost: CostEvidence | None, plan: GatePlan) -> bool:
    """Say whether a candidate that was not shown to be better is surely cheaper and no worse.

    Non-inferiority is the no-harm stage's. Here the whole sealed block must have run, although the
    test for a gain stopped earlier (three harms can end that test, and say little), and it must
    show no net loss.

    Raises:
        GateError: pairs are missing.
        ValueError: the costs are no pairs.
    """
    counts = tally(in_order(pairs, "parent")[: plan.budget.confirmation])
    if cost is None or counts.pairs < plan.budget.confirmation or counts.harms > counts.wins:
        return False
    timely = judge_timing(cost, plan.cost).outcome == "pass"
    return timely and cost_ratio(cost).upper < plan.cost.simpler


def _block(
    pairs: Sequence[PairedOutcome], name: str, plan: GatePlan, cap: int
) -> tuple[PairedOutcome, ...]:
    block = in_order(pairs, name)[:cap]
    if plan.deterministic:
        check_quiet(block, name)
    return block


def _uneven(stage: StageName, counts: Tally, plan: GatePlan) -> StageResult | None:
    if counts.missing_baseline == counts.missing_candidate:
        return None
    p = infrastructure_imbalance(counts.missing_baseline, counts.missing_candidate, counts.pairs)
    if p >= plan.imbalance_p:
        return None
    reason = (
        f"errors of machinery hit {counts.missing_candidate} runs of the candidate and "
        f"{counts.missing_baseline} of the other arm (p = {p:.2g}); mend the machinery"
    )
    return StageResult(stage, "void", reason, counts, (Figure("imbalance_p", p),))


def _danger(safety: Sequence[SafetyCount]) -> str | None:
    for each in safety:
        seen = f"{each.candidate} events of {each.kind!r}, {each.baseline} under the parent"
        if each.candidate and (each.catastrophic or not each.baseline):
            return seen
        if safety_excess(each.baseline, each.candidate) <= 0.05:
            return seen
    return None


def _waiting(stage: StageName, counts: Tally, cap: int) -> StageResult:
    return StageResult(stage, "waiting", f"{counts.pairs} of {cap} pairs were run", counts)


def _article(stage: str) -> str:
    return {"parent": "its parent", "sham": "the sham", "random": "random moments"}[stage]


def _score(counts: Tally) -> str:
    return f"{counts.wins} wins, {counts.harms} harms"
