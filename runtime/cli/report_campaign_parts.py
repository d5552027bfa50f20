"""The sections of a campaign's report, each from its records, every number beside its null."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from zetta.runtime.reporting.document import (
    Block,
    Cell,
    CodeCell,
    Listing,
    Plot,
    RateCell,
    Section,
    SmallCell,
    Table,
    Tag,
    TagTone,
    Words,
)
from zetta.runtime.reporting.plots import Walk, stopping
from zetta.runtime.reporting.wording import (
    NONE,
    counted,
    interval,
    number,
    seconds,
    signed,
    whole_percent,
)
from zetta.runtime.success_rates import chance_gain, mcnemar, newcombe_paired
from zetta.skills.evolve.campaign_records import GenerationRead
from zetta.skills.evolve.evidence import PairedOutcome, Tally, count, tally
from zetta.skills.evolve.generation_records import Candidate, Diagnosed, Judged, Shadowed
from zetta.skills.evolve.plans import GatePlan
from zetta.skills.evolve.report_funnel import gate_evidence, opening_of
from zetta.skills.evolve.report_views import (
    ArmRow,
    CampaignReport,
    CostRow,
    GenerationReport,
    Rate,
)

NULLS: Final = ("sham", "random")
PROGRAMS: Final = ("critic.py", "recovery.py", "params.toml")
TONES: Final[Mapping[str, TagTone]] = {
    "pass": "good", "PROMOTE": "good", "supported": "good", "fail": "bad", "stopped": "bad",
    "REJECT": "bad", "void": "open", "undecided": "open", "waiting": "open",
    "INCONCLUSIVE": "open", "SIMPLIFY": "open",
}  # fmt: skip


def tag(word: str) -> Tag:
    """Return a verdict or an outcome as a tag."""
    return Tag(word or "running", TONES.get(word, "plain"))


def rate(value: Rate) -> RateCell:
    """Return a rate as a cell."""
    return RateCell(value.successes, value.runs, value.low, value.high)


def costs(rows: Sequence[CostRow], caption: str) -> Table:
    """Return what stages took, and what was planned."""
    planned = [row.planned for row in rows if row.planned is not None]
    forecast = [row.forecast_s for row in rows if row.forecast_s is not None]
    return Table(
        caption,
        ("stage", "rollouts", "planned, at most", "CPU", "wall", "forecast"),
        tuple(
            (row.stage, str(row.rollouts), NONE if row.planned is None else str(row.planned),
             seconds(row.cpu_s), seconds(row.wall_s), seconds(row.forecast_s))
            for row in rows
        ),
        ("all", str(sum(row.rollouts for row in rows)), str(sum(planned)),
         seconds(sum(row.cpu_s for row in rows)), seconds(sum(row.wall_s for row in rows)),
         seconds(sum(forecast))),
    )  # fmt: skip


# ------------------------------------------------------------------------------ verdicts


def verdict_section(report: CampaignReport) -> Section:
    """Return the verdicts with the estimate that is published."""
    if not report.generations:
        return Section("Verdicts", (Words("No stage has been recorded yet."),))
    table = Table(
        "Verdicts; the gain is that of the report block, which decided nothing",
        ("generation", "verdict", "reason", "candidate", "gain, points", "95 % (Newcombe)",
         "nulls on the same block"),
        tuple(_verdict_row(each) for each in report.generations),
        note="The gain on the report block is the one to publish: those of the gate were looked at "
        "until they sufficed, so they are too large.",
    )  # fmt: skip
    return Section("Verdicts", (table,))


def _verdict_row(each: GenerationReport) -> tuple[Cell, ...]:
    gain, bounds = (NONE, NONE) if each.gain is None else (
        signed(each.gain[0]), interval((each.gain[1], each.gain[2]), is_signed=True)
    )  # fmt: skip
    nulls = [f"{a.arm} {a.rate.successes}/{a.rate.runs}" for a in each.arms if a.arm in NULLS]
    name = NONE if each.candidate is None else each.candidate.name
    return (
        str(each.number), tag(each.decision), each.reason, name, gain, bounds,
        SmallCell(", ".join(nulls) or NONE),
    )  # fmt: skip


def floor_section(report: CampaignReport) -> Section:
    """Return what nothing against nothing gives, and the risk that was spent."""
    floor, blocks = report.floor, list[Block]()
    if floor.pairs:
        blocks.append(Words(_floor_text(report)))
        rows = tuple(
            (str(g.number), b.block, *map(str, (b.pairs, b.intervened, b.wins, b.harms, b.quiet,
                                                b.run, b.equal)))
            for g in report.generations
            for b in g.blocks
        )  # fmt: skip
        columns = ("generation", "block", "pairs", "intervened", "of these won", "harmed", "quiet",
                   "run", "equal")  # fmt: skip
        blocks.append(Table("Pairs of each block", columns, rows))
    else:
        blocks.append(Words("No pair has been run, so the noise floor is not measured yet."))
    planned = (
        ""
        if report.alpha is None
        else f"The plan allows a risk of {number(report.alpha)} that anything at all is promoted "
        "falsely in this campaign; "
    )
    gates = counted(len(report.openings), "opened gate")
    blocks.append(Words(f"{planned}{number(report.alpha_spent)} is spent so far over {gates}."))
    if report.openings:
        openings: tuple[tuple[Cell, ...], ...] = tuple(
            (str(o.number), CodeCell(o.candidate[:12]), number(o.alpha), tag(o.decision),
             str(o.pairs), str(o.wins), str(o.harms))
            for o in report.openings
        )  # fmt: skip
        named = ("opening", "candidate", "alpha", "decision", "pairs", "won", "harmed")
        blocks.append(Table("The ledger: every gate that was opened", named, openings))
    return Section("The noise floor, and the risk that was spent", tuple(blocks))


def _floor_text(report: CampaignReport) -> str:
    floor = report.floor
    said = (
        "Where a candidate stays quiet, nothing stands against nothing. "
        f"{floor.quiet} of {floor.pairs} pairs were quiet; in {floor.run} of them the second arm "
        "is run all the same, chosen by the scene's seed: "
        f"{floor.equal} of {floor.run} were equal, action for action. "
    )
    if not floor.run:
        return said + "None was run, so the floor is not measured."
    bound = whole_percent(floor.noise)
    if floor.run == floor.equal:
        return said + (
            f"So at most {bound} of such pairs differ by noise of the machinery (95 %, exact)."
        )
    return said + (
        f"The others are noise of the machinery, at most {bound} of such pairs (95 %, exact): "
        "read every number below against it."
    )


# ------------------------------------------------------------------------------ a generation


def failure_part(read: GenerationRead) -> Iterator[Block]:
    """Yield the failures by cluster."""
    found = read.get("diagnosis", Diagnosed)
    if found is None or found.diagnosis is None:
        return
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (
            str(each.index), Tag("this one" if each == found.target else "–", "plain"),
            str(each.size), each.missing or NONE, number(each.divergence), each.away_in or NONE,
            number(each.recovered), each.medoid,
            ", ".join(f"{name} ({n})" for name, n in each.tasks.items()) or NONE,
            ", ".join(d.name for d in each.signals[:3]) or NONE,
        )
        for each in found.diagnosis.clusters
    )  # fmt: skip
    yield Table(
        "Failures by cluster; a critic can read the signals, the milestone is a label",
        ("cluster", "about", "failures", "first missing", "leaves at tick", "away in",
         "comes back", "medoid", "tasks", "stands out in"),
        rows,
        note=f"{found.diagnosis.successes} successes to compare with; {found.diagnosis.pooled} "
        "failures belong to no cluster. Comes back: mean Jaccard index with its like when the "
        "failures are drawn again; below 0.6 a cluster is pooled.",
    )  # fmt: skip


def support_part(each: GenerationReport) -> Iterator[Block]:
    """Yield what branch replay says of recoveries."""
    if not each.support:
        return
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (row.program, tag(row.finding), row.reason, rate(row.recovered), rate(row.unchanged),
         rate(row.fresh), number(row.p_unchanged), number(row.p_fresh), number(row.p_null))
        for row in each.support
    )  # fmt: skip
    most = max(row.snapshots for row in each.support)
    yield Table(
        "Branch replay: which recovery helps in these failures",
        ("recovery", "finding", "reason", "with it", "null: unchanged", "null: fresh sample",
         "p, unchanged", "p, fresh", "p of the null"),
        rows,
        note=f"Distinct continuations of {most} moments at most. They come from failures, so the "
        "unchanged policy fails because it was chosen so; the fresh sample is the comparison that "
        "counts, and the p of the null is what it alone gains over the unchanged policy.",
    )  # fmt: skip


def screen_part(read: GenerationRead) -> Iterator[Block]:
    """Yield the static screen and the shadow replay."""
    candidate = read.get("candidate", Candidate)
    if candidate is not None and candidate.screen is not None:
        result = candidate.screen
        yield Table(
            "Static screen",
            ("passed", "level", "statements", "change", "package", "problems"),
            ((tag("pass" if result.passed else "fail"), result.level or NONE,
              str(result.statements), result.change or NONE, CodeCell(result.digest[:12]),
              "; ".join(result.problems) or "none"),),
        )  # fmt: skip
    shadowed = read.get("shadow", Shadowed)
    if shadowed is None:
        return
    own = shadowed.result
    watched = (
        ("the candidate's critic", own.found),
        ("null: one fixed tick", own.fixed_tick),
        ("null: alarms dealt to other episodes", own.shuffled),
    )
    yield Table(
        "Shadow replay on held-out episodes: no control, only alarms",
        ("alarms of", "failures", "found", "in time", "successes", "false alarms"),
        tuple(
            (name, str(d.failures), str(d.found), str(d.timely), str(d.successes),
             str(d.false_alarms))
            for name, d in watched
        ),
        note="; ".join([*own.reasons, *own.notes, *((shadowed.note,) if shadowed.note else ())]),
    )  # fmt: skip


def gate_part(read: GenerationRead, plan: GatePlan | None) -> Iterator[Block]:
    """Yield the arms of the gate on their pairs, and the way to the boundary."""
    last = gate_evidence(read)
    if last is None:
        return
    evidence, judged = last.evidence, _judged(read)
    blocks = (
        ("failed scenes: parent", "same_scene", evidence.same_scene),
        ("no harm: parent", "no_harm", evidence.no_harm),
        ("sealed: parent", "parent", evidence.parent),
        ("sealed: sham (a null)", "sham", evidence.sham),
        ("sealed: random moments (a null)", "random", evidence.random),
    )
    rows = tuple(
        _gate_row(name, tally(_looked_at(pairs, judged.get(stage))))
        for name, stage, pairs in blocks
        if pairs
    )
    yield Table(
        "The candidate against each opponent of the gate, on pairs of the same scene and seed",
        ("block: opponent", "pairs", "both", "won", "harmed", "neither", "without intervention",
         "gain, points", "95 % (Newcombe)", "null: gain of equals, at most",
         "p, exact McNemar", "p, one-sided"),
        rows,
        note="A run that is missing counts against the candidate. On the sealed block the "
        "boundary decides and not p: the test stopped as soon as it could, so its gain and p are "
        "too good. Pairs that were run beyond the stop are left out, as the verdict leaves them.",
    )  # fmt: skip
    opening = opening_of(read)
    if opening is None or not evidence.parent:
        return
    walks = [
        Walk(f"against {stage}", _differing(_looked_at(pairs, judged.get(stage))))
        for _, stage, pairs in blocks[2:]
        if pairs
    ]
    stops = () if plan is None else plan.boundaries[opening.number - 1].stops
    said = "; ".join(f"{w.label}: {sum(w.wins)} of {len(w.wins)} won" for w in walks)
    yield Plot(
        stopping(walks, stops, f"stopping-{read.number}"),
        f"Pairs won against pairs that differ. {said}. Boundary: "
        + (", ".join(f"{b} of {d}" for d, b in stops) or "not known"),
        f"The sealed block, pair by pair. {said}. A walk that reaches a bar stops for the "
        f"candidate; all looks together take a risk of {number(opening.alpha)} at most.",
    )


def _judged(read: GenerationRead) -> dict[str, int]:
    """Return how many pairs each stage of the verdict looked at."""
    found = read.get("verdict", Judged)
    return {} if found is None else {e.stage: e.counts.pairs for e in found.verdict.stages}


def _looked_at(pairs: Sequence[PairedOutcome], most: int | None) -> tuple[PairedOutcome, ...]:
    """Return the pairs that a verdict looked at, in its order; all before there is one."""
    ordered = tuple(sorted(pairs, key=lambda pair: pair.index))
    return ordered[:most] if most else ordered


def _gate_row(name: str, counts: Tally) -> tuple[Cell, ...]:
    gain, bounds = newcombe_paired(counts.both, counts.wins, counts.harms, counts.neither)
    test = mcnemar(counts.wins, counts.harms)
    return (
        name, str(counts.pairs), str(counts.both), str(counts.wins), str(counts.harms),
        str(counts.neither), str(counts.unattributed), signed(gain),
        interval(bounds, is_signed=True), signed(chance_gain(counts.differing, counts.pairs)),
        number(test.p_two_sided), number(test.p_one_sided),
    )  # fmt: skip


def _differing(pairs: Sequence[PairedOutcome]) -> tuple[bool, ...]:
    """Return, for each pair that differs, in the order in which they are judged, whether won."""
    each = (count(pair, Tally()) for pair in pairs)
    return tuple(bool(one.wins) for one in each if one.differing)


def funnel_table(each: GenerationReport) -> Table:
    """Return stage after stage what was decided, beside its null."""
    return Table(
        "Gate funnel",
        ("stage", "outcome", "what was counted", "reason", "null", "alpha"),
        tuple(
            (row.stage.replace("_", " "), tag(row.outcome), row.counts, row.reason,
             SmallCell(row.null), "" if row.alpha is None else number(row.alpha))
            for row in each.funnel
        ),
    )  # fmt: skip


def task_table(each: GenerationReport) -> Table:
    """Return success by task: of the parent in development, of every arm on the report block."""
    names = [a.arm for a in each.arms]
    titles = tuple(f"null: {name}" if name in NULLS else name for name in names)
    return Table(
        "Success by task: the parent on the development block, all arms on the report block",
        ("task", "development, parent", *titles),
        tuple(
            (row.task, rate(row.development),
             *(rate(row.arms[name]) if name in row.arms else NONE for name in names))
            for row in each.tasks
        ),
        ("all", rate(each.development), *(rate(a.rate) for a in each.arms)),
        note=""
        if each.arms
        else "Only what is promoted gets a report block; the development block has no null and "
        "says only what was developed on.",
    )  # fmt: skip


def driver_table(each: GenerationReport) -> Iterator[Block]:
    """Yield who drove on the report block."""
    if each.arms:
        yield Table(
            "Who drove, on the report block",
            ("arm", "ticks of skills", "critic", "skill", "share of ticks", "interventions",
             "in episodes", "of these solved"),
            tuple(row for arm in each.arms for row in _driver_rows(arm)),
        )  # fmt: skip


def _driver_rows(arm: ArmRow) -> Iterator[tuple[Cell, ...]]:
    share = whole_percent(arm.skill_share)
    if not arm.uses:
        said = "not kept for each skill" if arm.skill_share and not arm.ticks else "none intervened"
        yield (arm.arm, share, said, NONE, NONE, NONE, NONE, NONE)
    for use in arm.uses:
        own = whole_percent(use.ticks / arm.ticks) if arm.ticks else NONE
        yield (arm.arm, share, use.critic, use.skill, own, str(use.interventions),
               f"{use.episodes} of {arm.rate.runs}", str(use.solved))  # fmt: skip


def candidate_part(each: GenerationReport) -> Iterator[Block]:
    """Yield what the author handed in."""
    candidate = each.candidate
    if candidate is None:
        return
    yield Words(f"Candidate {candidate.name}: {candidate.hypothesis}")
    said = [f"bundle {candidate.digest[:12]}"] if candidate.digest else []
    if candidate.author_cost:
        took = ", ".join(f"{what} {number(much)}" for what, much in candidate.author_cost.items())
        said.append(f"writing it took {took}")
    if said:
        yield Words("; ".join(said), "small")
    for name in PROGRAMS:
        if name in candidate.files:
            yield Listing(name, candidate.files[name], is_open=name == "critic.py")
