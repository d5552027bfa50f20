"""Inverse kinematics of one arm: which joint angles lead to a pose, and how near any can come."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np

from zetta.primitives.motions_frames import angle_between
from zetta.runtime.arm_model import ArmModel
from zetta.runtime.core import Array, read_only
from zetta.runtime.errors import ConfigError

WITHIN = 0.01
"""A pose is reached within this distance, metres."""
TURN_WITHIN = math.radians(5.0)
"""And within this angle."""
_CLOSE, _TURN_CLOSE = 2e-4, 1e-3
"""The search ends when it is as near as this, metres and radians."""
_STEPS = 40
"""Most iterations from one start; three do in the middle of the reach."""
_PATIENCE = 6
"""Iterations without getting nearer after which a start is given up."""
_TURN_COST = 0.3
"""Metres that a radian counts."""
_REST_COST = 1e-3
"""How strongly joints that may lie otherwise are drawn to rest: too little to move the hand."""
_DAMPING = 1e-6
_SOLVER = "daqp"
_FAR = 2.0
"""Targets further from the base than this, metres, are no targets of an arm: nothing is solved."""


@dataclass(frozen=True, slots=True)
class Solution:
    """The joint angles that come nearest to a pose."""

    reached: bool
    """Both errors are within `WITHIN` and `TURN_WITHIN`."""
    joints: Array
    """Radians, within the limits. Shape (J,)."""
    position_error: float
    """Metres."""
    turn_error: float
    """Radians."""


class Kinematics:
    """One arm on its base. Equal questions have equal answers; not to be shared by threads."""

    def __init__(self, arm: ArmModel, rest: Array | None = None) -> None:
        """Compile the arm.

        Args:
            arm: its chain.
            rest: joints that it is drawn to where the pose leaves a choice, and a second start of
                the search; the middle of the ranges when None. Shape (J,).

        Raises:
            ConfigError: the extra `drive` is not installed, or the model is no such chain.
        """
        mink, mujoco = _solvers()
        try:
            model = mujoco.MjModel.from_xml_string(arm.mjcf)
        except ValueError as error:
            raise ConfigError(f"the model of the arm does not compile: {error}") from None
        self.names = arm.joints
        if int(model.nq) != len(arm.joints):
            raise ConfigError(
                f"the model of the arm has {model.nq} joints, {len(arm.joints)} are named; "
                "give a bare chain"
            )
        self._mink = mink
        self._order = [int(model.joint(name).qposadr[0]) for name in arm.joints]
        self.low, self.high = np.array(arm.low), np.array(arm.high)
        middle = (self.low + self.high) / 2.0
        self._rest = self._within(middle if rest is None else np.asarray(rest))
        self._starts = (self._rest, middle)
        self._base = np.array(arm.T_world_base)
        self._site = arm.site
        self._arm: Any = mink.Configuration(model)
        self._pose = mink.FrameTask(arm.site, "site", 1.0, _TURN_COST, lm_damping=1e-3)
        self._ease = mink.PostureTask(model, cost=_REST_COST)
        self._ease.set_target(self._laid_out(self._rest))
        self._limits = [mink.ConfigurationLimit(model, gain=1.0)]

    @property
    def size(self) -> int:
        """Number of joints."""
        return len(self.names)

    def forward(self, joints: Array) -> tuple[Array, Array]:
        """Return position (3,) and orientation (3, 3) of the grip site in the world."""
        self._arm.update(self._laid_out(np.asarray(joints, np.float64)))
        pose = self._base @ self._arm.get_transform_frame_to_world(self._site, "site").as_matrix()
        return pose[:3, 3], pose[:3, :3]

    def solve(self, position: Array, rotation: Array, seed: Array | None = None) -> Solution:
        """Return the joint angles nearest to a pose; unreachable poses have the least errors found.

        Args:
            position: of the grip site in the world, metres. Shape (3,).
            rotation: of the hand in the world. Shape (3, 3).
            seed: joints to start from, usually the present ones; the rest and the middle of the
                ranges are tried after them. Shape (J,).
        """
        starts: Sequence[Array] = self._starts if seed is None else (seed, *self._starts)
        if not float(np.linalg.norm(position - self._base[:3, 3])) < _FAR:
            return self._judged(self._within(starts[0]), position, rotation)
        best: Solution | None = None
        for start in starts:
            found = self._search(position, rotation, self._within(start))
            if best is None or _badness(found) < _badness(best):
                best = found
            if best.reached:
                break
        assert best is not None
        return best

    def _search(self, position: Array, rotation: Array, start: Array) -> Solution:
        goal = np.linalg.inv(self._base) @ _pose(position, rotation)
        self._pose.set_target(self._mink.SE3.from_matrix(goal))
        best, idle = self._judged(start, position, rotation), 0
        joints = start
        for _ in range(_STEPS):
            near = best.position_error < _CLOSE and best.turn_error < _TURN_CLOSE
            if near or idle > _PATIENCE:
                break
            joints = self._nearer(joints)
            found = self._judged(joints, position, rotation)
            idle = idle + 1 if _badness(found) > _badness(best) - 1e-5 else 0
            if _badness(found) < _badness(best):
                best = found
        return best

    def _nearer(self, joints: Array) -> Array:
        """Return joints one step nearer to the target, within their limits."""
        self._arm.update(self._laid_out(joints))
        try:
            speed = self._mink.solve_ik(
                self._arm, (self._pose, self._ease), 1.0, _SOLVER, _DAMPING, limits=self._limits
            )
        except self._mink.NoSolutionFound:
            return joints
        return self._within(self._arm.integrate(speed, 1.0)[self._order])

    def _judged(self, joints: Array, position: Array, rotation: Array) -> Solution:
        there, turn = self.forward(joints)
        short, turn_left = float(np.linalg.norm(there - position)), angle_between(turn, rotation)
        reached = short <= WITHIN and turn_left <= TURN_WITHIN
        return Solution(reached, read_only(joints), short, turn_left)

    def _within(self, joints: Array) -> Array:
        return np.clip(joints, self.low, self.high)

    def _laid_out(self, joints: Array) -> Array:
        """Return joints in the order of the compiled model."""
        laid_out = np.empty(len(self._order))
        laid_out[self._order] = joints
        return laid_out


def _badness(solution: Solution) -> float:
    return solution.position_error + _TURN_COST * solution.turn_error


def _pose(position: Array, rotation: Array) -> Array:
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = rotation, position
    return pose


def _solvers() -> tuple[ModuleType, ModuleType]:
    """Return mink and mujoco: imported late, because a base installation has neither.

    Raises:
        ConfigError: they are not installed.
    """
    try:
        import daqp  # noqa: F401 (mink finds it by name)
        import mink
        import mujoco
    except ImportError as error:
        raise ConfigError(
            f"the reach of an arm is computed with mink and MuJoCo, and {error.name} is not "
            "installed; pip install 'zetta[drive]'"
        ) from error
    return mink, mujoco
