"""Tables of an evaluation as JSON and as Markdown."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from zetta.runtime.evaluation_answers import tables_json, timing_json
from zetta.runtime.evaluation_plan import Plan, describe
from zetta.runtime.evaluation_results import Row
from zetta.runtime.evaluation_tables import ArmCount, Comparison, Count, Tables
from zetta.runtime.records import to_json
from zetta.runtime.reporting.wording import interval, percent, signed
from zetta.runtime.success_rates import Interval, MacroAverage

RESULTS_FILE = "results.json"
TABLES_FILE = "tables.md"


def results_json(plan: Plan, tables: Tables, rows: Sequence[Row], command: str) -> dict[str, Any]:
    """Return the whole answer; only `timing` differs between two runs of one plan."""
    errors = [row for row in rows if row.record is None]
    return {
        **tables_json(tables),
        "episodes": len(rows),
        "errors": [
            {"scene": r.planned.scene, "arm": r.planned.arm, "error": r.error} for r in errors
        ],
        "plan": plan.digest,
        "command": command,
        **describe(plan),
        "timing": to_json(timing_json(rows)),
    }


def write_reports(
    out: Path, plan: Plan, tables: Tables, rows: Sequence[Row], command: str
) -> dict[str, Any]:
    """Write `results.json` and `tables.md` below `out` and return the former's content."""
    results = results_json(plan, tables, rows, command)
    text = json.dumps(results, indent=1, sort_keys=True, allow_nan=False) + "\n"
    (out / RESULTS_FILE).write_text(text, encoding="utf-8")
    (out / TABLES_FILE).write_text(markdown(plan, tables, command), encoding="utf-8")
    return results


def markdown(plan: Plan, tables: Tables, command: str) -> str:
    """Return the tables for people, with the command that makes them."""
    blocks = [
        f"    {command}",
        "Success k/n with Wilson 95 % intervals. Averages over tasks weigh each task the same; "
        "their intervals are bootstrapped over tasks, because scenes of one task are near copies.",
        _lines(_arm_table(tables.arms)),
        *(_lines(_task_table(tables.arms, suite)) for suite in _suites(tables.arms)),
    ]
    if tables.comparisons:
        blocks.append(
            "Pairs are the same scene and policy seed under both arms; wins: only the arm "
            "succeeded; harms: only the baseline did. p: exact McNemar test, two-sided."
        )
        blocks.append(_lines(_comparison_table(tables.comparisons)))
    blocks.append(_provenance(plan))
    return "\n\n".join(blocks) + "\n"


# --------------------------------------------------------------------------- Markdown


def _arm_table(arms: Sequence[ArmCount]) -> Iterator[Sequence[str]]:
    yield ("arm", "success", "95 %", "mean over tasks", "95 % over tasks", "mean ticks", "drives")
    for arm in arms:
        yield (
            arm.arm.name + _aside(arm),
            _ratio(arm.total),
            _interval(arm.total.interval),
            "-" if arm.macro is None else percent(arm.macro.mean),
            "-" if arm.macro is None else _interval(arm.macro.interval),
            _ticks(arm.total),
            ", ".join(f"{name} {percent(share)}" for name, share in arm.sources) or "-",
        )


def _aside(arm: ArmCount) -> str:
    """Name what is not scored, where there is any."""
    notes = []
    if arm.errors:
        notes.append(f"{arm.errors} could not be run")
    if arm.success_at_reset:
        notes.append(f"{arm.success_at_reset} solved at reset")
    return f" ({', '.join(notes)}: not scored)" if notes else ""


def _task_table(arms: Sequence[ArmCount], suite: str) -> Iterator[Sequence[str]]:
    own = [next(s for s in arm.suites if s.suite == suite) for arm in arms]
    yield (suite, *(title for arm in arms for title in (arm.arm.name, "95 %", "mean ticks")))
    for position, (index, _) in enumerate(own[0].tasks):
        cells = (_cells(each.tasks[position][1]) for each in own)
        yield (str(index), *(cell for three in cells for cell in three))
    yield ("all", *(cell for each in own for cell in _cells(each.total)))
    yield ("mean over tasks", *(cell for each in own for cell in _macro_cells(each.macro)))


def _comparison_table(comparisons: Sequence[Comparison]) -> Iterator[Sequence[str]]:
    yield (
        *("suites", "baseline", "arm", "pairs", "wins", "harms"),
        *("difference", "95 % (Newcombe)", "p", "difference over tasks", "95 % over tasks"),
    )
    for each in comparisons:
        yield (
            each.suite or "all",
            each.baseline,
            each.arm,
            str(each.pairs),
            str(each.test.wins),
            str(each.test.harms),
            signed(each.difference),
            _interval(each.interval, is_signed=True),
            f"{each.test.p_two_sided:.3g}",
            signed(each.macro.mean),
            _interval(each.macro.interval, is_signed=True),
        )


def _provenance(plan: Plan) -> str:
    identity = plan.identity
    return "\n".join(
        f"- {name}: {_pairs(values) if isinstance(values, Mapping) else values}"
        for name, values in (
            ("plan", plan.digest),
            ("policies", {name: digest[:12] for name, digest in identity.policies.items()}),
            ("bundles", {name: digest[:12] for name, digest in identity.bundles.items()}),
            ("sensing", plan.evaluation.sensing),
            ("render profile", ", ".join(dict.fromkeys(identity.render_profiles.values()))),
            ("conventions", identity.conventions),
            ("options", plan.evaluation.options),
            ("versions", identity.versions),
        )
        if values
    )


def _pairs(values: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {value}".strip() for name, value in sorted(values.items()))


def _lines(table: Iterator[Sequence[str]]) -> str:
    head, *rows = table
    return "\n".join("| " + " | ".join(row) + " |" for row in (head, ["-"] * len(head), *rows))


def _suites(arms: Sequence[ArmCount]) -> list[str]:
    return [suite.suite for suite in arms[0].suites] if arms else []


def _cells(count: Count) -> tuple[str, str, str]:
    return _ratio(count), _interval(count.interval), _ticks(count)


def _macro_cells(macro: MacroAverage | None) -> tuple[str, str, str]:
    if macro is None:
        return "-", "-", ""
    return percent(macro.mean), _interval(macro.interval), ""


def _ratio(count: Count) -> str:
    return f"{count.successes}/{count.n}"


def _ticks(count: Count) -> str:
    return "-" if count.mean_ticks is None else f"{count.mean_ticks:.0f}"


def _interval(bounds: Interval | None, is_signed: bool = False) -> str:
    return "-" if bounds is None else interval(bounds, is_signed)
