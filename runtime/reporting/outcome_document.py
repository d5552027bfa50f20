"""The whole report of a run, of several runs or of an evaluation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from zetta.runtime.evaluation_tables import ArmCount
from zetta.runtime.reporting.document import (
    Block,
    Cell,
    CodeCell,
    Document,
    Listing,
    Picture,
    Section,
    Table,
    Tag,
    TagTone,
    Words,
    facts,
)
from zetta.runtime.reporting.outcome_sections import (
    comparison_section,
    driving_section,
    intervention_section,
    success_section,
)
from zetta.runtime.reporting.outcomes import Episode, Outcomes, tables_of, worth_showing
from zetta.runtime.reporting.page import embedded_picture
from zetta.runtime.reporting.wording import NONE, counted, interval, percent

MOST_INTERVENTIONS: Final = 200
"""Rows; more are counted and not listed."""
MOST_EPISODES: Final = 10_000
PICTURE_BYTES: Final = 6_000_000
"""Of all strips of a report; a report of 200 episodes stays below 10 MB."""
TONES: Final[Mapping[str, TagTone]] = {"solved": "good", "failed": "bad"}


@dataclass(frozen=True, slots=True)
class Strips:
    """The strips of a report, and what is to be said of the others."""

    shown: tuple[Picture, ...]
    wanted: int
    """Episodes with an intervention or a failure."""
    undrawn: int
    """Chosen ones that nobody drew."""


def outcome_document(
    outcomes: Outcomes, most_strips: int, drawn: Mapping[str, Path] | None = None
) -> Document:
    """Return the report.

    Args:
        outcomes: the episodes.
        most_strips: most picture strips.
        drawn: strips that were drawn for this report, by log folder.
    """
    tables = tables_of(outcomes)
    compared = comparison_section(outcomes, tables)
    sections = (
        success_section(outcomes, tables),
        *(() if compared is None else (compared,)),
        driving_section(outcomes, tables),
        intervention_section(outcomes, MOST_INTERVENTIONS),
        _strip_section(strips_of(outcomes, most_strips, drawn or {}), most_strips),
        *_error_section(outcomes),
        _episode_section(outcomes),
        _facts_section(outcomes),
        _reading_section(outcomes),
    )
    return Document(
        outcomes.kind, outcomes.title, _lead(outcomes, tables.arms), sections,
        outcomes.alarms, outcomes.missing, "oracle" in outcomes.sensing,
    )  # fmt: skip


def strips_of(outcomes: Outcomes, most: int, drawn: Mapping[str, Path]) -> Strips:
    """Return the strips that are evidence, as long as they fit into the page."""
    chosen, wanted = worth_showing(outcomes, most)
    pictures, undrawn, room = [], 0, PICTURE_BYTES
    for each in chosen:
        path = drawn.get(str(each.log)) or each.strip
        if path is None:
            undrawn += 1
            continue
        try:
            uri = embedded_picture(path)
        except OSError:
            undrawn += 1
            continue
        if len(uri) > room:
            break
        room -= len(uri)
        pictures.append(Picture(uri, f"Picture strip of {_caption(each)}", _caption(each)))
    return Strips(tuple(pictures), wanted, undrawn)


def _caption(each: Episode) -> str:
    said = [f"{each.row.planned.scene}, {each.arm}: {each.outcome}"]
    if each.record is not None:
        said[0] += f" after {each.record.ticks} ticks"
    said += [
        f"at tick {r.tick} {r.critic} said “{r.reason}” and {r.skill} drove {r.ticks} ticks "
        f"({r.ending or 'no ending kept'})"
        for r in each.recoveries
    ]
    return "; ".join(said)


def _strip_section(strips: Strips, most: int) -> Section:
    shown = len(strips.shown)
    if not strips.wanted:
        return Section("Evidence strips", (Words("No intervention and no failure to show."),))
    said = (
        f"{shown} of {counted(strips.wanted, 'episode')} with an intervention or a failure. "
        f"Interventions come first, then failures, and tasks take turns; at most {most} strips, "
        f"and {PICTURE_BYTES / 1e6:.0f} MB, are shown."
    )
    if strips.undrawn:
        said += (
            f" {strips.undrawn} of the chosen have no picture strip; --draw draws what has poses."
        )
    return Section("Evidence strips", (Words(said, "small"), *strips.shown))


def _lead(outcomes: Outcomes, arms: Sequence[ArmCount]) -> str:
    said = []
    for arm in arms:
        total = arm.total
        rate = f" ({percent(total.rate)}, 95 % {interval(total.interval)})" if total.n else ""
        said.append(f"{arm.arm.name}: {total.successes} of {total.n} solved{rate}")
    levels = ", ".join(dict.fromkeys(outcomes.sensing)) or "not known"
    return f"{'; '.join(said)}. Sensing: {levels}."


def _error_section(outcomes: Outcomes) -> tuple[Section, ...]:
    broken = [each for each in outcomes.episodes if each.record is None]
    if not broken:
        return ()
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (each.row.planned.scene, each.arm, str(each.row.attempts), each.row.error)
        for each in broken
    )
    table = Table(
        "Episodes that the machinery could not carry out; none of them is a score",
        ("scene", "arm", "attempts", "error"), rows,
    )  # fmt: skip
    return (Section("Infrastructure errors", (table,)),)


def _episode_section(outcomes: Outcomes) -> Section:
    noted = any(each.note for each in outcomes.episodes)
    rows = tuple(_episode_row(each, noted) for each in outcomes.episodes[:MOST_EPISODES])
    caption = (
        f"Every episode ({len(rows)})"
        if len(rows) == len(outcomes.episodes)
        else f"The first {len(rows)} of {len(outcomes.episodes)} episodes"
    )
    columns = (
        "scene", "policy seed", "arm", "episode", "outcome", "ended by", "ticks", "interventions",
        *(("note",) if noted else ()),
    )  # fmt: skip
    return Section("Every episode", (Table(caption, columns, rows),))


def _episode_row(each: Episode, noted: bool) -> tuple[Cell, ...]:
    record = each.record
    ended = each.row.error if record is None else (record.detail or record.reason)
    spec = each.row.planned.spec
    return (
        each.row.planned.scene, str(spec.policy_seed), each.arm, CodeCell(each.name),
        Tag(each.outcome, TONES.get(each.outcome, "open")),
        ended, NONE if record is None else str(record.ticks),
        NONE if record is None else str(record.interventions),
        *((each.note,) if noted else ()),
    )  # fmt: skip


def _facts_section(outcomes: Outcomes) -> Section:
    blocks: list[Block] = []
    if len(outcomes.facts) == 1:
        (own,) = outcomes.facts.values()
        blocks.append(facts("What was run", [(name, _fact(name, own[name])) for name in own]))
    else:
        names = list(dict.fromkeys(name for own in outcomes.facts.values() for name in own))
        rows = tuple(
            (name, *(_fact(name, own.get(name, NONE)) for own in outcomes.facts.values()))
            for name in names
        )
        blocks.append(Table("What was run", ("what", *outcomes.facts), rows))
    for name, command in outcomes.commands.items():
        blocks.append(Listing(f"the command of {name}" if name else "the command", command))
    return Section("What was run", tuple(blocks))


def _fact(name: str, text: str) -> Cell:
    return CodeCell(text) if name in ("policy digest", "bundle", "plan") else text


def _reading_section(outcomes: Outcomes) -> Section:
    said = [
        "Solved means that the simulator's own predicate held at some tick. An interval says what "
        "rates are compatible with the count if the scenes were drawn anew; scenes of one task are "
        "near copies, so the interval over tasks is the honest one for other tasks.",
        "Simulator truth decides what is solved; it is never shown as something that was sensed.",
    ]
    if outcomes.kind != "run":
        said.append(
            "Arms are compared on pairs of the same scene and policy seed. Read wins and harms "
            "before the difference: 3 wins and no harm are p = 0.25, whatever the difference."
        )
    return Section("How to read this", tuple(Words(text, "small") for text in said))
