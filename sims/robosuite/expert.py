"""Scripted experts of cubes in robosuite: for plumbing and as a yardstick. They read truth."""

from __future__ import annotations

from zetta.runtime.core import Env, Motion
from zetta.sims.cube_expert import CubeExpert
from zetta.sims.robosuite import tasks
from zetta.sims.surveyed import no_expert, surveyed


def expert_motion(env: Env, noise: float, seed: int) -> Motion:
    """Return the expert of the task that `env` has been reset to.

    Args:
        env: an environment of robosuite, here or in another process.
        noise: standard deviation of the noise on its translations, of 1.
        seed: of the noise.

    Raises:
        ConfigError: there is no expert for this task.
    """
    own = surveyed(env, "robosuite", "robosuite")
    instruction = own.observe().instruction
    known = {task.instruction: task.name for task in tasks.TASKS[tasks.ONE_ARM]}
    expert = CubeExpert(own, noise, seed)
    match known.get(instruction, ""):
        case "Lift":
            return expert.lift("red cube")
        case "Stack":
            return expert.stack("red cube", "green cube")
        case _:
            raise no_expert(instruction, "Lift and one for Stack")
