"""Scripted experts of RoboTwin's block tasks: for plumbing and as a yardstick.

They read simulator truth. They use nothing but what any environment with landmarks tells, so they
drive an environment in another process as well: at the fixed rate in a closed loop, or by
waypoints of the hand, which RoboTwin's planner turns into motions.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Final

import numpy as np
from scipy.spatial.transform import Rotation

from zetta.runtime.core import Action, Array, Env, Landmark, Look, Motion, Outcome, Sense
from zetta.sims.robotwin import tasks
from zetta.sims.robotwin.tasks import ARMS
from zetta.sims.surveyed import Surveyed, landmark, no_expert, surveyed

ABOVE_M: Final = 0.10
"""Height over a thing from which it is approached, and to which it is lifted."""
NEAR_M, NEAR_RAD = 0.004, 0.03
PATIENCE: Final = 120
"""Ticks that one way may take."""
FINGER_TICKS: Final = 20
_GAIN = 1.5
_SLACK_M: Final = 0.003
"""So high over its place a thing is let go."""
_ROW_Y, _ROW_X = -0.20, (-0.10, 0.0, 0.10)
"""Where the tasks of a row put their blocks, from left to right, metres."""
_MIDDLE: Final = np.array([0.0, -0.10])
"""Where one arm leaves what the other one takes, x and y, metres."""
_TABLE_Z: Final = 0.74
_QUARTER: Final = np.pi / 2
_Way = Generator[Action | Look, Sense, None]


def expert_motion(env: Env, noise: float, seed: int) -> Motion:
    """Return the expert of the task that `env` has been reset to.

    Args:
        env: an environment of RoboTwin, here or in another process.
        noise: standard deviation of the noise on its translations, of 1.
        seed: of the noise.

    Raises:
        ConfigError: there is no expert for this task.
    """
    own = surveyed(env, "robotwin", "RoboTwin")
    instruction = own.observe().instruction
    known = {t.instruction: t.name for t in tasks.tasks_of("robotwin_blocks")}
    name, names = known.get(instruction, ""), env.spec.action.names
    if name not in tasks.BLOCKS or f"{ARMS[0]}_rx" not in names:
        raise no_expert(instruction, "every task of robotwin_blocks and robotwin_blocks_ee")
    waypoints = env.spec.action.kind == "waypoint"
    rng = np.random.default_rng(seed)
    hands = _Waypoints(own, rng, noise) if waypoints else _Ticks(own, rng, noise)
    return _drive(own, hands, name)


def _drive(env: Surveyed, hands: _Hands, name: str) -> Motion:
    hands.sense = yield Look(())
    if name.startswith("stack"):
        for upper, lower in (("green block", "red block"), ("blue block", "green block")):
            if upper in (mark.name for mark in env.landmarks()):
                yield from _stack(env, hands, upper, lower)
    elif name.startswith("blocks_ranking"):
        for x, mark in zip(_ROW_X, env.landmarks(), strict=True):
            place = np.array([x, _ROW_Y, _TABLE_Z])
            yield from _carry(hands, mark, _side(mark), place, along=_QUARTER)
    else:
        yield from _hand_over(env, hands)
    return Outcome(True, "everything is where it belongs")


def _stack(env: Surveyed, hands: _Hands, upper: str, lower: str) -> _Way:
    moved, under = (landmark(env, name) for name in (upper, lower))
    top = under.position + np.array([0.0, 0.0, under.extent[2] / 2])
    yield from _carry(hands, moved, _side(moved), top, along=under.yaw)


def _hand_over(env: Surveyed, hands: _Hands) -> _Way:
    """Let the left arm put the block down in the middle, and the right one fetch it from there."""
    place = np.array([*_MIDDLE, _TABLE_Z])
    yield from _carry(hands, landmark(env, "red block"), 0, place, along=_QUARTER)
    pad = landmark(env, "blue pad")
    top = pad.position + np.array([0.0, 0.0, pad.extent[2] / 2])
    yield from _carry(hands, landmark(env, "red block"), 1, top, along=_QUARTER)


def _carry(hands: _Hands, thing: Landmark, arm: int, place: Array, along: float) -> _Way:
    """Pick a thing up with one arm and set it down on a point, the fingers along a direction."""
    up = np.array([0.0, 0.0, ABOVE_M])
    # A tall thing is taken near its top.
    above = max(0.0, thing.extent[2] / 2 - 0.03)
    grasp = thing.position + np.array([0.0, 0.0, above])
    yaw = hands.nearest_yaw(arm, thing.yaw)
    yield from hands.go(arm, grasp + up, yaw)
    yield from hands.go(arm, grasp, yaw)
    yield from hands.grip(arm, closed=True)
    yield from hands.go(arm, grasp + up, yaw)
    goal = place + np.array([0.0, 0.0, thing.extent[2] / 2 + above + _SLACK_M])
    yaw = hands.nearest_yaw(arm, along)
    yield from hands.go(arm, goal + up, yaw)
    yield from hands.go(arm, goal, yaw)
    yield from hands.grip(arm, closed=False)
    yield from hands.go(arm, goal + up, yaw)
    yield from hands.home(arm)


class _Hands:
    """Two downward hands; how they move is up to the way of acting."""

    def __init__(self, env: Surveyed, rng: np.random.Generator, noise: float) -> None:
        self.sense = Sense(env.observe().proprio)
        self._action, self._rng, self._noise = env.spec.action, rng, noise
        self._grips = [self._action.gripper_open] * len(ARMS)
        self._homes = [
            (arm.ee_pos, _finger_yaw(Rotation.from_quat(arm.ee_quat)))
            for arm in self.sense.proprio.arms
        ]

    def go(self, arm: int, point: Array, yaw: float) -> _Way:
        """Bring one hand to a point, pointing down, its fingers closing along `yaw`."""
        raise NotImplementedError

    def grip(self, arm: int, closed: bool) -> _Way:
        """Close or open one gripper, and wait for it."""
        raise NotImplementedError

    def home(self, arm: int) -> _Way:
        """Bring one hand back to where it began."""
        return self.go(arm, *self._homes[arm])

    def nearest_yaw(self, arm: int, yaw: float) -> float:
        """Return the direction, by quarter turns from `yaw`, that is nearest to the fingers'."""
        present = _finger_yaw(Rotation.from_quat(self.sense.proprio.arms[arm].ee_quat))
        return yaw + round((present - yaw) / _QUARTER) * _QUARTER

    def _command(self, closed: bool) -> float:
        return self._action.gripper_close if closed else self._action.gripper_open


class _Ticks(_Hands):
    """Small displacements at the fixed rate, in a closed loop."""

    def go(self, arm: int, point: Array, yaw: float) -> _Way:
        scale = np.array(self._action.scale[7 * arm : 7 * arm + 6])
        for _ in range(PATIENCE):
            state = self.sense.proprio.arms[arm]
            way = point - state.ee_pos
            turn = (_down(yaw) * Rotation.from_quat(state.ee_quat).inv()).as_rotvec()
            if np.linalg.norm(way) < NEAR_M and np.linalg.norm(turn) < NEAR_RAD:
                break
            move = _GAIN * np.concatenate([way, turn]) / scale
            move[:3] += self._rng.normal(0.0, self._noise, 3)
            row = self._still()
            row[7 * arm : 7 * arm + 6] = np.clip(move, -1.0, 1.0)
            self.sense = yield row

    def grip(self, arm: int, closed: bool) -> _Way:
        self._grips[arm] = self._command(closed)
        for _ in range(FINGER_TICKS):
            self.sense = yield self._still()

    def _still(self) -> Action:
        row = np.zeros(self._action.size)
        row[6::7] = self._grips
        return row


class _Waypoints(_Hands):
    """One planned motion for each way."""

    def __init__(self, env: Surveyed, rng: np.random.Generator, noise: float) -> None:
        super().__init__(env, rng, noise)
        self._rows = [
            np.array([*arm.ee_pos, *Rotation.from_quat(arm.ee_quat).as_rotvec()])
            for arm in self.sense.proprio.arms
        ]

    def go(self, arm: int, point: Array, yaw: float) -> _Way:
        aim = point + self._rng.normal(0.0, self._noise, 3) * 0.01
        self._rows[arm] = np.concatenate([aim, _down(yaw).as_rotvec()])
        self.sense = yield self._row()

    def grip(self, arm: int, closed: bool) -> _Way:
        self._grips[arm] = self._command(closed)
        # A motion of no length lasts a fifth of a second.
        for _ in range(FINGER_TICKS // 4):
            self.sense = yield self._row()

    def _row(self) -> Action:
        return np.concatenate([[*r, g] for r, g in zip(self._rows, self._grips, strict=True)])


def _side(mark: Landmark) -> int:
    """Return the arm on whose side of the table a thing lies."""
    return 0 if mark.position[0] < 0.0 else 1


def _down(yaw: float) -> Rotation:
    """Return the orientation of a hand that points down, its y axis (the fingers) along `yaw`."""
    y = np.array([np.cos(yaw), np.sin(yaw), 0.0])
    z = np.array([0.0, 0.0, -1.0])
    return Rotation.from_matrix(np.column_stack([np.cross(y, z), y, z]))


def _finger_yaw(hand: Rotation) -> float:
    fingers = hand.as_matrix()[:, 1]
    return float(np.arctan2(fingers[1], fingers[0]))
