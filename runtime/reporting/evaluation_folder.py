"""An evaluation as it lies on disk, finished or not, read for a report.

What an evaluation says is counted again from its shards; `results.json` is only held against it.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from zetta.runtime.errors import ConfigError, SpecMismatch
from zetta.runtime.evaluation_plan import FOLDER_DIGITS, Arm, Planned
from zetta.runtime.evaluation_reports import RESULTS_FILE
from zetta.runtime.evaluation_results import PLAN_FILE, Row, SceneBook
from zetta.runtime.evaluation_tables import count_arms
from zetta.runtime.records import read_object
from zetta.runtime.reporting.outcomes import Episode, Outcomes
from zetta.runtime.reporting.wording import counted
from zetta.runtime.rollouts.messages import record_from_json, spec_from_json

UNREADABLE: Final = (KeyError, TypeError, ValueError, AttributeError, SpecMismatch)
"""What a row that is no row raises."""


@dataclass(slots=True)
class _Found:
    """What goes along while an evaluation is read."""

    rows: dict[str, Row] = field(default_factory=dict)
    alarms: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)


def plan_files(folder: Path) -> list[Path]:
    """Return the plans of evaluations that lie in a folder."""
    return sorted(
        path
        for path in folder.glob(f"*/{PLAN_FILE}")
        if re.fullmatch(f"[0-9a-f]{{{FOLDER_DIGITS}}}", path.parent.name)
    )


def read_evaluation(folder: Path) -> Outcomes:
    """Read whatever an evaluation has written so far.

    Raises:
        ConfigError: there is no evaluation, there are several, or its plan cannot be read.
    """
    plans = plan_files(folder)
    if len(plans) != 1:
        raise ConfigError(f"{folder} holds {len(plans)} evaluations, expected one")
    plan, found = read_object(plans[0]), _Found()
    try:
        planned_arms = plan["arms_planned"]
        order = plan.get("arm_order") or _older_order(planned_arms, folder / RESULTS_FILE)
        arms = tuple(Arm(name, **planned_arms[name]) for name in order)
        starts = [(str(each["layout"]), int(each["seed"])) for each in plan["starts"]]
        seeds = [int(seed) for seed in plan["policy_seeds"]]
        tasks = [str(each) for each in plan["tasks"]]
        episodes = len(tasks) * len(starts) * len(arms)
        identity = _identity(plan)
        sensing, command, digest = str(plan["sensing"]), str(plan["command"]), str(plan["plan"])
    except UNREADABLE as error:
        raise ConfigError(f"{plans[0]} is no plan of an evaluation: {error!r}") from error
    for path in sorted(plans[0].parent.glob("episodes-*.jsonl")):
        _read_shard(path, digest, {arm.name for arm in arms}, found)
    _check_scenes(found)
    rows = _in_order(found.rows.values(), tasks, starts, arms)
    _check_results(folder / RESULTS_FILE, rows, arms, found)
    planned = episodes * (1 if _own_seeds(rows, starts, seeds) else len(seeds))
    if len(rows) < planned:
        found.missing.append(
            f"{len(rows)} of {counted(planned, 'planned episode')} are here; continue with --resume"
        )
    return Outcomes(
        kind="evaluation", title=f"Evaluation {folder.resolve().name}", arms=arms,
        episodes=tuple(Episode(row, row.planned.key[:12]) for row in rows),
        facts={"": identity}, commands={"": command}, sensing=(sensing,), expected=planned,
        alarms=tuple(found.alarms), missing=tuple(found.missing),
    )  # fmt: skip


def _older_order(names: Iterable[str], results: Path) -> list[str]:
    """Return arms in the order of a plan that did not keep it: baselines of its answer first."""
    compared: list[Mapping[str, Any]] = []
    with contextlib.suppress(ConfigError, *UNREADABLE):
        compared = list(read_object(results)["comparisons"])
    baselines = {each["baseline"] for each in compared}
    return sorted(names, key=lambda name: (name not in baselines, name))


def _own_seeds(
    rows: Sequence[Row], starts: Sequence[tuple[str, int]], seeds: Sequence[int]
) -> bool:
    """Say whether each start has the one policy seed of its place; else each has every seed."""
    if len(starts) != len(seeds):
        return False
    own = dict(zip(starts, seeds, strict=True))
    return all(
        own.get((str(r.planned.spec.layout), r.planned.spec.seed)) == r.planned.spec.policy_seed
        for r in rows
    )


def _read_shard(path: Path, plan: str, arms: set[str], found: _Found) -> None:
    damaged = 0
    lines = path.read_bytes().split(b"\n")
    if lines.pop():
        found.missing.append(f"{path.name} ends in the middle of a line, which was never finished")
    for number, line in enumerate(lines):
        try:
            plain = json.loads(line)
            if number == 0:
                if plain["plan"] != plan:
                    found.alarms.append(f"{path.name} is of another plan and is left out")
                    return
                continue
            row = _row(plain)
        except UNREADABLE:
            damaged += 1
            continue
        if row.planned.arm not in arms:
            found.alarms.append(f"{path.name} holds an arm {row.planned.arm!r} of no plan")
            return
        known = found.rows.get(row.planned.key)
        if known is None or known.record is None:
            found.rows[row.planned.key] = row
    if damaged:
        found.alarms.append(f"{counted(damaged, 'line')} of {path.name} cannot be read")


def _row(plain: Mapping[str, Any]) -> Row:
    planned = Planned(str(plain["key"]), str(plain["arm"]), spec_from_json(plain["spec"]))
    record = record_from_json(plain["record"]) if "record" in plain else None
    return Row(planned, record, int(plain["attempts"]), str(plain.get("error", "")))


def _in_order(
    rows: Iterable[Row],
    tasks: Sequence[str],
    starts: Sequence[tuple[str, int]],
    arms: tuple[Arm, ...],
) -> tuple[Row, ...]:
    """Return rows in the order of the plan: sums do not depend on which worker was fast."""
    of_task = {name: place for place, name in enumerate(tasks)}
    of_start = {start: place for place, start in enumerate(starts)}
    of_arm = {arm.name: place for place, arm in enumerate(arms)}

    def key(row: Row) -> tuple[int, int, int, int, str]:
        spec = row.planned.spec
        return (
            of_task.get(f"{spec.suite}/{spec.task}", len(of_task)),
            of_start.get((str(spec.layout), spec.seed), len(of_start)),
            spec.policy_seed,
            of_arm[row.planned.arm],
            row.planned.key,
        )

    return tuple(sorted(rows, key=key))


def _check_scenes(found: _Found) -> None:
    scenes = SceneBook()
    for row in found.rows.values():
        try:
            scenes.check(row)
        except SpecMismatch as error:
            found.alarms.append(str(error))
            return


def _check_results(path: Path, rows: tuple[Row, ...], arms: tuple[Arm, ...], found: _Found) -> None:
    """Hold what was printed against what is counted."""
    if not path.exists():
        found.missing.append(f"{path.name} was not written: the evaluation did not finish")
        return
    try:
        said = {
            name: (arm["successes"], arm["n"]) for name, arm in read_object(path)["arms"].items()
        }
    except (ConfigError, *UNREADABLE):
        found.alarms.append(f"{path.name} cannot be read; everything here is counted again")
        return
    counts = {arm.arm.name: (arm.total.successes, arm.total.n) for arm in count_arms(rows, arms)}
    for name in sorted(said.keys() | counts.keys()):
        if said.get(name) != counts.get(name):
            found.alarms.append(
                f"{path.name} says {_of(said.get(name))} for {name}, the episodes say "
                f"{_of(counts.get(name))}"
            )


def _of(count: tuple[int, int] | None) -> str:
    return "nothing" if count is None else f"{count[0]}/{count[1]}"


def _identity(plan: Mapping[str, Any]) -> dict[str, str]:
    """Return what was run, as text."""
    return {
        name: text
        for name, text in (
            ("simulator", str(plan["sim"])),
            ("tasks", ", ".join(plan["tasks"])),
            ("starts", _starts(plan["starts"])),
            ("policy seeds", ", ".join(str(seed) for seed in plan["policy_seeds"])),
            ("policies", _pairs(plan["policies"])),
            ("bundles", _pairs(plan["bundles"])),
            ("sensing", str(plan["sensing"])),
            ("render profile", str(plan["render_profile"])),
            ("options", _pairs(plan["options"])),
            ("conventions", _pairs(plan["conventions"])),
            ("versions", _pairs(plan["versions"])),
            ("plan", str(plan["plan"])),
        )
        if text
    }


def _starts(starts: Iterable[Mapping[str, Any]]) -> str:
    return ", ".join(
        f"seed {each['seed']}" if each["layout"] == "sampled" else f"init {each['layout']}"
        for each in starts
    )


def _pairs(values: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {value}".strip() for name, value in sorted(values.items()))
