"""Tasks of ManiSkill 3.0.1, as data; no engine is imported.

ManiSkill names its tasks and gives them no instruction: the instructions here are ours. Its
registered budgets are those of reinforcement learning; the ones here are what its own baselines of
imitation learning allow where they have one, and the registered ones elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from zetta.runtime.errors import ConfigError, suggest
from zetta.sims.task_lists import TaskLists

INIT_COUNT: Final = 50
"""ManiSkill ships no initial states: `Init(k)` is the layout that the k-th of our seeds draws."""
SUITE, MORE, ANY = "maniskill", "maniskill_more", "maniskill:"
ANY_STEPS: Final = 200
"""Budget of a task that is none of ours."""
WRIST: Final = "panda_wristcam"
"""The Panda with a camera at its hand."""
_ID: Final = re.compile(r"[A-Za-z0-9_.:-]+-v\d+")


@dataclass(frozen=True, slots=True)
class ManiSkillTask:
    """One task, and what its things are called."""

    name: str
    """As ManiSkill registers it."""
    instruction: str
    max_steps: int
    things: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Names that instructions use, the first one first, by the name of the actor."""
    robot: str = WRIST
    """ManiSkill's name of the robot; empty for the task's own."""
    shows: tuple[str, ...] = ()
    """Attributes of actors that ManiSkill hides from cameras and that are drawn here."""


_CUBE = {"cube": ("red cube", "cube")}
_GOAL = {"goal_site": ("green ball", "ball", "goal")}
_CUBES = {"cubeA": ("red cube", "cube"), "cubeB": ("green cube", "cube")}
TASKS: Mapping[str, tuple[ManiSkillTask, ...]] = {
    SUITE: (
        ManiSkillTask(
            "PickCube-v1", "put the red cube in the green ball", 100, {**_CUBE, **_GOAL},
            shows=("goal_site",),
        ),
        ManiSkillTask("StackCube-v1", "put the red cube on the green cube", 200, _CUBES),
        ManiSkillTask(
            "PushCube-v1", "push the blue cube to the red disc", 100,
            {"cube": ("blue cube", "cube"), "goal_region": ("red disc", "target", "goal")},
        ),
    ),
    MORE: (
        ManiSkillTask("PullCube-v1", "pull the blue cube onto the red disc", 50),
        ManiSkillTask("PokeCube-v1", "poke the red cube with the peg", 50),
        ManiSkillTask("LiftPegUpright-v1", "set the peg upright", 50),
        ManiSkillTask("PlaceSphere-v1", "put the blue ball in the bin", 50),
        ManiSkillTask("RollBall-v1", "roll the ball to the goal", 80),
        ManiSkillTask("StackPyramid-v1", "stack the cubes to a pyramid", 250),
        ManiSkillTask("PullCubeTool-v1", "pull the cube with the tool", 100),
        ManiSkillTask("PegInsertionSide-v1", "put the peg in the hole of the box", 100),
        ManiSkillTask("PlugCharger-v1", "plug the charger in", 200),
    ),
}  # fmt: skip
"""By suite, in a fixed order: the index of a task is its place here."""


def listed(suite: str) -> tuple[ManiSkillTask, ...]:
    """Return the tasks of a suite; `maniskill:ID` is the suite of any one registered task.

    Raises:
        ConfigError: unknown suite.

    >>> listed("maniskill:MyTask-v1")[0].instruction
    'do the task my task'
    """
    if suite in TASKS:
        return TASKS[suite]
    name = suite.removeprefix(ANY)
    if not suite.startswith(ANY) or _ID.fullmatch(name) is None:
        known = [*TASKS, f"{ANY}ID-v1"]
        raise ConfigError(f"unknown suite of ManiSkill {suite!r}; {suggest(suite, known)}")
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name.rpartition("-v")[0].rpartition(":")[2])
    instruction = f"do the task {words.replace('-', ' ').lower()}"
    return (ManiSkillTask(name, instruction, ANY_STEPS, robot=""),)


_LISTS: Final[TaskLists[ManiSkillTask]] = TaskLists(
    TASKS,
    listed,
    lambda suite, own: own.max_steps,
    TASKS,
    lambda name: f" (any other task that is registered: --suite {ANY}{name})",
)
counts, find, number, task = _LISTS.counts, _LISTS.find, _LISTS.number, _LISTS.task
