"""One generation: from the parent's failures to a verdict on one candidate, stage by stage.

Every stage is a function from the records before it to one record. Running a generation again
reads what is there and goes on at the first stage that is missing; rollouts that were finished are
not run again, because the world keeps them.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from zetta.runtime.success_rates import newcombe_paired
from zetta.skills.bundles import LoadedBundle, load_bundle
from zetta.skills.evolve.authors import (
    Author,
    Brief,
    Draft,
    NoDraft,
    Rejection,
    edit_budget,
)
from zetta.skills.evolve.branch_stage import branch_out
from zetta.skills.evolve.briefs import halves, watched_episodes
from zetta.skills.evolve.calibration_stage import (
    CalibratedNumbers,
    calibrated_numbers,
    stricter_draft,
)
from zetta.skills.evolve.campaign import STAGES, Block, Campaign, Stage
from zetta.skills.evolve.candidates import write_candidate
from zetta.skills.evolve.diagnosis_stage import diagnose_development
from zetta.skills.evolve.evidence import tally
from zetta.skills.evolve.gate_run import (
    Bench,
    Trial,
    policy_seed,
    scene_name,
)
from zetta.skills.evolve.gate_stages import Blocks, GateStages
from zetta.skills.evolve.gates import GateVerdict, decide, record
from zetta.skills.evolve.generation_records import (
    Branched,
    Candidate,
    Cost,
    Developed,
    Development,
    Diagnosed,
    GateStage,
    Judged,
    Reported,
    Screened,
    Shadowed,
    Skipped,
)
from zetta.skills.evolve.ledger import Ledger, open_gate
from zetta.skills.evolve.plans import GatePlan
from zetta.skills.evolve.screen import ScreenResult, screen
from zetta.skills.evolve.shadow_stage import shadow
from zetta.skills.evolve.worlds import World
from zetta.skills.package import SkillPackage

CANDIDATE, LOGS, PROGRAMS = "candidate", "logs", "programs"
"""Folders of a generation."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Setting:
    """What all generations of a campaign share."""

    campaign: Campaign
    plan: GatePlan
    world: World
    author: Author
    tell: Callable[[str], None] = lambda text: None
    batch: int = 8
    branch_seeds: int = 1
    """Continuations of each change of a failure, with different policy seeds."""
    command: str = ""
    """What the user typed."""
    pictures: Callable[[int], Sequence[Path]] = lambda number: ()
    """Draws strips of a generation's failures, for an author who looks at them."""


@dataclass(slots=True)
class Generation:
    """Runs the stages of one generation."""

    setting: Setting
    number: int
    parent: str
    """Bundle name or folder."""
    ledger: Ledger
    rejected: tuple[Rejection, ...] = ()

    def run(self) -> Judged:
        """Run every stage that has no record yet, and return the verdict.

        Raises:
            GateError: the gate may not open; what was found is kept.
        """
        self.setting.world.begin(self.parent, self._folder / LOGS)
        development = self._stage("development", Development, self._develop)
        if not isinstance(development, Development):
            return self._nothing(development.skipped)
        found = self._stage("diagnosis", Diagnosed, lambda: self._diagnose(development))
        if not isinstance(found, Diagnosed):
            return self._nothing(found.skipped)
        branched = self._stage("branches", Branched, lambda: self._branch(development, found))
        if not isinstance(branched, Branched):
            return self._nothing(branched.skipped)
        candidate = self._stage(
            "candidate", Candidate, lambda: self._propose(development, found, branched)
        )
        if not isinstance(candidate, Candidate):
            return self._nothing(candidate.skipped)
        self._stage("screen", Screened, lambda: _screened(candidate))
        if candidate.problem:
            return self._nothing(candidate.problem)
        shadowed = self._stage(
            "shadow", Shadowed, lambda: self._shadow(development, found, candidate)
        )
        if not isinstance(shadowed, Shadowed):
            return self._nothing(shadowed.skipped)
        if not shadowed.result.passed:
            return self._nothing("shadow replay: " + "; ".join(shadowed.result.reasons))
        return self._gate(development, candidate)

    # ------------------------------------------------------------------ before the gate

    def _develop(self) -> Development | Skipped:
        budget = self.setting.plan.budget
        trials = self._trials("development", budget.development)
        with self._metered() as cost:
            episodes = self.setting.world.develop(trials)
        failures = sum(each.success is False for each in episodes)
        if failures < 2:
            return Skipped(
                f"the parent failed in {failures} of {len(episodes)} development episodes; there "
                "is nothing to learn from"
            )
        return Development(episodes, cost())

    def _diagnose(self, development: Development) -> Diagnosed:
        with self._metered() as cost:
            found = diagnose_development(
                development, self.setting.campaign.folder, self.setting.world.read
            )
        return replace(found, cost=cost())

    def _branch(self, development: Development, found: Diagnosed) -> Branched:
        seen, _ = halves(development.episodes)
        failures = [each for each in seen if each.name in found.failures]
        successes = [each for each in seen if each.success]
        with self._metered() as cost:
            branched = branch_out(
                self.setting.world, failures, successes, found, self.setting.plan.budget.search,
                self._folder / PROGRAMS, self.setting.branch_seeds,
            )  # fmt: skip
        return replace(branched, cost=cost())

    def _propose(
        self, development: Development, found: Diagnosed, branched: Branched
    ) -> Candidate | Skipped:
        if not branched.supported:
            return Skipped("no recovery is supported by branch replay: the cause is not confirmed")
        with self._metered() as cost:
            brief = self._brief(development, found, branched)
            draft = self.setting.author.propose(brief)
            if isinstance(draft, NoDraft):
                return Skipped(f"the author {self.setting.author.name}: {draft.reason}")
            result = self._screened_anew(draft, brief, development)
            if not result.passed:
                problem = "screen: " + "; ".join(result.problems[:3])
                return _candidate(draft, "", draft, None, problem, result, cost())
            package = self._package(draft.name)
            numbers, final, problem = self._calibrated(package, development, found), draft, ""
            if numbers.level:
                final = stricter_draft(draft, package, numbers.values)
                result = self._screened_anew(final, brief, development)
                problem = "; ".join(result.problems[:3])
        digest = "" if problem else load_bundle(str(self._candidate)).digest
        return _candidate(draft, digest, final, numbers, problem, result, cost())

    def _calibrated(
        self, package: SkillPackage, development: Development, found: Diagnosed
    ) -> CalibratedNumbers:
        world = self.setting.world
        _, held_out = halves(development.episodes)
        successes = [each for each in held_out if each.success]
        watched = watched_episodes(successes, found, world.read, world.sensing)
        return calibrated_numbers(package, watched)

    def _brief(self, development: Development, found: Diagnosed, branched: Branched) -> Brief:
        world, manifest = self.setting.world, self.setting.campaign.manifest
        seen, _ = halves(development.episodes)
        watched = watched_episodes(seen, found, world.read, world.sensing)
        failed = [each for each in watched if not each.success]
        return Brief(
            cluster=found.target,
            failures=tuple(each for each in failed if each.name in found.failures),
            other_failures=tuple(each for each in failed if each.name not in found.failures),
            successes=tuple(each for each in watched if each.success),
            trials=branched.trials,
            parent=self._parent.packages,
            sensing=world.sensing,
            edits=edit_budget(self.number, manifest.generations),
            generation=self.number,
            seed=self.number,
            rejected=self.rejected,
            strips=tuple(self.setting.pictures(self.number)),
        )

    def _screened_anew(self, draft: Draft, brief: Brief, development: Development) -> ScreenResult:
        shutil.rmtree(self._candidate, ignore_errors=True)  # of a run that was killed, or laxer
        secrets: list[str | float] = []
        for each in development.episodes:
            secrets += [str(each.trial.scene), each.scene_digest]
        return screen(
            draft, self._candidate, brief.parent, brief.rejected, brief.sensing, brief.edits,
            secrets=secrets, episodes=[*brief.failures, *brief.successes][:8],
        )  # fmt: skip

    def _shadow(self, development: Development, found: Diagnosed, candidate: Candidate) -> Shadowed:
        world = self.setting.world
        self._restore(candidate)
        with self._metered() as cost:
            _, held_out = halves(development.episodes)
            watched = watched_episodes(held_out, found, world.read, world.sensing)
            result = shadow(
                load_bundle(str(self._candidate)),
                candidate.name,
                [e for e in watched if not e.success and e.name in found.failures],
                [e for e in watched if e.success],
            )
        numbers = candidate.calibration
        return Shadowed(result, "" if numbers is None else numbers.note, cost())

    # ------------------------------------------------------------------ the gate

    def _gate(self, development: Development, candidate: Candidate) -> Judged:
        self._restore(candidate)
        plan = self.setting.plan
        blocks = Blocks(
            seen=tuple(scene_name(each.trial) for each in development.episodes),
            failed=_again(development.ended(False), plan.budget.same_scene),
            regression=self._trials("regression", plan.budget.no_harm, candidate.digest),
            sealed=self._trials("confirmation", plan.budget.confirmation, candidate.digest),
        )
        gate = GateStages(
            plan, self.ledger, self.setting.world, self._candidate, candidate.digest, blocks,
            self.setting.batch,
        )  # fmt: skip
        first = self._gate_stage("arms", gate.arms)
        second = self._gate_stage("no_harm", lambda: gate.no_harm(first))
        third = self._gate_stage("confirmation", lambda: gate.confirmation(second))
        fourth = self._gate_stage("controls", lambda: gate.controls(third))
        judged = self._stage("verdict", Judged, lambda: self._judge(candidate, fourth))
        assert isinstance(judged, Judged)
        self._stage("report", Reported, lambda: self._report(candidate, judged))
        return judged

    def _judge(self, candidate: Candidate, last: GateStage) -> Judged:
        plan, evidence = self.setting.plan, last.evidence
        verdict = decide(plan, last.opening, evidence)
        ledger = self.ledger
        if last.opening is not None:
            names = last.opening.scenes
            _, opened = open_gate(plan, ledger, candidate.digest, names)
            ledger = record(opened, last.opening, verdict)
        if verdict.decision != "PROMOTE":
            return Judged(verdict, ledger, self.parent, self._parent.digest)
        return Judged(verdict, ledger, str(self._relative(self._candidate)), candidate.digest)

    def _report(self, candidate: Candidate, judged: Judged) -> Reported | Skipped:
        if judged.verdict.decision != "PROMOTE":
            return Skipped("only what is promoted gets a report block")
        plan, world = self.setting.plan, self.setting.world
        trials = self._trials("report", plan.budget.report, candidate.digest)
        with self._metered() as cost:
            arms = world.report(self._candidate, trials)
            pairs = Bench(world.arena(self._candidate)).pairs(trials, "parent")
        counts = tally(pairs)
        gain, (low, high) = newcombe_paired(counts.both, counts.wins, counts.harms, counts.neither)
        return Reported(tuple(arms), gain, low, high, cost())

    # ------------------------------------------------------------------ inside

    @property
    def _folder(self) -> Path:
        return self.setting.campaign.folder / f"{self.number:03d}"

    @property
    def _candidate(self) -> Path:
        return self._folder / CANDIDATE

    def _package(self, skill: str) -> SkillPackage:
        return next(p for p in load_bundle(str(self._candidate)).packages if p.name == skill)

    @property
    def _parent(self) -> LoadedBundle:
        return load_bundle(self.parent)

    def _relative(self, path: Path) -> Path:
        return path.relative_to(self.setting.campaign.folder)

    def _stage(self, stage: Stage, kind: type[T], make: Callable[[], T | Skipped]) -> T | Skipped:
        """Return a stage's record, made when it is not there yet."""
        campaign = self.setting.campaign
        if not campaign.has(self.number, stage):
            self.setting.tell(f"generation {self.number}: {stage}")
            campaign.write(self.number, stage, make())
        if campaign.is_skipped(self.number, stage):
            return campaign.content(self.number, stage, Skipped)
        return campaign.content(self.number, stage, kind)

    def _gate_stage(self, stage: Stage, make: Callable[[], GateStage]) -> GateStage:
        def metered() -> GateStage:
            with self._metered() as cost:
                made = make()
            return replace(made, cost=cost())

        found = self._stage(stage, GateStage, metered)
        assert isinstance(found, GateStage)
        return found

    def _nothing(self, reason: str) -> Judged:
        """Write what is left of a generation that ends before its gate."""
        campaign = self.setting.campaign
        for stage in STAGES:
            if not campaign.has(self.number, stage):
                campaign.write(self.number, stage, Skipped(reason))
        return Judged(
            GateVerdict("REJECT", reason, ()), self.ledger, self.parent, self._parent.digest
        )

    def _trials(self, block: Block, count: int, candidate: str = "") -> tuple[Trial, ...]:
        campaign = self.setting.campaign
        tasks = campaign.manifest.tasks
        seeds = campaign.seeds(self.number, block, count, candidate)
        return tuple(
            Trial(seed, policy_seed(f"{block}/{seed}"), tasks[k % len(tasks)])
            for k, seed in enumerate(seeds)
        )

    def _restore(self, candidate: Candidate) -> None:
        """Write the candidate's folder again where it was lost: the record vouches for it."""
        if not self._candidate.exists():
            draft = Draft(candidate.name, candidate.files, candidate.hypothesis)
            folders = [package.folder for package in self._parent.packages]
            write_candidate(draft, folders, self._candidate)

    @contextmanager
    def _metered(self) -> Iterator[Callable[[], Cost]]:
        world, start = self.setting.world, time.monotonic()
        rollouts, cpu = world.spent()

        def cost() -> Cost:
            now, used = world.spent()
            return Cost(now - rollouts, round(used - cpu, 2), round(time.monotonic() - start, 2))

        yield cost


def _again(failed: Sequence[Developed], count: int) -> tuple[Trial, ...]:
    """Return failed scenes with fresh policy seeds, each scene again where there are too few."""
    return tuple(
        replace(
            failed[k % len(failed)].trial,
            policy_seed=policy_seed(f"again/{failed[k % len(failed)].trial.scene}/{k}"),
        )
        for k in range(count)
    )


def _screened(candidate: Candidate) -> Screened | Skipped:
    if candidate.screen is None:
        return Skipped("there is no draft to screen")
    return Screened(candidate.screen)


def _candidate(
    handed_in: Draft,
    digest: str,
    final: Draft,
    numbers: CalibratedNumbers | None,
    problem: str,
    result: ScreenResult,
    cost: Cost,
) -> Candidate:
    return Candidate(
        final.name, digest, final.hypothesis, dict(final.files), handed_in.digest,
        dict(final.cost), problem, result, cost, numbers, final.digest,
    )  # fmt: skip
