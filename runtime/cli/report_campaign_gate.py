"""What speaks for a candidate and against it: branches, screen, shadow, arms of the gate."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from zetta.runtime.cli.report_campaign_parts import rate, tag
from zetta.runtime.reporting.document import Block, Cell, CodeCell, Plot, Table
from zetta.runtime.reporting.plots import Walk, stopping
from zetta.runtime.reporting.wording import NONE, interval, number, signed
from zetta.runtime.success_rates import chance_gain, mcnemar, newcombe_paired
from zetta.skills.evolve.campaign_records import GenerationRead
from zetta.skills.evolve.evidence import PairedOutcome, Tally, count, tally
from zetta.skills.evolve.generation_records import Candidate, Judged, Shadowed
from zetta.skills.evolve.plans import GatePlan
from zetta.skills.evolve.report_funnel import gate_evidence, opening_of
from zetta.skills.evolve.report_views import GenerationReport


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
