"""The plan of a gate: what is declared before anything is seen, and what it may cost.

A plan is frozen, hashed and sealed with the first opening; it names the smallest effect that is
worth finding, so that a gate which could not find it does not open at all.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal, TypeAlias

from scipy.stats import binom

from zetta.runtime.errors import ConfigError, GateError, SpecMismatch
from zetta.runtime.records import from_json, to_json
from zetta.skills.evolve.multiplicity import Spending, alpha_of_opening
from zetta.skills.evolve.power import most_harms, sequential_pairs_needed
from zetta.skills.evolve.sequential import Boundary, best_boundary, operate, sign_boundary
from zetta.skills.evolve.significance import tango

Control: TypeAlias = Literal["sham", "random"]
BOUNDARIES_AHEAD = 4
"""Openings a plan prepares boundaries for; at the default budget the third is refused already."""
MOST_NO_HARM_PAIRS = 5000
PLAN: Final = "plan.json"
"""The plan of a campaign, beside the manifest that holds its digest."""


@dataclass(frozen=True, slots=True)
class DeclaredEffect:
    """The smallest effect that is worth finding. The default is the one published for LIBERO-Pro:
    32.0 to 71.1 % of episodes solved.
    """

    baseline: float = 0.32
    """Success rate of the parent on the target scenes."""
    candidate: float = 0.711
    """Success rate of the candidate there."""
    harm: float = 0.02
    """Share of target pairs that only the parent solves."""
    regression_harm: float = 0.0
    """Share of no-harm pairs that only the parent solves: none where a quiet critic changes
    nothing."""

    @property
    def win_rate(self) -> float:
        """Share of target pairs that only the candidate solves."""
        return self.candidate - self.baseline + self.harm

    def __post_init__(self) -> None:
        """Check that such pairs can exist.

        Raises:
            ConfigError: they cannot.
        """
        rates = (self.baseline, self.candidate, self.harm, self.regression_harm)
        most = min(self.baseline, 1 - self.candidate)
        if not all(0.0 <= rate <= 1.0 for rate in rates) or self.harm > most + 1e-12:
            raise ConfigError(
                f"no pairs have a baseline of {self.baseline:g}, a candidate of {self.candidate:g} "
                f"and harms of {self.harm:g}; give rates from 0 to 1 and harms of at most {most:g}"
            )
        if self.candidate <= self.baseline:
            raise ConfigError(
                f"the declared effect goes from {self.baseline:g} to {self.candidate:g}; "
                "declare a candidate that is better than its parent"
            )


@dataclass(frozen=True, slots=True)
class Budget:
    """Most rollouts of each stage, for one promoted skill. 600 by default."""

    development: int = 60
    """Rollouts in which failures are found."""
    search: int = 200
    """Rollouts of branches and of the author's search."""
    same_scene: int = 20
    """Pairs on the failed scenes, in three arms: candidate, parent, sham."""
    no_harm: int = 59
    """Pairs on the tasks of the library, in two arms."""
    confirmation: int = 31
    """Pairs on the sealed block, in two arms."""
    controls: int = 30
    """Pairs on the sealed block for each of sham and random; the candidate's runs are there."""
    report: int = 20
    """Pairs of the block that decides nothing, in two arms."""

    @property
    def rollouts(self) -> int:
        """Most rollouts of everything."""
        pairs = self.no_harm + self.confirmation + self.controls + self.report
        return self.development + self.search + 3 * self.same_scene + 2 * pairs


@dataclass(frozen=True, slots=True)
class CostLimits:
    """What a candidate may cost."""

    critic_share: float = 0.10
    """Most that the critics' p99 may take of a control period."""
    late_rate: float = 1e-3
    """Upper bound, 95 %, of the share of ticks that are late."""
    weight: float = 0.05
    """Gain in success rate that a doubled cost must bring at least."""
    allowance: float = 0.0
    """Gain by which that rule is relaxed."""
    simpler: float = 0.90
    """A ratio of costs whose upper bound is below this is cheaper."""


@dataclass(frozen=True, slots=True)
class ReliabilityPlan:
    """Repetitions on the same scenes. 10 scenes, 8 runs, two arms are 160 rollouts more."""

    k: int = 3
    scenes: int = 10
    runs: int = 8
    margin: float = 0.05
    alpha: float = 0.05

    @property
    def rollouts(self) -> int:
        """Rollouts of both arms."""
        return 2 * self.scenes * self.runs


@dataclass(frozen=True, slots=True)
class GatePlan:
    """Everything that is fixed before a gate opens."""

    boundaries: tuple[Boundary, ...]
    """Of the sequential test, one for each opening of a campaign."""
    effect: DeclaredEffect = field(default_factory=DeclaredEffect)
    budget: Budget = field(default_factory=Budget)
    alpha: float = 0.05
    """Risk of any false promotion in a campaign."""
    power: float = 0.80
    """Least probability to promote what has the declared effect."""
    spending: Spending = "inverse_square"
    """How the risk is spent over openings."""
    same_scene_p: float = 0.20
    """The filter on failed scenes lets p-values up to this through; it spends no risk."""
    margin: float = 0.05
    """Net loss of successes that is still tolerated, a share of pairs: Tango's test."""
    harm_margin: float = 0.05
    """Share of pairs that may be broken, whatever is won elsewhere: the exact bound. At equal
    margins it is the stricter of both whenever nothing is won."""
    no_harm_alpha: float = 0.05
    family_harm: float = 0.10
    """A family of tasks whose harm is surely above this ends the gate."""
    imbalance_p: float = 0.05
    """Errors of machinery that differ between arms below this p-value void a comparison."""
    controls: tuple[Control, ...] = ("sham", "random")
    """Which controls the candidate must beat after its parent, in this order."""
    cost: CostLimits = field(default_factory=CostLimits)
    reliability: ReliabilityPlan | None = None
    """pass^k is part of the gate where this is given; the default budget has no room for it."""
    deterministic: bool = True
    """Equal seeds give equal runs: a critic that stays quiet must then change nothing."""

    @property
    def rollouts(self) -> int:
        """Most rollouts of one generation."""
        repeated = self.reliability
        return self.budget.rollouts + (0 if repeated is None else repeated.rollouts)

    @property
    def digest(self) -> str:
        """SHA-256 of the plan."""
        plain = json.dumps(to_json(self), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(plain.encode()).hexdigest()


def plan_gate(
    effect: DeclaredEffect | None = None,
    budget: Budget | None = None,
    *,
    alpha: float = 0.05,
    spending: Spending = "inverse_square",
    openings: int = BOUNDARIES_AHEAD,
    deterministic: bool = True,
    reliability: ReliabilityPlan | None = None,
) -> GatePlan:
    """Return the plan whose boundaries are the most powerful ones at the declared effect.

    >>> plan_gate().budget.rollouts
    600

    Raises:
        ConfigError: alpha or the number of openings is none.
    """
    if not 0.0 < alpha < 1.0 or openings < 1:
        raise ConfigError(
            f"a plan needs alpha between 0 and 1 and an opening; got {alpha:g} and {openings}"
        )
    effect, budget = effect or DeclaredEffect(), budget or Budget()
    boundaries = tuple(
        best_boundary(
            alpha_of_opening(opening, alpha, spending, openings),
            effect.win_rate,
            effect.harm,
            budget.confirmation,
        )
        for opening in range(1, openings + 1)
    )
    return GatePlan(
        boundaries,
        effect,
        budget,
        alpha,
        spending=spending,
        deterministic=deterministic,
        reliability=reliability,
    )


def keep_plan(folder: Path, plan: GatePlan) -> None:
    """Write a plan beside the manifest that names its digest, for readers."""
    text = json.dumps(to_json(plan), indent=1, sort_keys=True) + "\n"
    (folder / PLAN).write_text(text, encoding="utf-8")


def find_plan(folder: Path, digest: str) -> GatePlan | None:
    """Return the plan that a campaign was sealed with; None where nobody kept it.

    What was not kept is known all the same where it is the default.
    """
    try:
        plain = json.loads((folder / PLAN).read_text(encoding="utf-8"))
        kept = from_json(GatePlan, plain)
    except (OSError, ValueError, SpecMismatch):
        kept = plan_gate()
    return kept if kept.digest == digest else None


@dataclass(frozen=True, slots=True)
class PlannedPower:
    """What a plan can find at one opening."""

    no_harm: float
    """Probability that the declared effect passes the no-harm stage."""
    superiority: float
    """Probability that it is found better than its parent."""

    @property
    def both(self) -> float:
        """Probability of both; the blocks are separate, so they are independent."""
        return self.no_harm * self.superiority


def planned_power(plan: GatePlan, opening: int) -> PlannedPower:
    """Return the exact power of the t-th opening at the declared effect."""
    effect, budget = plan.effect, plan.budget
    no_harm = _no_harm_power(plan, budget.no_harm)
    operation = operate(
        plan.boundaries[opening - 1], effect.win_rate, effect.harm, budget.confirmation
    )
    return PlannedPower(no_harm, operation.power)


def check_plan(plan: GatePlan, opening: int) -> None:
    """Refuse an opening that the plan has no risk, no boundary or too little power for.

    Raises:
        GateError: with the number of pairs that would do.
    """
    if opening > len(plan.boundaries):
        raise GateError(
            f"opening {opening} is beyond the {len(plan.boundaries)} that the plan prepared; "
            "start a new campaign"
        )
    boundary = plan.boundaries[opening - 1]
    allowed = alpha_of_opening(opening, plan.alpha, plan.spending, len(plan.boundaries))
    if boundary.alpha > allowed or boundary != sign_boundary(
        boundary.alpha, boundary.most_differing
    ):
        raise GateError(
            f"the boundary of opening {opening} spends {boundary.spent:g} of {boundary.alpha:g} "
            f"and {allowed:g} is allowed; make the plan with plan_gate"
        )
    power = planned_power(plan, opening)
    if power.both >= plan.power:
        return
    effect = plan.effect
    declared = f"{effect.baseline:.1%} to {effect.candidate:.1%} with {effect.harm:.1%} harm"
    raise GateError(
        f"opening {opening} would find the declared effect ({declared}) with a power of "
        f"{power.both:.2f}, and the plan asks for {plan.power:.2f}; {_needed(plan, opening, power)}"
    )


def _needed(plan: GatePlan, opening: int, power: PlannedPower) -> str:
    if power.no_harm < plan.power:
        rate, margin = plan.effect.regression_harm, min(plan.margin, plan.harm_margin)
        if rate >= margin:
            return (
                f"a harm of {rate:.1%} is not below the margin of {margin:.1%}: no number of "
                "no-harm pairs suffices"
            )
        more = range(plan.budget.no_harm + 1, MOST_NO_HARM_PAIRS)
        enough = next((n for n in more if _no_harm_power(plan, n) >= plan.power), None)
        needed = f"{enough} pairs" if enough else f"more than {MOST_NO_HARM_PAIRS} pairs"
        return f"give the no-harm stage {needed} instead of {plan.budget.no_harm}"
    pairs = sequential_pairs_needed(
        plan.effect.win_rate,
        plan.effect.harm,
        plan.boundaries[opening - 1].alpha,
        plan.power / power.no_harm,
    )
    return (
        f"it needs {pairs} pairs instead of {plan.budget.confirmation}: give the confirmation so "
        "many, or start a new campaign on fresh scenes"
    )


def _no_harm_power(plan: GatePlan, pairs: int) -> float:
    """Return the probability that the declared regression harm passes both tests, without a win."""
    harms = most_harms(plan.harm_margin, pairs, 1 - plan.no_harm_alpha)
    while harms >= 0 and tango(0, harms, pairs, plan.margin).p > plan.no_harm_alpha:
        harms -= 1
    return float(binom.cdf(harms, pairs, plan.effect.regression_harm)) if harms >= 0 else 0.0


def forgiven_harms(plan: GatePlan) -> int:
    """Return how many harms the exact bound of the no-harm stage forgives."""
    return most_harms(plan.harm_margin, plan.budget.no_harm, 1 - plan.no_harm_alpha)
