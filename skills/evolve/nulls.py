"""The gate, measured: how often it promotes nothing, and how often it finds what was planted.

Candidates that are known to be worthless, and candidates with exactly the declared effect, go
through the same functions and the same ledger as real ones. Three things are to be expected:

- Null promotions lie far below the risk that is spent. The sign test cannot spend all of its risk
  on few pairs, promotion needs several tests at once, and the exact harm bound forgives no harm in
  59 pairs: a null that differs from its parent in 10 to 30 % of pairs harms 3 to 9 of them. So
  hardly a null gets as far as the sealed block. `SceneModel.quiet_elsewhere` makes nulls that the
  harm bound cannot stop, and `NullRun.alone` sends every null straight to the sealed block, where
  the sequential test has only its own boundary to rely on.
- Planted candidates are promoted somewhat less often than the planned power, because they must
  also beat both controls.
- The naive gate is fooled often, and more so the more often it is asked.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from zetta.runtime.errors import ConfigError
from zetta.runtime.success_rates import clopper_pearson, upper_bound
from zetta.skills.evolve.gates import GateVerdict, admit, decide, is_admitted, record
from zetta.skills.evolve.ledger import Ledger, Opening, open_gate
from zetta.skills.evolve.multiplicity import chance_of_more
from zetta.skills.evolve.outcome_models import (
    Cohort,
    SceneModel,
    exchangeable,
    naive_tries,
    planted,
)
from zetta.skills.evolve.plans import GatePlan, planned_power
from zetta.skills.evolve.stages import judge_superiority

PLANTED_SHARE = 5
"""One planted candidate for so many nulls."""
NAIVE_TRIES = 10
"""Null candidates that the naive gate sees on one block."""
Judged: TypeAlias = tuple[GateVerdict, Opening | None]


@dataclass(frozen=True, slots=True)
class Share:
    """A count out of some, with its exact bounds (Clopper and Pearson)."""

    count: int
    n: int
    low: float
    """95 % two-sided."""
    high: float
    upper: float
    """95 % one-sided."""

    @property
    def rate(self) -> float:
        """Count over all."""
        return self.count / self.n if self.n else 0.0


@dataclass(frozen=True, slots=True)
class Ended:
    """How many candidates ended in one place."""

    where: str
    count: int


@dataclass(frozen=True, slots=True)
class SealedAlone:
    """Every null sent straight to the sealed block, against its parent only."""

    superior: Share
    alpha: float
    """Mean risk of an opening."""
    spent: float
    """Mean risk that the boundaries can really take; less, because counts are whole."""
    chance: float
    """Probability of at least so many if each opening took its whole alpha."""


@dataclass(frozen=True, slots=True)
class NaiveGate:
    """How often a gate without fresh parent runs is fooled by a null."""

    rescued: Share
    gained: Share
    fooled: Share
    """Both: what that gate would promote."""
    campaigns_fooled: Share
    """Campaigns of ten tries on the same block with at least one."""


@dataclass(frozen=True, slots=True)
class NullRun:
    """What the gate did to candidates whose truth is known."""

    plan: str
    """Digest."""
    seed: int
    scenes: SceneModel
    candidates: int
    """Nulls."""
    pairs: int
    """Pairs of all sealed blocks of nulls, opened or not."""
    discordant: int
    """How many of them differ."""
    reached_gate: int
    """Nulls for which the sealed block was opened."""
    promoted: Share
    alpha_spent: float
    """Sum of the risks of those openings: the number of false promotions to expect at most."""
    chance: float
    """Probability of at least so many promotions if each opening took its whole risk."""
    ended: tuple[Ended, ...]
    """Where nulls ended: decision and stage."""
    alone: SealedAlone
    naive: NaiveGate
    planted: int
    planted_reached: int
    planted_promoted: Share
    planted_pairs: float
    """Mean pairs of the sealed block that a planted candidate's test against its parent took."""
    planted_ended: tuple[Ended, ...] = field(default_factory=tuple)


def run_null(
    candidates: int, seed: int, plan: GatePlan, scenes: SceneModel | None = None
) -> NullRun:
    """Send nulls and planted candidates through the gate; equal seeds give equal records.

    A campaign ends when its plan opens no further gate, and the next candidate begins a new one.
    Nulls have campaigns of their own, and so have planted candidates.

    Args:
        candidates: nulls; a fifth as many are planted.
        seed: of every draw.
        plan: of every campaign.
        scenes: how they differ; the declared effect's baseline and discordances of 0.1 to 0.3
            where not given.

    Raises:
        ConfigError: there is no candidate.
        GateError: the plan does not even open once.
    """
    if candidates < 1:
        raise ConfigError(f"a null run needs at least one candidate, got {candidates}")
    model = scenes or SceneModel(plan.effect.baseline)
    draws = [np.random.default_rng([seed, part]) for part in range(3)]
    nulls = exchangeable(candidates, plan, model, draws[0])
    fixes = planted(max(1, candidates // PLANTED_SHARE), plan, model, draws[1])
    judged, found = _judge(nulls, plan), _judge(fixes, plan)
    alphas = [opening.alpha for _, opening in judged if opening is not None]
    promoted = _promoted(judged)
    sealed = nulls.sealed
    return NullRun(
        plan=plan.digest,
        seed=seed,
        scenes=model,
        candidates=candidates,
        pairs=int(sealed.baseline.size),
        discordant=int((sealed.baseline != sealed.candidate).sum()),
        reached_gate=len(alphas),
        promoted=promoted,
        alpha_spent=sum(alphas),
        chance=chance_of_more(promoted.count, alphas),
        ended=_ended(judged),
        alone=_sealed_alone(nulls, plan),
        naive=run_naive(max(1, candidates // NAIVE_TRIES), model, draws[2]),
        planted=len(fixes),
        planted_reached=sum(opening is not None for _, opening in found),
        planted_promoted=_promoted(found),
        planted_pairs=_mean_pairs(found),
        planted_ended=_ended(found),
    )


def run_naive(
    campaigns: int,
    scenes: SceneModel,
    rng: np.random.Generator,
    targeted: int | None = None,
) -> NaiveGate:
    """Return how often the naive gate is fooled over campaigns of ten null candidates."""
    tries = naive_tries(campaigns, NAIVE_TRIES, scenes, rng, targeted)
    fooled = tries.rescued & tries.gained
    return NaiveGate(
        _share(int(tries.rescued.sum()), tries.rescued.size),
        _share(int(tries.gained.sum()), tries.gained.size),
        _share(int(fooled.sum()), fooled.size),
        _share(int(fooled.any(axis=1).sum()), campaigns),
    )


def openings_sustained(plan: GatePlan) -> int:
    """Return how many openings of a campaign keep the planned power; at least one is tried."""
    kept = 0
    for opening in range(1, len(plan.boundaries) + 1):
        if planned_power(plan, opening).both < plan.power:
            break
        kept = opening
    return max(kept, 1)


def _judge(cohort: Cohort, plan: GatePlan) -> list[Judged]:
    """Send each candidate through the stages, campaign after campaign."""
    most, campaigns = openings_sustained(plan), 1
    ledger, judged = Ledger("1"), []
    for place in range(len(cohort)):
        evidence = cohort.evidence(place)
        opening = None
        if is_admitted(admit(plan, evidence)):
            if len(ledger.entries) == most:
                campaigns += 1
                ledger = Ledger(str(campaigns))
            name = f"{cohort.name}-{place}"
            opening, ledger = open_gate(plan, ledger, name, cohort.scenes(place))
        verdict = decide(plan, opening, evidence)
        if opening is not None:
            ledger = record(ledger, opening, verdict)
        judged.append((verdict, opening))
    return judged


def _sealed_alone(cohort: Cohort, plan: GatePlan) -> SealedAlone:
    boundaries = plan.boundaries[: openings_sustained(plan)]
    used = [boundaries[place % len(boundaries)] for place in range(len(cohort))]
    passed = sum(
        judge_superiority("parent", cohort.evidence(place).parent, boundary, plan).outcome == "pass"
        for place, boundary in enumerate(used)
    )
    alphas = [boundary.alpha for boundary in used]
    return SealedAlone(
        _share(passed, len(cohort)),
        sum(alphas) / len(alphas),
        sum(boundary.spent for boundary in used) / len(used),
        chance_of_more(passed, alphas),
    )


def _share(count: int, n: int) -> Share:
    low, high = clopper_pearson(count, n)
    return Share(count, n, low, high, upper_bound(count, n))


def _promoted(judged: list[Judged]) -> Share:
    promoted = sum(verdict.decision == "PROMOTE" for verdict, _ in judged)
    return _share(promoted, len(judged))


def _ended(judged: list[Judged]) -> tuple[Ended, ...]:
    places = Counter(f"{v.decision} at {v.stages[-1].stage}" for v, _ in judged)
    return tuple(Ended(where, count) for where, count in sorted(places.items()))


def _mean_pairs(judged: list[Judged]) -> float:
    pairs = [verdict.counts.pairs for verdict, opening in judged if opening is not None]
    return sum(pairs) / len(pairs) if pairs else 0.0
