"""`zetta bench`: speed against a baseline; in CPU time where one process does the work."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Final

import typer

from zetta.critics.bench_cases import critic_figures
from zetta.critics.bench_isolation import isolation_figures
from zetta.runtime.benchmarks import Figure, compare
from zetta.runtime.cli import output
from zetta.runtime.cli.assemble import Assembler, find_simulator
from zetta.runtime.cli.bench_arm import arm_figures
from zetta.runtime.cli.bench_batching import batching_figures
from zetta.runtime.cli.bench_diagnosis import diagnosis_figures
from zetta.runtime.cli.bench_dry_run import dry_run_figures
from zetta.runtime.cli.bench_overlays import overlay_figures
from zetta.runtime.cli.bench_plot import check_plot, draw_figures
from zetta.runtime.cli.bench_process import ArmPlace, ArmProcess, PictureArm, ReplayArm
from zetta.runtime.cli.bench_rollouts import rollout_figures
from zetta.runtime.cli.bench_sight import sight_figures
from zetta.runtime.cli.bench_soak import soak_figures
from zetta.runtime.cli.bench_tick import tick_figures
from zetta.runtime.cli.bench_wire import wire_figures
from zetta.runtime.cli.bench_worker import worker_figures
from zetta.runtime.cli.graphics import choose_graphics
from zetta.runtime.cli.number_lists import parse_numbers
from zetta.runtime.cli.options import EXPERT
from zetta.runtime.cli.run_plan import DEFAULTS
from zetta.runtime.core import Init, RunSpec
from zetta.runtime.errors import ConfigError, suggest

LOOK_TARGETS: Final = {4: 2.5, 8: 3.5}
"""Ticks between looks, and how many times faster than a look every tick that is to be."""
DECIMATION_TARGET: Final = 2.5
POLICY_TARGET_MS: Final = 10.0
LOOP_TARGET_TICKS_PER_S: Final = 1000.0
POLICY_CALLS: Final = 50
RENDERS: Final = {"libero": ("full", "no-multisampling", "fast")}
"""From the simulator's own look to ours, one change at a time."""


@dataclass(frozen=True, slots=True)
class Bench:
    """Where and how much is measured."""

    sim: str
    suite: str
    task: int
    policy: str
    blocks: int
    ticks: int
    pictures: int
    tasks: str = ""
    scenes: int = 5
    localizer: str = ""
    depth_noise: bool = False
    seconds: float = 60.0
    minutes: float = 5.0
    hz: float = 20.0
    url: str = ""


def command(
    names: Annotated[
        list[str],
        typer.Argument(
            help="Any of sim, policy, loop, tick, critics, sight, diagnosis, wire, batching, "
            "rollouts, worker, soak, overlays, dry-run, arm, twin-link, dashboard."
        ),
    ],
    sim: Annotated[str, typer.Option(help="Simulator.")] = "libero",
    suite: Annotated[str, typer.Option(help="Suite; the first of the simulator.")] = "",
    task: Annotated[int, typer.Option(help="Task.")] = 0,
    policy: Annotated[str, typer.Option(help="Policy to time; the sim's own.")] = "",
    blocks: Annotated[int, typer.Option(help="Blocks of each arm.")] = 3,
    ticks: Annotated[int, typer.Option(help="Ticks of a replay.")] = 48,
    pictures: Annotated[int, typer.Option(help="Pictures of a block.")] = 16,
    tasks: Annotated[str, typer.Option(help="Tasks that are looked at, such as 0-4.")] = "",
    scenes: Annotated[int, typer.Option(help="Layouts of each of them.")] = 5,
    localizer: Annotated[str, typer.Option(help="What `sight` measures; the simulator's.")] = "",
    depth_noise: Annotated[
        bool, typer.Option(help="Give `sight` the depth of a real camera.")
    ] = False,
    seconds: Annotated[float, typer.Option(help="Seconds of `arm`, or of a block.")] = 60.0,
    minutes: Annotated[float, typer.Option(help="Minutes of `soak`.")] = 5.0,
    hz: Annotated[float, typer.Option(help="Control rate of `arm`, Hz.")] = 20.0,
    url: Annotated[str, typer.Option(help="An arm that `arm` lets hold; else its own.")] = "",
    plot: Annotated[Path | None, typer.Option(help="Draw the figures into this file.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Measure speed: the arms of a comparison take turns, each in a process of its own."""
    for name in names:
        if name not in BENCHMARKS:
            raise ConfigError(f"unknown benchmark {name!r}; {suggest(name, BENCHMARKS)}")
    if min(blocks, ticks, pictures, scenes) < 1:
        raise ConfigError("--blocks, --ticks, --pictures and --scenes must be at least 1")
    if seconds <= 0:
        raise ConfigError(f"--seconds must be above 0, got {seconds:g}")
    check_plot(plot)
    find_simulator(sim)
    known = DEFAULTS.get(sim)
    if known is None and not suite:
        raise ConfigError(f"name the suite to measure on {sim} with --suite")
    output.note(choose_graphics(sim))
    wanted = Bench(
        sim=sim,
        suite=suite or (known.suite if known else ""),
        task=task,
        policy=policy or (known.policy if known else ""),
        blocks=blocks,
        ticks=ticks,
        pictures=pictures,
        tasks=tasks,
        scenes=scenes,
        localizer=localizer,
        depth_noise=depth_noise,
        seconds=seconds,
        minutes=minutes,
        hz=hz,
        url=url,
    )
    figures = [figure for name in dict.fromkeys(names) for figure in BENCHMARKS[name](wanted)]
    if plot is not None and not draw_figures(figures, plot):
        output.note(f"none of these figures has a target, so {plot} was not drawn")
    if as_json:
        output.emit({"figures": [_figure_json(f) for f in figures], "machine": _machine()})
        return
    output.answer(output.table(COLUMNS, [_row(figure) for figure in figures]))
    output.answer(f"load average {_load()} on {os.cpu_count()} cores")


# --------------------------------------------------------------------------- benchmarks


def bench_sim(wanted: Bench) -> list[Figure]:
    """Compare looks every tick with fewer looks, and render settings with each other."""
    renders = RENDERS.get(wanted.sim, ("fast",))
    with ArmProcess(_place(wanted, renders[0])) as recorder:
        output.note("recording the actions of the scripted expert")
        actions = recorder.ask("record", most=wanted.ticks)
        cameras = recorder.ask("cameras")
    recorded = _Recorded(actions, cameras)
    figures = [
        _look_figure(wanted, renders[0], every, recorded, target)
        for every, target in LOOK_TARGETS.items()
    ]
    if renders[-1] != renders[0]:
        figures += [_look_figure(wanted, renders[-1], e, recorded, None) for e in LOOK_TARGETS]
    return figures + [_picture_figure(wanted, a, b, cameras) for b, a in pairwise(renders)]


@dataclass(frozen=True, slots=True)
class _Recorded:
    actions: list[list[float]]
    cameras: list[str]

    def arm(self, process: ArmProcess, look_every: int) -> ReplayArm:
        return ReplayArm(process, self.actions, self.cameras, look_every)


def _look_figure(
    wanted: Bench, render: str, every: int, recorded: _Recorded, target: float | None
) -> Figure:
    """Compare a look every so many ticks with a look every tick, render settings equal."""
    name = f"look_every_{every}_ticks_{render}"
    with _two(wanted, name, render, render) as (own, other):
        arms = recorded.arm(own, every), recorded.arm(other, 1)
        return compare(name, *arms, wanted.blocks, len(recorded.actions), target)


def _picture_figure(wanted: Bench, render: str, before: str, cameras: list[str]) -> Figure:
    """Compare one picture under two render settings."""
    name = f"picture_{render}_against_{before}"
    target = DECIMATION_TARGET if before == "no-multisampling" else None
    with _two(wanted, name, render, before) as (own, other):
        arm = PictureArm(own, cameras, wanted.pictures)
        baseline = PictureArm(other, cameras, wanted.pictures)
        return compare(name, arm, baseline, wanted.blocks, wanted.pictures, target)


def bench_policy(wanted: Bench) -> list[Figure]:
    """Time one inference on one thread."""
    if not wanted.policy:
        raise ConfigError(f"name the policy to time on {wanted.sim} with --policy")
    with ArmProcess(_place(wanted, "fast")) as process:
        output.note(f"timing {wanted.policy}")
        latency = process.ask("policy", policy=wanted.policy, calls=POLICY_CALLS)
    return [
        Figure("policy_cpu_p50", latency["cpu_p50_ms"], "CPU ms", target=POLICY_TARGET_MS),
        Figure("policy_wall_p50", latency["wall_p50_ms"], "ms"),
        Figure("policy_wall_p99", latency["wall_p99_ms"], "ms"),
    ]


def bench_loop(wanted: Bench) -> list[Figure]:
    """Time the control loop and the toy's physics, with a driver that costs next to nothing."""
    assembler = Assembler()
    spec = RunSpec("toy", "toy_pick", 0, Init(0), policy=EXPERT, sensing="oracle")
    rates = []
    for k in range(wanted.blocks + 1):
        episode = assembler.assemble(spec).episode
        start = time.process_time()
        result = episode.run()
        if k:  # the first one warms up
            rates.append(result.ticks / (time.process_time() - start))
    assembler.close()
    rate = sorted(rates)[len(rates) // 2]
    target = LOOP_TARGET_TICKS_PER_S
    return [Figure("loop_toy", rate, "ticks/CPU s", target=target, higher_is_better=True)]


def bench_tick(wanted: Bench) -> list[Figure]:
    """Time what a tick costs beside the policy and the simulator."""
    return tick_figures(wanted.blocks)


def bench_critics(wanted: Bench) -> list[Figure]:
    """Time ordinary critics, the largest that the language allows, and a process of their own."""
    return [*critic_figures(), *isolation_figures()]


def bench_sight(wanted: Bench) -> list[Figure]:
    """Compare what a localiser finds with simulator truth."""
    chosen = _chosen_tasks(wanted)
    return sight_figures(
        wanted.sim, wanted.suite, chosen, wanted.scenes, wanted.localizer, wanted.depth_noise
    )


def bench_overlays(wanted: Bench) -> list[Figure]:
    """Compare what can be read off a picture with a grid and without."""
    return overlay_figures(wanted.sim, wanted.suite, _chosen_tasks(wanted), wanted.scenes)


def bench_dry_run(wanted: Bench) -> list[Figure]:
    """Compare what the dry run says of random commands with what comes of them."""
    return dry_run_figures(wanted.sim, wanted.suite, _chosen_tasks(wanted), wanted.scenes)


def _chosen_tasks(wanted: Bench) -> tuple[int, ...]:
    suites = find_simulator(wanted.sim).suites()
    if wanted.suite not in suites:
        raise ConfigError(f"unknown suite {wanted.suite!r}; {suggest(wanted.suite, suites)}")
    everything = tuple(range(suites[wanted.suite]))
    chosen = parse_numbers(wanted.tasks, "--tasks") if wanted.tasks else everything
    output.note(f"looking at {len(chosen)} tasks of {wanted.suite}, {wanted.scenes} layouts each")
    return chosen


def bench_diagnosis(wanted: Bench) -> list[Figure]:
    """Compare the diagnosis of planted faults with what was planted.

    Raises:
        ConfigError: faults are planted in the toy alone.
    """
    if wanted.sim != "toy":
        raise ConfigError(f"faults cannot be planted in {wanted.sim!r}; add --sim toy")
    return diagnosis_figures(wanted.policy, wanted.scenes)


def bench_wire(wanted: Bench) -> list[Figure]:
    """Time round trips to a served policy against HTTP with JSON."""
    return wire_figures(wanted.blocks)


def bench_batching(wanted: Bench) -> list[Figure]:
    """Measure what batching brings eight clients, and what it costs one."""
    return batching_figures(wanted.blocks)


def bench_rollouts(wanted: Bench) -> list[Figure]:
    """Compare two rollout processes with one."""
    place = (wanted.sim, wanted.suite, wanted.task, wanted.policy)
    return rollout_figures(*place, wanted.blocks, wanted.seconds)


def bench_worker(wanted: Bench) -> list[Figure]:
    """Compare steps through the worker process with steps in process."""
    return worker_figures(_place(wanted, "fast"), wanted.blocks, wanted.ticks)


def bench_arm(wanted: Bench) -> list[Figure]:
    """Measure the loop on an arm behind its link: late ticks, ages, latencies."""
    return arm_figures(wanted.seconds, wanted.hz, wanted.url)


def bench_soak(wanted: Bench) -> list[Figure]:
    """Run toy rollouts for a while and see whether anything grows."""
    return soak_figures(wanted.minutes)


def bench_twin_link(wanted: Bench) -> list[Figure]:
    """Measure errands on a served twin, in real time.

    Raises:
        ConfigError: another simulator is named.
    """
    from zetta.runtime.cli.bench_twin_link import twin_link_figures

    if wanted.sim != "twin":
        raise ConfigError("twin-link serves the twin; add --sim twin")
    return twin_link_figures(wanted.policy, wanted.scenes)


def bench_dashboard(wanted: Bench) -> list[Figure]:
    """Compare pages of a large run with those of a small one, in a browser."""
    from zetta.runtime.cli.bench_dashboard import dashboard_figures

    return dashboard_figures(wanted.blocks)


BENCHMARKS: Final[Mapping[str, Callable[[Bench], list[Figure]]]] = {
    "sim": bench_sim,
    "policy": bench_policy,
    "loop": bench_loop,
    "tick": bench_tick,
    "critics": bench_critics,
    "sight": bench_sight,
    "diagnosis": bench_diagnosis,
    "wire": bench_wire,
    "batching": bench_batching,
    "rollouts": bench_rollouts,
    "worker": bench_worker,
    "soak": bench_soak,
    "overlays": bench_overlays,
    "dry-run": bench_dry_run,
    "arm": bench_arm,
    "twin-link": bench_twin_link,
    "dashboard": bench_dashboard,
}


@contextmanager
def _two(
    wanted: Bench, name: str, render: str, before: str
) -> Iterator[tuple[ArmProcess, ArmProcess]]:
    """Start the processes of an arm and of its baseline, built and warmed up."""
    output.note(f"measuring {name}")
    with ArmProcess(_place(wanted, render)) as own, ArmProcess(_place(wanted, before)) as other:
        for process in (own, other):
            process.ask("reset")
        yield own, other


def _place(wanted: Bench, render: str) -> ArmPlace:
    return ArmPlace(wanted.sim, wanted.suite, wanted.task, render)


# --------------------------------------------------------------------------- answers

COLUMNS: Final = ("figure", "value", "unit", "baseline", "ratio", "target", "met")


def _figure_json(figure: Figure) -> dict[str, str | float | bool | None]:
    return {**asdict(figure), "met": figure.met}


def _row(figure: Figure) -> Sequence[str]:
    met = {None: "-", True: "yes", False: "no"}[figure.met]
    numbers = (figure.baseline, figure.ratio, figure.target)
    return (
        figure.name,
        f"{figure.value:.3g}",
        figure.unit,
        *("-" if number is None else f"{number:.2f}" for number in numbers),
        met,
    )


def _machine() -> dict[str, str]:
    return {
        "machine": platform.machine(),
        "python": platform.python_version(),
        "cores": str(os.cpu_count()),
        "load_average": _load(),
    }


def _load() -> str:
    """Return how many processes wanted to run lately: over 1, 5 and 15 minutes."""
    return " ".join(f"{each:.1f}" for each in os.getloadavg())
