"""The fifty tasks of RoboTwin 2.0, as data; no engine is imported.

A suite is a setting and a way to act. Settings: `blocks` has the five tasks that need no download,
on our own two Pandas; `clean` and `randomized` are RoboTwin's `demo_clean` and `demo_randomized`,
on its own robot. Ways to act: at a fixed rate (no suffix), or one planned motion for each action,
as policies trained on RoboTwin do (`_qpos`, `_ee`).

Step limits are RoboTwin's own (`_eval_step_limit.yml`); it draws its instructions from long lists,
the ones here are ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias, get_args

import numpy as np

from zetta.sims.task_lists import TaskLists, suite_of

INIT_COUNT = 100
"""RoboTwin judges a policy on a hundred scenes of each task."""
CONTROL_HZ = 20.0
"""Of the suites of a fixed rate: that of LIBERO, so that policies, thresholds and skills fit."""
WAYPOINT_HZ = 250.0 / 15.0
"""RoboTwin keeps every fifteenth step of a demonstration: a waypoint stands for so much time."""
Setting: TypeAlias = Literal["blocks", "clean", "randomized"]
Acting: TypeAlias = Literal["rate", "qpos", "ee"]
ARMS = ("left", "right")


@dataclass(frozen=True, slots=True)
class RobotwinTask:
    """One task, and what its things are called."""

    name: str
    """As RoboTwin names its module and class."""
    limit: int
    """Actions, planned motions each, that RoboTwin gives a policy."""
    instruction: str
    things: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Names that instructions use, the first one first, by the attribute that holds the object."""

    @property
    def bundled(self) -> bool:
        """Whether it is made of primitive shapes alone, so that nothing need be downloaded."""
        return self.name in BLOCKS


@dataclass(frozen=True, slots=True)
class Suite:
    """What the name of a suite says."""

    setting: Setting
    acting: Acting

    @property
    def name(self) -> str:
        """Return the name."""
        return f"robotwin_{self.setting}" + ("" if self.acting == "rate" else f"_{self.acting}")


_COLOURED = {
    "block1": ("red block", "red cube"),
    "block2": ("green block", "green cube"),
    "block3": ("blue block", "blue cube"),
}
_TWO = {name: _COLOURED[name] for name in ("block1", "block2")}
_SIZED = {
    "block1": ("large block", "largest block"),
    "block2": ("medium block",),
    "block3": ("small block", "smallest block"),
}
_HANDED = {"box": ("red block", "block"), "target_box": ("blue pad", "pad")}
_THINGS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "blocks_ranking_rgb": _COLOURED,
    "blocks_ranking_size": _SIZED,
    "handover_block": _HANDED,
    "stack_blocks_three": _COLOURED,
    "stack_blocks_two": _TWO,
}
"""Names that instructions use, by task; the other tasks need a download to be looked at."""
_LISTED: tuple[tuple[str, int, str], ...] = (
    ("adjust_bottle", 400, "pick up the bottle with its head up"),
    ("beat_block_hammer", 400, "beat the block with the hammer"),
    ("blocks_ranking_rgb", 1200, "arrange the red block, the green block and the blue block in a "
     "row from left to right"),
    ("blocks_ranking_size", 1200, "arrange the blocks in a row from the largest on the left to the "
     "smallest on the right"),
    ("click_alarmclock", 400, "press the button of the alarm clock"),
    ("click_bell", 400, "press the bell"),
    ("dump_bin_bigbin", 600, "empty the small bin into the big bin"),
    ("grab_roller", 400, "lift the roller with both arms"),
    ("handover_block", 800, "hand the red block from the left arm to the right arm and put it on "
     "the blue pad"),
    ("handover_mic", 600, "hand the microphone from one arm to the other"),
    ("hanging_mug", 900, "hang the mug on the rack"),
    ("lift_pot", 400, "lift the pot with both arms"),
    ("move_can_pot", 400, "put the can beside the pot"),
    ("move_pillbottle_pad", 400, "put the pill bottle on the pad"),
    ("move_playingcard_away", 400, "move the playing cards away from the table"),
    ("move_stapler_pad", 400, "put the stapler on the pad"),
    ("open_laptop", 700, "open the laptop"),
    ("open_microwave", 1500, "open the microwave"),
    ("pick_diverse_bottles", 400, "pick up one bottle with each arm"),
    ("pick_dual_bottles", 400, "pick up both bottles, one with each arm"),
    ("place_a2b_left", 400, "put the first object to the left of the second one"),
    ("place_a2b_right", 400, "put the first object to the right of the second one"),
    ("place_bread_basket", 700, "put the bread in the basket"),
    ("place_bread_skillet", 500, "put the bread in the skillet"),
    ("place_burger_fries", 500, "put the burger and the fries on the tray"),
    ("place_can_basket", 700, "put the can in the basket and lift the basket"),
    ("place_cans_plasticbox", 800, "put the cans in the plastic box"),
    ("place_container_plate", 400, "put the container on the plate"),
    ("place_dual_shoes", 600, "put both shoes in the shoe box"),
    ("place_empty_cup", 500, "put the empty cup on the coaster"),
    ("place_fan", 400, "put the fan on the pad"),
    ("place_mouse_pad", 400, "put the mouse on the pad"),
    ("place_object_basket", 700, "put the object in the basket and lift the basket"),
    ("place_object_scale", 400, "put the object on the scale"),
    ("place_object_stand", 400, "put the object on the stand"),
    ("place_phone_stand", 400, "put the phone on the phone stand"),
    ("place_shoe", 500, "put the shoe on the mat"),
    ("press_stapler", 400, "press the stapler"),
    ("put_bottles_dustbin", 1700, "put the bottles in the dustbin"),
    ("put_object_cabinet", 700, "open the drawer and put the object in it"),
    ("rotate_qrcode", 400, "turn the sign so that its code faces the robot"),
    ("scan_object", 500, "scan the object with the scanner"),
    ("shake_bottle", 700, "shake the bottle"),
    ("shake_bottle_horizontally", 700, "shake the bottle while it lies level"),
    ("stack_blocks_three", 1200, "put the green block on the red block and the blue block on the "
     "green block"),
    ("stack_blocks_two", 800, "put the green block on the red block"),
    ("stack_bowls_three", 1200, "stack the three bowls"),
    ("stack_bowls_two", 900, "stack the two bowls"),
    ("stamp_seal", 400, "stamp the seal on the pad"),
    ("turn_switch", 400, "press the switch"),
)  # fmt: skip
"""Name, RoboTwin's limit of actions and our instruction of every task."""
_TASKS = tuple(RobotwinTask(*row, _THINGS.get(row[0], {})) for row in _LISTED)
BLOCKS = (
    "stack_blocks_two",
    "stack_blocks_three",
    "blocks_ranking_rgb",
    "blocks_ranking_size",
    "handover_block",
)
"""Tasks made of primitive shapes alone, in the order of the suite `robotwin_blocks`."""
SUITES: Mapping[str, Suite] = {
    suite.name: suite
    for suite in (Suite(s, a) for s in get_args(Setting) for a in get_args(Acting))
}
_BY_NAME = {task.name: task for task in _TASKS}


def tasks_of(suite: str) -> tuple[RobotwinTask, ...]:
    """Return the tasks of a suite, in a fixed order: the index of a task is its place here.

    Raises:
        ConfigError: unknown suite.
    """
    if suite_of(SUITES, suite, "RoboTwin").setting == "blocks":
        return tuple(_BY_NAME[name] for name in BLOCKS)
    return _TASKS


def _steps(suite: str, own: RobotwinTask) -> int:
    if SUITES[suite].acting != "rate":
        return own.limit
    return round(own.limit * CONTROL_HZ / WAYPOINT_HZ)  # the same time in the world


_LISTS: Final[TaskLists[RobotwinTask]] = TaskLists(
    {suite: tasks_of(suite) for suite in SUITES}, tasks_of, _steps, {"robotwin_clean": _TASKS}
)
counts, find, number, task = _LISTS.counts, _LISTS.find, _LISTS.number, _LISTS.task

_FIRST_JUDGED = 100_000
"""RoboTwin's evaluation begins at this seed; its demonstrations use small ones."""


def seed_of(k: int | None, seed: int, attempt: int) -> int:
    """Return RoboTwin's own seed for a layout; a further attempt is made where one is unusable.

    Args:
        k: which `Init` layout; None for a sampled one.
        seed: of a sampled layout.
        attempt: 0 for the first one.
    """
    if k is not None and attempt == 0:
        return _FIRST_JUDGED + k
    entropy = (0, k, attempt) if k is not None else (1, seed, attempt)
    # The upper half: RoboTwin's own seeds, of demonstrations too, are far below.
    return 2**31 + int(np.random.SeedSequence(entropy).generate_state(1)[0]) % 2**31
