"""Candidates whose truth is known: what a gate sees of them, without any simulator.

Scenes differ: each has its own probability of success, drawn from a Beta. Scenes that were chosen
because the parent failed there once follow the posterior Beta(a, b + 1), so the regression to the
mean that fools a gate is in the model.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from zetta.runtime.errors import ConfigError
from zetta.skills.evolve.evidence import CostEvidence, Evidence, PairedOutcome
from zetta.skills.evolve.plans import GatePlan

Flags: TypeAlias = npt.NDArray[np.bool_]
Rates: TypeAlias = npt.NDArray[np.float64]
_QUICK = CostEvidence(0.05, 0.0005, 5000, 0, (1.0, 1.0), (1.0, 1.0))
"""Costs of a candidate that costs nothing: 5,000 ticks, none of them late."""


@dataclass(frozen=True, slots=True)
class SceneModel:
    """How scenes differ and how noisy a run is."""

    base_rate: float = 0.32
    """Success rate of the parent over scenes."""
    discordance: tuple[float, float] = (0.1, 0.3)
    """Share of pairs that differ when the parent runs twice with independent seeds; each candidate
    draws its own value from this range."""
    reroll: float = 0.1
    """Share of pairs whose outcome a control's interruption draws anew."""
    quiet_elsewhere: bool = False
    """Nulls intervene on their target alone, so the no-harm stage cannot stop them."""

    def __post_init__(self) -> None:
        """Check that a Beta with such discordance exists.

        Raises:
            ConfigError: none does.
        """
        most = 2 * self.base_rate * (1 - self.base_rate)
        low, high = self.discordance
        if not 0.0 < low <= high < most:
            raise ConfigError(
                f"a parent that succeeds at {self.base_rate:g} differs from itself in 0 to "
                f"{most:.3g} of its pairs; got a range of {low:g} to {high:g}"
            )

    def shapes(self, discordance: Rates) -> tuple[Rates, Rates]:
        """Return both parameters of the Beta whose pairs differ at these rates. Shape as given.

        With mean m and a + b = s, E[2p(1-p)] = 2m(1-m) s / (s + 1).
        """
        most = 2 * self.base_rate * (1 - self.base_rate)
        size = discordance / (most - discordance)
        return self.base_rate * size, (1 - self.base_rate) * size


@dataclass(frozen=True, slots=True)
class Outcomes:
    """Successes of both arms, or of all four on the sealed block. Shape (candidates, pairs)."""

    baseline: Flags
    candidate: Flags
    fired: Flags
    sham: Flags | None = None
    random: Flags | None = None


@dataclass(frozen=True, slots=True)
class Cohort:
    """Many candidates with everything that a gate may look at."""

    name: str
    same_scene: Outcomes
    no_harm: Outcomes
    sealed: Outcomes

    def __len__(self) -> int:
        """Return the number of candidates."""
        return len(self.sealed.baseline)

    def scenes(self, place: int) -> tuple[str, ...]:
        """Return the digests of a candidate's sealed block."""
        return tuple(f"{self.name}-{place}-{i}" for i in range(self.sealed.baseline.shape[1]))

    def evidence(self, place: int) -> Evidence:
        """Return what the gate sees of one candidate."""
        sealed, scenes = self.sealed, self.scenes(place)
        return Evidence(
            same_scene=_pairs(self.same_scene, self.same_scene.baseline, place),
            no_harm=_pairs(self.no_harm, self.no_harm.baseline, place),
            parent=_pairs(sealed, sealed.baseline, place, scenes),
            sham=_pairs(sealed, sealed.sham, place, scenes),
            random=_pairs(sealed, sealed.random, place, scenes),
            cost=_QUICK,
        )


def exchangeable(
    candidates: int, plan: GatePlan, scenes: SceneModel, rng: np.random.Generator
) -> Cohort:
    """Return candidates that are the parent under independent seeds, in every arm.

    They intervene everywhere, or on the target only, and change nothing, so every difference is
    noise.
    """
    shapes = scenes.shapes(rng.uniform(*scenes.discordance, (candidates, 1)))

    def block(pairs: int, failed: int = 0, arms: int = 2) -> list[Flags]:
        rates = _scene_rates(shapes, pairs, failed, rng)
        return [rng.random(rates.shape) < rates for _ in range(arms)]

    budget = plan.budget
    before, after = block(budget.same_scene, failed=1)
    same = Outcomes(before, after, np.ones_like(before))
    before, after = block(budget.no_harm)
    kept = Outcomes(before, after, np.ones_like(before))
    if scenes.quiet_elsewhere:
        kept = Outcomes(before, before, np.zeros_like(before))
    before, after, sham, random = block(budget.confirmation, arms=4)
    return Cohort("null", same, kept, Outcomes(before, after, np.ones_like(before), sham, random))


def planted(
    candidates: int, plan: GatePlan, scenes: SceneModel, rng: np.random.Generator
) -> Cohort:
    """Return candidates that have exactly the declared effect on the plan's target.

    They intervene where the parent fails, and where they do harm; elsewhere runs are equal. The
    controls are the parent, but for a share of pairs that their interruption draws anew.
    """
    effect, budget = plan.effect, plan.budget
    shapes = scenes.shapes(rng.uniform(*scenes.discordance, (candidates, 1)))

    def block(pairs: int, rescue: float, harm: float, failed: int = 0) -> tuple[Rates, Outcomes]:
        rates = _scene_rates(shapes, pairs, failed, rng)
        parent = rng.random(rates.shape) < rates
        draw = rng.random(rates.shape)
        candidate = np.where(parent, draw >= harm, draw < rescue)
        return rates, Outcomes(parent, candidate, ~parent | (candidate != parent))

    def control(rates: Rates, parent: Flags) -> Flags:
        anew = rng.random(rates.shape) < scenes.reroll
        return np.where(anew, rng.random(rates.shape) < rates, parent)

    rescue = effect.win_rate / (1 - effect.baseline)
    harm = effect.harm / effect.baseline
    rates, sealed = block(budget.confirmation, rescue, harm)
    _, same = block(budget.same_scene, rescue, harm, failed=1)
    _, kept = block(budget.no_harm, 0.0, effect.regression_harm / effect.baseline)
    arms = (control(rates, sealed.baseline), control(rates, sealed.baseline))
    # Against a control, either may have intervened: the pairs that differ are attributed.
    fired = sealed.fired | (arms[0] != sealed.candidate) | (arms[1] != sealed.candidate)
    return Cohort("planted", same, kept, Outcomes(sealed.baseline, sealed.candidate, fired, *arms))


@dataclass(frozen=True, slots=True)
class NaiveTries:
    """What the naive gate says of null candidates. Shape (campaigns, tries)."""

    rescued: Flags
    """At least half of the targeted failed scenes are solved now; the parent is not run again."""
    gained: Flags
    """At least one success more on 20 fixed scenes, whose parent runs are used for every try."""


def naive_tries(
    campaigns: int,
    tries: int,
    scenes: SceneModel,
    rng: np.random.Generator,
    targeted: int | None = None,
    fixed: int = 20,
) -> NaiveTries:
    """Return what a gate without fresh parent runs and without a test says of null candidates.

    Args:
        campaigns: each with its own scenes and one run of the parent on them.
        tries: null candidates of one campaign.
        scenes: how they differ.
        rng: of all draws.
        targeted: how many of the failed scenes a candidate is written for; None takes them all.
        fixed: scenes to find failures in, and as many to hold out.
    """
    shapes = scenes.shapes(rng.uniform(*scenes.discordance, (campaigns, 1)))
    found, held = (_scene_rates(shapes, fixed, 0, rng) for _ in range(2))
    failed = rng.random(found.shape) >= found
    if targeted is not None:
        failed &= failed.cumsum(axis=1) <= targeted
    before = (rng.random(held.shape) < held).sum(axis=1)
    again = rng.random((campaigns, tries, fixed)) < found[:, None]
    after = (rng.random((campaigns, tries, fixed)) < held[:, None]).sum(axis=2)
    rescues = (again & failed[:, None]).sum(axis=2)  # (campaigns, tries)
    targets = failed.sum(axis=1)[:, None]
    return NaiveTries((targets > 0) & (2 * rescues >= targets), after > before[:, None])


def _scene_rates(
    shapes: tuple[Rates, Rates], pairs: int, failed: int, rng: np.random.Generator
) -> Rates:
    """Return the success rate of each scene, given that the parent failed there `failed` times."""
    a, b = shapes
    return rng.beta(a, b + failed, (len(a), pairs))


def _pairs(
    outcomes: Outcomes, baseline: Flags | None, place: int, scenes: tuple[str, ...] = ()
) -> tuple[PairedOutcome, ...]:
    if baseline is None:
        return ()
    rows = zip(
        baseline[place].tolist(),
        outcomes.candidate[place].tolist(),
        outcomes.fired[place].tolist(),
        strict=True,
    )
    return tuple(
        PairedOutcome(i, scenes[i] if scenes else str(i), i, before, after, fired)
        for i, (before, after, fired) in enumerate(rows)
    )
