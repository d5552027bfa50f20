"""`zetta run`: run episodes and watch them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from zetta.runtime import registry
from zetta.runtime.cli import output
from zetta.runtime.cli.arm_choice import Arm, Instruction, arm_name
from zetta.runtime.cli.assemble import find_simulator
from zetta.runtime.cli.options import check_inference, check_options
from zetta.runtime.cli.output import Json
from zetta.runtime.cli.run_answer import carry_out, tell
from zetta.runtime.cli.run_episodes import Manner
from zetta.runtime.cli.run_plan import DEFAULTS, Wishes, plan
from zetta.runtime.core import Simulator
from zetta.runtime.errors import ConfigError


def command(
    instruction: Instruction = None,
    sim: Annotated[str, typer.Option(help="Simulator; `zetta sims list` names them.")] = "libero",
    arm: Arm = None,
    suite: Annotated[str | None, typer.Option(help="Suite of tasks.")] = None,
    task: Annotated[str | None, typer.Option(help="Task number or name, or 0,2-4, or all.")] = None,
    init: Annotated[
        str | None, typer.Option(help="Number of an init state, or 'sampled'. Default 0.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the scene.")] = 0,
    episodes: Annotated[
        int, typer.Option(help="Episodes of each task: inits K, K+1, ... or seeds N, N+1, ...")
    ] = 1,
    policy: Annotated[str | None, typer.Option(help="Who drives.")] = None,
    policy_seed: Annotated[int, typer.Option(help="Seed of the policy's draws.")] = 0,
    temperature: Annotated[
        float | None, typer.Option(help="Spread of the policy's draws; 0 is deterministic.")
    ] = None,
    video: Annotated[bool | None, typer.Option(help="Write an MP4 of each episode.")] = None,
    strip: Annotated[bool, typer.Option(help="Draw a strip of pictures of each episode.")] = True,
    realtime: Annotated[bool, typer.Option("--realtime", help="Run at the control rate.")] = False,
    render: Annotated[str, typer.Option(help="Render profile: fast or full.")] = "fast",
    any_profile: Annotated[
        bool, typer.Option("--any-profile", help="Let a model see a foreign render profile.")
    ] = False,
    worker: Annotated[
        bool, typer.Option("--worker", help="Give the simulator a process of its own.")
    ] = False,
    sensing: Annotated[
        str, typer.Option(help="Highest level used: proprio, policy, vision or oracle.")
    ] = "vision",
    bundle: Annotated[
        str, typer.Option(help="Critics and skills: none, starter, library, or a folder of skills.")
    ] = "none",
    recovery_share: Annotated[
        float | None, typer.Option(help="Share of the step budget that skills may use.")
    ] = None,
    shadow: Annotated[
        bool, typer.Option("--shadow", help="Record what critics would do; let the policy be.")
    ] = False,
    calibration: Annotated[
        Path | None, typer.Option(help="File of `zetta critics calibrate`.")
    ] = None,
    localizer: Annotated[
        str | None, typer.Option(help="What finds things in pictures; each simulator has its own.")
    ] = None,
    critic_isolation: Annotated[
        str, typer.Option(help="Give the critics a process of their own: none or process.")
    ] = "none",
    inference: Annotated[
        str, typer.Option(help="sync, or async: the policy runs ahead in a thread (--realtime).")
    ] = "sync",
    signals: Annotated[
        bool, typer.Option("--signals", help="Show the signals while an episode runs.")
    ] = False,
    option: Annotated[list[str] | None, typer.Option(help="Further NAME=VALUE.")] = None,
    out: Annotated[Path | None, typer.Option(help="Folder of this run; new or empty.")] = None,
    show_list: Annotated[bool, typer.Option("--list", help="List suites and tasks.")] = False,
    require_success: Annotated[
        bool, typer.Option("--require-success", help="Exit 1 unless every episode is solved.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Run episodes of a policy in a simulator, or one on an arm, and watch them."""
    if arm is not None:
        sim, realtime = arm_name(arm), True
    if registry.is_arm(sim) and policy is None and not show_list:
        raise ConfigError("say who drives the arm: --policy NAME")
    simulator = find_simulator(sim)
    if show_list:
        _list(simulator, suite, as_json)
        return
    wishes = Wishes(
        sim, suite, task, init, seed, episodes, policy, policy_seed, temperature, render, sensing,
        any_profile, worker, bundle, recovery_share, shadow, localizer, signals,
        calibration, critic_isolation, inference, tuple(option or ()), instruction,
    )  # fmt: skip
    specs = plan(wishes, simulator)
    check_options(specs[0])
    check_inference(specs[0], realtime)
    if video is None:
        video = wishes.only_sim and sim in DEFAULTS and DEFAULTS[sim].video
    manner = Manner(video=video, strip=strip, realtime=realtime, signals=signals)
    answer = carry_out(specs, manner, simulator, out, as_json=as_json)
    if as_json:
        output.emit(answer.to_json())
    else:
        tell(answer, wishes)
    failed = require_success and not all(report.success for report in answer.reports)
    if failed or len(answer.scored) < len(answer.reports):
        raise typer.Exit(1)


def _list(simulator: Simulator, suite: str | None, as_json: bool) -> None:
    """List suites, and tasks where one suite or JSON is asked for."""
    suites = simulator.suites()
    if suite is not None:
        simulator.task(suite, 0)  # says what is wrong with an unknown name
    chosen = {suite: suites[suite]} if suite is not None else dict(suites)
    if as_json:
        listed: list[Json] = [
            {"suite": name, "tasks": [_task_json(simulator, name, i) for i in range(count)]}
            for name, count in chosen.items()
        ]
        output.emit({"sim": simulator.name, "suites": listed})
    elif suite is not None:
        tasks = [simulator.task(suite, i) for i in range(chosen[suite])]
        rows = [[str(t.index), str(t.max_steps), t.instruction] for t in tasks]
        output.answer(output.table(["task", "ticks", "instruction"], rows))
    else:
        rows = [[n, str(c), simulator.task(n, 0).instruction] for n, c in chosen.items()]
        output.answer(output.table(["suite", "tasks", "first instruction"], rows))
        output.answer(f"tasks of one suite: zetta run --sim {simulator.name} --suite NAME --list")


def _task_json(simulator: Simulator, suite: str, index: int) -> Json:
    task = simulator.task(suite, index)
    return {"task": index, "instruction": task.instruction, "max_steps": task.max_steps}
