"""`zetta skills transfer`: does a skill help on other tasks? Paired fresh scenes, cell by cell."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from zetta.runtime.cli import output
from zetta.runtime.cli.assemble import find_simulator
from zetta.runtime.cli.at_home import options_here
from zetta.runtime.cli.episodes import FACTORY
from zetta.runtime.cli.evaluation_request import default_policy, one_of_each
from zetta.runtime.cli.home import home_library
from zetta.runtime.cli.number_lists import named_values
from zetta.runtime.cli.options import check_options, sensing_level
from zetta.runtime.cli.run_plan import meant_tasks
from zetta.runtime.cli.scene_keys import folder_key
from zetta.runtime.cli.worker_environment import pool_settings
from zetta.runtime.core import Sampled, Simulator
from zetta.runtime.errors import ConfigError, suggest
from zetta.runtime.evaluation import run_plan
from zetta.runtime.evaluation_plan import Arm, Evaluation, make_plan
from zetta.runtime.evaluation_reports import write_reports
from zetta.runtime.evaluation_results import Row, open_results
from zetta.runtime.evaluation_tables import tabulate
from zetta.runtime.records import to_json
from zetta.runtime.rollouts.pool import Pool, PoolSettings
from zetta.skills.bundles import NO_BUNDLE, load_bundle, pinned
from zetta.skills.package import SkillPackage, load_skill
from zetta.skills.shelf import find_package, library_folder

if TYPE_CHECKING:
    from zetta.skills.evolve.calibration_stage import CalibratedNumbers
    from zetta.skills.evolve.transfer import CellVerdict

ANSWER: Final = "transfer.json"
PARENT: Final = "parent"
"""Name of the arm without the skill; the other is named `with-` and the skill."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A task into which the skill does not belong."""

    suite: str
    task: int
    why: str


@dataclass(frozen=True, slots=True)
class Asked:
    """What decides a transfer, as typed."""

    sim: str
    policy: str
    sensing: str
    bundle: str
    scenes: int
    options: tuple[str, ...]


def command(
    skill: Annotated[str, typer.Argument(metavar="SKILL", help="A skill, or its folder.")],
    to: Annotated[list[str], typer.Option(help="SUITE:TASKS such as toy_slip:0-3; repeatedly.")],
    sim: Annotated[str, typer.Option(help="Simulator.")] = "libero",
    policy: Annotated[str, typer.Option(help="Policy; the simulator's own by default.")] = "",
    sensing: Annotated[str, typer.Option(help="Highest level that may be read.")] = "vision",
    bundle: Annotated[str, typer.Option(help="What it joins: none, starter, library …")] = "none",
    scenes: Annotated[int, typer.Option(help="Fresh scenes of each task.")] = 50,
    calibration: Annotated[
        int, typer.Option(help="Scenes that say how strict it must be there; 0 leaves it as it is.")
    ] = 20,
    level: Annotated[float, typer.Option(help="Share of false claims that is borne.")] = 0.05,
    key: Annotated[
        str, typer.Option(help="Words from which scenes are derived; drawn by default.")
    ] = "",
    option: Annotated[list[str] | None, typer.Option(help="Further NAME=VALUE.")] = None,
    workers: Annotated[int, typer.Option(help="Simulator processes at once.")] = 1,
    watchdog: Annotated[float, typer.Option(help="Silence of a hung worker, s.")] = 300.0,
    out: Annotated[Path | None, typer.Option(help="Folder of the results.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue in --out.")] = False,
    skills: Annotated[
        list[Path] | None, typer.Option("--skills", help="Also a folder of your own packages.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Try a skill on other tasks: with and without it on fresh scenes, a verdict for each task."""
    from zetta.skills.evolve.transfer import count_cells, judge_cells  # late: statistics are slow

    if resume and out is None:
        raise ConfigError("--resume continues a transfer: name its folder with --out")
    if scenes < 1 or calibration < 0 or not 0.0 < level < 1.0:
        raise ConfigError(
            f"--scenes is 1 or more, --calibration 0 or more and --level a share; got {scenes}, "
            f"{calibration}, {level:g}"
        )
    package = load_skill(find_package(skill, skills or ()))
    simulator = find_simulator(sim)
    tasks, left_out = _bound(package, simulator, sim, to)
    for each in left_out:
        output.note(f"{each.suite} task {each.task} is left out: {each.why}")
    if not tasks:
        raise ConfigError(
            f"{package.name} belongs into none of these {len(left_out)} tasks; the first: "
            f"{left_out[0].suite} task {left_out[0].task}: {left_out[0].why}"
        )
    asked = Asked(sim, policy or default_policy(sim), sensing, bundle, scenes, tuple(option or ()))
    arms = _arms(package, asked)
    for arm in arms:  # before a folder is made
        spec = one_of_each(_evaluation(package, asked, tasks[:1], (arm,), "00"))[0]
        check_options(spec)
    folder = output.run_folder("transfer", out, resume=True)
    drawn = folder_key(folder, key)
    numbers = None
    if calibration:
        from zetta.runtime.cli.transfer_calibration import recalibrated  # late: as above

        base = one_of_each(_evaluation(package, asked, tasks[:1], arms[:1], "00"))[0]
        strict, numbers = recalibrated(package, base, tasks, calibration, drawn, folder, workers)
        output.note(numbers.note)
        arms = _arms(strict, asked)
    evaluation = _evaluation(package, asked, tasks, arms, drawn)
    settings = pool_settings(sim, FACTORY, folder / "logs", workers, watchdog)
    rows = _run(evaluation, settings, folder, resume)
    parent, candidate = arms
    cells = judge_cells(count_cells(rows, parent.name, candidate.name, package.name), level)
    answer = _answer(package, asked, level, cells, left_out, numbers)
    text = json.dumps(answer, indent=1, allow_nan=False) + "\n"
    (folder / ANSWER).write_text(text, encoding="utf-8")
    _tell(answer, cells, level, folder, as_json)


def _bound(
    package: SkillPackage, simulator: Simulator, sim: str, to: Sequence[str]
) -> tuple[tuple[tuple[str, int], ...], tuple[LeftOut, ...]]:
    """Return the tasks into which the skill belongs, and those into which it does not."""
    from zetta.primitives.roles import roles_or_none
    from zetta.skills.evolve.transfer import why_not

    known = simulator.suites()
    tasks: list[tuple[str, int]] = []
    left_out: list[LeftOut] = []
    for text in to:
        suite, colon, numbers = text.partition(":")
        if suite not in known:
            raise ConfigError(f"{sim} has no suite {suite!r}; {suggest(suite, known)}")
        if colon and not numbers:
            raise ConfigError(f"--to takes SUITE:TASKS such as {suite}:0-3, got {text!r}")
        for index in meant_tasks(numbers or "all", simulator, suite, "--to"):
            if (suite, index) in tasks:
                raise ConfigError(f"--to names {suite} task {index} twice")
            why = why_not(package, roles_or_none(simulator.task(suite, index).instruction))
            if why:
                left_out.append(LeftOut(suite, index, why))
            else:
                tasks.append((suite, index))
    return tuple(tasks), tuple(left_out)


def _arms(package: SkillPackage, asked: Asked) -> tuple[Arm, Arm]:
    """Return the parent, and the parent with the skill."""
    parent = pinned(asked.bundle, home_library())
    if package.name in {p.name for p in load_bundle(parent, library=home_library()).packages}:
        raise ConfigError(
            f"the bundle {asked.bundle!r} holds {package.name} already, so there is nothing to "
            "compare; name a bundle without it, such as none"
        )
    own = package.folder.parent == library_folder()
    word = package.name if own else str(package.folder)
    joined = word if parent == NO_BUNDLE else f"{parent}+{word}"
    return (
        Arm(PARENT, asked.policy, parent),
        Arm(f"with-{package.name}", asked.policy, joined),
    )


def _evaluation(
    package: SkillPackage,
    asked: Asked,
    tasks: tuple[tuple[str, int], ...],
    arms: tuple[Arm, ...],
    key: str,
) -> Evaluation:
    from zetta.skills.evolve.transfer import fresh_seeds

    seeds = fresh_seeds(key, package.digest, "scene", asked.scenes)
    return Evaluation(
        sim=asked.sim,
        tasks=tasks,
        starts=tuple((Sampled(), seed) for seed in seeds),
        arms=arms,
        policy_seeds=tuple(fresh_seeds(key, package.digest, "policy", asked.scenes)),
        sensing=sensing_level(asked.sensing),
        options=options_here(asked.sim, named_values(asked.options)),
        own_seeds=True,
    )


def _run(
    evaluation: Evaluation, settings: PoolSettings, folder: Path, resume: bool
) -> tuple[Row, ...]:
    line = output.command_line()
    with Pool(settings) as pool:
        output.note("a worker checks the simulator and the policy")
        plan = make_plan(evaluation, pool.identify(one_of_each(evaluation)))
        shards = open_results(plan, folder, resume, line)
        try:
            with output.progress("transfer", len(plan.episodes)) as advance:
                rows = run_plan(
                    plan, shards, pool, lambda finished, row: advance(finished, pool.status())
                )
        finally:
            shards.close()
    write_reports(folder, plan, tabulate(rows, evaluation.arms), rows, line)
    return rows


def _answer(
    package: SkillPackage,
    asked: Asked,
    level: float,
    cells: Sequence[CellVerdict],
    left_out: Sequence[LeftOut],
    numbers: CalibratedNumbers | None,
) -> dict[str, Any]:
    return {
        "skill": package.name,
        "package": package.digest,
        "sim": asked.sim,
        "policy": asked.policy,
        "sensing": asked.sensing,
        "bundle": asked.bundle,
        "scenes": asked.scenes,
        "level": level,
        "correction": "Benjamini-Hochberg",
        "calibrated": None if numbers is None else to_json(numbers),
        "cells": [
            {**asdict(cell), "counts": {**asdict(cell.counts), "pairs": cell.counts.pairs}}
            for cell in cells
        ],
        "left_out": [asdict(each) for each in left_out],
        "command": output.command_line(),
    }


def _tell(
    answer: dict[str, Any],
    cells: Sequence[CellVerdict],
    level: float,
    folder: Path,
    as_json: bool,
) -> None:
    from zetta.skills.evolve.multiplicity import straight_wins

    needed = straight_wins(level / len(cells))
    if answer["scenes"] < needed:
        output.note(
            f"with {answer['scenes']} scenes a lone gain among {len(cells)} tasks cannot be shown; "
            f"give --scenes {needed} or more"
        )
    errors = sum(cell.counts.errors for cell in cells)
    if errors:
        output.note(f"{errors} pairs could not be run or began solved, and are not scored")
    noise = sum(cell.counts.unattributed for cell in cells)
    if noise:
        output.note(f"{noise} pairs differ although no skill intervened: that is noise, not skill")
    if as_json:
        output.emit({**answer, "out": str(folder)})
        return
    columns = ["task", "verdict", "pairs", "called", "wins", "harms", "gain", "at least", "harm "
               "at most", "p", "p adjusted"]  # fmt: skip
    output.answer(output.table(columns, [_row(cell) for cell in cells]))
    output.answer(
        f"bounds are 95 %, one-sided; adjusted for {len(cells)} tasks (Benjamini-Hochberg): of "
        f"what is said to transfer, {level:.0%} is chance in expectation"
    )
    if answer["sensing"] == "oracle":
        output.answer("[oracle] skills read simulator truth; this makes no headline")
    output.answer(f"see {folder / ANSWER}")


def _row(cell: CellVerdict) -> list[str]:
    counts = cell.counts
    return [
        f"{counts.suite}/{counts.task}", cell.decision, str(counts.pairs), str(counts.called),
        str(counts.wins), str(counts.harms), f"{100 * cell.difference:+.1f} %",
        f"{100 * cell.low:+.1f} %", f"{100 * cell.harm_high:.1f} %", f"{cell.p:.3g}",
        f"{cell.p_adjusted:.3g}",
    ]  # fmt: skip
