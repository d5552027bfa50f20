"""Pick one object and place it, from whatever state the scene is in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from zetta.runtime.core import Array
from zetta.runtime.errors import ConfigError
from zetta.sims.libero.expert_grasps import (
    MAP_HALF,
    Grasp,
    GripStyle,
    Manner,
    costs,
    overreach,
)
from zetta.sims.libero.expert_motions import (
    CLOSE,
    FUNNEL_RADIUS,
    OPEN,
    UP,
    Arm,
    Progress,
    Steps,
    funnel_height,
    upright,
)

HOVER = 0.10
"""Height above the grasp point at which the hand travels, metres."""
CLEARANCE = 0.03
"""Room between what is carried and what it passes over."""
OVERREACH_COST = 20.0
"""Per metre; the unit of cost is explained at `choose`."""
FAILURE_COST = 0.1
"""For each time that a hand turned the same way has failed."""
HABIT_COST = 0.15
"""For taking an object in another manner than usual, as long as the usual one has not failed."""
MISSES = 3
"""How often a grasp may be tried."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where an object shall come to rest."""

    point: Callable[[], Array]
    """Live target: `x y` for the object's reference, `z` for its lowest point. Shape (3,)."""
    reference: Callable[[], Array]
    """The point of the object that shall get there: its middle, or the origin predicates read."""
    tolerance: float = FUNNEL_RADIUS
    yaw: float | None = None
    """Turn of the hand while placing; None keeps the turn of the grasp."""


class PickPlace:
    """Take one object and set it down."""

    def __init__(
        self,
        arm: Arm,
        name: str,
        style: GripStyle,
        place: Place,
        grasp: Callable[[], Grasp] | None = None,
        habit: Manner | None = None,
    ) -> None:
        """Prepare to move the object `name`.

        Args:
            arm: the hand.
            name: the object.
            style: how it is taken.
            place: where it belongs.
            grasp: replaces the choice of a grasp where only one makes sense.
            habit: the manner in which it is usually taken. Demonstrations that take either rim of
                a bowl would teach the middle between them.
        """
        self.arm = arm
        self.world = arm.world
        self.name = name
        self.style = style
        self.place = place
        self._special = grasp
        self._habit = habit
        self._planned_at = np.zeros(3)
        self._grasp: Grasp | None = None
        self._failed: list[tuple[float, int]] = []

    def steps(self) -> Steps:
        """Pick and place, trying again after a miss."""
        for _ in range(MISSES):
            self.arm.intent.destination = self.place.point()
            held = self.world.gripped(self.name)
            if not held:
                held = yield from self._take()
            if held and (yield from self._carry()):
                return True
            if self._grasp is not None:
                self._failed.append((self._grasp.yaw, self._grasp.side))
        return False

    # ------------------------------------------------------------------ picking

    def plan(self) -> Grasp:
        """Return the grasp, made anew when the object moved, else shifted along with it."""
        if self._special is not None:
            self._grasp = self._special()
            return self._grasp
        position = self.world.position(self.name)
        if self._grasp is None or np.linalg.norm(position - self._planned_at) > 0.01:
            found = list(self.choices())
            self._grasp = min(found, key=lambda pair: pair[0])[1] if found else None
            self._planned_at = position
        if self._grasp is None:  # only a style that forbids every direction leaves nothing
            raise ConfigError(f"{self.name} offers no grasp for {self.style}")
        return replace(self._grasp, point=self._grasp.point + position - self._planned_at)

    def choices(self) -> Iterator[tuple[float, Grasp]]:
        """Yield the possible grasps with their costs."""
        points = self.world.points(self.name)
        top = float(points[:, 2].max()) + 0.3
        scene = self.world.height_map(points.mean(axis=0), MAP_HALF, top, self.name)
        return costs(points, scene, self.style, self._objections)

    def _objections(self, grasp: Grasp) -> float:
        """Return the cost of overreach when taking and placing, and of having failed before."""
        goal, reference = self.place.point(), self.place.reference()
        there = grasp.point - reference
        there[2] = grasp.point[2] - self._bottom()
        shoulder = self.world.shoulder
        beyond = overreach(grasp.point, shoulder) + overreach(goal + there, shoulder)
        failures = self._failed.count((grasp.yaw, grasp.side))
        unusual = self._habit is not None and not self._failed and grasp.manner != self._habit
        return OVERREACH_COST * beyond + FAILURE_COST * failures + HABIT_COST * unusual

    def _take(self) -> Steps:
        """Approach, descend and close; return whether the object is between the fingers."""
        self._grasp = None
        arm, world = self.arm, self.world
        travel = self._travel_height(self.plan())
        progress = Progress()
        while True:
            grasp = self.plan()
            rotation = upright(world.ee_rot, grasp.yaw)
            error = self._error(grasp)
            drop = float(world.ee_pos[2] - grasp.point[2])
            arm.intent.focus = grasp.point
            arm.intent.phase = "descend" if error < 0.03 else "approach"
            stalled = progress.stalled(error + abs(drop) + 0.1 * arm.turn_error(rotation))
            if error < FUNNEL_RADIUS and world.opening > grasp.width + 0.004:
                turned = arm.turn_error(rotation) < 0.15
                if (turned and drop < 0.008) or (stalled and drop < 0.03):
                    break
            if progress.idle > 30:
                return False
            yield arm.toward(self._above(grasp, error, rotation, travel), rotation, OPEN)
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
        travel, start = self._carry_height(), self._bottom()
        lost, progress = 0, Progress()
        while True:
            goal = self.place.point()
            arm.intent.destination = arm.intent.focus = goal
            lost = 0 if world.gripped(self.name) else lost + 1
            rotation = self._carry_rotation(self._bottom() - start)
            offset = (goal - self.place.reference())[:2]
            error, bottom = float(np.linalg.norm(offset)), self._bottom()
            if lost > 3:
                yield from arm.release(rotation)
                return False
            risen = bottom > start + CLEARANCE
            arm.intent.phase = "lower" if error < 0.03 else ("move" if risen else "lift")
            stalled = progress.stalled(self._remaining(goal, error, bottom, travel))
            if error < self.place.tolerance and bottom - goal[2] < 0.008:
                break
            if stalled and error < 0.03:
                break
            if progress.idle > 40:
                yield from arm.release(rotation)
                return False
            yield arm.toward(self._onward(goal, offset, bottom, travel), rotation, CLOSE)
        yield from arm.release(rotation)
        yield from arm.back_off(UP * 0.10, rotation)
        return True

    def _carry_rotation(self, risen: float) -> Array:
        """Return the orientation for carrying: the grasp's, then the one wanted at the place."""
        travel = self.world.ee_rot[:, 0]
        yaw = self._grasp.yaw if self._grasp else float(np.arctan2(-travel[0], travel[1]))
        if self.place.yaw is not None and risen > CLEARANCE:
            yaw = self.place.yaw
        return upright(self.world.ee_rot, yaw)

    def _remaining(self, goal: Array, error: float, bottom: float, travel: float) -> float:
        """Return what is left of the way, metres: up, over and down."""
        if error > 0.06:
            return error + max(0.0, travel - bottom) + travel - float(goal[2])
        return error + abs(bottom - float(goal[2]))

    def _onward(self, goal: Array, offset: Array, bottom: float, travel: float) -> Array:
        """Return the hand's target that brings the held object up, over and down."""
        error = float(np.linalg.norm(offset))
        height = goal[2] + funnel_height(error, self.place.tolerance, travel - goal[2])
        free = 1.0 if error < 0.04 else float(np.clip((0.06 - travel + bottom) / 0.03, 0.0, 1.0))
        if error > 0.06:
            height = travel
        return np.asarray(self.world.ee_pos + np.array([*(offset * free), height - bottom]))

    def _carry_height(self) -> float:
        """Return the height of the object's lowest point on the way to its place."""
        goal = self.place.point()
        low, high = self.world.bounds(self.name)
        radius = float((high - low)[:2].max()) / 2
        between = self.world.corridor_height((low + high) / 2, goal, radius, self.name)
        return max(between + CLEARANCE, float(goal[2]) + CLEARANCE)

    def _bottom(self) -> float:
        return float(self.world.points(self.name)[:, 2].min())
