"""The gate funnel of a generation: stage after stage, what was decided, beside its null."""

from __future__ import annotations

from collections.abc import Iterator

from zetta.runtime.success_rates import wilson
from zetta.skills.evolve.campaign import Stage
from zetta.skills.evolve.campaign_records import GenerationRead
from zetta.skills.evolve.evidence import Tally, tally
from zetta.skills.evolve.generation_records import (
    Branched,
    Candidate,
    Development,
    Diagnosed,
    GateStage,
    Judged,
    Reported,
    Shadowed,
    Skipped,
)
from zetta.skills.evolve.ledger import Opening
from zetta.skills.evolve.plans import GatePlan
from zetta.skills.evolve.report_views import FunnelRow
from zetta.skills.evolve.stages import StageResult

GATE: tuple[Stage, ...] = ("arms", "no_harm", "confirmation", "controls")


def funnel(read: GenerationRead, plan: GatePlan | None) -> tuple[FunnelRow, ...]:
    """Return every stage that was reached, and where it went no further."""
    rows = [*_before(read), *_gate(read, plan)]
    reported = read.get("report", Reported)
    if reported is not None:
        rows.append(_report_row(reported))
    return tuple(rows)


def gate_evidence(read: GenerationRead) -> GateStage | None:
    """Return the last stage of the gate, which holds all of its runs."""
    found = [stage for name in GATE if (stage := read.get(name, GateStage)) is not None]
    return found[-1] if found else None


def opening_of(read: GenerationRead) -> Opening | None:
    """Return the opening of the gate; None where it was not opened."""
    last = gate_evidence(read)
    return None if last is None else last.opening


# ------------------------------------------------------------------------------ before the gate


def _before(read: GenerationRead) -> Iterator[FunnelRow]:
    development = read.get("development", Development)
    if development is None:
        yield from _stopped(read, "development")
        return
    failures, ended = len(development.ended(False)), len(development.ended(True))
    yield FunnelRow(
        "development", "run", "", f"{failures} of {failures + ended} episodes failed", ""
    )
    found = read.get("diagnosis", Diagnosed)
    if found is not None:
        yield FunnelRow(
            "diagnosis", "run", found.note, f"{len(found.failures)} failures in question", ""
        )
    branched = read.get("branches", Branched)
    if branched is not None:
        yield _branch_row(branched)
    candidate = read.get("candidate", Candidate)
    if candidate is None:
        yield from _stopped(read, "candidate")
        return
    yield FunnelRow("screen", *_screened(candidate), "")
    shadowed = read.get("shadow", Shadowed)
    if shadowed is not None:
        yield _shadow_row(shadowed)


def _stopped(read: GenerationRead, stage: Stage) -> Iterator[FunnelRow]:
    skipped = read.get(stage, Skipped)
    if skipped is not None:
        yield FunnelRow(stage, "stopped", skipped.skipped, "", "")


def _branch_row(branched: Branched) -> FunnelRow:
    sizes = [each.against_fresh.size for each in branched.support.values()]
    null = (
        f"{sum(sizes):.2g} of them to be expected by chance at most, against a fresh sample"
        if sizes
        else ""
    )
    return FunnelRow(
        "branches",
        "pass" if branched.supported else "fail",
        ", ".join(branched.supported) or "no recovery is supported",
        f"{len(branched.supported)} of {len(branched.support)} recoveries supported",
        null,
    )


def _screened(candidate: Candidate) -> tuple[str, str, str]:
    result = candidate.screen
    if result is None:
        return "fail", candidate.problem, ""
    outcome = "pass" if result.passed else "fail"
    counts = f"{result.statements} statements, level {result.level or 'none'}"
    return outcome, "; ".join(result.problems), counts


def _shadow_row(shadowed: Shadowed) -> FunnelRow:
    result = shadowed.result
    found, fixed, dealt = result.found, result.fixed_tick, result.shuffled
    low, high = wilson(found.timely, found.failures)
    return FunnelRow(
        "shadow",
        "pass" if result.passed else "fail",
        "; ".join([*result.reasons, shadowed.note]),
        f"{found.timely} of {found.failures} failures in time ({low:.0%} to {high:.0%}); "
        f"{found.false_alarms} of {found.successes} successes alarmed (at most "
        f"{result.false_alarm_bound:.0%})",
        f"an alarm at one fixed tick: {fixed.timely} in time, {fixed.false_alarms} false; the "
        f"same alarms dealt to other episodes: {dealt.timely} in time, {dealt.false_alarms} false",
    )


# ------------------------------------------------------------------------------ the gate


def _gate(read: GenerationRead, plan: GatePlan | None) -> Iterator[FunnelRow]:
    judged = read.get("verdict", Judged)
    if judged is None:
        yield from _running(read)
        return
    opening = opening_of(read)
    for result in judged.verdict.stages:
        yield FunnelRow(
            result.stage,
            result.outcome,
            result.reason,
            _counted(result),
            _null(result, plan, opening),
            opening.alpha if opening is not None and result.stage == "parent" else None,
        )


def _running(read: GenerationRead) -> Iterator[FunnelRow]:
    """Yield stages of a gate that has no verdict yet; their tests are not told before it."""
    for name in GATE:
        stage = read.get(name, GateStage)
        if stage is None:
            return
        evidence = stage.evidence
        blocks = (evidence.same_scene, evidence.no_harm, evidence.parent, evidence.random)
        counts = tally(blocks[GATE.index(name)])
        yield FunnelRow(
            name, "pass" if stage.passed else "stopped", "the verdict is not yet written",
            _said(counts), "",
        )  # fmt: skip


def _counted(result: StageResult) -> str:
    figures = ", ".join(f"{each.name} {each.value:.3g}" for each in result.figures)
    return "; ".join(part for part in (_said(result.counts), figures) if part)


def _said(counts: Tally) -> str:
    if not counts.pairs:
        return ""
    text = (
        f"{counts.pairs} pairs: {counts.wins} won, {counts.harms} harmed, {counts.both} both, "
        f"{counts.neither} neither"
    )
    missing = counts.missing_baseline + counts.missing_candidate
    return f"{text}, {missing} runs missing" if missing else text


def _null(result: StageResult, plan: GatePlan | None, opening: Opening | None) -> str:
    """Return what the stage does to a candidate that is worth nothing."""
    if plan is None:
        return "the plan was not kept"
    if result.stage == "same_scene":
        return f"a worthless candidate passes with a chance of at most {plan.same_scene_p:g}"
    if result.stage == "no_harm":
        return (
            f"one that loses {plan.margin:.0%} passes with a chance of at most "
            f"{plan.no_harm_alpha:g}"
        )
    if result.stage in ("parent", "sham", "random") and opening is not None:
        boundary = plan.boundaries[opening.number - 1]
        stops = ", ".join(f"{wins} of {differing}" for differing, wins in boundary.stops)
        return (
            f"boundary: wins of differing pairs {stops}; one that is no better crosses it with a "
            f"chance of {boundary.spent:.3g}"
        )
    if result.stage == "cost":
        return f"limits: {plan.cost.critic_share:.0%} of a tick, {plan.cost.late_rate:g} late"
    return ""


def _report_row(reported: Reported) -> FunnelRow:
    arms = ", ".join(f"{each.arm} {each.successes}/{each.runs}" for each in reported.arms)
    return FunnelRow(
        "report",
        "run",
        f"gain {reported.gain:+.0%} ({reported.gain_low:+.0%} to {reported.gain_high:+.0%})",
        arms,
        "sham and random are the nulls; this block decides nothing",
    )
