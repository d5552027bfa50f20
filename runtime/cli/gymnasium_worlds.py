"""Every task of every built-in simulator by a name that `gymnasium.make` knows.

`zetta/SUITE-TASK-v0`, such as `zetta/libero_object-0-v0`. Gymnasium calls `register` when it is
imported (entry point `gymnasium.envs`), so nothing is asked of a simulator there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

import gymnasium

if TYPE_CHECKING:
    from zetta.sims.gym import GymWorld

OF_TEN: Final = (
    "libero_10", "libero_10_lan", "libero_10_object", "libero_10_swap", "libero_10_task",
    "libero_10_with_mug", "libero_goal", "libero_goal_lan", "libero_goal_object",
    "libero_goal_swap", "libero_goal_task", "libero_goal_with_milk", "libero_goal_with_mug",
    "libero_goal_with_yellow_book", "libero_object", "libero_object_lan", "libero_object_object",
    "libero_object_swap", "libero_object_task", "libero_object_with_mug",
    "libero_object_with_yellow_book", "libero_spatial", "libero_spatial_lan",
    "libero_spatial_object", "libero_spatial_swap", "libero_spatial_task",
    "libero_spatial_with_milk", "libero_spatial_with_mug", "libero_spatial_with_yellow_book",
)  # fmt: skip
LIBERO: Final[Mapping[str, int]] = {
    **dict.fromkeys(OF_TEN, 10),
    "libero_90": 90,
    "libero_mine": 2,
    "libero_object_two_normal_episodes": 2,
    "libero_study_table": 5,
}
"""Suites of LIBERO with their numbers of tasks: to ask LIBERO itself takes seconds."""


def suites() -> Mapping[str, Mapping[str, int]]:
    """Return the number of tasks by suite, by simulator; no engine is loaded."""
    from zetta.sims.robosuite.tasks import TASKS
    from zetta.sims.toy_tasks import suites as toy

    robosuite = {suite: len(tasks) for suite, tasks in TASKS.items()}
    return {"libero": LIBERO, "robosuite": robosuite, "toy": toy()}


def register() -> None:
    """Tell Gymnasium every name; it puts `zetta/` before them, after the entry point's name."""
    for sim, listed in suites().items():
        for suite, count in listed.items():
            for index in range(count):
                gymnasium.register(
                    id=f"{suite}-{index}-v0",
                    entry_point=f"{__name__}:make",
                    kwargs={"sim": sim, "suite": suite, "index": index},
                )


def make(
    sim: str,
    suite: str,
    index: int,
    render: str = "fast",
    cameras: Sequence[str] | None = None,
    render_mode: str | None = None,
) -> GymWorld:
    """Return one task as a Gymnasium environment.

    Simulators that draw with OpenGL get a process for each environment, because a process draws
    only one; the toy runs in this one.

    Raises:
        ConfigError: unknown suite, task, profile or camera, or the simulator is not installed.
        InfraError: the simulator is not usable here.
    """
    from zetta.runtime.cli.assemble import MANY_WORLDS, find_simulator
    from zetta.runtime.cli.graphics import choose_graphics
    from zetta.runtime.core import Env
    from zetta.sims.apart import ApartSimulator
    from zetta.sims.gym import GymWorld, World
    from zetta.sims.remote import RemoteEnv

    simulator = find_simulator(sim)
    task = simulator.task(suite, index)
    choose_graphics(sim)

    def env() -> Env:
        if sim in MANY_WORLDS or isinstance(simulator, ApartSimulator):
            return simulator.make(suite, index, render)
        return RemoteEnv(sim, suite, index, render)

    world = World(task, simulator.init_count(suite, index), env)
    return GymWorld(world, cameras, render_mode)
