"""The gate: from a plan, an opening and all runs to one verdict with its reasons.

Pure and deterministic: no clock, no model, no unseeded draw, whatever the number of workers there
were. Promotion needs every stage, each at its own level, so the levels are not corrected for one
another (intersection-union test, Berger 1982, Technometrics 24, 295); the three superiority tests
come in a fixed order, parent, sham, random, for the same reason.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from zetta.runtime.errors import GateError
from zetta.skills.evolve.evidence import Evidence, PairedOutcome, Tally
from zetta.skills.evolve.ledger import Decision, Ledger, Opening, close_gate, sealed_boundary
from zetta.skills.evolve.plans import Control, GatePlan
from zetta.skills.evolve.stages import (
    StageResult,
    is_simpler,
    judge_cost,
    judge_no_harm,
    judge_pass_k,
    judge_same_scene,
    judge_superiority,
)


@dataclass(frozen=True, slots=True)
class GateVerdict:
    """What the gate decides, and why."""

    decision: Decision
    reason: str
    stages: tuple[StageResult, ...]
    """In order, up to the one that ended the gate."""

    @property
    def counts(self) -> Tally:
        """Counts against the parent on the sealed block; zeros where it was not opened."""
        return next((each.counts for each in self.stages if each.stage == "parent"), Tally())


def admit(plan: GatePlan, evidence: Evidence) -> tuple[StageResult, ...]:
    """Return the results of the stages before the sealed block, up to the first not passed.

    Raises:
        GateError: pairs are missing or doubled, or a quiet candidate changed something.
    """
    results: list[StageResult] = []
    for result in _admission(plan, evidence):
        results.append(result)
        if result.outcome != "pass":
            break
    return tuple(results)


def is_admitted(results: Sequence[StageResult]) -> bool:
    """Say whether the sealed block may be opened."""
    return [each.stage for each in results if each.outcome == "pass"] == ["same_scene", "no_harm"]


def decide(plan: GatePlan, opening: Opening | None, evidence: Evidence) -> GateVerdict:
    """Return the verdict on one candidate.

    Args:
        plan: the sealed one.
        opening: of the gate; None when the candidate was not admitted to the sealed block.
        evidence: all runs so far.

    Raises:
        GateError: the plan is not the sealed one, runs are missing, doubled or of other scenes, or
            a quiet candidate changed something.
    """
    results = list(admit(plan, evidence))
    if is_admitted(results):
        if opening is None:
            return GateVerdict("INCONCLUSIVE", "admitted; the gate is not open", tuple(results))
        for result in _sealed(plan, opening, evidence):
            results.append(result)
            if result.outcome != "pass":
                break
    last = results[-1]
    if last.outcome == "pass":
        return GateVerdict("PROMOTE", "every stage passed", tuple(results))
    decision = _fallen(plan, last, evidence)
    reason = f"{last.stage}: {last.reason}"
    if decision == "SIMPLIFY":
        reason = f"no gain, and cheaper without harm; {reason}"
    return GateVerdict(decision, reason, tuple(results))


def record(ledger: Ledger, opening: Opening, verdict: GateVerdict) -> Ledger:
    """Return the ledger with a verdict: the decision and counts, nothing else.

    Raises:
        GateError: that gate is not the open one.
    """
    counts = verdict.counts
    return close_gate(ledger, opening, verdict.decision, counts.wins, counts.harms, counts.pairs)


def _admission(plan: GatePlan, evidence: Evidence) -> Iterator[StageResult]:
    yield judge_same_scene(evidence.same_scene, plan)
    yield judge_no_harm(evidence.no_harm, evidence.safety, plan)


def _sealed(plan: GatePlan, opening: Opening, evidence: Evidence) -> Iterator[StageResult]:
    boundary = sealed_boundary(plan, opening)
    _check_scenes(evidence.parent, opening, "parent")
    parent = judge_superiority("parent", evidence.parent, boundary, plan)
    yield parent
    for control in plan.controls:
        pairs = _of(control, evidence)
        _check_scenes(pairs, opening, control)
        _check_same_candidate(pairs, evidence.parent, control)
        yield judge_superiority(control, pairs, boundary, plan)
    yield judge_cost(evidence.cost, parent.counts, plan)
    if plan.reliability is not None:
        yield judge_pass_k(evidence.repetitions, plan.reliability)


def _of(control: Control, evidence: Evidence) -> tuple[PairedOutcome, ...]:
    return evidence.sham if control == "sham" else evidence.random


def _check_scenes(pairs: Sequence[PairedOutcome], opening: Opening, block: str) -> None:
    for pair in pairs:
        sealed = opening.scenes[pair.index] if pair.index < len(opening.scenes) else "none"
        if pair.scene != sealed:
            raise GateError(
                f"pair {pair.index} of the {block} block ran scene {pair.scene}, and the sealed "
                f"scene of that place is {sealed}; run the sealed block"
            )


def _check_same_candidate(
    pairs: Sequence[PairedOutcome], parent: Sequence[PairedOutcome], block: str
) -> None:
    """Refuse runs of the candidate that are not those its parent was compared with.

    A second sample of the candidate would be a second try.
    """
    known = {pair.index: (pair.seed, pair.candidate) for pair in parent}
    for pair in pairs:
        if known.get(pair.index, (pair.seed, pair.candidate)) != (pair.seed, pair.candidate):
            raise GateError(
                f"pair {pair.index} of the {block} block has another run of the candidate than the "
                "parent block; compare the same run with every control"
            )


def _fallen(plan: GatePlan, last: StageResult, evidence: Evidence) -> Decision:
    if last.outcome in ("waiting", "void"):
        return "INCONCLUSIVE"
    if last.stage == "parent" and is_simpler(evidence.parent, evidence.cost, plan):
        return "SIMPLIFY"
    return "REJECT" if last.outcome == "fail" else "INCONCLUSIVE"
