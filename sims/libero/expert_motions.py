"""The expert's hand: one-tick moves and short motions with state feedback.

What to do follows from where things are, at every tick, so that noise on the actions is survived.
The motions are written to be imitated from single pictures: funnels instead of waiting points and
a close threshold wide enough for a policy to meet.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, get_args

import numpy as np
from scipy.spatial.transform import Rotation

from zetta.runtime.core import Action, Array, Sense
from zetta.sims.libero.world import World

Phase: TypeAlias = Literal[
    "approach",
    "descend",
    "close",
    "lift",
    "move",
    "lower",
    "open",
    "retreat",
    "pull",
    "push",
    "twist",
    "insert",
]
PHASES: tuple[str, ...] = get_args(Phase)

Steps: TypeAlias = Generator[Action, Sense, bool]
"""Part of an expert: yields actions, returns whether its purpose was reached."""

OPEN, CLOSE = -1.0, 1.0
DOWN = np.array([0.0, 0.0, -1.0])
UP = np.array([0.0, 0.0, 1.0])

METRES_PER_UNIT = 0.05
RADIANS_PER_UNIT = 0.5
GAIN = 1.5
FUNNEL_SLOPE = 3.0
FUNNEL_RADIUS = 0.012
"""Sideways error that does not delay the descent."""
LONGEST_REACH = 0.68
"""Distance shoulder to wrist in metres; 0.70 is a straight arm."""
PATIENCE = 10
"""Ticks without progress after which a motion stops waiting for its exact goal."""


@dataclass(slots=True)
class Intent:
    """What the expert is about, updated at each tick."""

    phase: Phase = "approach"
    focus: Array = field(default_factory=lambda: np.zeros(3))
    destination: Array | None = None


@dataclass(slots=True)
class Progress:
    """Notices that an error no longer shrinks."""

    best: float = np.inf
    idle: int = 0

    def stalled(self, error: float, patience: int = PATIENCE) -> bool:
        """Note the present error; say whether it has not shrunk for `patience` ticks."""
        self.idle = 0 if error < self.best - 5e-4 else self.idle + 1
        self.best = min(self.best, error)
        return self.idle > patience


def upright(ee_rot: Array, yaw: float = 0.0) -> Array:
    """Return the downward orientation nearest to `ee_rot` whose fingers travel along `yaw`.

    Both signs of the fingers' travel are the same grasp; the nearer one is taken.
    """
    return framed(nearer_sign(np.array([-np.sin(yaw), np.cos(yaw), 0.0]), ee_rot), DOWN)


def framed(x: Array, z: Array) -> Array:
    """Return the orientation with fingers along `x` and the hand pointing along `z`."""
    return np.column_stack([x, np.cross(z, x), z])


def nearer_sign(x: Array, ee_rot: Array) -> Array:
    """Return `x` or `-x`, whichever is nearer to the present direction of the fingers' travel."""
    return x if float(x @ ee_rot[:, 0]) > 0 else -x


def delta_action(
    position: Array,
    rotation: Array,
    target: Array,
    target_rotation: Array,
    gripper: float,
    speed: float = 1.0,
) -> Action:
    """Return the action that moves the hand toward a pose; long steps keep their direction."""
    action = np.zeros(7)
    action[:3] = limited((target - position) / METRES_PER_UNIT * GAIN, speed)
    turn = Rotation.from_matrix(target_rotation @ rotation.T).as_rotvec()
    action[3:6] = limited(turn / RADIANS_PER_UNIT * GAIN, 1.0)
    action[6] = gripper
    return action


def bent(step: Array, reach: Array) -> Array:
    """Return `step` without the part that would straighten the arm.

    A Panda that is straight cannot bend again under operational-space control.

    Args:
        step: wanted displacement of the hand, metres.
        reach: vector from shoulder to wrist, metres.
    """
    length = float(np.linalg.norm(reach))
    outward = reach / length
    excess = float(step @ outward) - max(LONGEST_REACH - length, -0.03)
    return np.asarray(step - max(0.0, excess) * outward)


def limited(vector: Array, most: float) -> Array:
    """Return `vector` shortened so that no component exceeds `most`.

    >>> limited(np.array([4.0, 2.0]), 1.0).tolist()
    [1.0, 0.5]
    """
    return np.asarray(vector * min(1.0, most / max(float(np.abs(vector).max()), 1e-9)))


def funnel_height(error: float, radius: float, top: float) -> float:
    """Return how high above the goal to be while `error` metres beside it.

    >>> funnel_height(0.01, 0.012, 0.1), round(funnel_height(0.03, 0.012, 0.1), 3)
    (0.0, 0.054)
    """
    return float(min(top, FUNNEL_SLOPE * max(0.0, error - radius)))


class Arm:
    """The hand of the expert: what it senses of itself, and short moves."""

    def __init__(self, world: World, intent: Intent) -> None:
        self.world = world
        self.intent = intent

    def toward(self, target: Array, rotation: Array, gripper: float, speed: float = 1.0) -> Action:
        """Return the action toward a pose; it never straightens the arm."""
        world = self.world
        step = bent(target - world.ee_pos, world.wrist - world.shoulder)
        target = world.ee_pos + step
        return delta_action(world.ee_pos, world.ee_rot, target, rotation, gripper, speed)

    def turn_error(self, rotation: Array) -> float:
        """Return the angle between the hand's orientation and `rotation`, radians."""
        return float(Rotation.from_matrix(rotation @ self.world.ee_rot.T).magnitude())

    def go(
        self,
        target: Callable[[], Array],
        rotation: Callable[[], Array],
        gripper: float,
        within: float = 0.012,
        turn_within: float = 0.15,
        speed: float = 1.0,
    ) -> Steps:
        """Move until near a pose; give up when no longer getting nearer."""
        progress = Progress()
        while True:
            goal, facing = target(), rotation()
            error, turn = float(np.linalg.norm(goal - self.world.ee_pos)), self.turn_error(facing)
            if error < within and turn < turn_within:
                return True
            if progress.stalled(error + 0.1 * turn):
                return False
            yield self.toward(goal, facing, gripper, speed)

    def reach(
        self,
        point: Callable[[], Array],
        rotation: Callable[[], Array],
        gripper: float = OPEN,
        standoff: float = 0.12,
        within: float = 0.008,
        good_enough: float = 0.03,
    ) -> Steps:
        """Come to a point along the hand's own axis, lined up before getting near.

        Where the arm gets no nearer, `good_enough` metres before the point will do.
        """
        progress = Progress()
        while True:
            goal, facing = point(), rotation()
            axis = facing[:, 2]
            offset = goal - self.world.ee_pos
            before = float(offset @ axis)
            beside = float(np.linalg.norm(offset - before * axis))
            turn = self.turn_error(facing)
            lined_up = beside < FUNNEL_RADIUS and turn < 0.2
            self.intent.focus = goal
            self.intent.phase = "descend" if beside < 0.03 and turn < 0.4 else "approach"
            if lined_up and before < within:
                return True
            if progress.stalled(abs(before) + beside + 0.1 * turn):
                return lined_up and before < good_enough
            gap = max(
                funnel_height(beside, FUNNEL_RADIUS, standoff),
                funnel_height(0.1 * turn, 0.015, standoff),
            )
            yield self.toward(goal - axis * gap, facing, gripper)

    def squeeze(self, target: Callable[[], Array], rotation: Array) -> Steps:
        """Close the fingers at a fixed place until they stand still; return whether they hold."""
        self.intent.phase = "close"
        before = self.world.opening
        for tick in range(20):
            yield self.toward(target(), rotation, CLOSE)
            now = self.world.opening
            if tick >= 10 and abs(now - before) < 4e-4:
                break
            before = now
        return self.world.opening > 0.002

    def release(self, rotation: Array, wide: float = 0.07) -> Steps:
        """Open the fingers where the hand is."""
        self.intent.phase = "open"
        spot = self.world.ee_pos
        for _ in range(12):
            if self.world.opening > wide:
                break
            yield self.toward(spot, rotation, OPEN)
        return True

    def back_off(self, direction: Array, rotation: Array, gripper: float = OPEN) -> Steps:
        """Withdraw the hand by `direction`."""
        self.intent.phase = "retreat"
        goal = self.world.ee_pos + direction
        return (yield from self.go(lambda: goal, lambda: rotation, gripper, 0.03, 0.5))
