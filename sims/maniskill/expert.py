"""Scripted experts of ManiSkill's cubes: for plumbing and as a yardstick.

They read simulator truth, as robosuite's do, and drive an environment in another process as well.
"""

from __future__ import annotations

from zetta.runtime.core import Env, Motion
from zetta.runtime.errors import ConfigError
from zetta.sims.cube_expert import CubeExpert, Surveyed
from zetta.sims.maniskill import tasks


def expert_motion(env: Env, noise: float, seed: int) -> Motion:
    """Return the expert of the task that `env` has been reset to.

    Args:
        env: an environment of ManiSkill, here or in another process.
        noise: standard deviation of the noise on its translations, of 1.
        seed: of the noise.

    Raises:
        ConfigError: there is no expert for this task.
    """
    if not isinstance(env, Surveyed) or env.spec.name != "maniskill":
        raise ConfigError(f"ManiSkill's experts drive its environments, not a {type(env).__name__}")
    instruction = env.observe().instruction
    known = {task.instruction: task.name for task in tasks.TASKS[tasks.SUITE]}
    expert = CubeExpert(env, noise, seed)
    match known.get(instruction, ""):
        case "PickCube-v1":
            return expert.carry("red cube", "green ball")
        case "StackCube-v1":
            return expert.stack("red cube", "green cube")
        case _:
            raise ConfigError(
                f"no scripted expert covers {instruction!r}; there is one for PickCube-v1 and one "
                "for StackCube-v1"
            )
