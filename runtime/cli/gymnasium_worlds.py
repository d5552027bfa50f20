"""What `gymnasium.make` calls for the names of `zetta.sims.gym_names`."""

from __future__ import annotations

from collections.abc import Sequence

from zetta.runtime.cli.assemble import find_simulator, separate_world
from zetta.runtime.cli.graphics import choose_graphics
from zetta.runtime.core import Env
from zetta.sims.gym import GymWorld, World


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
    simulator = find_simulator(sim)
    task = simulator.task(suite, index)
    choose_graphics(sim)

    def env() -> Env:
        return separate_world(simulator, sim, suite, index, render)

    world = World(task, simulator.init_count(suite, index), env)
    return GymWorld(world, cameras, render_mode)
