"""The arms of a robosuite simulation: what they sense, what they are told, where they may be.

robosuite takes six numbers for an arm that carries a tool and seven for one with a gripper; ours
are always seven, and the gripper column of a tool is ignored.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from zetta.runtime.arm_model import ArmModel
from zetta.runtime.core import Action, ActionSpec, ArmState, read_only
from zetta.runtime.workspace import Box
from zetta.sims import mujoco_chain
from zetta.sims.boxes import room_before
from zetta.sims.robosuite.tasks import RobosuiteTask

COLUMNS = 7
_AXES = ("dx", "dy", "dz", "rx", "ry", "rz", "gripper")
_SCALE = (0.05,) * 3 + (0.5,) * 3 + (1.0,)
"""Metres and radians per 1.0: `output_max` of robosuite's default Panda controller."""
_AHEAD, _ASIDE = (0.20, 0.95), 0.50
"""The box of a hand, from the arm's base: ahead of it and to both sides, metres."""
_CLEAR, _HEIGHT = 0.005, 0.70
"""From what the things stand on to the least and the greatest height of the grip site, metres."""


def action_spec(arms: tuple[str, ...]) -> ActionSpec:
    """Return the action convention of the named arms."""
    size = COLUMNS * len(arms)
    names = _AXES if len(arms) == 1 else tuple(f"{a}_{axis}" for a in arms for axis in _AXES)
    return ActionSpec("delta_pose", names, (-1.0,) * size, (1.0,) * size, _SCALE * len(arms))


class Arms:
    """The arms of one environment."""

    def __init__(self, inner: Any, task: RobosuiteTask) -> None:
        self._robots, self._task = inner.robots, task
        self._model, self._data = inner.sim.model._model, inner.sim.data._data
        self._hands = [self._model.body(r.robot_model.eef_name["right"]).id for r in self._robots]

    def engine_row(self, row: Action) -> Action:
        """Return what robosuite takes for our row, clipped to its limits."""
        per_arm = np.clip(row, -1.0, 1.0).reshape(-1, COLUMNS)
        return per_arm[:, : COLUMNS if self._task.fingers else COLUMNS - 1].ravel()

    def rest_row(self) -> Action:
        """Return the row that holds still with open grippers."""
        return np.array(([0.0] * 6 + [-1.0]) * len(self._robots))

    def states(self) -> tuple[ArmState, ...]:
        """Return what each arm senses of itself."""
        return tuple(map(self._state, range(len(self._robots))))

    def model(self, index: int) -> ArmModel | None:
        """Return the kinematics of an arm, its base where it stands."""
        if not 0 <= index < len(self._robots):
            return None
        robot = self._robots[index]
        joints, site = robot._ref_arm_joint_indexes, robot.eef_site_id["right"]
        return mujoco_chain.chain(self._model, self._data, joints, self._hands[index], site)

    def workspace(self, index: int) -> Box | None:
        """Return where the hand of an arm may be: over the table, as far as the arm reaches."""
        model = self.model(index)
        if model is None:
            return None
        ground = self._task.ground
        heights = round(ground + _CLEAR, 3), round(ground + _HEIGHT, 3)
        return room_before(model.T_world_base, _AHEAD, _ASIDE, heights)

    def _state(self, index: int) -> ArmState:
        robot, data = self._robots[index], self._data
        opening = velocity = 0.0
        if self._task.fingers:
            fingers = data.qpos[robot._ref_gripper_joint_pos_indexes["right"]]
            speeds = data.qvel[robot._ref_gripper_joint_vel_indexes["right"]]
            opening, velocity = float(fingers[0] - fingers[1]), float(speeds[0] - speeds[1])
        return ArmState(
            ee_pos=read_only(data.site_xpos[robot.eef_site_id["right"]]),
            ee_quat=read_only(np.roll(data.xquat[self._hands[index]], -1)),  # wxyz -> xyzw
            joint_pos=read_only(data.qpos[robot._ref_arm_joint_pos_indexes]),
            gripper_opening=max(0.0, opening),
            gripper_velocity=velocity,
        )
