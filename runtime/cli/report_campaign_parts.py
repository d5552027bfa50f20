"""The sections of a campaign's report, each from its records, every number beside its null."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from zetta.runtime.reporting.document import (
    Block,
    Cell,
    CodeCell,
    Listing,
    RateCell,
    Section,
    SmallCell,
    Table,
    Tag,
    TagTone,
    Words,
)
from zetta.runtime.reporting.wording import (
    NONE,
    counted,
    interval,
    number,
    seconds,
    signed,
    whole_percent,
)
from zetta.skills.evolve.campaign_records import GenerationRead
from zetta.skills.evolve.generation_records import Diagnosed
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
            str(each.index), Tag("this one") if each == found.target else NONE,
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
