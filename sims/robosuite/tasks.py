"""The thirteen tasks of robosuite 1.5.2, as data; no engine is imported.

robosuite names its tasks and gives them no instruction: the instructions here are ours. Budgets
are those of the robomimic study where it has one (Mandlekar et al. 2021: 400 for Lift, Can and
Square, 700 for ToolHang and Transport), and 500, the horizon of robosuite's own benchmark (Zhu et
al. 2020), elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from zetta.sims.task_lists import TaskLists, suite_of

INIT_COUNT = 50
"""robosuite ships no initial states: `Init(k)` is the layout that the k-th of our seeds draws."""
ONE_ARM, TWO_ARMS = "robosuite_one_arm", "robosuite_two_arm"


@dataclass(frozen=True, slots=True)
class RobosuiteTask:
    """One task, and what its things are called."""

    name: str
    """As robosuite registers it."""
    instruction: str
    max_steps: int = 500
    things: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Names that instructions use, the first one first, by the name of the object."""
    fingers: bool = True
    """Whether the arms have grippers; others carry a tool, and their gripper column is ignored."""
    ground: float = 0.8
    """Height of what the things stand on, metres."""


_CUBE = {"cube": ("red cube", "cube")}
_CUBES = {"cubeA": ("red cube", "cube"), "cubeB": ("green cube", "cube")}
_NUTS = {"SquareNut": ("square nut", "nut"), "RoundNut": ("round nut", "nut")}
_SQUARE = {"SquareNut": _NUTS["SquareNut"]}
"""The other nut is taken off the table."""
_GROCERIES = {
    "Milk": ("milk", "milk carton"),
    "Bread": ("bread",),
    "Cereal": ("cereal", "cereal box"),
    "Can": ("can", "red can"),
}
_CAN = {"Can": _GROCERIES["Can"]}
_TRANSPORTED = {
    "payload": ("hammer",),
    "trash": ("trash", "red cube"),
    "transport_start_bin_lid": ("lid",),
    "transport_start_bin": ("start bin", "bin"),
    "transport_target_bin": ("target bin", "bin"),
    "transport_trash_bin": ("trash bin", "bin"),
}
TASKS: Mapping[str, tuple[RobosuiteTask, ...]] = {
    ONE_ARM: (
        RobosuiteTask("Lift", "lift the red cube", 400, _CUBE),
        RobosuiteTask("Stack", "put the red cube on the green cube", 500, _CUBES),
        RobosuiteTask("Door", "open the door", 500, {"Door": ("door",)}),
        RobosuiteTask(
            "NutAssembly",
            "put the square nut on the square peg and the round nut on the round peg",
            500,
            _NUTS,
            ground=0.82,
        ),
        RobosuiteTask(
            "NutAssemblySquare", "put the square nut on the square peg", 400, _SQUARE, ground=0.82
        ),
        RobosuiteTask(
            "PickPlace", "put the milk, the bread, the cereal and the can in their bins", 500,
            _GROCERIES,
        ),
        RobosuiteTask("PickPlaceCan", "put the can in its bin", 400, _CAN),
        RobosuiteTask("Wipe", "wipe the table", 500, fingers=False, ground=0.9),
        RobosuiteTask(
            "ToolHang",
            "put the frame into the stand and hang the tool on the frame",
            700,
            {"stand": ("stand",), "frame": ("frame",), "tool": ("tool",)},
        ),
    ),
    TWO_ARMS: (
        RobosuiteTask("TwoArmLift", "lift the pot with both arms", 500, {"pot": ("pot",)}),
        RobosuiteTask("TwoArmPegInHole", "put the peg in the hole", 500, fingers=False),
        RobosuiteTask(
            "TwoArmHandover",
            "hand the hammer from the right arm to the left arm",
            500,
            {"hammer": ("hammer",)},
        ),
        RobosuiteTask(
            "TwoArmTransport",
            "move the hammer to the target bin and the trash to the trash bin",
            700,
            _TRANSPORTED,
        ),
    ),
}  # fmt: skip
"""By suite, in a fixed order: the index of a task is its place here."""


def arms_of(suite: str) -> tuple[str, ...]:
    """Return the names of the arms of a suite, in the order of robosuite's robots.

    Two arms stand opposite each other across the table; as seen by the camera `agentview`'s
    convention of x forward, robot 0 stands at negative y and is the right one.
    """
    return ("panda",) if suite == ONE_ARM else ("right", "left")


_LISTS: Final[TaskLists[RobosuiteTask]] = TaskLists(
    TASKS,
    lambda suite: suite_of(TASKS, suite, "robosuite"),
    lambda suite, own: own.max_steps,
    TASKS,
)
counts, find, number, task = _LISTS.counts, _LISTS.find, _LISTS.number, _LISTS.task
