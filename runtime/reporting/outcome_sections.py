"""The sections of a report of episodes: counts, paired tests, who drove, interventions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Final

from zetta.runtime.evaluation_tables import ArmCount, Comparison, Count, SuiteCount, Tables
from zetta.runtime.reporting.document import Block, Cell, Plot, RateCell, Section, Table, Words
from zetta.runtime.reporting.outcomes import FalseAlarms, Outcomes, false_alarms
from zetta.runtime.reporting.plots import Curve, Estimate, forest, shares, solved_by
from zetta.runtime.reporting.wording import NONE, interval, number, percent, signed
from zetta.runtime.success_rates import chance_gain, upper_bound

NO_NULL: Final = (
    "One arm has no null beside it: this says how often it solved, not what anything gained. "
    "Compare it with a run without the bundle on the same scenes."
)
SHADOW: Final = "shadow"
"""How an intervention ended that was only noted."""
SHADOW_TEXT: Final = (
    "{} of {} were in shadow mode: the critic spoke and nobody took over. There an alarm in a "
    "solved episode is a false alarm, and one in a failed episode is a failure that was seen."
)


def success_section(outcomes: Outcomes, tables: Tables) -> Section:
    """Return k of n with intervals for each arm, and what is not scored."""
    rows = tuple(_arm_row(arm) for arm in tables.arms)
    table = Table(
        "Episodes solved, by arm; intervals are 95 % (Wilson)",
        (
            "arm", "solved", "mean over tasks", "95 % over tasks", "mean ticks",
            "not run", "solved at reset",
        ),
        rows,
        note="Errors of machinery and goals that held at reset are no score and stand apart. "
        "Means over tasks weigh each task the same; their intervals are bootstrapped over tasks, "
        "because scenes of one task are near copies of each other.",
    )  # fmt: skip
    blocks: list[Block] = [table]
    if len(tables.arms) > 1:
        blocks.append(_arm_forest(tables.arms))
    if not tables.comparisons:
        blocks.append(Words(NO_NULL, "small"))
    parts = tuple(_suite_part(outcomes, tables.arms, suite) for suite in _suites(tables.arms))
    return Section("Success", tuple(blocks), parts)


def rate_cell(count: Count) -> RateCell:
    """Return a count as a cell."""
    return RateCell(count.successes, count.n, *count.interval)


def _arm_row(arm: ArmCount) -> tuple[Cell, ...]:
    return (
        arm.arm.name,
        rate_cell(arm.total),
        NONE if arm.macro is None else percent(arm.macro.mean),
        NONE if arm.macro is None else interval(arm.macro.interval),
        _ticks(arm.total),
        str(arm.errors),
        str(arm.success_at_reset),
    )


def _arm_forest(arms: Sequence[ArmCount]) -> Plot:
    estimates = []
    for place, arm in enumerate(arms):
        suites = arm.suites if len(arm.suites) > 1 else ()
        for name, count in (
            (arm.arm.name, arm.total), *((f"{arm.arm.name}, {s.suite}", s.total) for s in suites)
        ):  # fmt: skip
            if count.rate is not None:
                low, high = count.interval
                estimates.append(
                    Estimate(f"{name} {count.successes}/{count.n}", 100 * count.rate, 100 * low,
                             100 * high, place)
                )  # fmt: skip
    alt = "; ".join(f"{e.label}: {e.value:.0f} %, {e.low:.0f} to {e.high:.0f}" for e in estimates)
    svg = forest(estimates, "episodes solved, %", "success")
    return Plot(svg, f"Success with intervals: {alt}", "Episodes solved, with 95 % (Wilson).")


def _suite_part(outcomes: Outcomes, arms: Sequence[ArmCount], suite: str) -> Section:
    found = [(arm.arm.name, s) for arm in arms for s in arm.suites if s.suite == suite]
    own = [each for _, each in found]
    columns = tuple(c for name, _ in found for c in (f"{name}: solved", "mean ticks"))
    tasks = sorted({index for each in own for index, _ in each.tasks})
    asked = outcomes.instructions
    rows = [
        (
            f"{index}{': ' + asked[suite, index] if (suite, index) in asked else ''}",
            *(cell for each in own for cell in _task_cells(each, index)),
        )
        for index in tasks
    ]
    total = ("all", *(cell for each in own for cell in (rate_cell(each.total), _ticks(each.total))))
    table = Table(f"Tasks of {suite}", ("task", *columns), tuple(rows), total)
    return Section(suite, (table,))


def _task_cells(own: SuiteCount, index: int) -> tuple[Cell, Cell]:
    count = dict(own.tasks).get(index)
    return (NONE, NONE) if count is None else (rate_cell(count), _ticks(count))


def _suites(arms: Sequence[ArmCount]) -> list[str]:
    return sorted({suite.suite for arm in arms for suite in arm.suites})


def _ticks(count: Count) -> str:
    return NONE if count.mean_ticks is None else f"{count.mean_ticks:.0f}"


# ------------------------------------------------------------------------------ pairs


def comparison_section(outcomes: Outcomes, tables: Tables) -> Section | None:
    """Return the paired tests with their nulls; None where nothing is compared."""
    compared = tables.comparisons
    if not compared:
        return None
    table = Table(
        "Paired comparisons; a win is a pair that only the arm solved, a harm one that only the "
        "baseline solved",
        (
            "arm against baseline", "scenes of", "pairs", "both", "wins", "harms", "neither",
            "difference, points", "95 % (Newcombe)", "null: gain of equal arms, at most",
            "p, exact McNemar", "p, one-sided",
        ),
        tuple(_comparison_row(each) for each in compared),
        note="Only pairs that differ inform the test. The null is the gain that two equally good "
        "arms with as many differing pairs stay at or below in 19 of 20 cases; p is two-sided: "
        "how often a coin is at least as one-sided. p values are not corrected for their number.",
    )  # fmt: skip
    by_task = Table(
        "The same differences, averaged over tasks",
        ("arm against baseline", "scenes of", "tasks", "difference, points", "95 % over tasks",
         "p by scene, one-sided"),
        tuple(_macro_row(each) for each in compared),
        note="p by scene exchanges whole scenes; it is given where a scene was run with several "
        "policy seeds.",
    )  # fmt: skip
    return Section(
        "Paired comparisons", (table, _difference_forest(compared), by_task, *_alarms(outcomes,
        compared)),
    )  # fmt: skip


def _name(each: Comparison | FalseAlarms) -> str:
    return f"{each.arm} against {each.baseline}"


def _comparison_row(each: Comparison) -> tuple[Cell, ...]:
    test = each.test
    null = chance_gain(test.wins + test.harms, each.pairs)
    return (
        _name(each), each.suite or "all suites", str(each.pairs), str(each.both), str(test.wins),
        str(test.harms), str(each.neither), signed(each.difference),
        interval(each.interval, is_signed=True), signed(null), number(test.p_two_sided),
        number(test.p_one_sided),
    )  # fmt: skip


def _macro_row(each: Comparison) -> tuple[Cell, ...]:
    return (
        _name(each), each.suite or "all suites", str(each.macro.tasks), signed(each.macro.mean),
        interval(each.macro.interval, is_signed=True), number(each.p_scenes),
    )  # fmt: skip


def _difference_forest(compared: Sequence[Comparison]) -> Plot:
    estimates = [
        Estimate(
            f"{_name(each)}{', ' + each.suite if each.suite else ''}", 100 * each.difference,
            100 * each.interval[0], 100 * each.interval[1], int(each.suite is not None),
        )
        for each in compared
    ]  # fmt: skip
    alt = "; ".join(f"{e.label}: {e.value:+.0f}, {e.low:+.0f} to {e.high:+.0f}" for e in estimates)
    svg = forest(estimates, "difference in episodes solved, points", "difference", middle=0.0)
    return Plot(
        svg, f"Differences with intervals: {alt}",
        "Differences of paired arms with 95 % (Newcombe); left of the dotted line is a loss.",
    )  # fmt: skip


def _alarms(outcomes: Outcomes, compared: Sequence[Comparison]) -> Iterator[Table]:
    found = [each for each in false_alarms(outcomes, compared) if each.solved]
    if not any(each.alarmed for each in found):
        return
    yield Table(
        "False alarms: interventions where the baseline solved the same scene without any",
        ("arm against baseline", "solved by the baseline", "of these: alarmed", "rate, at most",
         "of these: lost"),
        tuple(
            (
                _name(each), str(each.solved), str(each.alarmed),
                percent(upper_bound(each.alarmed, each.solved)), str(each.lost),
            )
            for each in found
        ),
        note="At most: one-sided 95 % bound (Clopper-Pearson).",
    )  # fmt: skip


# ------------------------------------------------------------------------------ who drove


def driving_section(outcomes: Outcomes, tables: Tables) -> Section:
    """Return the share of ticks of each source, and how soon episodes were solved."""
    sources = sorted({name for arm in tables.arms for name, _ in arm.sources})
    shared = [(arm.arm.name, dict(arm.sources)) for arm in tables.arms]
    rows = tuple((name, *(percent(own.get(name, 0.0)) for _, own in shared)) for name in sources)
    counts = (
        ("interventions", *(str(arm.interventions) for arm in tables.arms)),
        ("policy calls, mean", *(number(arm.mean_inferences) for arm in tables.arms)),
    )
    blocks: list[Block] = [
        Table(
            "Share of the ticks that each source drove, in scored episodes",
            ("source", *(name for name, _ in shared)),
            (*rows, *counts),
            note="Where a skill drives most of the ticks, it is the skill that solves the task.",
        )
    ]
    if any(own for _, own in shared):
        alt = "; ".join(
            f"{name}: " + ", ".join(f"{source} {percent(value)}" for source, value in own.items())
            for name, own in shared
        )
        blocks.append(Plot(shares(shared, "driving"), f"Who drove. {alt}", "Who drove."))
    blocks += _curves(outcomes)
    return Section("Who drove, and how soon it was solved", tuple(blocks))


def _curves(outcomes: Outcomes) -> Iterator[Plot]:
    curves = []
    for arm in outcomes.arms:
        ended = [e for e in outcomes.of(arm.name) if e.is_scored]
        ticks = sorted(
            e.record.first_success or e.record.ticks
            for e in ended
            if e.record is not None and e.record.success
        )
        if ended:
            curves.append(Curve(arm.name, tuple(ticks), len(ended)))
    if not any(each.ticks for each in curves):
        return
    alt = "; ".join(
        f"{c.label}: {len(c.ticks)} of {c.runs} solved"
        + (f", half of these within {c.ticks[(len(c.ticks) - 1) // 2]} ticks" if c.ticks else "")
        for c in curves
    )
    yield Plot(
        solved_by(curves, "ticks"), f"Ticks to success. {alt}",
        "Ticks to success: the share of scored episodes that was solved within so many ticks.",
    )  # fmt: skip


# ------------------------------------------------------------------------------ interventions


def intervention_section(outcomes: Outcomes, most: int) -> Section:
    """Return what critics and skills did, in sum and one by one, at most `most` of these."""
    every = [(e, r) for e in outcomes.episodes for r in e.recoveries]
    if not every:
        return Section("Interventions", (Words("No critic called a skill."),))
    groups: dict[tuple[str, str, str], list[int]] = defaultdict(list)
    for place, (episode, recovery) in enumerate(every):
        groups[episode.arm, recovery.critic, recovery.skill].append(place)
    summed = []
    for (arm, critic, skill), places in sorted(groups.items()):
        own = [every[place] for place in places]
        inside = {id(e): e for e, _ in own}.values()
        solved = sum(e.outcome == "solved" for e in inside)
        ended = sum(e.is_scored for e in inside)
        low_high = Count(solved, ended, None).interval
        summed.append(
            (arm, critic, skill, str(len(own)), str(len(inside)),
             RateCell(solved, ended, *low_high), str(sum(r.completed for _, r in own)))
        )  # fmt: skip
    total = Table(
        "Interventions by critic and skill",
        ("arm", "critic", "skill", "interventions", "episodes", "of these solved",
         "handed back by itself"),
        tuple(summed),
        note="An intervention in a solved episode is a rescue or a false alarm; only a paired run "
        "without it tells which: then the comparison above counts false alarms.",
    )  # fmt: skip
    single = Table(
        f"Every intervention ({len(every)})"
        if len(every) <= most
        else f"The first {most} of {len(every)} interventions",
        ("episode", "arm", "tick", "critic said", "skill", "ticks", "how it ended", "outcome"),
        tuple(
            (f"{e.row.planned.scene}", e.arm, str(r.tick), f"{r.critic}: {r.reason}", r.skill,
             str(r.ticks), r.ending, e.outcome)
            for e, r in every[:most]
        ),
    )  # fmt: skip
    shadowed = sum(r.ending == SHADOW for _, r in every)
    said = () if not shadowed else (Words(SHADOW_TEXT.format(shadowed, len(every))),)
    return Section("Interventions", (*said, total, single))
