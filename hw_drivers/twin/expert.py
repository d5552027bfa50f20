"""A scripted driver of the twin that reads its truth: it shows that the tasks can be done."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

from zetta.hw_drivers.frames import matrix, product, rotation, rotation_vector
from zetta.hw_drivers.twin.things import THINGS
from zetta.runtime.core import Action, Array, Motion, Outcome

if TYPE_CHECKING:
    from zetta.hw_drivers.twin.env import TwinEnv

HOVER_M: Final = 0.12
LIFT_M: Final = 0.14
NEAR_M: Final = 0.004
TICKS_A_WAY: Final = 80
GRIP_TICKS: Final = 12
SLOW: Final = 0.4
"""Part of the full step, for the ways down."""
UP: Final = np.array([0.0, 0.0, 1.0])
_DOWN: Final = np.array([1.0, 0.0, 0.0, 0.0])


def expert_motion(env: TwinEnv, noise: float, seed: int) -> Motion:
    """Take the thing of the errand, and set it on its plate where it has one.

    Args:
        env: the twin.
        noise: standard deviation of what is added to each action.
        seed: of that noise.
    """
    hand = _Hand(env, noise, seed)
    errand = env.errand
    thing, size = errand.thing, THINGS[errand.thing].size
    spot, yaw = hand.place_of(thing)
    grasp = np.array([*spot[:2], max(spot[2] + size[2] / 2.0 - 0.026, 0.022)])
    facing = product(rotation(np.array([0.0, 0.0, yaw])), _DOWN)
    yield from hand.go(grasp + HOVER_M * UP, facing, hand.open)
    yield from hand.go(grasp, facing, hand.open, SLOW)
    yield from hand.wait(hand.closed)
    yield from hand.go(grasp + LIFT_M * UP, facing, hand.closed)
    if errand.on:
        plate, _ = hand.place_of(errand.on)
        middle = np.array([*plate[:2], grasp[2] + THINGS[errand.on].size[2] + 0.004])
        yield from hand.go(middle + LIFT_M * UP, facing, hand.closed)
        yield from hand.go(middle, facing, hand.closed, SLOW)
        yield from hand.wait(hand.open)
        yield from hand.go(middle + HOVER_M * UP, facing, hand.open)
    return Outcome(True, "")


class _Hand:
    """Makes actions of the twin's convention."""

    def __init__(self, env: TwinEnv, noise: float, seed: int) -> None:
        self._env, self._noise = env, noise
        self._rng = np.random.default_rng(seed)
        action = env.spec.action
        self.open, self.closed = action.gripper_open, action.gripper_close
        self._scale = np.array(action.scale[:6])
        self._low, self._high = np.array(action.low), np.array(action.high)

    def place_of(self, thing: str) -> tuple[Array, float]:
        """Return the middle of a thing and the yaw of its side that is nearest to the hand's."""
        pose = self._env.world.truth()[thing]
        R = matrix(pose.quat)
        quarter = math.pi / 2.0
        yaw = math.atan2(R[1, 0], R[0, 0]) if THINGS[thing].form == "box" else 0.0
        return pose.pos, yaw - quarter * round(yaw / quarter)

    def go(self, point: Array, facing: Array, gripper: float, most: float = 1.0) -> Motion:
        """Go straight to a pose."""
        for _ in range(TICKS_A_WAY):
            reading = self._env.local.state()
            way = point - reading.ee_pos
            if float(np.linalg.norm(way)) < NEAR_M:
                break
            back = reading.ee_quat * np.array([-1.0, -1.0, -1.0, 1.0])
            turn = rotation_vector(product(facing, back))
            moves = np.concatenate([way, turn]) / self._scale
            longest = max(float(np.linalg.norm(moves[:3])), float(np.linalg.norm(moves[3:])), most)
            yield self._action(moves * (most / longest), gripper)
        return Outcome(True, "")

    def wait(self, gripper: float) -> Motion:
        """Stay while the fingers move."""
        for _ in range(GRIP_TICKS):
            yield self._action(np.zeros(6), gripper)
        return Outcome(True, "")

    def _action(self, moves: Array, gripper: float) -> Action:
        row = np.append(moves, gripper)
        row[:6] += self._rng.normal(0.0, self._noise, 6) if self._noise else 0.0
        return np.asarray(np.clip(row, self._low, self._high))
