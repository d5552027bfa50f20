"""Scripted experts of robosuite's cubes: for plumbing and as a yardstick.

They read simulator truth. They use nothing but what any environment with landmarks tells, so they
drive an environment in another process as well.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Final, Protocol, runtime_checkable

import numpy as np
from scipy.spatial.transform import Rotation

from zetta.runtime.core import Action, Array, Env, Landmark, Look, Motion, Outcome, Sense
from zetta.runtime.errors import ConfigError
from zetta.sims.robosuite import tasks

ABOVE_M: Final = 0.10
"""Height over a thing from which it is approached, and to which it is lifted."""
NEAR_M, NEAR_RAD = 0.006, 0.06
PATIENCE: Final = 80
"""Ticks that one way may take."""
FINGER_TICKS: Final = 12
_STEP_M, _STEP_RAD = 0.05, 0.5
_QUARTER: Final = np.pi / 2
_Way = Generator[Action | Look, Sense, Sense]


@runtime_checkable
class Surveyed(Env, Protocol):
    """An environment that tells where every named thing is."""

    def landmarks(self) -> tuple[Landmark, ...]:
        """Return simulator truth about every named thing of the scene."""
        ...


def expert_motion(env: Env, noise: float, seed: int) -> Motion:
    """Return the expert of the task that `env` has been reset to.

    Args:
        env: an environment of robosuite, here or in another process.
        noise: standard deviation of the noise on its translations, of 1.
        seed: of the noise.

    Raises:
        ConfigError: there is no expert for this task.
    """
    if not isinstance(env, Surveyed) or env.spec.name != "robosuite":
        raise ConfigError(f"robosuite's experts drive its environments, not a {type(env).__name__}")
    instruction = env.observe().instruction
    known = {task.instruction: task.name for task in tasks.TASKS[tasks.ONE_ARM]}
    name = known.get(instruction, "")
    if name not in ("Lift", "Stack"):
        raise ConfigError(
            f"no scripted expert covers {instruction!r}; there is one for Lift and one for Stack"
        )
    return _Expert(env, noise, np.random.default_rng(seed)).drive(name == "Stack")


class _Expert:
    """Moves one downward hand from point to point."""

    def __init__(self, env: Surveyed, noise: float, rng: np.random.Generator) -> None:
        self._env, self._noise, self._rng = env, noise, rng
        self._grip = -1.0

    def drive(self, stack: bool) -> Motion:
        """Pick the red cube up, and put it on the green one where that is asked for."""
        sense = Sense(self._env.observe().proprio)
        cube = self._find("red cube")
        yaw = _finger_yaw(sense, cube.yaw)
        sense = yield from self._go(sense, _higher(cube.position, ABOVE_M), yaw)
        sense = yield from self._go(sense, cube.position, yaw)
        sense = yield from self._set_grip(sense, 1.0)
        sense = yield from self._go(sense, _higher(cube.position, ABOVE_M), yaw)
        if not stack:
            return Outcome(True, "the cube is up")
        goal = self._find("green cube")
        top = goal.position[2] + (goal.extent[2] + cube.extent[2]) / 2
        over = np.array([*goal.position[:2], top])
        sense = yield from self._go(sense, _higher(over, ABOVE_M / 2), yaw)
        sense = yield from self._go(sense, _higher(over, 0.004), yaw)
        sense = yield from self._set_grip(sense, -1.0)
        yield from self._go(sense, _higher(over, ABOVE_M), yaw)
        return Outcome(True, "the cubes are stacked")

    def _find(self, name: str) -> Landmark:
        return next(mark for mark in self._env.landmarks() if mark.name == name)

    def _go(self, sense: Sense, point: Array, yaw: float) -> _Way:
        """Bring the hand to a point, pointing down, its fingers closing along `yaw`."""
        for _ in range(PATIENCE):
            arm = sense.proprio.arms[0]
            way = np.asarray(point) - arm.ee_pos
            turn = (_down(yaw) * Rotation.from_quat(arm.ee_quat).inv()).as_rotvec()
            if np.linalg.norm(way) < NEAR_M and np.linalg.norm(turn) < NEAR_RAD:
                break
            shift = way / _STEP_M + self._rng.normal(0.0, self._noise, 3)
            row = np.array([*shift, *(turn / _STEP_RAD), self._grip])
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
