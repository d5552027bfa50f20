"""Which skills a bundle can do without: every one is left out once, on the same scenes.

A skill can go when the bundle without it surely loses less than a margin, with the tests of all
skills corrected for their number, and is surely cheaper. Of two skills that stand in for each other
each can go and not both: so one goes at a time, and the next pruning runs on fresh scenes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

from scipy.special import bdtr

from zetta.runtime.errors import GateError
from zetta.skills.evolve.evidence import CostEvidence, Tally, tally
from zetta.skills.evolve.gate_run import Trial, TrialOutcome, scene_name
from zetta.skills.evolve.gate_run import pair as paired
from zetta.skills.evolve.multiplicity import Correction, adjust
from zetta.skills.evolve.significance import tango
from zetta.skills.evolve.stages import cost_ratio

PruneDecision: TypeAlias = Literal["SIMPLIFY", "KEEP"]
ASYMPTOTIC_PAIRS = 50
ASYMPTOTIC_DIFFERING = 5
"""With fewer pairs, or fewer that differ, Tango's test is not trusted and harms are bounded
exactly."""


@dataclass(frozen=True, slots=True)
class PruneLimits:
    """What a skill must fall short of to go."""

    margin: float = 0.05
    """Loss of success that is borne, as a share."""
    alpha: float = 0.05
    correction: Correction = "holm"
    cheaper: float = 1.0
    """Upper bound of the ratio of costs, without over with, below which it is cheaper."""


@dataclass(frozen=True, slots=True)
class WithoutSkill:
    """The bundle without one skill, against the whole bundle on the same scenes."""

    skill: str
    counts: Tally
    """Wins: solved only without the skill; harms: only with it."""
    ratio: float
    """Cost without over cost with, geometric mean."""
    ratio_upper: float
    """95 % one-sided."""
    intervened: int
    """Scenes in which the whole bundle's skill had anything to do: the two runs differ."""
    p: float
    """That leaving it out loses the margin or more."""


@dataclass(frozen=True, slots=True)
class Pruned:
    """One skill's verdict."""

    without: WithoutSkill
    p_adjusted: float
    decision: PruneDecision
    reason: str


class SubsetArena(Protocol):
    """Where bundles of some of the skills are run."""

    def run_skills(self, skills: Sequence[str], trials: Sequence[Trial]) -> Sequence[TrialOutcome]:
        """Run the bundle of these skills on trials and return outcomes in the same order."""
        ...


def leave_one_out(
    skills: Sequence[str],
    trials: Sequence[Trial],
    arena: SubsetArena,
    limits: PruneLimits | None = None,
) -> tuple[Pruned, ...]:
    """Run the whole bundle, and the bundle without each skill, on the same trials.

    Args:
        skills: of the bundle, in order.
        trials: fresh scenes, each once.
        arena: runs them.
        limits: what a skill must fall short of.

    Raises:
        GateError: a scene comes twice, or two arms met different scenes.
        ValueError: there is no skill or no trial.
    """
    if not skills or not trials:
        raise ValueError("pruning needs skills and trials")
    if len({scene_name(trial) for trial in trials}) < len(trials):
        raise GateError("a scene comes twice among the trials; draw each scene once")
    whole = tuple(arena.run_skills(skills, trials))
    outcomes = {
        skill: tuple(arena.run_skills([s for s in skills if s != skill], trials))
        for skill in skills
    }
    return judge_leaving_out(trials, whole, outcomes, limits or PruneLimits())


def judge_leaving_out(
    trials: Sequence[Trial],
    whole: Sequence[TrialOutcome],
    without: Mapping[str, Sequence[TrialOutcome]],
    limits: PruneLimits,
) -> tuple[Pruned, ...]:
    """Return the verdicts on outcomes of the same trials, by skill.

    Raises:
        GateError: two arms met different scenes.
    """
    compared = [
        _compare(skill, trials, whole, outcomes, limits) for skill, outcomes in without.items()
    ]
    adjusted = adjust([each.p for each in compared], limits.alpha, limits.correction)
    return tuple(
        _verdict(each, p, rejected, limits)
        for each, p, rejected in zip(compared, adjusted.p_values, adjusted.rejected, strict=True)
    )


def first_to_go(pruned: Sequence[Pruned]) -> str | None:
    """Return the one skill that goes now: of those that can, the one whose leaving saves most."""
    can = [each for each in pruned if each.decision == "SIMPLIFY"]
    return min(can, key=lambda each: each.without.ratio).without.skill if can else None


def loss_p(counts: Tally, margin: float) -> float:
    """Return the p-value of a loss of `margin` or more.

    Tango 1998 where it is good; else the exact probability of so few harms were their share the
    margin, which forgives no harm for a win. 1 without pairs.

    >>> round(loss_p(Tally(pairs=59, both=59), 0.05), 4)
    0.0485
    """
    if counts.pairs == 0:
        return 1.0
    if counts.pairs >= ASYMPTOTIC_PAIRS and counts.differing >= ASYMPTOTIC_DIFFERING:
        return tango(counts.wins, counts.harms, counts.pairs, margin).p
    return float(bdtr(counts.harms, counts.pairs, margin))


def _compare(
    skill: str,
    trials: Sequence[Trial],
    whole: Sequence[TrialOutcome],
    without: Sequence[TrialOutcome],
    limits: PruneLimits,
) -> WithoutSkill:
    pairs = [
        paired(place, trial, full, less)
        for place, (trial, full, less) in enumerate(zip(trials, whole, without, strict=True))
    ]
    ran = [
        (full, less)
        for full, less in zip(whole, without, strict=True)
        if full.success is not None and less.success is not None
    ]
    counts = tally(pairs)
    if not ran:
        return WithoutSkill(skill, counts, 1.0, float("inf"), 0, 1.0)
    ratio = cost_ratio(
        CostEvidence(
            control_period_s=1.0, critic_p99_s=0.0, ticks=0, late_ticks=0,
            baseline=tuple(float(max(1, full.ticks)) for full, _ in ran),
            candidate=tuple(float(max(1, less.ticks)) for _, less in ran),
        )
    )  # fmt: skip
    differing = sum(full.actions != less.actions for full, less in ran)
    p = loss_p(counts, limits.margin)
    return WithoutSkill(skill, counts, ratio.ratio, ratio.upper, differing, p)


def _verdict(each: WithoutSkill, p: float, rejected: bool, limits: PruneLimits) -> Pruned:
    counts, margin = each.counts, f"{limits.margin:.0%}"
    score = f"{counts.harms} scenes need it and {counts.wins} are lost by it, of {counts.pairs}"
    if not rejected:
        reason = f"not shown to lose less than {margin} without it (p = {p:.3g}): {score}"
        return Pruned(each, p, "KEEP", reason)
    if not each.intervened:
        reason = f"it changed no action in {counts.pairs} scenes; its critic costs all the same"
        return Pruned(each, p, "SIMPLIFY", reason)
    if each.ratio_upper >= limits.cheaper:
        reason = (
            f"loses less than {margin} without it and is not surely cheaper: at most "
            f"{each.ratio_upper:.2f} times the ticks"
        )
        return Pruned(each, p, "KEEP", reason)
    reason = f"loses less than {margin} without it (p = {p:.3g}) in fewer ticks: {score}"
    return Pruned(each, p, "SIMPLIFY", reason)
