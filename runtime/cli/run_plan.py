"""What `zetta run` shall run: from options to one `RunSpec` for each episode."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, cast

from zetta.runtime import registry
from zetta.runtime.cli.assemble import find_scene
from zetta.runtime.cli.at_home import with_stored
from zetta.runtime.cli.deploy import bundle_of
from zetta.runtime.cli.home import home_library
from zetta.runtime.cli.number_lists import named_values, parse_names, parse_numbers
from zetta.runtime.core import Init, Layout, RunSpec, Sampled, Sensing, Simulator
from zetta.runtime.errors import ConfigError, suggest
from zetta.sims.apart import NamesTasks
from zetta.skills.bundles import pinned


@dataclass(frozen=True, slots=True)
class Defaults:
    """What is run when only the simulator is named, and what to try after it."""

    suite: str
    policy: str
    task: int = 0
    video: bool = False
    building: str = ""
    """How long the first tick takes to come."""
    next: tuple[str, ...] = ()


DEFAULTS: Final[Mapping[str, Defaults]] = {
    "libero": Defaults(
        suite="libero_object",
        policy="zetta/tiny",
        video=True,
        building="about 15 s; the first time up to 2 minutes, while meshes are prepared and kept",
        next=(
            "zetta run --sim libero --suite libero_spatial --task 3 --init 7 --video",
            "zetta run --sim libero --suite libero_object_swap --episodes 5",
            "zetta run --sim libero --list",
        ),
    ),
    "twin": Defaults(
        suite="twin_place",
        policy="twin/reach",
        building="a few seconds",
        next=(
            "zetta drive --sim twin --task 1 --agent scripted",
            "zetta run --sim twin --policy oracle/expert --sensing oracle",
            "zetta run --sim twin --list",
        ),
    ),
    "robosuite": Defaults(
        suite="robosuite_one_arm",
        policy="random",
        building="about 10 s",
        next=(
            "zetta drive --sim robosuite --task Lift --agent scripted --localizer geometry",
            "zetta run --sim robosuite --task Stack --policy oracle/expert --sensing oracle",
            "zetta run --sim robosuite --list",
        ),
    ),
    "maniskill": Defaults(
        suite="maniskill",
        policy="random",
        building="about 10 s",
        next=(
            "zetta drive --sim maniskill --task StackCube-v1 --agent scripted",
            "zetta run --sim maniskill --policy oracle/expert --sensing oracle",
            "zetta run --sim maniskill --suite maniskill:PullCube-v1",
            "zetta run --sim maniskill --list",
        ),
    ),
    "robotwin": Defaults(
        suite="robotwin_blocks",
        policy="random@left,right",
        building="about 10 s",
        next=(
            "zetta drive --sim robotwin --task stack_blocks_two --agent scripted",
            "zetta run --sim robotwin --task 4 --policy oracle/expert --sensing oracle",
            "zetta run --sim robotwin --list",
        ),
    ),
    "robocasa": Defaults(
        suite="robocasa_bundled",
        policy="random",
        building="about 20 s",
        next=(
            "zetta drive --sim robocasa --task CloseDrawer --agent scripted",
            "zetta run --sim robocasa --task CloseDrawer --policy oracle/expert --sensing oracle",
            "zetta run --sim robocasa --list",
        ),
    ),
    "toy": Defaults(
        suite="toy_pick",
        policy="toy/reach",
        building="a moment",
        next=(
            "zetta run --sim toy --policy-seed 1",
            "zetta run --sim toy --suite toy_swap --init sampled --episodes 10",
            "zetta run --sim toy --policy oracle/expert --sensing oracle --video",
            "zetta run --sim toy --list",
        ),
    ),
}


@dataclass(frozen=True, slots=True)
class Wishes:
    """The options of `zetta run`, as typed; None where nothing was said."""

    sim: str
    suite: str | None = None
    tasks: str | None = None
    init: str | None = None
    seed: int = 0
    episodes: int = 1
    policy: str | None = None
    policy_seed: int = 0
    temperature: float | None = None
    render: str = "fast"
    sensing: str = "vision"
    any_profile: bool = False
    worker: bool = False
    bundle: str = "none"
    recovery_share: float | None = None
    shadow: bool = False
    localizer: str | None = None
    signals: bool = False
    calibration: Path | None = None
    critic_isolation: str = "none"
    inference: str = "sync"
    options: tuple[str, ...] = ()
    """Further ones, each `NAME=VALUE`."""
    instruction: str | None = None
    """The task in words."""

    @property
    def only_sim(self) -> bool:
        """Whether nothing but the simulator was chosen."""
        return self == Wishes(self.sim, policy_seed=self.policy_seed, signals=self.signals)


def plan(wishes: Wishes, simulator: Simulator) -> tuple[RunSpec, ...]:
    """Return one spec for each episode, tasks in order.

    Episode `i` of a task takes init `k + i`, or the sampled scene of seed `seed + i`: which scene
    is run depends on the options alone, never on what happened before.

    Raises:
        ConfigError: something does not exist; nothing has been built yet.
    """
    if wishes.episodes < 1:
        raise ConfigError(f"got --episodes {wishes.episodes}; at least 1 is needed")
    if wishes.seed < 0 or wishes.policy_seed < 0:
        raise ConfigError("a seed is 0 or greater")
    defaults = defaults_of(wishes.sim, simulator)
    first = RunSpec(
        sim=wishes.sim,
        suite=wishes.suite or defaults.suite,
        task=0,
        layout=_layout(wishes.init),
        seed=wishes.seed,
        policy=wishes.policy or defaults.policy,
        policy_seed=wishes.policy_seed,
        bundle=pinned(wishes.bundle, home_library()),
        sensing=cast(Sensing, wishes.sensing),
        render=wishes.render,
        options=_options(wishes),
    )
    registry.check_policy(first.policy)
    if wishes.instruction is not None:
        wishes, first = _instructed(wishes, first, simulator)
    first = with_stored(first, simulator, bundle_of(first.bundle))
    tasks = wishes.tasks or str(defaults.task)
    specs = [
        _episode(replace(first, task=task), i)
        for task in meant_tasks(tasks, simulator, first.suite, "--task")
        for i in range(wishes.episodes)
    ]
    if registry.is_arm(first.sim) and len(specs) > 1:
        raise ConfigError(
            f"an arm runs one episode at a time, for a person sets the scene before each; these "
            f"are {len(specs)}: name one --task, and leave --episodes out"
        )
    for spec in specs:
        find_scene(simulator, spec)
    return tuple(specs)


def _instructed(wishes: Wishes, first: RunSpec, simulator: Simulator) -> tuple[Wishes, RunSpec]:
    """Let the instruction choose the task; an arm may also be asked what its set-up does not list.

    Raises:
        ConfigError: a task is named too, or a simulator has no task of this instruction.
    """
    text = " ".join((wishes.instruction or "").split())
    if not text:
        raise ConfigError("the instruction is empty; say what shall be done, in words")
    if wishes.tasks is not None:
        raise ConfigError("got an instruction and --task; leave one of them out")
    count = simulator.suites().get(first.suite, 0)
    known = [simulator.task(first.suite, index).instruction for index in range(count)]
    plain = [instruction.casefold() for instruction in known]
    if text.casefold() in plain:
        return replace(wishes, tasks=f"{plain.index(text.casefold())}"), first
    if registry.is_arm(first.sim):
        return wishes, replace(first, options={**first.options, "instruction": text})
    raise ConfigError(
        f"no task of {first.suite} is {text!r}; {suggest(text, known)} (a simulator judges only "
        f"its own tasks: zetta run --sim {first.sim} --suite {first.suite} --list)"
    )


def defaults_of(sim: str, simulator: Simulator) -> Defaults:
    """Return what is run when only the simulator is named."""
    known = DEFAULTS.get(sim)
    if known is not None:
        return known
    return Defaults(suite=next(iter(simulator.suites()), ""), policy="random")


def _options(wishes: Wishes) -> dict[str, str]:
    options = named_values(wishes.options)
    if wishes.temperature is not None:
        options["temperature"] = f"{wishes.temperature:g}"
    if wishes.any_profile:
        options["any_profile"] = "yes"
    if wishes.worker:
        options["worker"] = "yes"
    if wishes.recovery_share is not None:
        options["recovery_share"] = f"{wishes.recovery_share:g}"
    if wishes.shadow:
        options["shadow"] = "yes"
    if wishes.localizer is not None:
        options["localizer"] = wishes.localizer
    if wishes.calibration is not None:
        options["calibration"] = str(wishes.calibration)
    if wishes.signals:
        options["signals"] = "yes"
    if wishes.critic_isolation != "none":
        options["critic_isolation"] = wishes.critic_isolation
    if wishes.inference != "sync":
        options["inference"] = wishes.inference
    return options


def _layout(text: str | None) -> Layout:
    if text == "sampled":
        return Sampled()
    if text is not None and not text.isdecimal():
        raise ConfigError(f"--init is a number or 'sampled', got {text!r}")
    return Init(int(text or 0))


def _episode(spec: RunSpec, i: int) -> RunSpec:
    if isinstance(spec.layout, Init):
        return replace(spec, layout=Init(spec.layout.k + i))
    return replace(spec, seed=spec.seed + i)


def meant_tasks(
    text: str, simulator: Simulator, suite: str, option: str = "--tasks"
) -> tuple[int, ...]:
    """Return the tasks that are meant: numbers, all, or names where the suite's tasks have names.

    Raises:
        ConfigError: no such list, or no such name.
    """
    if text[:1].isalpha() and text != "all" and isinstance(simulator, NamesTasks):
        return tuple(simulator.task_number(suite, name) for name in parse_names(text, option))
    # A suite that does not exist is refused, with the nearest name, by who looks for the scene.
    return task_numbers(text, simulator.suites().get(suite, 1), option)


def task_numbers(text: str, count: int, option: str = "--task") -> tuple[int, ...]:
    """Return the task numbers of a list such as `0,2-4`, or of `all`.

    >>> task_numbers("all", 3), task_numbers("0,2-4", 10)
    ((0, 1, 2), (0, 2, 3, 4))

    Raises:
        ConfigError: not such a list.
    """
    return tuple(range(count)) if text == "all" else parse_numbers(text, option)
