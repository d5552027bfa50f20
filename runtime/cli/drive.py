"""`zetta drive`: an agent drives the robot through semantic commands."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from zetta.primitives.agent.mcp_agent import MCP
from zetta.primitives.command_grammar import GRAMMAR
from zetta.runtime.cli import output
from zetta.runtime.cli import run_options as options
from zetta.runtime.cli.arm_choice import arm_name
from zetta.runtime.cli.assemble import find_simulator
from zetta.runtime.cli.options import check_options, steps_option
from zetta.runtime.cli.run_answer import carry_out, tell
from zetta.runtime.cli.run_episodes import Manner, tasks_of
from zetta.runtime.cli.run_plan import Wishes, plan
from zetta.runtime.core import RunSpec
from zetta.runtime.errors import ConfigError
from zetta.runtime.registry import AGENT_PREFIX

UNLIMITED_TICKS = 5000
"""Ticks of an episode without the published budget: more than all turns can use."""


def command(
    instruction: options.Instruction = None,
    sim: options.Sim = "libero",
    arm: options.Arm = None,
    suite: options.Suite = None,
    task: options.Tasks = None,
    init: options.Init = None,
    seed: options.Seed = 0,
    episodes: options.Episodes = 1,
    agent: Annotated[
        str,
        typer.Option(
            help="scripted, human, replay:FILE, openai:MODEL, anthropic:MODEL, or a name."
        ),
    ] = "scripted",
    base_url: Annotated[str, typer.Option(help="Where the model is served, if elsewhere.")] = "",
    policy: options.SkillPolicy = "",
    sensing: options.Seeing = "vision",
    turns: Annotated[int, typer.Option(help="Answers that the agent may give.")] = 45,
    commands_per_turn: Annotated[int, typer.Option(help="Commands of one answer.")] = 4,
    tokens: Annotated[int, typer.Option(help="Tokens it may use; 0 for no limit.")] = 0,
    dollars: Annotated[float, typer.Option(help="US dollars it may spend; 0: no limit.")] = 0.0,
    seconds: Annotated[float, typer.Option(help="Seconds it may take; 0 for no limit.")] = 0.0,
    steps: options.Steps = "unlimited",
    overlays: options.Overlays = "all",
    demonstrations: Annotated[
        Path | None, typer.Option(help="Folder of demonstrations that it is shown.")
    ] = None,
    shots: Annotated[int | None, typer.Option(help="How many of them, 0 to 8; 1.")] = None,
    save_demonstrations: Annotated[
        Path | None, typer.Option(help="Folder that gets a demonstration of each verified success.")
    ] = None,
    think_ahead: Annotated[
        bool, typer.Option("--think-ahead", help="Ask a model while the last motion still runs.")
    ] = False,
    realtime: options.Realtime = False,
    bundle: Annotated[
        str, typer.Option(help="Skills behind the command `skill`; none by default.")
    ] = "none",
    localizer: options.Localizer = None,
    video: options.Video = False,
    strip: options.Strip = True,
    render: options.Render = "fast",
    option: options.More = None,
    out: options.Out = None,
    grammar: Annotated[bool, typer.Option("--grammar", help="Show the commands.")] = False,
    require_success: options.RequireSuccess = False,
    as_json: options.AsJson = False,
) -> None:
    """Let an agent drive: a script, a person, a record, or a model that sees pictures."""
    if grammar:
        _show_grammar(as_json)
        return
    if arm is not None:
        sim, realtime = arm_name(arm), True
    simulator = find_simulator(sim)
    told = {
        "turns": f"{turns}",
        "commands_per_turn": f"{commands_per_turn}",
        "tokens": f"{tokens}",
        "dollars": f"{dollars:g}",
        "drive_s": f"{seconds:g}",
        "step_budget": steps_option(steps, UNLIMITED_TICKS),
        "overlays": overlays,
        "vla": policy,
        "base_url": base_url,
        "think_ahead": "yes" if think_ahead else "",
        "demonstrations": "" if demonstrations is None else str(demonstrations),
        "save_demonstrations": "" if save_demonstrations is None else str(save_demonstrations),
        "shots": "" if shots is None else f"{shots}",
    }
    given = tuple(f"{name}={value}" for name, value in told.items() if value)
    wishes = Wishes(
        sim,
        suite,
        task,
        init,
        seed,
        episodes,
        AGENT_PREFIX + agent,
        sensing=sensing,
        render=render,
        bundle=bundle,
        localizer=localizer,
        options=(*given, *(option or ())),
        instruction=instruction,
    )
    specs = plan(wishes, simulator)
    _check_manner(agent, specs)
    check_options(specs[0])
    manner = Manner(video=video, strip=strip, realtime=realtime)
    answer = carry_out(specs, manner, simulator, out, "drive", as_json=as_json)
    if as_json:
        output.emit(answer.to_json())
    else:
        tell(answer, wishes)
    failed = require_success and not all(report.success for report in answer.reports)
    if failed or len(answer.scored) < len(answer.reports):
        raise typer.Exit(1)


def _check_manner(agent: str, specs: Sequence[RunSpec]) -> None:
    """Refuse what an agent cannot do that others can.

    Raises:
        ConfigError: the agent is a server's client, or there is more to do than one can.
    """
    if agent == MCP:
        raise ConfigError("the agent 'mcp' is the client of a server; start one with zetta mcp")
    if agent == "human" and len(list(tasks_of(specs))) > 1:
        raise ConfigError("a person drives one task at a time; name one with --task")


def _show_grammar(as_json: bool) -> None:
    if as_json:
        output.emit({"grammar": GRAMMAR})
    else:
        output.answer(GRAMMAR)
