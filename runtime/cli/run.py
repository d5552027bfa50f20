"""`zetta run`: run episodes and watch them."""

from __future__ import annotations

from typing import Annotated

import typer

from zetta.runtime import registry
from zetta.runtime.cli import output
from zetta.runtime.cli import run_options as options
from zetta.runtime.cli.arm_choice import arm_name
from zetta.runtime.cli.assemble import find_simulator
from zetta.runtime.cli.options import check_inference, check_options
from zetta.runtime.cli.output import Json
from zetta.runtime.cli.run_answer import carry_out, tell
from zetta.runtime.cli.run_episodes import Manner
from zetta.runtime.cli.run_plan import DEFAULTS, Wishes, plan
from zetta.runtime.core import Simulator
from zetta.runtime.errors import ConfigError


def command(
    instruction: options.Instruction = None,
    sim: options.Sim = "libero",
    arm: options.Arm = None,
    suite: options.Suite = None,
    task: options.Tasks = None,
    init: options.Init = None,
    seed: options.Seed = 0,
    episodes: options.Episodes = 1,
    policy: Annotated[
        str | None,
        typer.Option(
            help="Who drives: a name such as zetta/tiny, zmq://HOST:PORT, python:FILE:FACTORY, "
            "onnx:FILE; the simulator's own by default."
        ),
    ] = None,
    policy_seed: Annotated[int, typer.Option(help="Seed of the policy's draws.")] = 0,
    temperature: Annotated[
        float | None, typer.Option(help="Spread of the policy's draws; 0 is deterministic.")
    ] = None,
    video: Annotated[bool | None, typer.Option(help="Write an MP4 of each episode.")] = None,
    strip: options.Strip = True,
    realtime: options.Realtime = False,
    render: options.Render = "fast",
    any_profile: Annotated[
        bool, typer.Option("--any-profile", help="Let a model see a foreign render profile.")
    ] = False,
    worker: Annotated[
        bool, typer.Option("--worker", help="Give the simulator a process of its own.")
    ] = False,
    sensing: options.Sensing = "vision",
    bundle: options.Bundle = "none",
    recovery_share: Annotated[
        float | None, typer.Option(help="Share of the step budget that skills may use, 0 to 1.")
    ] = None,
    shadow: Annotated[
        bool, typer.Option("--shadow", help="Record what critics would do; let the policy be.")
    ] = False,
    calibration: options.Calibration = None,
    localizer: options.Localizer = None,
    critic_isolation: options.CriticIsolation = "none",
    inference: Annotated[
        str, typer.Option(help="sync, or async: the policy runs ahead in a thread (--realtime).")
    ] = "sync",
    signals: Annotated[
        bool, typer.Option("--signals", help="Show the signals while an episode runs.")
    ] = False,
    option: options.More = None,
    out: options.Out = None,
    show_list: Annotated[bool, typer.Option("--list", help="List suites and tasks.")] = False,
    require_success: options.RequireSuccess = False,
    as_json: options.AsJson = False,
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
