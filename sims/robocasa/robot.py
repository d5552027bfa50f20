"""The robot of a kitchen: a Panda arm on a base that rolls and a torso that lifts.

RoboCasa's arm controller takes translations and rotations in the frame of the robot's base; ours
are those of the world, and are turned here. Rotating about the vertical keeps lengths, so the
limits of our columns are the diagonals of theirs, and every row of theirs has one of ours.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from zetta.runtime.core import Action, ActionSpec, Array, read_only
from zetta.runtime.workspace import Box
from zetta.sims.boxes import room_before
from zetta.sims.robosuite.arms import COLUMNS, Arms
from zetta.sims.robosuite.tasks import RobosuiteTask

_SCALE = (0.05,) * 3 + (0.5,) * 3 + (1.0,) + (1.0, 1.0, 1.0, 0.05, 1.0)
"""Metres and radians per 1.0 for the arm (RoboCasa's `default_pandaomron`); the base's goal in m/s
and rad/s; the torso's step in metres; the mode."""
_DIAGONAL = math.sqrt(2.0)
_LIMITS = (_DIAGONAL, _DIAGONAL, 1.0) * 2 + (1.0,) * 6
REST = (0.0, 0.0, 0.0, 0.0, -1.0)
"""Base and torso still, and the arm's goal counted from where the arm is."""
ACTION = ActionSpec(
    kind="delta_pose",
    names=(
        *("dx", "dy", "dz", "rx", "ry", "rz", "gripper"),
        *("base_vx", "base_vy", "base_vyaw", "torso", "base_mode"),
    ),
    low=tuple(-n for n in _LIMITS),
    high=_LIMITS,
    scale=_SCALE,
    rest=REST,
)
_AHEAD, _ASIDE = (-0.30, 1.10), 0.85
"""The box of the hand, from the arm's base: behind and ahead of it, and to both sides, metres."""
_LOW, _HIGH = 0.10, 2.20
"""Least and greatest height of the grip site over the floor, metres."""
_ARM = RobosuiteTask("PandaOmron", "", ground=0.0)


class MobileArm(Arms):
    """The one arm, its base and its torso."""

    def __init__(self, inner: Any) -> None:
        super().__init__(inner, _ARM)
        self._foot = self._model.site("mobilebase0_center").id
        self._frame = self._model.site("robot0_right_center").id

    def engine_row(self, row: Action) -> Action:
        """Return what RoboCasa takes for our row: in the frame of the base, inside its limits."""
        turn = self._data.site_xmat[self._frame].reshape(3, 3)
        taken = np.clip(row, ACTION.low, ACTION.high)
        taken[:3], taken[3:6] = turn.T @ taken[:3], turn.T @ taken[3:6]
        return np.clip(taken, -1.0, 1.0)

    def rest_row(self) -> Action:
        """Return the row that holds still with an open gripper."""
        return np.array([*[0.0] * (COLUMNS - 1), ACTION.gripper_open, *REST])

    def base(self) -> Array:
        """Return where the base is: x, y and yaw in the world. Shape (3,)."""
        x, y, _ = self._data.site_xpos[self._foot]
        turn = self._data.site_xmat[self._foot].reshape(3, 3)
        return read_only([x, y, math.atan2(turn[1, 0], turn[0, 0])])

    def workspace(self, index: int) -> Box | None:
        """Return where the hand may be: around the arm, as far as it reaches, above the floor."""
        model = self.model(index)
        if model is None:
            return None
        return room_before(model.T_world_base, _AHEAD, _ASIDE, (_LOW, _HIGH))
