"""Runs a candidate through the gate: asks for episodes stage by stage, and for no more than needed.

The verdict is that of `gates.decide` on everything that was run, so it depends neither on who was
fast nor on how many episodes were asked for at once.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol, TypeAlias

from zetta.runtime.errors import GateError
from zetta.skills.evolve.evidence import CostEvidence, Evidence, PairedOutcome
from zetta.skills.evolve.gates import GateVerdict, admit, decide, is_admitted, record
from zetta.skills.evolve.ledger import Ledger, Opening, open_gate, sealed_boundary
from zetta.skills.evolve.plans import GatePlan
from zetta.skills.evolve.reliability import Repetitions
from zetta.skills.evolve.stages import judge_no_harm, judge_superiority

Arm: TypeAlias = Literal["parent", "candidate", "sham", "random"]
Opponent: TypeAlias = Literal["parent", "sham", "random"]
BATCH = 8
"""Pairs that are asked for at once; more would run for nothing when the test stops early."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One episode to be run."""

    scene: int
    """Seed of a sampled scene."""
    policy_seed: int
    task: int = 0


ArmTrial: TypeAlias = tuple[Arm, Trial]


@dataclass(frozen=True, slots=True)
class TrialOutcome:
    """What came of it."""

    success: bool | None
    """None when the machinery failed for good, after a second try on the same scene."""
    fired: bool
    """Whether anything of the arm's bundle intervened."""
    scene_digest: str
    actions: str
    """Digest of all actions."""
    ticks: int
    late_ticks: int = 0


class Arena(Protocol):
    """Where episodes are run; the caller knows simulator, policy and bundles."""

    def run(self, wanted: Sequence[ArmTrial]) -> Sequence[TrialOutcome]:
        """Run episodes and return their outcomes in the same order."""
        ...

    def critic_p99_s(self) -> float:
        """Return what the candidate's critics take in a tick, 99th percentile, seconds."""
        ...


@dataclass(frozen=True, slots=True)
class Scenes:
    """The blocks of one gate; trials of different blocks share no scene."""

    failed: tuple[Trial, ...]
    """Scenes on which the parent has failed, with fresh policy seeds."""
    regression: tuple[Trial, ...]
    sealed: tuple[Trial, ...]


@dataclass(frozen=True, slots=True)
class GateRun:
    """A verdict with everything that led to it."""

    verdict: GateVerdict
    evidence: Evidence
    ledger: Ledger
    rollouts: int
    """Episodes that were run for it."""


def run_gate(
    plan: GatePlan,
    ledger: Ledger,
    candidate: str,
    scenes: Scenes,
    arena: Arena,
    control_period_s: float,
    batch: int = BATCH,
) -> GateRun:
    """Judge one candidate.

    Args:
        plan: of the campaign.
        ledger: so far; the returned one has the opening and its verdict.
        candidate: hash of the candidate's bundle.
        scenes: its blocks.
        arena: runs episodes.
        control_period_s: seconds of a tick.
        batch: pairs that are run at once; it changes how much is run, never the verdict.

    Raises:
        GateError: a block is too short, a quiet candidate changed something, or the gate may not
            open (no power left, a scene that was used before).
    """
    bench = Bench(arena)
    _check_blocks(plan, scenes)
    evidence = Evidence(same_scene=bench.pairs(scenes.failed[: plan.budget.same_scene], "parent"))
    if admit(plan, evidence)[0].outcome == "pass":
        evidence = no_harm(plan, evidence, scenes.regression, bench, batch)
    if not is_admitted(admit(plan, evidence)):
        return GateRun(decide(plan, None, evidence), evidence, ledger, bench.rollouts)
    sealed = scenes.sealed[: plan.budget.confirmation]
    names = tuple(scene_name(trial) for trial in sealed)
    opening, ledger = open_gate(plan, ledger, candidate, names)
    evidence = against_parent(plan, opening, evidence, sealed, bench, batch)
    evidence = against_controls(plan, opening, evidence, sealed, bench, batch)
    evidence = replace(evidence, cost=bench.cost(control_period_s, sealed))
    verdict = decide(plan, opening, evidence)
    return GateRun(verdict, evidence, record(ledger, opening, verdict), bench.rollouts)


def policy_seed(name: str) -> int:
    """Return a policy seed that follows from a name; the same in every arm."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "big")


def scene_name(trial: Trial) -> str:
    """Return the name under which a scene is burned.

    >>> scene_name(Trial(scene=12, policy_seed=3, task=1))
    '1/12'
    """
    return f"{trial.task}/{trial.scene}"


def no_harm(
    plan: GatePlan, evidence: Evidence, trials: Sequence[Trial], bench: Bench, batch: int
) -> Evidence:
    """Run the no-harm block until it is decided."""
    wanted = trials[: plan.budget.no_harm]
    for end in _ends(len(wanted), batch):
        evidence = replace(evidence, no_harm=bench.pairs(wanted[:end], "parent"))
        if judge_no_harm(evidence.no_harm, evidence.safety, plan).outcome != "waiting":
            break
    return evidence


def against_parent(
    plan: GatePlan,
    opening: Opening,
    evidence: Evidence,
    trials: Sequence[Trial],
    bench: Bench,
    batch: int,
) -> Evidence:
    """Run the sealed block against the parent until it is decided."""
    return _superiority(plan, opening, evidence, "parent", trials, bench, batch)[0]


def against_controls(
    plan: GatePlan,
    opening: Opening,
    evidence: Evidence,
    trials: Sequence[Trial],
    bench: Bench,
    batch: int,
) -> Evidence:
    """Run the sealed block against one control after the other, while the candidate wins."""
    boundary = sealed_boundary(plan, opening)
    if judge_superiority("parent", evidence.parent, boundary, plan).outcome != "pass":
        return evidence
    for control in plan.controls:
        evidence, won = _superiority(plan, opening, evidence, control, trials, bench, batch)
        if not won:
            break
    return evidence


def _superiority(
    plan: GatePlan,
    opening: Opening,
    evidence: Evidence,
    other: Opponent,
    trials: Sequence[Trial],
    bench: Bench,
    batch: int,
) -> tuple[Evidence, bool]:
    boundary = sealed_boundary(plan, opening)
    cap = plan.budget.confirmation if other == "parent" else plan.budget.controls
    pairs: tuple[PairedOutcome, ...] = ()
    for end in _ends(min(cap, len(trials)), batch):
        pairs = bench.pairs(trials[:end], other)
        outcome = judge_superiority(other, pairs, boundary, plan).outcome
        if outcome != "waiting":
            return _with(evidence, other, pairs), outcome == "pass"
    return _with(evidence, other, pairs), False


def _with(evidence: Evidence, other: Opponent, pairs: tuple[PairedOutcome, ...]) -> Evidence:
    if other == "parent":
        return replace(evidence, parent=pairs)
    return replace(evidence, sham=pairs) if other == "sham" else replace(evidence, random=pairs)


def _ends(count: int, batch: int) -> list[int]:
    """Return how many pairs have been asked for after each batch.

    >>> _ends(20, 8)
    [8, 16, 20]
    """
    return [*range(batch, count, batch), count]


def _check_blocks(plan: GatePlan, scenes: Scenes) -> None:
    budget = plan.budget
    for name, trials, least in (
        ("failed", scenes.failed, budget.same_scene),
        ("regression", scenes.regression, budget.no_harm),
        ("sealed", scenes.sealed, budget.confirmation),
    ):
        if len(trials) < least:
            raise GateError(f"the {name} block holds {len(trials)} trials; the plan needs {least}")
    apart = [{scene_name(t) for t in block} for block in (scenes.failed, scenes.sealed)]
    shared = apart[1] & (apart[0] | {scene_name(t) for t in scenes.regression})
    if shared:
        raise GateError(
            f"{len(shared)} scenes of the sealed block are in another block (first "
            f"{min(shared)}); draw fresh ones"
        )


class Bench:
    """Runs each trial of each arm once and keeps what came of it."""

    def __init__(self, arena: Arena) -> None:
        self._arena = arena
        self._known: dict[tuple[Arm, Trial], TrialOutcome] = {}

    @property
    def rollouts(self) -> int:
        """Episodes run so far."""
        return len(self._known)

    def pairs(self, trials: Sequence[Trial], other: Arm) -> tuple[PairedOutcome, ...]:
        """Return the candidate against another arm on trials, in their order."""
        arms: tuple[Arm, Arm] = (other, "candidate")
        self._run([(arm, trial) for arm in arms for trial in trials])
        return tuple(
            pair(index, trial, *(self._known[arm, trial] for arm in arms))
            for index, trial in enumerate(trials)
        )

    def outcome(self, arm: Arm, trial: Trial) -> TrialOutcome:
        """Return what came of a trial that has been run."""
        return self._known[arm, trial]

    def repetitions(self, trials: Sequence[Trial], runs: int) -> tuple[Repetitions, ...]:
        """Return how often both arms solve scenes that are run again and again.

        A scene in which a run could not be made counts with the runs that were made in both arms.
        """
        seeds = {t: [_again(t, k) for k in range(runs)] for t in trials}
        every = [trial for own in seeds.values() for trial in own]
        self._run([(arm, trial) for arm in ("parent", "candidate") for trial in every])
        return tuple(self._repeated(trial, own) for trial, own in seeds.items())

    def _repeated(self, trial: Trial, own: Sequence[Trial]) -> Repetitions:
        both = [
            (parent.success, candidate.success)
            for each in own
            if (parent := self._known["parent", each]).success is not None
            and (candidate := self._known["candidate", each]).success is not None
        ]
        return Repetitions(
            scene_name(trial), len(both), sum(bool(p) for p, _ in both),
            sum(bool(c) for _, c in both),
        )  # fmt: skip

    def cost(self, control_period_s: float, trials: Sequence[Trial]) -> CostEvidence:
        """Return what both arms took on those of the trials that both have run."""
        both = [
            (self._known["parent", t], self._known["candidate", t])
            for t in trials
            if ("parent", t) in self._known and ("candidate", t) in self._known
        ]
        ran = [(p, c) for p, c in both if p.success is not None and c.success is not None]
        own = [c for (arm, _), c in self._known.items() if arm == "candidate"]
        return CostEvidence(
            control_period_s=control_period_s,
            critic_p99_s=self._arena.critic_p99_s(),
            ticks=sum(outcome.ticks for outcome in own),
            late_ticks=sum(outcome.late_ticks for outcome in own),
            baseline=tuple(float(max(1, parent.ticks)) for parent, _ in ran),
            candidate=tuple(float(max(1, candidate.ticks)) for _, candidate in ran),
        )

    def _run(self, wanted: Sequence[ArmTrial]) -> None:
        missing = [each for each in wanted if each not in self._known]
        outcomes = self._arena.run(missing) if missing else ()
        self._known |= dict(zip(missing, outcomes, strict=True))


def _again(trial: Trial, run: int) -> Trial:
    return replace(trial, policy_seed=policy_seed(f"again/{trial.policy_seed}/{run}"))


def pair(
    index: int, trial: Trial, baseline: TrialOutcome, candidate: TrialOutcome
) -> PairedOutcome:
    """Return two runs of one trial as a pair.

    Raises:
        GateError: they met different scenes.
    """
    known = baseline.success is not None and candidate.success is not None
    if known and baseline.scene_digest != candidate.scene_digest:
        raise GateError(
            f"scene {scene_name(trial)} came out differently in two arms; a pair needs one scene"
        )
    return PairedOutcome(
        index=index,
        scene=scene_name(trial),
        seed=trial.policy_seed,
        baseline=baseline.success,
        candidate=candidate.success,
        fired=baseline.fired or candidate.fired,
        same_trace=baseline.actions == candidate.actions if known else None,
    )
