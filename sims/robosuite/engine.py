"""How robosuite is built and reset: quietly, without a renderer, and the same after any history.

What robosuite draws at random comes from one generator that the environment, its samplers and its
objects share; it is set before each reset. Sizes that robosuite draws while it builds a model
(the cube of Lift, the hammer of TwoArmHandover) are drawn once, from a fixed seed, because a model
that changes would be a new world at each reset.
"""

from __future__ import annotations

import contextlib
import os
from importlib.metadata import version
from typing import Any

import numpy as np

from zetta.runtime.errors import InfraError
from zetta.sims.libero.scratch import scratch_folder
from zetta.sims.quiet import global_numpy_seed, robosuite_quiet
from zetta.sims.robosuite.tasks import RobosuiteTask

BUILD_SEED = 0
PLACEMENT_TRIES = 100
PACKAGES = ("robosuite", "mujoco", "numpy")


def build(task: RobosuiteTask, arms: int, control_hz: float) -> Any:
    """Return robosuite's own environment of a task, without any renderer.

    The arms' controllers take translations and rotations in the frame of the world. That is what
    robosuite's default, the frame of an arm's base, comes to for one arm, whose base is not turned.
    """
    with robosuite_quiet(), global_numpy_seed(BUILD_SEED):
        os.environ.setdefault("MPLCONFIGDIR", str(scratch_folder("matplotlib")))
        import robosuite
        from robosuite.controllers import load_composite_controller_config

        controller = load_composite_controller_config(robot="Panda")
        controller["body_parts"]["right"]["input_ref_frame"] = "world"
        env = robosuite.make(
            task.name,
            robots=["Panda"] * arms,
            controller_configs=controller,
            control_freq=control_hz,
            use_camera_obs=False,
            has_renderer=False,
            has_offscreen_renderer=False,
            renderer="mujoco",
            hard_reset=False,
            ignore_done=True,  # the budget is ours; the engine's own would end in a bare error
            seed=BUILD_SEED,
        )
    # Nothing here reads observables, and they do not act on physics.
    env._update_observables = lambda force=False: None
    env._get_observations = lambda force_update=False: {}
    return env


def reset(env: Any, seed: int) -> None:
    """Draw a layout of the task from `seed`; the same one after any history.

    Raises:
        InfraError: robosuite finds no layout in which everything has room.
    """
    from robosuite.utils.errors import RandomizationError

    # In place: samplers, robots and objects hold this very generator.
    env.rng.bit_generator.state = np.random.default_rng(seed).bit_generator.state
    with robosuite_quiet(), global_numpy_seed(seed):
        for _ in range(PLACEMENT_TRIES):
            with contextlib.suppress(RandomizationError):
                env.reset()
                return
    raise InfraError(
        f"robosuite found no room for all objects in {PLACEMENT_TRIES} tries with seed {seed}; "
        "use another seed"
    )


def versions() -> dict[str, str]:
    """Return the versions that decide how an episode goes."""
    return {package: version(package) for package in PACKAGES}
