"""Arm poses for training pictures: at home, off home, hovering, and holding something."""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np

from zetta.runtime.core import Array
from zetta.sims.libero.landmarks import NamedWorld

_TURNS = 60
_DAMPING = 0.02
_CLOSE_ENOUGH = 0.01
FINGER_TRAVEL = 0.04
"""Of one finger, metres."""


class Reach:
    """Finds joint positions that bring the hand somewhere, pointing down."""

    def __init__(self, world: NamedWorld, sim_env: Any) -> None:
        self._model: Any = sim_env.sim.model._model
        self._live: Any = sim_env.sim.data._data
        self._scratch = mujoco.MjData(self._model)
        robot = sim_env.env.robots[0]
        self._site = int(robot.eef_site_id)
        self._joints = np.array(robot._ref_joint_pos_indexes)
        self._speeds = np.array(robot._ref_joint_vel_indexes)
        self._fingers = np.array(robot._ref_gripper_joint_pos_indexes)
        names = [f"robot0_joint{i + 1}" for i in range(len(self._joints))]
        self._range = np.array([self._model.joint(n).range for n in names])
        self._down = world.ee_rot

    def solve(self, target: Array, yaw: float) -> Array | None:
        """Return joint positions with the grip site at `target`, or None when out of reach."""
        scratch = self._scratch
        scratch.qpos[:] = self._live.qpos
        turn = np.array([[np.cos(yaw), -np.sin(yaw), 0], [np.sin(yaw), np.cos(yaw), 0], [0, 0, 1]])
        wanted = turn @ self._down
        jacobian = np.zeros((6, self._model.nv))
        for _ in range(_TURNS):
            mujoco.mj_kinematics(self._model, scratch)
            mujoco.mj_comPos(self._model, scratch)
            away = target - scratch.site_xpos[self._site]
            rotation = scratch.site_xmat[self._site].reshape(3, 3)
            twist = 0.5 * sum(np.cross(rotation[:, i], wanted[:, i]) for i in range(3))
            error = np.concatenate([away, twist])
            if np.linalg.norm(away) < _CLOSE_ENOUGH and np.linalg.norm(twist) < 0.1:
                return np.array(scratch.qpos[self._joints])
            mujoco.mj_jacSite(self._model, scratch, jacobian[:3], jacobian[3:], self._site)
            j = jacobian[:, self._speeds]
            step = j.T @ np.linalg.solve(j @ j.T + _DAMPING**2 * np.eye(6), error)
            moved = scratch.qpos[self._joints] + np.clip(step, -0.3, 0.3)
            scratch.qpos[self._joints] = np.clip(moved, self._range[:, 0], self._range[:, 1])
        return None

    def put(self, joints: Array, opening: float) -> None:
        """Set the arm's joints and the distance between its fingers (metres)."""
        half = float(np.clip(opening / 2, 0.0, FINGER_TRAVEL))
        self._live.qpos[self._joints] = np.clip(joints, self._range[:, 0], self._range[:, 1])
        self._live.qpos[self._fingers] = [half, -half]

    @property
    def joints(self) -> Array:
        """The arm's present joint positions."""
        return np.array(self._live.qpos[self._joints])

    @property
    def robot_rows(self) -> tuple[Array, Array]:
        """Rows of positions and of speeds that belong to arm and fingers."""
        fingers = [int(self._model.jnt_dofadr[self._joint_of(q)]) for q in self._fingers]
        return (
            np.concatenate([self._joints, self._fingers]),
            np.concatenate([self._speeds, np.array(fingers)]),
        )

    def _joint_of(self, row: int) -> int:
        return int(np.flatnonzero(self._model.jnt_qposadr == row)[0])
