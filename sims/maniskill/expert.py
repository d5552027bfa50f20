"""Scripted experts of ManiSkill's cubes: for plumbing and as a yardstick.

They read simulator truth, as robosuite's do, and drive an environment in another process as well.
"""

from __future__ import annotations

from zetta.runtime.core import Env, Motion
from zetta.sims.cube_expert import CubeExpert
from zetta.sims.maniskill import tasks
from zetta.sims.surveyed import no_expert, surveyed


def expert_motion(env: Env, noise: float, seed: int) -> Motion:
    """Return the expert of the task that `env` has been reset to.

    Args:
        env: an environment of ManiSkill, here or in another process.
        noise: standard deviation of the noise on its translations, of 1.
        seed: of the noise.

    Raises:
        ConfigError: there is no expert for this task.
    """
    own = surveyed(env, "maniskill", "ManiSkill")
    instruction = own.observe().instruction
    known = {task.instruction: task.name for task in tasks.TASKS[tasks.SUITE]}
    expert = CubeExpert(own, noise, seed)
    match known.get(instruction, ""):
        case "PickCube-v1":
            return expert.carry("red cube", "green ball")
        case "StackCube-v1":
            return expert.stack("red cube", "green cube")
        case _:
            raise no_expert(instruction, "PickCube-v1 and one for StackCube-v1")
