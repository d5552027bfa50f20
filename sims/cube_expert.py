"""A scripted expert of cubes on a table: for plumbing and as a yardstick.

It reads simulator truth. It uses nothing but what any environment with landmarks tells, so it
drives an environment in another process as well.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Final

import numpy as np
from scipy.spatial.transform import Rotation

from zetta.runtime.core import Action, Array, Landmark, Look, Motion, Outcome, Sense
from zetta.sims.surveyed import Surveyed, landmark

ABOVE_M: Final = 0.10
"""Height over a thing from which it is approached, and to which it is lifted."""
NEAR_M, NEAR_RAD = 0.006, 0.06
PATIENCE: Final = 80
"""Ticks that one way may take."""
FINGER_TICKS: Final = 12
_QUARTER: Final = np.pi / 2
_Way = Generator[Action | Look, Sense, Sense]


class CubeExpert:
    """Moves one downward hand from point to point."""

    def __init__(self, env: Surveyed, noise: float, seed: int) -> None:
        """Drive `env`.

        Args:
            env: an environment whose actions are `delta_pose` of one arm.
            noise: standard deviation of the noise on the translations, of 1.
            seed: of the noise.
        """
        self._env, self._noise, self._rng = env, noise, np.random.default_rng(seed)
        self._step_m, self._step_rad = env.spec.action.scale[0], env.spec.action.scale[3]
        self._grip = -1.0

    def lift(self, name: str) -> Motion:
        """Pick a cube up."""
        yield from self._pick(landmark(self._env, name))
        return Outcome(True, "the cube is up")

    def stack(self, name: str, onto: str) -> Motion:
        """Put a cube on another one."""
        cube = landmark(self._env, name)
        sense, yaw = yield from self._pick(cube)
        goal = landmark(self._env, onto)
        top = goal.position[2] + (goal.extent[2] + cube.extent[2]) / 2
        over = np.array([*goal.position[:2], top])
        sense = yield from self._go(sense, _higher(over, ABOVE_M / 2), yaw)
        sense = yield from self._go(sense, _higher(over, 0.004), yaw)
        sense = yield from self._set_grip(sense, -1.0)
        yield from self._go(sense, _higher(over, ABOVE_M), yaw)
        return Outcome(True, "the cubes are stacked")

    def carry(self, name: str, to: str) -> Motion:
        """Bring a cube to a place in the air and hold it there."""
        sense, yaw = yield from self._pick(landmark(self._env, name))
        sense = yield from self._go(sense, landmark(self._env, to).position, yaw)
        yield from self._set_grip(sense, 1.0)
        return Outcome(True, "the cube is there")

    def _pick(self, cube: Landmark) -> Generator[Action | Look, Sense, tuple[Sense, float]]:
        sense = Sense(self._env.observe().proprio)
        yaw = _finger_yaw(sense, cube.yaw)
        sense = yield from self._go(sense, _higher(cube.position, ABOVE_M), yaw)
        sense = yield from self._go(sense, cube.position, yaw)
        sense = yield from self._set_grip(sense, 1.0)
        sense = yield from self._go(sense, _higher(cube.position, ABOVE_M), yaw)
        return sense, yaw

    def _go(self, sense: Sense, point: Array, yaw: float) -> _Way:
        """Bring the hand to a point, pointing down, its fingers closing along `yaw`."""
        for _ in range(PATIENCE):
            arm = sense.proprio.arms[0]
            way = np.asarray(point) - arm.ee_pos
            turn = (_down(yaw) * Rotation.from_quat(arm.ee_quat).inv()).as_rotvec()
            if np.linalg.norm(way) < NEAR_M and np.linalg.norm(turn) < NEAR_RAD:
                break
            shift = way / self._step_m + self._rng.normal(0.0, self._noise, 3)
            row = np.array([*shift, *(turn / self._step_rad), self._grip])
            sense = yield np.clip(row, -1.0, 1.0)
        return sense

    def _set_grip(self, sense: Sense, grip: float) -> _Way:
        self._grip = grip
        for _ in range(FINGER_TICKS):
            sense = yield np.array([0.0] * 6 + [grip])
        return sense


def _higher(point: Array, height: float) -> Array:
    return np.array([*point[:2], point[2] + height])


def _down(yaw: float) -> Rotation:
    """Return the orientation of a hand that points down, its y axis (the fingers) along `yaw`."""
    y = np.array([np.cos(yaw), np.sin(yaw), 0.0])
    z = np.array([0.0, 0.0, -1.0])
    return Rotation.from_matrix(np.column_stack([np.cross(y, z), y, z]))


def _finger_yaw(sense: Sense, yaw: float) -> float:
    """Return the direction along which the fingers close on a cube: the side nearest to theirs."""
    fingers = Rotation.from_quat(sense.proprio.arms[0].ee_quat).as_matrix()[:, 1]
    present = float(np.arctan2(fingers[1], fingers[0]))
    return yaw + round((present - yaw) / _QUARTER) * _QUARTER
