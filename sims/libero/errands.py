"""What can be asked in a scene: the task's own instruction, or another object of a shuffled one."""

from __future__ import annotations

from dataclasses import dataclass

from zetta.runtime.core import Init, Scene, Step
from zetta.runtime.errors import ConfigError
from zetta.sims.libero.env import LiberoEnv
from zetta.sims.libero.layouts import Shuffle, loose_objects, reset_shuffled
from zetta.sims.libero.world import Goal, World


@dataclass(frozen=True, slots=True)
class Errand:
    """An object, what to say to have it moved, and where it belongs."""

    instruction: str
    subject: str
    goal: Goal


@dataclass(frozen=True, slots=True)
class Assignment:
    """A scene at its first tick, and what is asked there."""

    step: Step
    world: World
    instruction: str


def spoken(name: str) -> str:
    """Return how an object is called: `alphabet_soup_1` is "alphabet soup"."""
    return name.rsplit("_", 1)[0].replace("_", " ")


def errands(env: LiberoEnv) -> tuple[Errand, ...]:
    """Return everything that could be asked in the present scene of a basket task.

    Raises:
        ConfigError: the scene has no basket.
    """
    if "basket_1" not in env.control.env.objects_dict:
        raise ConfigError(f"{env.task.suite}#{env.task.index} has no basket to fill")
    return tuple(
        Errand(
            f"pick up the {spoken(name)} and place it in the basket",
            name,
            Goal("in", name, "basket_1_contain_region"),
        )
        for name in loose_objects(env)
    )


def begin(env: LiberoEnv, init: int, shuffle: int | None = None) -> Assignment:
    """Reset to an init state; with a `shuffle` seed, move its objects about and ask for one.

    Raises:
        ConfigError: there is no such init state, or nothing to ask for.
    """
    if shuffle is None:
        step = env.reset(Scene(env.task, Init(init), 0))
        return Assignment(step, World(env.control), env.task.instruction)
    step = reset_shuffled(env, Shuffle(init, shuffle))
    asked = errands(env)
    errand = asked[shuffle % len(asked)]
    return Assignment(step, World(env.control, (errand.goal,)), errand.instruction)
