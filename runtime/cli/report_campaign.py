"""The report of a campaign: from its records to a document, with its chain of hashes checked."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from zetta.runtime.cli import report_campaign_gate as gate
from zetta.runtime.cli import report_campaign_parts as parts
from zetta.runtime.cli.evolve_figures import success_curve
from zetta.runtime.cli.evolve_strips import keep_strips, strip_path, wished
from zetta.runtime.cli.output import Json
from zetta.runtime.reporting.document import (
    Block,
    Cell,
    CodeCell,
    Document,
    Listing,
    Picture,
    Plot,
    Section,
    Words,
    facts,
)
from zetta.runtime.reporting.page import embedded_picture
from zetta.runtime.reporting.wording import counted
from zetta.skills.evolve.campaign import Manifest
from zetta.skills.evolve.campaign_records import CampaignRead, GenerationRead, read_what_stands
from zetta.skills.evolve.campaign_report import campaign_report
from zetta.skills.evolve.report_views import CampaignReport, GenerationReport


@dataclass(frozen=True, slots=True)
class _Pictures:
    """The strips of a campaign."""

    shown: Mapping[str, Picture]
    """By the name of the wish."""
    absent: int


def campaign_document(folder: Path, draw: bool = False) -> tuple[Document, Mapping[str, Json]]:
    """Return the report of a campaign, and its numbers.

    Args:
        folder: of the campaign.
        draw: draw pictures that are missing, where their logs are there.

    Raises:
        ConfigError: there is no campaign, or the extra is not installed.
    """
    read, broken = read_what_stands(folder)
    if draw and not broken:
        keep_strips(folder.resolve())
    report = campaign_report(read)
    pictures = _pictures(report, folder)
    alarms = tuple(f"The chain of hashes is broken: {each}" for each in broken)
    manifest = report.manifest
    document = Document(
        "campaign", f"Campaign {report.name}: {manifest.suite}", _lead(report),
        (
            parts.verdict_section(report),
            _seal_section(read, broken),
            parts.floor_section(report),
            _curve_section(report),
            *(
                _generation_section(each, own, read, pictures)
                for each, own in zip(report.generations, read.generations, strict=True)
            ),
            _rejected_section(report),
            _picture_section(pictures),
            _cost_section(report),
            _manifest_section(report),
        ),
        alarms, tuple(_missing(read, report)), manifest.sensing == "oracle",
    )  # fmt: skip
    return document, {"campaign": numbers(read, report, broken)}


def numbers(read: CampaignRead, report: CampaignReport, broken: tuple[str, ...]) -> Json:
    """Return what the report says in numbers."""
    return {
        "promoted": report.promoted,
        "complete": report.complete,
        "alpha": report.alpha,
        "alpha_spent": report.alpha_spent,
        "manifest": read.manifest.digest,
        "plan": read.manifest.plan,
        "records": sum(len(each.stages) for each in read.generations),
        "broken": list(broken),
        "rollouts": sum(row.rollouts for row in report.costs),
        "generations": [
            {
                "number": each.number,
                "decision": each.decision or None,
                "reason": each.reason,
                "gain": None if each.gain is None else list(each.gain),
                "arms": {
                    a.arm: {"successes": a.rate.successes, "n": a.rate.runs,
                            "interval": [a.rate.low, a.rate.high]}
                    for a in each.arms
                },
            }
            for each in report.generations
        ],
    }  # fmt: skip


def command_of(manifest: Manifest) -> str:
    """Return a command that begins a campaign like this one; budgets of stages are in the plan."""
    words = [
        "zetta", "evolve", "--sim", manifest.sim, "--suite", manifest.suite,
        "--tasks", ",".join(str(task) for task in manifest.tasks),
        "--policy", manifest.policy.split(" ")[0], "--author", manifest.author,
        "--generations", str(manifest.generations), "--budget", str(manifest.rollouts),
        "--bundle", manifest.bundle, "--sensing", manifest.sensing,
    ]  # fmt: skip
    for name, value in manifest.options.items():
        words += ["--option", f"{name}={value}"]
    return shlex.join(words)


def _lead(report: CampaignReport) -> str:
    m = report.manifest
    return (
        f"{m.policy.split(' ')[0]} on {m.suite}, {counted(len(m.tasks), 'task')}, sensing "
        f"{m.sensing}, author {m.author}: {report.promoted} promoted in "
        f"{len(report.generations)} of {counted(m.generations, 'generation')}"
        f"{'' if report.complete else '; not finished'}."
    )


def _missing(read: CampaignRead, report: CampaignReport) -> Iterator[str]:
    if read.plan is None:
        yield "plan.json is not the plan that the manifest names, so no boundary can be shown"
    for each in read.generations:
        if not each.complete:
            done = list(each.stages)
            where = f"after {done[-1]}" if done else "before its first stage"
            yield f"generation {each.number} stands {where}: the campaign runs, or was stopped"
    begun, planned = len(read.generations), report.manifest.generations
    if not begun:
        yield "no stage has been recorded"
    elif not report.complete and all(each.complete for each in read.generations):
        yield f"{begun} of {counted(planned, 'generation')} were begun: the campaign was stopped"


def _seal_section(read: CampaignRead, broken: tuple[str, ...]) -> Section:
    records = sum(len(each.stages) for each in read.generations)
    said = (
        f"Every record names the hash of the one before it, the first that of the manifest. "
        f"{counted(records, 'record')} fit their hashes"
        + ("." if not broken else "; the next one does not, see the top of this page.")
    )
    return Section("Seal and chain of hashes", (Words(said, "error" if broken else "plain"),))


def _curve_section(report: CampaignReport) -> Section:
    said = "; ".join(
        f"generation {g.number}: " + ", ".join(f"{a.arm} {a.rate.successes}/{a.rate.runs}"
                                               for a in g.arms)
        for g in report.generations
        if g.arms
    )  # fmt: skip
    plot = Plot(
        success_curve(report),
        f"Success against the generation. {said or 'No report block was run'}",
        "Bars are 95 % (Wilson). Each report block has scenes of its own, which decided nothing. "
        "Sham: the policy begins anew at the candidate's moments. Random: the candidate's recovery "
        "at moments drawn at random. The development block chose what the candidate is about, so "
        "its hollow points are no estimate of it.",
    )
    return Section("Success against the generation", (plot,))


def _generation_section(
    each: GenerationReport, own: GenerationRead, read: CampaignRead, pictures: _Pictures
) -> Section:
    blocks: list[Block] = []
    if each.reason:
        blocks.append(Words(each.reason))
    if each.about:
        blocks.append(Words(f"About {each.about}.", "small"))
    blocks.append(parts.funnel_table(each))
    strips = [pictures.shown[w.name] for w in each.strips if w.name in pictures.shown]
    named = (
        ("Failures", (*parts.failure_part(own), *strips)),
        ("Which recovery helps", tuple(gate.support_part(each))),
        ("Candidate", tuple(parts.candidate_part(each))),
        ("Screen and shadow", tuple(gate.screen_part(own))),
        ("Gate", tuple(gate.gate_part(own, read.plan))),
        ("Tasks", (parts.task_table(each), *parts.driver_table(each))),
        ("Cost", (parts.costs(each.costs, f"Cost of generation {each.number}"),)),
    )
    inside = tuple(Section(title, own_blocks) for title, own_blocks in named if own_blocks)
    return Section(f"Generation {each.number}", tuple(blocks), inside, parts.tag(each.decision))


def _rejected_section(report: CampaignReport) -> Section:
    blocks: list[Block] = []
    for g in report.rejected:
        name = g.candidate.name if g.candidate else "no candidate"
        why = f" It claimed: {g.candidate.hypothesis}" if g.candidate else ""
        blocks.append(Words(f"Generation {g.number}, {name}: {g.decision}. {g.reason}.{why}"))
    return Section("Rejected candidates", tuple(blocks) or (Words("None so far."),))


def _picture_section(pictures: _Pictures) -> Section:
    said = f"{len(pictures.shown)} strips stand with the failures of their generation."
    if pictures.absent:
        said += f" {pictures.absent} strips are left out: their logs are gone or were never drawn."
    elif not pictures.shown:
        said = "There is no failure to be shown yet."
    return Section("Pictures", (Words(said),))


def _pictures(report: CampaignReport, folder: Path) -> _Pictures:
    """Return the strips that lie in the folder, and how many do not."""
    wishes, shown = wished(report), dict[str, Picture]()
    for wish in wishes:
        path = strip_path(folder, wish)
        if path.exists():
            uri = embedded_picture(path)
            shown[wish.name] = Picture(uri, f"Picture strip: {wish.caption}", wish.caption)
    return _Pictures(shown, len(wishes) - len(shown))


def _cost_section(report: CampaignReport) -> Section:
    note = Words(
        "Seconds of the forecast: planned rollouts at the wall seconds of one in the development "
        "block. A stage that was killed and gone on with counts what it ran afterwards. The budget "
        f"is {report.manifest.rollouts} rollouts.",
        "small",
    )
    return Section("Cost of the campaign", (parts.costs(report.costs, "Cost by stage"), note))


def _manifest_section(report: CampaignReport) -> Section:
    m = report.manifest
    key = "key of scenes" if report.complete else "hash of the key of scenes"
    pairs: tuple[tuple[str, Cell], ...] = (
        ("simulator", f"{m.sim}, {m.suite}, tasks {', '.join(map(str, m.tasks))}"),
        ("policy", CodeCell(m.policy)),
        ("first parent", CodeCell(f"{m.bundle} {m.bundle_digest}".strip())),
        ("sensing", m.sensing),
        ("render profile", m.render_profile),
        ("author", m.author),
        ("gate plan", CodeCell(m.plan)),
        ("manifest", CodeCell(m.digest)),
        (key, CodeCell(report.key)),
        ("options", CodeCell(" ".join(f"{k}={v}" for k, v in m.options.items()) or "none")),
        ("versions", ", ".join(f"{k} {v}" for k, v in m.versions.items())),
    )
    listing = Listing("the command", command_of(m))
    return Section("What was run", (facts("The manifest, as it was sealed", pairs), listing))
