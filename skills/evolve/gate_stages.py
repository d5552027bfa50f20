"""The gate of a generation, one stage at a time, so that each leaves a record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from zetta.runtime.errors import GateError
from zetta.skills.evolve.evidence import Evidence
from zetta.skills.evolve.gate_run import (
    Bench,
    Trial,
    against_controls,
    against_parent,
    no_harm,
    scene_name,
)
from zetta.skills.evolve.gates import admit, decide, is_admitted
from zetta.skills.evolve.generation_records import Cost, GateStage
from zetta.skills.evolve.ledger import Ledger, Opening, open_gate, sealed_boundary
from zetta.skills.evolve.plans import GatePlan
from zetta.skills.evolve.stages import judge_superiority
from zetta.skills.evolve.worlds import World

WATCHED: Final = 2
"""Pairs in which it fired that are run once more with its skill held back."""


@dataclass(frozen=True, slots=True)
class Blocks:
    """The scenes of one gate."""

    seen: tuple[str, ...]
    """Names of scenes that were developed on."""
    failed: tuple[Trial, ...]
    """Some of those, on which the parent failed, with fresh policy seeds."""
    regression: tuple[Trial, ...]
    sealed: tuple[Trial, ...]


class GateStages:
    """Runs the arms of one candidate, stage by stage."""

    def __init__(
        self,
        plan: GatePlan,
        ledger: Ledger,
        world: World,
        candidate: Path,
        digest: str,
        blocks: Blocks,
        batch: int,
    ) -> None:
        """`candidate` is the folder of the bundle with this `digest`; `batch` pairs run at once."""
        self._plan, self._ledger, self._world = plan, ledger, world
        self._folder, self._digest = candidate, digest
        self._blocks, self._batch = blocks, batch
        self._bench = Bench(world.arena(candidate))

    def arms(self) -> GateStage:
        """Compare with the parent on the scenes that it failed.

        Raises:
            GateError: critics that fire and whose skills are held back change something.
        """
        evidence = Evidence(same_scene=self._bench.pairs(self._blocks.failed, "parent"))
        fired = [self._blocks.failed[pair.index] for pair in evidence.same_scene if pair.fired]
        self._check_watching(fired[:WATCHED])
        return _stage(evidence, admit(self._plan, evidence)[0].outcome == "pass")

    def no_harm(self, before: GateStage) -> GateStage:
        """Look for harm on fresh scenes."""
        if not before.passed:
            return before
        evidence = no_harm(
            self._plan, before.evidence, self._blocks.regression, self._bench, 2 * self._batch
        )
        return _stage(evidence, is_admitted(admit(self._plan, evidence)))

    def confirmation(self, before: GateStage) -> GateStage:
        """Open the sealed block and compare with the parent.

        Raises:
            GateError: the gate may not open.
        """
        if not before.passed:
            return before
        plan, sealed = self._plan, self._blocks.sealed
        names = tuple(scene_name(trial) for trial in sealed)
        seen = [*self._blocks.seen, *(scene_name(t) for t in self._blocks.regression)]
        opening, _ = open_gate(plan, self._ledger, self._digest, names, seen)
        evidence = against_parent(plan, opening, before.evidence, sealed, self._bench, self._batch)
        boundary = sealed_boundary(plan, opening)
        won = judge_superiority("parent", evidence.parent, boundary, plan).outcome == "pass"
        return replace(_stage(evidence, won), opening=opening)

    def controls(self, before: GateStage) -> GateStage:
        """Compare with the sham and with random moments, and say what it costs."""
        if not before.passed or before.opening is None:
            return before
        evidence, sealed = before.evidence, self._blocks.sealed
        regression = self._blocks.regression[: len(evidence.no_harm)]
        self._world.record_moments(self._folder, regression)
        evidence = against_controls(
            self._plan, before.opening, evidence, sealed, self._bench, self._batch
        )
        for known in (self._blocks.failed, regression, sealed[: len(evidence.parent)]):
            # Kept by the world: nothing is run, and a resumed campaign counts the same episodes.
            self._bench.pairs(known, "parent")
        cost = self._bench.cost(1.0 / self._world.control_hz, sealed)
        evidence = self._repeated(replace(evidence, cost=cost), before.opening)
        return replace(_stage(evidence, True), opening=before.opening)

    def _repeated(self, evidence: Evidence, opening: Opening) -> Evidence:
        """Run sealed scenes again and again, where the plan asks for it and all else passed."""
        reliability = self._plan.reliability
        if reliability is None:
            return evidence
        stages = decide(self._plan, opening, evidence).stages
        if stages[-1].stage != "pass_k":
            return evidence
        scenes = self._blocks.sealed[: reliability.scenes]
        return replace(evidence, repetitions=self._bench.repetitions(scenes, reliability.runs))

    def _check_watching(self, trials: Sequence[Trial]) -> None:
        """The control fire-but-continue: an alarm that nobody acts upon changes no action."""
        for trial, watched in zip(
            trials, self._world.watch_only(self._folder, trials), strict=True
        ):
            parent = self._bench.outcome("parent", trial)
            known = watched.success is not None and parent.success is not None
            if known and self._plan.deterministic and watched.actions != parent.actions:
                raise GateError(
                    f"scene {scene_name(trial)}: the candidate's critics alone change what its "
                    "parent does, although nobody acts upon them; its runs cannot be compared"
                )


def _stage(evidence: Evidence, passed: bool) -> GateStage:
    return GateStage(evidence, passed, None, Cost())
