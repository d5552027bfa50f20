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
from typing import Literal, TypeAlias, get_args

import numpy as np

from zetta.runtime.core import Task
from zetta.runtime.errors import ConfigError, suggest
from zetta.sims.task_lists import nth, number_of

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
_TASKS: tuple[RobotwinTask, ...] = (
    RobotwinTask("adjust_bottle", 400, "pick up the bottle with its head up"),
    RobotwinTask("beat_block_hammer", 400, "beat the block with the hammer"),
    RobotwinTask(
        "blocks_ranking_rgb",
        1200,
        "arrange the red block, the green block and the blue block in a row from left to right",
        _COLOURED,
    ),
    RobotwinTask(
        "blocks_ranking_size",
        1200,
        "arrange the blocks in a row from the largest on the left to the smallest on the right",
        _SIZED,
    ),
    RobotwinTask("click_alarmclock", 400, "press the button of the alarm clock"),
    RobotwinTask("click_bell", 400, "press the bell"),
    RobotwinTask("dump_bin_bigbin", 600, "empty the small bin into the big bin"),
    RobotwinTask("grab_roller", 400, "lift the roller with both arms"),
    RobotwinTask(
        "handover_block",
        800,
        "hand the red block from the left arm to the right arm and put it on the blue pad",
        _HANDED,
    ),
    RobotwinTask("handover_mic", 600, "hand the microphone from one arm to the other"),
    RobotwinTask("hanging_mug", 900, "hang the mug on the rack"),
    RobotwinTask("lift_pot", 400, "lift the pot with both arms"),
    RobotwinTask("move_can_pot", 400, "put the can beside the pot"),
    RobotwinTask("move_pillbottle_pad", 400, "put the pill bottle on the pad"),
    RobotwinTask("move_playingcard_away", 400, "move the playing cards away from the table"),
    RobotwinTask("move_stapler_pad", 400, "put the stapler on the pad"),
    RobotwinTask("open_laptop", 700, "open the laptop"),
    RobotwinTask("open_microwave", 1500, "open the microwave"),
    RobotwinTask("pick_diverse_bottles", 400, "pick up one bottle with each arm"),
    RobotwinTask("pick_dual_bottles", 400, "pick up both bottles, one with each arm"),
    RobotwinTask("place_a2b_left", 400, "put the first object to the left of the second one"),
    RobotwinTask("place_a2b_right", 400, "put the first object to the right of the second one"),
    RobotwinTask("place_bread_basket", 700, "put the bread in the basket"),
    RobotwinTask("place_bread_skillet", 500, "put the bread in the skillet"),
    RobotwinTask("place_burger_fries", 500, "put the burger and the fries on the tray"),
    RobotwinTask("place_can_basket", 700, "put the can in the basket and lift the basket"),
    RobotwinTask("place_cans_plasticbox", 800, "put the cans in the plastic box"),
    RobotwinTask("place_container_plate", 400, "put the container on the plate"),
    RobotwinTask("place_dual_shoes", 600, "put both shoes in the shoe box"),
    RobotwinTask("place_empty_cup", 500, "put the empty cup on the coaster"),
    RobotwinTask("place_fan", 400, "put the fan on the pad"),
    RobotwinTask("place_mouse_pad", 400, "put the mouse on the pad"),
    RobotwinTask("place_object_basket", 700, "put the object in the basket and lift the basket"),
    RobotwinTask("place_object_scale", 400, "put the object on the scale"),
    RobotwinTask("place_object_stand", 400, "put the object on the stand"),
    RobotwinTask("place_phone_stand", 400, "put the phone on the phone stand"),
    RobotwinTask("place_shoe", 500, "put the shoe on the mat"),
    RobotwinTask("press_stapler", 400, "press the stapler"),
    RobotwinTask("put_bottles_dustbin", 1700, "put the bottles in the dustbin"),
    RobotwinTask("put_object_cabinet", 700, "open the drawer and put the object in it"),
    RobotwinTask("rotate_qrcode", 400, "turn the sign so that its code faces the robot"),
    RobotwinTask("scan_object", 500, "scan the object with the scanner"),
    RobotwinTask("shake_bottle", 700, "shake the bottle"),
    RobotwinTask("shake_bottle_horizontally", 700, "shake the bottle while it lies level"),
    RobotwinTask(
        "stack_blocks_three",
        1200,
        "put the green block on the red block and the blue block on the green block",
        _COLOURED,
    ),
    RobotwinTask("stack_blocks_two", 800, "put the green block on the red block", _TWO),
    RobotwinTask("stack_bowls_three", 1200, "stack the three bowls"),
    RobotwinTask("stack_bowls_two", 900, "stack the two bowls"),
    RobotwinTask("stamp_seal", 400, "stamp the seal on the pad"),
    RobotwinTask("turn_switch", 400, "press the switch"),
)
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
    if suite not in SUITES:
        raise ConfigError(f"unknown RoboTwin suite {suite!r}; {suggest(suite, SUITES)}")
    if SUITES[suite].setting == "blocks":
        return tuple(_BY_NAME[name] for name in BLOCKS)
    return _TASKS


def counts() -> Mapping[str, int]:
    """Return the number of tasks by suite."""
    return {suite: len(tasks_of(suite)) for suite in SUITES}


def find(suite: str, index: int) -> RobotwinTask:
    """Return a task.

    Raises:
        ConfigError: unknown suite or index.
    """
    return nth(tasks_of(suite), suite, index)


def number(suite: str, name: str) -> int:
    """Return the index of the task called `name`.

    Raises:
        ConfigError: unknown suite or name.
    """
    return number_of(tasks_of(suite), suite, name, {"robotwin_clean": _TASKS})


def task(suite: str, index: int) -> Task:
    """Return a task in the words of the runtime.

    Raises:
        ConfigError: unknown suite or index.
    """
    own = find(suite, index)
    steps = own.limit
    if SUITES[suite].acting == "rate":  # the same time in the world
        steps = round(steps * CONTROL_HZ / WAYPOINT_HZ)
    return Task(suite, index, own.instruction, steps)


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
