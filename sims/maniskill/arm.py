"""ManiSkill's Panda: its actions and its state in our words.

ManiSkill's `pd_ee_delta_pose` takes, in [-1, 1], 0.1 m along the axes of the arm's base, Euler
angles of 0.1 rad with the opposite sign, and +1 to open. The goal of a tick is the present pose
moved on, so that a hand goes about four tenths of what a row says; blocked, it does not wind up.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from scipy.spatial.transform import Rotation

from zetta.runtime.arm_model import ArmModel
from zetta.runtime.core import Action, ActionSpec, ArmState, Array, read_only
from zetta.runtime.workspace import Box
from zetta.sims.sapien_chain import Chain, matrix

ARMS: Final = ("panda",)
_JOINTS, _FINGERS = slice(0, 7), slice(7, 9)
_MOVE_M, _TURN_RAD = 0.1, 0.1
ACTION: Final = ActionSpec(
    "delta_pose",
    ("dx", "dy", "dz", "rx", "ry", "rz", "gripper"),
    (-1.0,) * 7,
    (1.0,) * 7,
    (*(_MOVE_M,) * 3, *(_TURN_RAD,) * 3, 1.0),
)
_AHEAD, _ASIDE, _HEIGHTS = (0.25, 0.90), 0.50, (0.005, 0.70)
"""The box of the hand: ahead of the base, to both sides, and over the table, metres."""


def engine_row(row: Action) -> Action:
    """Return what ManiSkill takes for our row, clipped to its limits.

    A rotation of more than 0.1 rad is shortened to that, as ManiSkill does.

    >>> print(engine_row(np.array([0.5, 0, 0, 0, 0, 1, -1])).round(3) + 0.0)
    [ 0.5  0.   0.   0.   0.  -1.   1. ]
    """
    row = np.clip(row, -1.0, 1.0)
    turn = row[3:6] / max(1.0, float(np.linalg.norm(row[3:6])))
    angles = Rotation.from_rotvec(_TURN_RAD * turn).as_euler("XYZ") / -_TURN_RAD
    return np.array([*row[:3], *np.round(angles, 12), -row[6]])


def rest_row() -> Action:
    """Return our row that holds still with an open gripper."""
    return np.array([0.0] * 6 + [ACTION.gripper_open])


class Arm:
    """The arm of one environment, as it is after a reset."""

    def __init__(self, env: Any) -> None:
        """Read the chain; a reset makes another arm."""
        self._robot, self._tcp = env.agent.robot, env.agent.tcp
        listed = [self._robot.joints_map[name]._objs[0] for name in env.agent.arm_joint_names]
        self._chain = Chain(self._tcp._objs[0].joint, listed, np.eye(4))

    def state(self) -> ArmState:
        """Return what the arm senses of itself."""
        pose = self._tcp.pose.raw_pose[0].numpy().astype(np.float64)
        places = self._robot.get_qpos()[0].numpy().astype(np.float64)
        speeds = self._robot.get_qvel()[0].numpy().astype(np.float64)
        quaternion = np.roll(pose[3:], -1)  # wxyz -> xyzw
        return ArmState(
            ee_pos=read_only(pose[:3]),
            ee_quat=read_only(quaternion / np.linalg.norm(quaternion)),
            joint_pos=read_only(places[_JOINTS]),
            gripper_opening=max(0.0, float(places[_FINGERS].sum())),
            gripper_velocity=float(speeds[_FINGERS].sum()),
        )

    def model(self) -> ArmModel:
        """Return the kinematics of the arm, its base where it stands."""
        return self._chain.model(self._base())

    def workspace(self) -> Box:
        """Return where the hand may be: over the table, as far as the arm reaches."""
        x, y, ground = (round(float(n), 3) for n in self._base()[:3, 3])
        low = (round(x + _AHEAD[0], 3), round(y - _ASIDE, 3), ground + _HEIGHTS[0])
        high = (round(x + _AHEAD[1], 3), round(y + _ASIDE, 3), ground + _HEIGHTS[1])
        return Box(low, high)

    def _base(self) -> Array:
        return matrix(self._robot._objs[0].links[0].pose)
