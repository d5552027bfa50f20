"""From what was typed to an `Evaluation`, and back to the shortest command that repeats it."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace
from typing import Final

from zetta.runtime import registry
from zetta.runtime.cli.assemble import find_scene
from zetta.runtime.cli.home import home_library
from zetta.runtime.cli.number_lists import (
    named_values,
    number,
    number_text,
    parse_names,
    parse_numbers,
    parse_policies,
)
from zetta.runtime.cli.options import check_options, sensing_level, step_budget
from zetta.runtime.cli.run_plan import DEFAULTS, meant_tasks
from zetta.runtime.core import Init, Layout, RunSpec, Sampled, Simulator
from zetta.runtime.errors import ConfigError, suggest
from zetta.runtime.evaluation_plan import Arm, Evaluation, arms_of
from zetta.runtime.reporting.wording import counted
from zetta.skills.bundles import pinned

DEFAULT_INITS: Final = "0-9"
OWN_OPTIONS: Final = ("temperature", "critic_isolation")
"""What of `RunSpec.options` has a name of its own on the command line."""


@dataclass(frozen=True, slots=True)
class Typed:
    """The options of `zetta eval` that decide what is run, as text."""

    sim: str
    suites: str
    tasks: str = ""
    inits: str = ""
    layout: str = "init"
    seeds: str = ""
    arms: str = "none"
    policies: str = "zetta/tiny"
    policy_seeds: str = "0"
    temperature: str = ""
    sensing: str = "vision"
    render: str = "fast"
    critic_isolation: str = "none"
    options: tuple[str, ...] = ()


def default_policy(sim: str) -> str:
    """Return the policy that comes with `sim`.

    Raises:
        ConfigError: none does.
    """
    if sim not in DEFAULTS:
        raise ConfigError(f"no policy comes with {sim}; name one (--policy, or --policies of eval)")
    return DEFAULTS[sim].policy


def request(typed: Typed, simulator: Simulator) -> Evaluation:
    """Return the evaluation that was asked for.

    Raises:
        ConfigError: an option cannot be read, or names what does not exist.
    """
    for policy in _policies(typed):
        registry.check_policy(policy)
    evaluation = Evaluation(
        sim=typed.sim,
        tasks=_tasks(typed, simulator),
        starts=_starts(typed),
        arms=_arms(typed),
        policy_seeds=parse_numbers(typed.policy_seeds, "--policy-seeds"),
        sensing=sensing_level(typed.sensing),
        options=_options(typed),
    )
    seen: set[tuple[str, int, str, int]] = set()
    for _, spec in evaluation.specs():
        check_options(spec)
        scene = (spec.suite, spec.task, str(spec.layout), spec.seed)
        if scene not in seen:
            seen.add(scene)
            find_scene(simulator, spec)
    return evaluation


def one_of_each(evaluation: Evaluation) -> tuple[RunSpec, ...]:
    """Return one episode of each arm, all of the first scene."""
    first: dict[str, RunSpec] = {}
    for arm, spec in evaluation.specs():
        first.setdefault(arm.name, spec)
        if len(first) == len(evaluation.arms):
            break
    return tuple(first.values())


def typed_command(evaluation: Evaluation) -> str:
    """Return the command that runs `evaluation`; how many workers run it is left out."""
    suites = tuple(dict.fromkeys(suite for suite, _ in evaluation.tasks))
    tasks = tuple(index for suite, index in evaluation.tasks if suite == suites[0])
    words = ["zetta", "eval", "--sim", evaluation.sim, "--suites", ",".join(suites)]
    words += ["--tasks", number_text(tasks)]
    if isinstance(evaluation.starts[0][0], Init):
        inits = tuple(layout.k for layout, _ in evaluation.starts if isinstance(layout, Init))
        words += ["--inits", number_text(inits)]
    else:
        seeds = number_text(tuple(seed for _, seed in evaluation.starts))
        words += ["--layout", "sampled", "--seeds", seeds]
    words += ["--arms", ",".join(dict.fromkeys(arm.bundle for arm in evaluation.arms))]
    words += ["--policies", ",".join(dict.fromkeys(arm.policy for arm in evaluation.arms))]
    if evaluation.policy_seeds != (0,):
        words += ["--policy-seeds", number_text(evaluation.policy_seeds)]
    for name, value in sorted(evaluation.options.items()):
        own = f"--{name.replace('_', '-')}"
        words += [own, value] if name in OWN_OPTIONS else ["--option", f"{name}={value}"]
    words += ["--sensing", evaluation.sensing]
    words += ["--render", ",".join(dict.fromkeys(arm.render for arm in evaluation.arms))]
    return shlex.join(words)


def _arms(typed: Typed) -> tuple[Arm, ...]:
    """Return the arms by the names that were typed, with a version in place of `library`."""
    arms = arms_of(
        _policies(typed),
        parse_names(typed.arms, "--arms"),
        parse_names(typed.render, "--render"),
    )
    return tuple(replace(arm, bundle=pinned(arm.bundle, home_library())) for arm in arms)


def _policies(typed: Typed) -> tuple[str, ...]:
    return parse_policies(typed.policies, "--policies", registry.names("policies"))


def _tasks(typed: Typed, simulator: Simulator) -> tuple[tuple[str, int], ...]:
    """Return suite and index of every task; without `--tasks`, all that the suites have."""
    known = simulator.suites()
    found: list[tuple[str, int]] = []
    sizes: set[int] = set()
    for suite in parse_names(typed.suites, "--suites"):
        if suite not in known:
            raise ConfigError(
                f"{typed.sim} has no suite {suite!r}; {suggest(suite, known)} "
                f"(zetta run --sim {typed.sim} --list shows all)"
            )
        sizes.add(known[suite])
        indices = meant_tasks(typed.tasks or "all", simulator, suite)
        found.extend((suite, index) for index in indices)
    if not typed.tasks and len(sizes) > 1:
        raise ConfigError(
            f"the suites {typed.suites} have different numbers of tasks; say which with --tasks"
        )
    return tuple(found)


def _starts(typed: Typed) -> tuple[tuple[Layout, int], ...]:
    if typed.layout not in ("init", "sampled"):
        raise ConfigError(f"--layout is init or sampled, got {typed.layout!r}")
    if typed.layout == "sampled":
        if typed.inits or not typed.seeds:
            raise ConfigError("--layout sampled takes --seeds (such as 0-9) and no --inits")
        return tuple((Sampled(), seed) for seed in parse_numbers(typed.seeds, "--seeds"))
    if typed.seeds:
        raise ConfigError("--seeds belongs to --layout sampled; initial states have --inits")
    return tuple((Init(k), 0) for k in parse_numbers(typed.inits or DEFAULT_INITS, "--inits"))


def _options(typed: Typed) -> dict[str, str]:
    options = named_values(typed.options)
    if typed.temperature:
        options["temperature"] = f"{number(typed.temperature, '--temperature'):g}"
    if typed.critic_isolation != "none":
        options["critic_isolation"] = typed.critic_isolation
    return options


# --------------------------------------------------------------------------- forecast

TICKS_PER_S: Final = {"toy": 1000.0, "twin": 90.0}
DEFAULT_TICKS_PER_S: Final = 20.0
"""Ticks per second of one worker on one core, pictures included: for forecasts alone."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """How much an evaluation is."""

    tasks: int
    scenes: int
    arms: int
    policy_seeds: int
    episodes: int
    most_ticks: int
    """When every episode uses its whole budget."""
    most_minutes: float

    def __str__(self) -> str:
        factors = [(self.tasks, "task"), (self.scenes, "scene"), (self.arms, "arm")]
        if self.policy_seeds > 1:
            factors.append((self.policy_seeds, "policy seed"))
        return (
            f"{' x '.join(counted(count, thing) for count, thing in factors)} = "
            f"{counted(self.episodes, 'episode')}, at most {counted(self.most_ticks, 'tick')} "
            f"(roughly {_duration(self.most_minutes)} when none succeeds early)"
        )


def _duration(minutes: float) -> str:
    if minutes < 1:
        return "a minute"
    return f"{minutes:.0f} min" if minutes < 120 else f"{minutes / 60:.0f} h"


def forecast(evaluation: Evaluation, simulator: Simulator, workers: int) -> Forecast:
    """Return how much `evaluation` is and how long it may take at most, roughly."""
    given = step_budget(one_of_each(evaluation)[0])
    budgets = [
        simulator.task(suite, index).max_steps if given is None else given
        for suite, index in evaluation.tasks
    ]
    ticks = sum(budgets) * evaluation.episodes // len(evaluation.tasks)
    rate = TICKS_PER_S.get(evaluation.sim, DEFAULT_TICKS_PER_S) * workers
    return Forecast(
        tasks=len(evaluation.tasks),
        scenes=len(evaluation.starts),
        arms=len(evaluation.arms),
        policy_seeds=len(evaluation.policy_seeds),
        episodes=evaluation.episodes,
        most_ticks=ticks,
        most_minutes=ticks / rate / 60,
    )
