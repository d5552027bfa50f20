"""From a campaign's records to what its report shows. Pure: equal records give equal reports."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeVar

from zetta.skills.evolve.branch_support import Support
from zetta.skills.evolve.branches import ChangeKind
from zetta.skills.evolve.campaign import Stage
from zetta.skills.evolve.campaign_records import CampaignRead, GenerationRead
from zetta.skills.evolve.diagnosis import FailureDiagnosis
from zetta.skills.evolve.evidence import PairedOutcome, tally
from zetta.skills.evolve.gate_run import Trial
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
    Shadowed,
    Skipped,
)
from zetta.skills.evolve.ledger import Ledger
from zetta.skills.evolve.plans import Budget, GatePlan
from zetta.skills.evolve.report_funnel import funnel, gate_evidence
from zetta.skills.evolve.report_views import (
    ArmRow,
    BlockRow,
    CampaignReport,
    CostRow,
    GenerationReport,
    OpeningRow,
    ProposedSkill,
    Rate,
    StripWish,
    SupportRow,
    TaskRow,
)
from zetta.skills.evolve.worlds import is_checked

N = TypeVar("N", int, float)
SHOWN: Final = "shown"
"""Folder of a generation: the log of one episode that the promoted candidate recovered."""
STRIPS: Final = 3
"""Failures of a generation that are worth a strip."""
PLANNED: Final[Mapping[Stage, Callable[[Budget], int]]] = {
    "development": lambda budget: budget.development,
    "branches": lambda budget: budget.search,
    "arms": lambda budget: 3 * budget.same_scene,
    "no_harm": lambda budget: 2 * budget.no_harm,
    "confirmation": lambda budget: 2 * budget.confirmation,
    "controls": lambda budget: 2 * budget.controls,
    "report": lambda budget: 2 * budget.report,
}
COSTED: Final = (Development, Diagnosed, Branched, Candidate, Shadowed, GateStage, Reported)


def campaign_report(read: CampaignRead) -> CampaignReport:
    """Return what is known of a campaign, finished or not."""
    manifest = read.manifest
    generations = tuple(_generation(read, each) for each in read.generations)
    rollouts = sum(row.rollouts for each in generations for row in each.costs)
    ended = len(generations) == manifest.generations or rollouts >= manifest.rollouts
    complete = ended and all(each.complete for each in read.generations)
    key = manifest.key if complete else hashlib.sha256(manifest.key.encode()).hexdigest()
    ledger = _ledger(read)
    return CampaignReport(
        name=read.name,
        manifest=manifest,
        complete=complete,
        key=key,
        generations=generations,
        openings=tuple(
            OpeningRow(
                each.opening.number, each.opening.candidate, each.opening.alpha,
                each.decision or "open", each.wins, each.harms, each.pairs,
            )
            for each in ledger.entries
        ),
        alpha=None if read.plan is None else read.plan.alpha,
        floor=_floor([row for each in generations for row in each.blocks]),
        costs=_summed([row for each in generations for row in each.costs]),
    )  # fmt: skip


def _generation(read: CampaignRead, own: GenerationRead) -> GenerationReport:
    decision, reason = _decision(own)
    found = own.get("diagnosis", Diagnosed)
    development = own.get("development", Development)
    reported = own.get("report", Reported)
    episodes = () if development is None else development.episodes
    suite = read.manifest.suite
    shown = _shown(own) if decision == "PROMOTE" else None
    return GenerationReport(
        number=own.number,
        complete=own.complete,
        decision=decision,
        reason=reason,
        about="" if found is None else _about(found),
        funnel=funnel(own, read.plan),
        support=_support(own.get("branches", Branched)),
        development=_rate(episodes),
        tasks=_tasks(suite, read.manifest.tasks, episodes, reported),
        arms=() if reported is None else _arms(reported),
        gain=None if reported is None else (reported.gain, reported.gain_low, reported.gain_high),
        blocks=_blocks(own),
        costs=_costs(own, read.plan),
        candidate=_proposed(own.get("candidate", Candidate)),
        strips=_strips(own.number, episodes, found) + _recovered(own.number, shown),
        shown=shown,
    )


def _decision(own: GenerationRead) -> tuple[str, str]:
    judged = own.get("verdict", Judged)
    if judged is not None:
        return judged.verdict.decision, judged.verdict.reason
    skipped = own.get("verdict", Skipped)
    return ("", "") if skipped is None else ("REJECT", skipped.skipped)


def _about(found: Diagnosed) -> str:
    missing = found.target.missing or "no milestone"
    return f"{len(found.failures)} failures, first missing: {missing}; {found.note}"


def _rate(episodes: Sequence[Developed]) -> Rate:
    ended = [each for each in episodes if each.success is not None]
    return Rate(sum(each.success is True for each in ended), len(ended))


def _tasks(
    suite: str,
    tasks: Sequence[int],
    episodes: Sequence[Developed],
    reported: Reported | None,
) -> tuple[TaskRow, ...]:
    arms = () if reported is None else reported.arms
    rows = []
    for task in tasks:
        name = f"{suite}/{task}"
        developed = _rate([each for each in episodes if each.trial.task == task])
        on_block = {e.arm: Rate(*e.by_task[name]) for e in arms if name in e.by_task}
        rows.append(TaskRow(name, developed, on_block))
    return tuple(rows)


def _arms(reported: Reported) -> tuple[ArmRow, ...]:
    return tuple(
        ArmRow(e.arm, Rate(e.successes, e.runs), e.skill_share, e.ticks, e.uses)
        for e in reported.arms
    )


def _support(branched: Branched | None) -> tuple[SupportRow, ...]:
    if branched is None:
        return ()
    rows = [_support_row(program, said) for program, said in branched.support.items()]
    return tuple(sorted(rows, key=lambda row: (-row.recovered.value, row.program)))


def _support_row(program: str, said: Support) -> SupportRow:
    def rate(kind: ChangeKind) -> Rate:
        score = next((each for each in said.scores if each.kind == kind), None)
        return Rate(0, 0) if score is None else Rate(score.successes, score.runs)

    return SupportRow(
        program=program,
        finding=said.finding,
        reason=said.reason,
        snapshots=said.snapshots,
        recovered=rate("recovery"),
        unchanged=rate("unchanged"),
        fresh=rate("fresh sample"),
        p_unchanged=said.against_unchanged.p,
        p_fresh=said.against_fresh.p,
        p_null=said.null.p,
    )


def _proposed(candidate: Candidate | None) -> ProposedSkill | None:
    if candidate is None:
        return None
    return ProposedSkill(
        candidate.name,
        candidate.digest,
        candidate.hypothesis,
        dict(candidate.files),
        dict(candidate.author_cost),
    )


# ------------------------------------------------------------------------------ pairs


def _blocks(own: GenerationRead) -> tuple[BlockRow, ...]:
    last = gate_evidence(own)
    if last is None:
        return ()
    evidence = last.evidence
    blocks = {
        "failed scenes, against the parent": evidence.same_scene,
        "no harm, against the parent": evidence.no_harm,
        "sealed, against the parent": evidence.parent,
        "sealed, against the sham": evidence.sham,
        "sealed, against random moments": evidence.random,
    }
    return tuple(
        _block(name, pairs, spared=pairs is not evidence.random)
        for name, pairs in blocks.items()
        if pairs
    )


def _block(name: str, pairs: Sequence[PairedOutcome], spared: bool) -> BlockRow:
    intervened = [each for each in pairs if each.fired]
    quiet = [each for each in pairs if not each.fired]
    run = [each for each in quiet if not spared or is_checked(_seed(each))]
    counts = tally(intervened)
    return BlockRow(
        block=name,
        pairs=len(pairs),
        intervened=len(intervened),
        wins=counts.wins,
        harms=counts.harms,
        quiet=len(quiet),
        run=len(run),
        equal=sum(each.same_trace is True for each in run),
    )


def _seed(pair: PairedOutcome) -> int:
    """Return the scene's seed: a scene is named `task/seed`."""
    return int(pair.scene.rpartition("/")[2])


def _floor(blocks: Sequence[BlockRow]) -> BlockRow:
    return BlockRow(
        block="all",
        pairs=sum(each.pairs for each in blocks),
        intervened=sum(each.intervened for each in blocks),
        wins=sum(each.wins for each in blocks),
        harms=sum(each.harms for each in blocks),
        quiet=sum(each.quiet for each in blocks),
        run=sum(each.run for each in blocks),
        equal=sum(each.equal for each in blocks),
    )


# ------------------------------------------------------------------------------ cost


def _costs(own: GenerationRead, plan: GatePlan | None) -> tuple[CostRow, ...]:
    costs = {stage: _cost(record) for stage, record in own.stages.items()}
    first = costs.get("development") or Cost()
    each_s = first.wall_s / first.rollouts if first.rollouts else None
    rows = []
    for stage, cost in costs.items():
        if cost is None:
            continue
        planned = PLANNED[stage](plan.budget) if plan is not None and stage in PLANNED else None
        forecast = None if planned is None or each_s is None else planned * each_s
        rows.append(CostRow(stage, cost.rollouts, planned, cost.cpu_s, cost.wall_s, forecast))
    return tuple(rows)


def _cost(record: object) -> Cost | None:
    return record.cost if isinstance(record, COSTED) else None


def _summed(rows: Sequence[CostRow]) -> tuple[CostRow, ...]:
    sums: dict[str, CostRow] = {}
    for row in rows:
        so_far = sums.get(row.stage)
        sums[row.stage] = (
            row
            if so_far is None
            else CostRow(
                row.stage,
                so_far.rollouts + row.rollouts,
                _plus(so_far.planned, row.planned),
                so_far.cpu_s + row.cpu_s,
                so_far.wall_s + row.wall_s,
                _plus(so_far.forecast_s, row.forecast_s),
            )
        )
    return tuple(sums.values())


# ------------------------------------------------------------------------------ the rest


def _ledger(read: CampaignRead) -> Ledger:
    ledgers = [
        judged.ledger
        for each in read.generations
        if (judged := each.get("verdict", Judged)) is not None
    ]
    return ledgers[-1] if ledgers else Ledger("")


def _strips(
    number: int, episodes: Sequence[Developed], found: Diagnosed | None
) -> tuple[StripWish, ...]:
    """Return failures that show what the generation is about: of few tasks, medoid first."""
    if found is None:
        return ()
    known = {} if found.diagnosis is None else {f.episode: f for f in found.diagnosis.failures}
    wanted = [each for each in episodes if each.name in found.failures]
    wanted.sort(key=lambda each: each.name != found.target.medoid)
    by_task: dict[int, list[Developed]] = defaultdict(list)
    for each in wanted:
        by_task[each.trial.task].append(each)
    chosen = [each for own in list(by_task.values())[:2] for each in own[:2]][:STRIPS]
    return tuple(_strip(number, each, known) for each in chosen)


def _strip(number: int, episode: Developed, known: Mapping[str, FailureDiagnosis]) -> StripWish:
    failure = known.get(episode.name)
    diverged = None if failure is None else failure.divergence
    if failure is None or diverged is None:
        at, when = max(0, episode.ticks - 1), "its end, since no divergence is known"
    else:
        at, when = diverged, f"tick {diverged}, where {failure.away_in} left the successes"
    missed = "" if failure is None else f"; first missing: {failure.missing}"
    return StripWish(
        name=f"{number:03d}-{episode.name}",
        log=episode.log,
        at=at,
        caption=f"failure {episode.name} of generation {number}, around {when}{missed}",
    )


def _shown(own: GenerationRead) -> Trial | None:
    last = gate_evidence(own)
    pairs = () if last is None else last.evidence.same_scene
    for pair in pairs:
        if pair.fired and pair.candidate and pair.baseline is False:
            task, _, scene = pair.scene.rpartition("/")
            return Trial(int(scene), pair.seed, int(task))
    return None


def _recovered(number: int, shown: Trial | None) -> tuple[StripWish, ...]:
    if shown is None:
        return ()
    caption = (
        f"the candidate of generation {number} on a scene where its parent failed: the whole "
        "episode, with who drove"
    )
    return (StripWish(f"{number:03d}-recovered", f"{number:03d}/{SHOWN}", None, caption),)


def _plus(one: N | None, other: N | None) -> N | None:
    return None if one is None or other is None else one + other
