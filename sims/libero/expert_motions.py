"""Pick and place with state feedback: what to do follows from where things are, at every tick.

The motions are written to be imitated from single pictures: funnels instead of waiting points, a
close threshold wide enough for a policy to meet, the same side of a rim each time.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias, cast

import numpy as np
from scipy.spatial.transform import Rotation

from zetta.runtime.core import Action, Array, Sense
from zetta.sims.libero.expert_grasps import MAP_HALF, Grasp, GripStyle, choose
from zetta.sims.libero.world import World

Phase: TypeAlias = Literal[
    "approach", "descend", "close", "lift", "move", "lower", "open", "retreat",
    "pull", "push", "twist", "insert",
]  # fmt: skip
PHASES: tuple[str, ...] = Phase.__args__  # type: ignore[attr-defined]

Steps: TypeAlias = Generator[Action, Sense, bool]
"""Part of an expert: yields actions, returns whether its purpose was reached."""

OPEN, HOLD, CLOSE = -1.0, 0.0, 1.0
DOWN = np.array([0.0, 0.0, -1.0])
UP = -DOWN

METRES_PER_UNIT = 0.05
RADIANS_PER_UNIT = 0.5
GAIN = 1.5
FUNNEL_SLOPE = 3.0
FUNNEL_RADIUS = 0.012
HOVER = 0.10
"""Height above the grasp point at which the hand travels, metres."""
CLEARANCE = 0.03
MISSES = 3
"""How often a grasp may be tried."""


@dataclass(slots=True)
class Intent:
    """What the expert is about, updated at each tick."""

    phase: Phase = "approach"
    focus: Array = field(default_factory=lambda: np.zeros(3))
    destination: Array | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """Where an object shall come to rest."""

    point: Callable[[], Array]
    """Live target: `x y` for the object's reference, `z` for its lowest point. Shape (3,)."""
    by_origin: bool
    """The reference is the body origin, which predicates look at, not the middle."""
    tolerance: float = FUNNEL_RADIUS
    over: float | None = None
    """Least height of the object's lowest point while it travels."""


def upright(ee_rot: Array, yaw: float = 0.0) -> Array:
    """Return the downward orientation nearest to `ee_rot` whose fingers travel along `yaw`.

    Both signs of the fingers' travel are the same grasp; the nearer one is taken.
    """
    x = np.array([-np.sin(yaw), np.cos(yaw), 0.0])
    return framed(x if x @ ee_rot[:, 0] > 0 else -x, DOWN)


def framed(x: Array, z: Array) -> Array:
    """Return the orientation with fingers along `x` and the hand pointing along `z`."""
    return np.column_stack([x, np.cross(z, x), z])


def delta_action(
    position: Array, rotation: Array, target: Array, target_rotation: Array, gripper: float,
    speed: float = 1.0,
) -> Action:  # fmt: skip
    """Return the action that moves the hand toward a pose; longer steps keep their direction."""
    action = np.zeros(7)
    action[:3] = _limited((target - position) / METRES_PER_UNIT * GAIN, speed)
    turn = Rotation.from_matrix(target_rotation @ rotation.T).as_rotvec()
    action[3:6] = _limited(turn / RADIANS_PER_UNIT * GAIN, 1.0)
    action[6] = gripper
    return action


def funnel_height(error: float, radius: float, top: float) -> float:
    """Return how high above the goal to be while `error` metres beside it.

    >>> funnel_height(0.01, 0.012, 0.1), round(funnel_height(0.03, 0.012, 0.1), 3)
    (0.0, 0.054)
    """
    return float(min(top, FUNNEL_SLOPE * max(0.0, error - radius)))


def _limited(vector: Array, most: float) -> Array:
    return cast(Array, vector * min(1.0, most / max(float(np.abs(vector).max()), 1e-9)))


class Arm:
    """The hand of the expert: what it senses of itself, and one-tick moves."""

    def __init__(self, world: World, intent: Intent) -> None:
        self.world = world
        self.intent = intent

    def toward(self, target: Array, rotation: Array, gripper: float, speed: float = 1.0) -> Action:
        """Return the action toward a pose."""
        world = self.world
        return delta_action(world.ee_pos, world.ee_rot, target, rotation, gripper, speed)

    def turn_error(self, rotation: Array) -> float:
        """Return the angle between the hand's orientation and `rotation`, radians."""
        return float(Rotation.from_matrix(rotation @ self.world.ee_rot.T).magnitude())

    def go(
        self, target: Callable[[], Array], rotation: Callable[[], Array], gripper: float,
        within: float, turn_within: float = 0.12, most: int = 60, speed: float = 1.0,
    ) -> Steps:  # fmt: skip
        """Move until near a pose; give up after `most` ticks."""
        for _ in range(most):
            goal, facing = target(), rotation()
            self.intent.focus = goal
            if np.linalg.norm(goal - self.world.ee_pos) < within and (
                self.turn_error(facing) < turn_within
            ):
                return True
            yield self.toward(goal, facing, gripper, speed)
        return False

    def squeeze(self, target: Callable[[], Array], rotation: Array) -> Steps:
        """Close the fingers at a fixed place until they stand still; return whether they hold."""
        before = self.world.opening
        for tick in range(20):
            yield self.toward(target(), rotation, CLOSE)
            now = self.world.opening
            if tick >= 10 and abs(now - before) < 4e-4:
                break
            before = now
        return self.world.opening > 0.002

    def release(self, rotation: Array, wide: float = 0.07, most: int = 12) -> Steps:
        """Open the fingers where the hand is."""
        self.intent.phase = "open"
        spot = self.world.ee_pos
        for _ in range(most):
            if self.world.opening > wide:
                break
            yield self.toward(spot, rotation, OPEN)
        return True

    def back_off(self, direction: Array, rotation: Array, gripper: float = OPEN) -> Steps:
        """Withdraw the hand by `direction`."""
        self.intent.phase = "retreat"
        goal = self.world.ee_pos + direction
        return (yield from self.go(lambda: goal, lambda: rotation, gripper, 0.03, 0.5, 16))


class PickPlace:
    """Take one object and set it down."""

    def __init__(self, arm: Arm, name: str, style: GripStyle, place: Place) -> None:
        self.arm = arm
        self.world = arm.world
        self.name = name
        self.style = style
        self.place = place
        self._planned_at = np.zeros(3)
        self._grasp: Grasp | None = None

    def steps(self) -> Steps:
        """Pick and place, trying again after a miss."""
        for _ in range(MISSES):
            self.arm.intent.destination = self.place.point()
            held = self.world.gripped(self.name)
            if not held:
                held = yield from self._take()
            if held and (yield from self._carry()):
                return True
        return False

    # ------------------------------------------------------------------ picking

    def _plan(self) -> Grasp:
        """Return the grasp, made anew when the object moved by more than its drift."""
        position = self.world.position(self.name)
        moved = position - self._planned_at
        if self._grasp is None or np.linalg.norm(moved) > 0.01:
            points = self.world.points(self.name)
            scene = self.world.height_map(
                points.mean(axis=0), MAP_HALF, float(points[:, 2].max()) + 0.5, self.name
            )
            self._grasp = choose(points, scene, self.style)
            self._planned_at = position
            moved = np.zeros(3)
        if self._grasp is None:
            raise RuntimeError(f"{self.name} offers no grasp for {self.style}")
        return replace(self._grasp, point=self._grasp.point + moved)

    def _take(self) -> Steps:
        """Approach, descend and close; return whether the object is between the fingers."""
        self._grasp = None
        arm, world = self.arm, self.world
        travel = self._travel_height(self._plan())
        best, idle = np.inf, 0
        while True:
            grasp = self._plan()
            rotation = upright(world.ee_rot, grasp.yaw)
            error = self._error(grasp)
            drop = float(world.ee_pos[2] - grasp.point[2])
            arm.intent.focus = grasp.point
            arm.intent.phase = "descend" if error < 0.03 else "approach"
            if error < FUNNEL_RADIUS:
                idle = 0 if drop < best - 5e-4 else idle + 1
                best = min(best, drop)
                ready = arm.turn_error(rotation) < 0.15 and world.opening > grasp.width + 0.004
                if ready and (drop < 0.008 or (idle > 8 and drop < 0.03)):
                    break
                if idle > 25:
                    return False
            yield arm.toward(self._above(grasp, error, rotation, travel), rotation, OPEN)
        arm.intent.phase = "close"
        fixed = grasp.point.copy()
        yield from arm.squeeze(lambda: fixed, rotation)
        return world.gripped(self.name)

    def _error(self, grasp: Grasp) -> float:
        """Return the horizontal error, scaled so that the tolerance is `FUNNEL_RADIUS`."""
        axis = np.array([-np.sin(grasp.yaw), np.cos(grasp.yaw)])
        offset = (self.world.ee_pos - grasp.point)[:2]
        parts = np.array([offset @ axis, offset @ np.array([-axis[1], axis[0]])])
        return float(np.linalg.norm(parts / grasp.tolerance)) * FUNNEL_RADIUS

    def _above(self, grasp: Grasp, error: float, rotation: Array, travel: float) -> Array:
        """Return the present target on the way down the funnel."""
        turn = self.arm.turn_error(rotation)
        height = max(
            funnel_height(error, FUNNEL_RADIUS, HOVER), funnel_height(turn * 0.1, 0.015, HOVER)
        )
        if self.world.opening < grasp.width + 0.004:
            height = max(height, 0.06)
        target = grasp.point + UP * height
        if error > 0.06:
            target[2] = max(target[2], travel)
            if self.world.ee_pos[2] < target[2] - 0.04:
                target[:2] = self.world.ee_pos[:2]
        return target

    def _travel_height(self, grasp: Grasp) -> float:
        """Return the hand's height on the way to the object: over whatever lies between."""
        between = self.world.corridor_height(self.world.ee_pos, grasp.point, 0.05, self.name)
        return max(float(grasp.point[2]) + HOVER, between + 0.02 + CLEARANCE)

    # ------------------------------------------------------------------ placing

    def _carry(self) -> Steps:
        """Lift, move and lower; return False as soon as the object is lost."""
        world, arm = self.world, self.arm
        rotation = upright(world.ee_rot, self._grasp.yaw if self._grasp else 0.0)
        travel = self._carry_height()
        start = self._bottom()
        lost, best, idle = 0, np.inf, 0
        while True:
            goal = self.place.point()
            arm.intent.destination = arm.intent.focus = goal
            lost = 0 if world.gripped(self.name) else lost + 1
            if lost > 3:
                yield from arm.release(rotation)
                return False
            offset = (goal - self._reference())[:2]
            error, bottom = float(np.linalg.norm(offset)), self._bottom()
            near = error < 0.03
            arm.intent.phase = "lower" if near else ("lift" if bottom < start + 0.03 else "move")
            drop = bottom - goal[2]
            if error < self.place.tolerance:
                idle = 0 if drop < best - 5e-4 else idle + 1
                best = min(best, drop)
                if drop < 0.008 or idle > 6:
                    break
            yield arm.toward(self._onward(goal, offset, bottom, travel), rotation, CLOSE)
        yield from arm.release(rotation)
        yield from arm.back_off(UP * 0.10, rotation)
        return True

    def _onward(self, goal: Array, offset: Array, bottom: float, travel: float) -> Array:
        """Return the hand's target that brings the held object up, over and down."""
        error = float(np.linalg.norm(offset))
        height = goal[2] + funnel_height(error, self.place.tolerance, travel - goal[2])
        below = travel - bottom
        free = 1.0 if error < 0.04 else float(np.clip((0.06 - below) / 0.03, 0.0, 1.0))
        if error > 0.06:
            height = travel
        step = np.array([*(offset * free), height - bottom])
        return self.world.ee_pos + step

    def _carry_height(self) -> float:
        """Return the height of the object's lowest point on the way to its place."""
        goal = self.place.point()
        low, high = self.world.bounds(self.name)
        radius = float((high - low)[:2].max()) / 2
        between = self.world.corridor_height((low + high) / 2, goal, radius, self.name)
        return max(between + CLEARANCE, goal[2] + CLEARANCE, self.place.over or -np.inf)

    def _reference(self) -> Array:
        if self.place.by_origin:
            return self.world.position(self.name)
        low, high = self.world.bounds(self.name)
        return (low + high) / 2

    def _bottom(self) -> float:
        return float(self.world.points(self.name)[:, 2].min())
