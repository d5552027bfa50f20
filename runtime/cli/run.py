"""`zetta run`: run episodes and watch them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated

import typer

from zetta.runtime.cli import output
from zetta.runtime.cli.assemble import find_simulator
from zetta.runtime.cli.graphics import choose_graphics
from zetta.runtime.cli.options import check_inference, check_options
from zetta.runtime.cli.output import Json
from zetta.runtime.cli.run_episodes import (
    RESULT,
    EpisodeReport,
    Facts,
    Manner,
    run_here,
    run_in_children,
    tasks_of,
)
from zetta.runtime.cli.run_plan import DEFAULTS, Wishes, plan
from zetta.runtime.core import RunSpec, Simulator
from zetta.runtime.success_rates import wilson


@dataclass(slots=True)
class _Answer:
    """The answer as it grows; written to the run folder after every episode."""

    folder: Path
    spec: RunSpec
    command: str
    reports: list[EpisodeReport] = field(default_factory=list)
    facts: Facts = field(default_factory=Facts)

    def keep(self, report: EpisodeReport, facts: Facts) -> None:
        """Add one episode and save."""
        self.reports.append(report)
        if facts.versions:
            self.facts = facts
        temporary = self.folder / f".{RESULT}.part"
        temporary.write_text(json.dumps(self.to_json(), indent=1, allow_nan=False) + "\n")
        temporary.replace(self.folder / RESULT)

    @property
    def scored(self) -> list[EpisodeReport]:
        """Episodes that were carried out; errors are no score."""
        return [report for report in self.reports if report.error is None]

    def to_json(self) -> Mapping[str, Json]:
        """Return the contract object."""
        scored = self.scored
        successes = sum(report.success for report in scored)
        episodes: list[Json] = [asdict(report) for report in self.reports]
        return {
            "episodes": episodes,
            "successes": successes,
            "n": len(scored),
            "errors": len(self.reports) - len(scored),
            "interval": list(wilson(successes, len(scored))),
            "sim": self.spec.sim,
            "policy": dict(self.facts.policy),
            "bundle": self.facts.bundle or self.spec.bundle,
            "render_profile": self.facts.render_profile,
            "sensing": self.spec.sensing,
            "oracle": self.spec.sensing == "oracle",
            "options": dict(self.spec.options),
            "versions": dict(self.facts.versions),
            "command": self.command,
            "folder": str(self.folder),
        }


def command(
    sim: Annotated[str, typer.Option(help="Simulator; `zetta sims list` names them.")] = "libero",
    suite: Annotated[str | None, typer.Option(help="Suite of tasks.")] = None,
    task: Annotated[str | None, typer.Option(help="Task number, or 0,2-4, or all.")] = None,
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
    out: Annotated[Path | None, typer.Option(help="Folder of this run; new or empty.")] = None,
    show_list: Annotated[bool, typer.Option("--list", help="List suites and tasks.")] = False,
    require_success: Annotated[
        bool, typer.Option("--require-success", help="Exit 1 unless every episode is solved.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Run episodes of a policy in a simulator and watch them."""
    simulator = find_simulator(sim)
    if show_list:
        _list(simulator, suite, as_json)
        return
    wishes = Wishes(
        sim, suite, task, init, seed, episodes, policy, policy_seed, temperature, render, sensing,
        any_profile, worker, bundle, recovery_share, shadow, localizer, signals,
        calibration, critic_isolation, inference,
    )  # fmt: skip
    specs = plan(wishes, simulator)
    check_options(specs[0])
    check_inference(specs[0], realtime)
    if video is None:
        video = wishes.only_sim and sim in DEFAULTS and DEFAULTS[sim].video
    manner = Manner(video=video, realtime=realtime, signals=signals)
    answer = _run(specs, manner, simulator, out)
    if as_json:
        output.emit(answer.to_json())
    else:
        _tell(answer, wishes)
    failed = require_success and not all(report.success for report in answer.reports)
    if failed or len(answer.scored) < len(answer.reports):
        raise typer.Exit(1)


def _run(
    specs: Sequence[RunSpec], manner: Manner, simulator: Simulator, out: Path | None
) -> _Answer:
    first = specs[0]
    typed = output.command_line()
    answer = _Answer(output.run_folder("run", out), first, typed)
    output.note(_announcement(specs, simulator))
    output.note(choose_graphics(first.sim))
    try:
        if len(list(tasks_of(specs))) == 1:
            run_here(specs, answer.folder, manner, typed, answer.keep)
        else:
            run_in_children(
                specs, answer.folder, lambda spec: _arguments(spec, specs, manner), answer.keep
            )
    except KeyboardInterrupt:
        output.note(f"stopped; the {len(answer.reports)} finished episodes are in {answer.folder}")
        raise
    return answer


def _announcement(specs: Sequence[RunSpec], simulator: Simulator) -> str:
    first = specs[0]
    tasks = list(tasks_of(specs))
    what = f"{first.suite} task {first.task}" if len(tasks) == 1 else f"{len(tasks)} tasks"
    instruction = f": {simulator.task(*tasks[0]).instruction}" if len(tasks) == 1 else ""
    oracle = " - ORACLE, it may read simulator truth" if first.sensing == "oracle" else ""
    wait = DEFAULTS[first.sim].building if first.sim in DEFAULTS else "a while"
    return (
        f"{first.sim}: {what}{instruction}\n"
        f"{len(specs)} episode{'s' if len(specs) > 1 else ''} with {first.policy}, "
        f"bundle {first.bundle}, sensing {first.sensing}{oracle}, render {first.render}\n"
        f"building the world takes {wait}"
    )


def _arguments(spec: RunSpec, specs: Sequence[RunSpec], manner: Manner) -> list[str]:
    """Return the options with which a child runs the task of `spec`."""
    count = sum((s.suite, s.task) == (spec.suite, spec.task) for s in specs)
    options = {
        "--sim": spec.sim,
        "--suite": spec.suite,
        "--task": str(spec.task),
        "--init": str(spec.layout),
        "--seed": str(spec.seed),
        "--episodes": str(count),
        "--policy": spec.policy,
        "--policy-seed": str(spec.policy_seed),
        "--render": spec.render,
        "--sensing": spec.sensing,
        "--bundle": spec.bundle,
    }
    for name in (
        "temperature", "recovery_share", "localizer", "calibration", "critic_isolation",
        "inference",
    ):  # fmt: skip
        if name in spec.options:
            options[f"--{name.replace('_', '-')}"] = spec.options[name]
    arguments = [part for pair in options.items() for part in pair]
    flags = {
        "--video": manner.video,
        "--no-video": not manner.video,
        "--realtime": manner.realtime,
        "--any-profile": "any_profile" in spec.options,
        "--worker": "worker" in spec.options,
        "--shadow": "shadow" in spec.options,
        "--signals": manner.signals,
    }
    return [*arguments, *(flag for flag, wanted in flags.items() if wanted)]


def _tell(answer: _Answer, wishes: Wishes) -> None:
    """Print the summary; the last line is where to look."""
    scored, reports = answer.scored, answer.reports
    successes = sum(report.success for report in scored)
    low, high = wilson(successes, len(scored))
    if len(reports) > 1:
        rows = [[report.name, report.verdict] for report in reports]
        output.answer(output.table(["episode", "outcome"], rows))
    errors = len(reports) - len(scored)
    output.answer(
        f"solved {successes}/{len(scored)} (95 % interval {100 * low:.0f}-{100 * high:.0f} %)"
        + (f", {errors} with errors and no score" if errors else "")
        + (" [oracle]" if answer.spec.sensing == "oracle" else "")
    )
    if wishes.only_sim and wishes.sim in DEFAULTS:
        output.answer("next:")
        for line in DEFAULTS[wishes.sim].next:
            output.answer(f"  {line}")
    last = reports[-1]
    shown = last.video or last.strip if len(reports) == 1 else None
    output.answer(f"look at {shown or answer.folder}")


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
