"""`zetta eval`: success of one or several arms on identical scenes."""

from __future__ import annotations

import re
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from zetta.runtime.cli import colours, output
from zetta.runtime.cli.assemble import find_simulator
from zetta.runtime.cli.episodes import FACTORY
from zetta.runtime.cli.evaluation_request import (
    Forecast,
    Typed,
    default_policy,
    forecast,
    one_of_each,
    request,
    typed_command,
)
from zetta.runtime.cli.launching import Launch, check_launch, launcher
from zetta.runtime.cli.worker_environment import pool_settings
from zetta.runtime.errors import ConfigError
from zetta.runtime.evaluation import run_plan
from zetta.runtime.evaluation_plan import FOLDER_DIGITS, Evaluation, Plan, make_plan
from zetta.runtime.evaluation_reports import RESULTS_FILE, TABLES_FILE, write_reports
from zetta.runtime.evaluation_results import Row, open_results
from zetta.runtime.evaluation_tables import tabulate
from zetta.runtime.reporting.page import PAGE
from zetta.runtime.reporting.wording import counted
from zetta.runtime.rollouts.launchers import Launcher
from zetta.runtime.rollouts.shards import ShardFolder

LOGS = "logs"
FEW_EPISODES = 50
"""Below this the intervals are wider than most effects."""


def command(
    sim: Annotated[str, typer.Option(help="Simulator.")],
    suites: Annotated[str, typer.Option(help="Suites, separated by commas.")],
    tasks: Annotated[str, typer.Option(help="Tasks such as 0-9; default: all.")] = "",
    inits: Annotated[str, typer.Option(help="Initial states; default: 0-9.")] = "",
    layout: Annotated[str, typer.Option(help="init, or sampled with --seeds.")] = "init",
    seeds: Annotated[str, typer.Option(help="Scene seeds of sampled layouts.")] = "",
    arms: Annotated[str, typer.Option(help="none (the bare policy), and bundles.")] = "none",
    policies: Annotated[
        str,
        typer.Option(
            help="Policies, separated by commas; after an @, as in random@left,right, what names "
            "no policy belongs to it. The simulator's own by default."
        ),
    ] = "",
    policy_seeds: Annotated[str, typer.Option(help="Seeds of the policy's draws.")] = "0",
    temperature: Annotated[str, typer.Option(help="Spread of the draws; 0 is none.")] = "",
    sensing: Annotated[str, typer.Option(help="Highest level that may be read.")] = "vision",
    render: Annotated[str, typer.Option(help="Render settings, compared when several.")] = "fast",
    critic_isolation: Annotated[
        str, typer.Option(help="Give the critics a process of their own: none or process.")
    ] = "none",
    option: Annotated[list[str] | None, typer.Option(help="Further NAME=VALUE.")] = None,
    workers: Annotated[int, typer.Option(help="Simulator processes at once.")] = 1,
    launch: Annotated[str, typer.Option(help="Where they run: local or ray.")] = "local",
    ray_address: Annotated[
        str, typer.Option(help="Ray cluster, HOST:PORT or auto; default: one of this machine.")
    ] = "",
    share_policy: Annotated[
        bool, typer.Option("--share-policy", help="Load a policy once and serve it to all workers.")
    ] = False,
    watchdog: Annotated[float, typer.Option(help="Silence of a hung worker, s.")] = 300.0,
    out: Annotated[Path | None, typer.Option(help="Folder of the results.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue in --out.")] = False,
    plan: Annotated[bool, typer.Option("--plan", help="Only say what would be run.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Measure success on identical scenes under every arm, with intervals and paired tests."""
    typed = Typed(
        sim=sim,
        suites=suites,
        tasks=tasks,
        inits=inits,
        layout=layout,
        seeds=seeds,
        arms=arms,
        policies=policies or default_policy(sim),
        policy_seeds=policy_seeds,
        temperature=temperature,
        sensing=sensing,
        render=render,
        critic_isolation=critic_isolation,
        options=tuple(option or ()),
    )
    if resume and out is None:
        raise ConfigError("--resume continues an evaluation: name its folder with --out")
    where = Launch(launch, ray_address, share_policy)
    check_launch(where)
    simulator = find_simulator(sim)
    evaluation = request(typed, simulator)
    size = forecast(evaluation, simulator, workers)
    if plan:
        _tell_forecast(evaluation, size, as_json)
        return
    output.note(str(size))
    folder = output.run_folder("eval", out, resume=True)
    _refuse_foreign_files(folder)
    settings = pool_settings(sim, FACTORY, folder / LOGS, workers, watchdog)
    names = [arm.policy for arm in evaluation.arms]
    with launcher(where, settings, names, evaluation.options.get("temperature", "")) as pool:
        answer = _evaluate(evaluation, pool, folder, resume)
    _tell(answer, folder, as_json)


def _refuse_foreign_files(folder: Path) -> None:
    known = {output.LOCK_NAME, LOGS, RESULTS_FILE, TABLES_FILE, PAGE}
    for path in sorted(folder.iterdir()):
        plan = path.is_dir() and re.fullmatch(f"[0-9a-f]{{{FOLDER_DIGITS}}}", path.name)
        if path.name not in known and not plan:
            raise ConfigError(
                f"{folder} already holds {path.name!r}, which is of no evaluation; choose a new "
                "folder with --out"
            )


def _evaluate(evaluation: Evaluation, pool: Launcher, folder: Path, resume: bool) -> dict[str, Any]:
    line = typed_command(evaluation)
    output.note("a worker checks the simulator and the policies")
    plan = make_plan(evaluation, pool.identify(one_of_each(evaluation)))
    shards = open_results(plan, folder, resume, line)
    try:
        rows = _run(plan, shards, pool)
    except KeyboardInterrupt:
        output.note(f"stopped; every finished episode is kept in {folder}: add --resume")
        raise
    finally:
        shards.close()
    return write_reports(folder, plan, tabulate(rows, evaluation.arms), rows, line)


def _run(plan: Plan, shards: ShardFolder, pool: Launcher) -> tuple[Row, ...]:
    with output.progress("evaluating", len(plan.episodes)) as advance:

        def tell(finished: int, row: Row | None) -> None:
            if row is not None and row.record is None:
                output.note(f"could not run {row.planned.scene}: {row.error}")
            advance(finished, pool.status())

        return run_plan(plan, shards, pool, tell)


def _tell_forecast(evaluation: Evaluation, size: Forecast, as_json: bool) -> None:
    if as_json:
        output.emit({"plan": asdict(size), "command": typed_command(evaluation)})
        return
    output.answer(str(size))
    output.answer(typed_command(evaluation))


def _tell(answer: dict[str, Any], folder: Path, as_json: bool) -> None:
    errors = len(answer["errors"])
    if errors:
        said = "was not run and is" if errors == 1 else "were not run and are"
        output.note(f"{counted(errors, 'episode')} {said} not scored; --resume tries again")
    fewest = min(arm["n"] for arm in answer["arms"].values())
    if fewest < FEW_EPISODES:
        output.note(f"with {counted(fewest, 'episode')} in an arm, mind the width of the intervals")
    if as_json:
        output.emit({**answer, "out": str(folder)})
        return
    output.answer((folder / TABLES_FILE).read_text(encoding="utf-8"), colours.markdown)
    output.answer(f"see {folder / TABLES_FILE} and {folder / RESULTS_FILE}")
