"""Every task of every built-in simulator by a name that `gymnasium.make` knows.

`zetta/SUITE-TASK-v0`, such as `zetta/libero_object-0-v0`. Nothing is asked of a simulator here: to
ask LIBERO itself takes seconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import gymnasium

from zetta.sims.maniskill import tasks as maniskill
from zetta.sims.robocasa import tasks as robocasa
from zetta.sims.robosuite import tasks as robosuite
from zetta.sims.robotwin import tasks as robotwin
from zetta.sims.toy_tasks import suites as toy_suites

MAKER: Final = "zetta.runtime.cli.gymnasium_worlds:make"
"""A name and no import: who puts parts together stands above the simulators."""
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
"""Suites of LIBERO with their numbers of tasks; a test holds them equal to its catalogue."""


def suites() -> Mapping[str, Mapping[str, int]]:
    """Return the number of tasks by suite, by simulator; no engine is loaded."""
    return {
        "libero": LIBERO,
        "maniskill": maniskill.counts(),
        "robocasa": robocasa.counts(),
        "robosuite": robosuite.counts(),
        "robotwin": robotwin.counts(),
        "toy": toy_suites(),
    }


def register() -> None:
    """Tell Gymnasium every name; calling it again does nothing."""
    for sim, listed in suites().items():
        for suite, count in listed.items():
            for index in range(count):
                name = f"zetta/{suite}-{index}-v0"
                if name not in gymnasium.registry:
                    told = {"sim": sim, "suite": suite, "index": index}
                    gymnasium.register(id=name, entry_point=MAKER, kwargs=told)
