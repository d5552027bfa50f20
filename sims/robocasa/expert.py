"""Scripted experts of bundled kitchens: for plumbing and as a yardstick.

They read simulator truth. They use nothing but what any environment with landmarks tells, so they
drive an environment in another process as well.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Final

import numpy as np
from scipy.spatial.transform import Rotation

from zetta.runtime.core import Action, Array, Env, Landmark, Look, Motion, Outcome, Sense
from zetta.sims.robocasa.robot import ACTION, REST
from zetta.sims.surveyed import Surveyed, no_expert, surveyed

NEAR_M, NEAR_RAD = 0.01, 0.08
PATIENCE: Final = 100
"""Ticks that one way may take."""
FINGER_TICKS: Final = 15
BACK_M, FORTH_M, ASIDE_M = 0.35, 0.30, 0.25
"""How far the base goes back and forth again to get to the outer side of a door, and how far beside
its handle it then stands, metres."""
PULL_TILT, PUSH_TILT = np.deg2rad(75.0), np.deg2rad(60.0)
"""Tilt of the hand from straight down towards a front that it pulls or pushes."""
_SHUT: Final = 0.9999
"""Cosine of the angle between a front and the wall that it closes."""
_STUCK: Final = 0.25
"""A base that is told less than this does not move: the friction of its wheels, m/s."""
_STEP_M, _STEP_RAD = 0.05, 0.5
_GAIN: Final = 1.0
_UP: Final = np.array([0.0, 0.0, 1.0])
_Way = Generator[Action | Look, Sense, Sense]


def expert_motion(env: Env, noise: float, seed: int) -> Motion:
    """Return the expert of the task that `env` has been reset to.

    Args:
        env: an environment of robocasa, here or in another process.
        noise: standard deviation of the noise on its translations, of 1.
        seed: of the noise.

    Raises:
        ConfigError: there is no expert for this task.
    """
    own = surveyed(env, "robocasa", "RoboCasa")
    said = own.observe().instruction.lower()
    expert = _Expert(own, noise, np.random.default_rng(seed))
    doors = {
        ("open", "drawer"): expert.pull,
        ("close", "drawer"): expert.push,
        ("close", "cabinet"): expert.swing_shut,
    }
    for (verb, part), motion in doors.items():
        if said.startswith(verb) and part in said and expert.handles():
            return motion()
    raise no_expert(said, "OpenDrawer, for CloseDrawer and for CloseCabinet")


class _Expert:
    """Moves the hand from point to point."""

    def __init__(self, env: Surveyed, noise: float, rng: np.random.Generator) -> None:
        self._env, self._noise, self._rng = env, noise, rng
        self._grip = ACTION.gripper_open

    def pull(self) -> Motion:
        """Pinch the handle of a drawer and pull."""
        sense = Sense(self._env.observe().proprio)
        handle = self._handle()
        out = _outward(handle)
        turn = _facing(out, PULL_TILT, across_up=True)
        if self._aside(sense, handle) > 0.0:  # else the last joint meets its end
            turn = turn * Rotation.from_euler("z", np.pi)
        before = handle.position + 0.16 * out
        sense = yield from self._go(sense, before, turn, within=0.03)
        sense = yield from self._go(sense, handle.position + 0.012 * out, turn)
        sense = yield from self._set_grip(sense, ACTION.gripper_close)
        for _ in range(3 * PATIENCE):
            hand = sense.proprio.arms[0].ee_pos
            beside = self._handle().position - hand
            beside -= float(beside @ out) * out
            sense = yield self._row(sense, hand + 0.04 * out + beside, turn)
        return Outcome(True, "the drawer was pulled")

    def push(self) -> Motion:
        """Push the handle of a drawer until nothing moves any more."""
        sense = Sense(self._env.observe().proprio)
        handle = self._handle()
        out = _outward(handle)
        turn = _facing(out, PUSH_TILT, across_up=False)
        self._grip = ACTION.gripper_close
        sense = yield from self._go(sense, handle.position + 0.15 * out, turn, within=0.03)
        for _ in range(2 * PATIENCE):
            goal = self._handle().position - 0.05 * out
            sense = yield self._row(sense, goal, turn)
        return Outcome(True, "the drawer was pushed")

    def swing_shut(self) -> Motion:
        """Roll to the outer side of each door and push it shut with the hand pointing ahead."""
        sense = Sense(self._env.observe().proprio)
        base = sense.proprio.base
        assert base is not None
        ahead = np.array([np.cos(base[2]), np.sin(base[2])])
        self._grip = ACTION.gripper_close
        for door in range(len(self.handles())):
            sense = yield from self._swing(sense, ahead, door)
        return Outcome(True, "the doors were pushed")

    def _swing(self, sense: Sense, ahead: Array, door: int) -> _Way:
        handle = self.handles()[door]
        start, arm = sense.proprio.base, sense.proprio.arms[0]
        assert start is not None
        home = arm.ee_pos - np.append(start[:2], 0.0), Rotation.from_quat(arm.ee_quat)
        out, turn = _outward(handle), _facing(-np.append(ahead, 0.0), np.pi / 2, across_up=True)
        back = start[:2] - BACK_M * ahead
        sense = yield from self._roll(sense, back)
        beside = handle.position[:2] + ASIDE_M * out[:2]
        left = np.array([-ahead[1], ahead[0]])
        there = back + float((beside - back) @ left) * left
        sense = yield from self._roll(sense, there)
        sense = yield from self._roll(sense, there + FORTH_M * ahead)
        low = np.array([0.0, 0.0, -0.13])
        before = handle.position + 0.14 * out + low - 0.12 * np.append(ahead, 0.0)
        sense = yield from self._go(sense, before, turn, within=0.05)
        shut = 0
        for _ in range(3 * PATIENCE):
            handle = self.handles()[door]
            goal = handle.position - 0.08 * _outward(handle) + low
            sense = yield self._row(sense, goal, turn)
            shut += float(-_outward(handle)[:2] @ ahead) > _SHUT
            if shut > FINGER_TICKS:
                break
        away = sense.proprio.arms[0].ee_pos - 0.15 * np.append(ahead, 0.0)
        sense = yield from self._go(sense, away, turn, within=0.03)
        return (yield from self._tuck(sense, home))

    def _tuck(self, sense: Sense, home: tuple[Array, Rotation]) -> _Way:
        """Bring the hand back to where it was over the base, which has not turned."""
        base = sense.proprio.base
        assert base is not None
        return (yield from self._go(sense, home[0] + np.append(base[:2], 0.0), home[1], 0.05))

    def _roll(self, sense: Sense, point: Array) -> _Way:
        """Roll the base to a point of the floor; the arm rides along."""
        for _ in range(3 * PATIENCE):
            base = sense.proprio.base
            assert base is not None
            way = point - base[:2]
            if np.linalg.norm(way) < 0.03:
                break
            cosine, sine = np.cos(base[2]), np.sin(base[2])
            ahead, left = cosine * way[0] + sine * way[1], cosine * way[1] - sine * way[0]
            speed = np.clip(2.0 * np.array([ahead, left]), -0.4, 0.4)
            speed += np.where(np.abs([ahead, left]) > 0.015, np.sign(speed) * _STUCK, -speed)
            sense = yield np.array([*[0.0] * 6, self._grip, *speed, 0.0, 0.0, 1.0])
        for _ in range(5):
            sense = yield np.array([*[0.0] * 6, self._grip, *REST])
        return sense

    def handles(self) -> list[Landmark]:
        """Return the handles of what the task is about, in a fixed order."""
        return [m for m in self._env.landmarks() if m.name.startswith("handle of")]

    def _handle(self) -> Landmark:
        return self.handles()[0]

    def _aside(self, sense: Sense, handle: Landmark) -> float:
        """Return how far to the left of the robot a handle is, metres."""
        base = sense.proprio.base
        assert base is not None
        left = np.array([-np.sin(base[2]), np.cos(base[2])])
        return float((handle.position[:2] - base[:2]) @ left)

    def _go(self, sense: Sense, point: Array, turn: Rotation, within: float = NEAR_M) -> _Way:
        """Bring the hand to a pose."""
        for _ in range(PATIENCE):
            arm = sense.proprio.arms[0]
            left = (turn * Rotation.from_quat(arm.ee_quat).inv()).magnitude()
            if np.linalg.norm(point - arm.ee_pos) < within and left < NEAR_RAD:
                break
            sense = yield self._row(sense, point, turn)
        return sense

    def _row(self, sense: Sense, point: Array, turn: Rotation) -> Action:
        """Return the action that leads towards a pose."""
        arm = sense.proprio.arms[0]
        shift = _GAIN * (point - arm.ee_pos) / _STEP_M
        shift /= max(1.0, float(np.linalg.norm(shift)))
        left = (turn * Rotation.from_quat(arm.ee_quat).inv()).as_rotvec() / _STEP_RAD
        left /= max(1.0, float(np.linalg.norm(left)))
        shift += self._rng.normal(0.0, self._noise, 3)
        row = np.array([*shift, *left, self._grip, *REST])
        return np.asarray(np.clip(row, ACTION.low, ACTION.high))

    def _set_grip(self, sense: Sense, grip: float) -> _Way:
        self._grip = grip
        for _ in range(FINGER_TICKS):
            sense = yield np.array([*[0.0] * 6, grip, *REST])
        return sense


def _outward(mark: Landmark) -> Array:
    return np.array([np.cos(mark.yaw), np.sin(mark.yaw), 0.0])


def _facing(out: Array, tilt: float, across_up: bool) -> Rotation:
    """Return the orientation of a hand that points against `out` and down.

    Its y axis, along which the fingers open, stands upright or lies level.
    """
    z = -out * np.sin(tilt) - _UP * np.cos(tilt)
    level = np.cross(_UP, out)
    y = np.cross(z, level) if across_up else level
    return Rotation.from_matrix(np.column_stack([np.cross(y, z), y, z]))
