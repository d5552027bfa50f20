"""Take a thing and set it down: plans from estimates, closed loop over what the hand feels."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from zetta.primitives.grasps import (
    Grasp,
    Manner,
    Surroundings,
    bottom_of,
    choose,
    top_of,
)
from zetta.primitives.motions import Arm, Contact, Steps, cm, go, probe
from zetta.primitives.motions_frames import DOWN, UP, angle_between, downward, yaw_of
from zetta.primitives.motions_gripper import Grip, grip_outcome, release, squeeze
from zetta.runtime.core import Array, Estimate, Outcome

Placement: TypeAlias = Literal["on", "in"]
"""How the receptacle takes things: on its top, or inside."""

HOVER = 0.10
"""Height above a grasp point at which the hand travels, metres."""
CLEARANCE = 0.03
"""Room between what moves and what it passes over."""
FUNNEL_SLOPE = 3.0
FUNNEL_RADIUS = 0.012
"""Sideways error that does not delay the descent."""
LIFT = 0.04
"""How far a grasp lifts to see whether the thing comes along."""
SINK = 0.025
"""How far below the top of a receptacle its floor may be: plates are hollow."""
_TURNING = 0.5
"""A hand that has to turn by more than this is not ready to come down, radians."""
_RESTING_S = 0.15
"""Time after which what no longer sinks over its goal counts as resting on something."""
_SAG = 0.2
"""Sine of the angle by which a bowl that hangs by its rim tilts; 15 degrees were measured."""
_GENTLY = 0.05
"""What is held is lowered at half speed over the last part of its way, metres."""
TRIES = 2
"""Grasps of different manner that are tried."""


def funnel(error: float, radius: float, top: float) -> float:
    """Return how high above the goal to be while `error` metres beside it.

    >>> funnel(0.01, 0.012, 0.1), round(funnel(0.03, 0.012, 0.1), 3)
    (0.0, 0.054)
    """
    return min(top, FUNNEL_SLOPE * max(0.0, error - radius))


@dataclass(frozen=True, slots=True)
class Load:
    """What is held, relative to the grip site when it was taken."""

    offset: Array
    """From the grip site to the thing's middle, world frame. Shape (3,)."""
    extent: Array
    """Full size of the thing, metres. Shape (3,)."""
    rotation: Array
    """Orientation of the hand when it was taken. Shape (3, 3)."""
    sag: float = 0.0
    """How much lower its far side may hang, metres: what is held by its rim tilts."""

    def middle(self, arm: Arm) -> Array:
        """Return the middle of what is held now. Shape (3,).

        Only the hand's turn about the vertical counts: where a load meets something, the hand
        tilts against it, and the load does not follow.
        """
        turn = downward(arm.rotation) @ downward(self.rotation).T
        return np.asarray(arm.position + turn @ self.offset)

    def bottom(self, arm: Arm) -> float:
        """Return the height of its lowest point."""
        return float(self.middle(arm)[2] - self.extent[2] / 2.0)


@dataclass(frozen=True, slots=True)
class Held:
    """What one recovery leaves known to the next about what is in the hand."""

    load: Load | None = None
    """How it lies there; None while nobody knows."""
    opening: float = math.nan
    """Opening of the fingers when it was taken, metres; NaN when nobody knows."""


# --------------------------------------------------------------------------- taking


def plan(
    arm: Arm, thing: Estimate, failed: Collection[Manner] = (), place: Estimate | None = None
) -> tuple[Grasp | None, Surroundings]:
    """Return the best grasp of a thing that shall go to `place`, and what stands around it."""
    reach = arm.reach
    around = Surroundings(arm.sense.heights, thing, hand=arm.position, reach=reach)
    carried_by = None
    if place is not None:
        carried_by = place.position - thing.position
        carried_by[2] = top_of(place) - bottom_of(thing)
    return choose(thing, around, arm.hand, reach, failed, carried_by), around


@dataclass(frozen=True, slots=True)
class Descent:
    """How coming down to a grasp ended."""

    ready: bool
    height: float
    """Metres above the grasp point."""
    aside: float
    """Metres beside it."""

    def outcome(self) -> Outcome:
        """Return it as an outcome."""
        where = f"{cm(max(0.0, self.height))} above and {cm(self.aside)} beside the grasp"
        return Outcome(self.ready, f"lined up, {where}" if self.ready else f"stalled {where}")


def descend(arm: Arm, grasp: Grasp, around: Surroundings, seconds: float = 5.0) -> Steps[Descent]:
    """Come over a grasp and down to it in one sweep, open and lined up."""
    arm.closing = False
    travel = max(
        float(grasp.point[2]) + HOVER,
        around.way_over(arm.position, grasp.point, arm.hand, CLEARANCE),
    )
    progress = arm.progress()
    wide = min(grasp.width + 0.004, 0.9 * arm.hand.opening)
    for left in range(arm.ticks(seconds), -1, -1):
        offset = arm.position - grasp.point
        error, drop = scaled_error(arm, grasp, offset), float(offset[2])
        rotation = downward(arm.rotation, grasp.yaw)
        turn = angle_between(rotation, arm.rotation)
        stalled = progress.stalled(error + abs(drop) + 0.1 * turn)
        near = error < FUNNEL_RADIUS and arm.opening > wide
        ready = near and ((turn < 0.15 and drop < 0.008) or (stalled and drop < 0.03))
        aside = float(np.linalg.norm(offset[:2]))
        if ready or left == 0 or progress.idle > 2 * progress.patience:
            return Descent(ready, drop, aside)
        height = max(funnel(error, FUNNEL_RADIUS, HOVER), funnel(0.1 * turn, 0.015, HOVER))
        if arm.opening < wide:
            height = max(height, 0.06)
        target = grasp.point + UP * height
        if error > 0.06:
            target[2] = max(target[2], travel)
            if arm.position[2] < target[2] - 0.04:
                target[:2] = arm.position[:2]
        if turn > _TURNING:
            # A hand that is still tilted or turned sweeps wide; it does not sink meanwhile.
            target[2] = max(target[2], float(arm.position[2]))
        yield from arm.toward(target, rotation)
    raise AssertionError("the last round returns")


def scaled_error(arm: Arm, grasp: Grasp, offset: Array) -> float:
    """Return the horizontal error, scaled so that what the grasp tolerates is `FUNNEL_RADIUS`."""
    room = 0.012 if grasp.rim else (arm.hand.opening - grasp.width) / 2.0 - 0.002
    along = float(offset @ grasp.travel) / min(0.012, max(0.004, room))
    across = float(offset @ grasp.across) / 0.012
    return float(np.hypot(along, across)) * FUNNEL_RADIUS


def take(
    arm: Arm, thing: Estimate, failed: list[Manner], place: Estimate | None = None
) -> Steps[tuple[Outcome, Load | None]]:
    """Descend, close and lift, once; a manner that failed is added to `failed`."""
    grasp, around = plan(arm, thing, failed, place)
    if grasp is None:
        width = min(float(side) for side in thing.extent[:2])
        return Outcome(False, f"no grasp: it is {cm(width)} wide and has no rim to reach"), None
    descent = yield from descend(arm, grasp, around)
    if not descent.ready:
        failed.append(grasp.manner)
        return descent.outcome(), None
    rotation = downward(arm.rotation, grasp.yaw)
    spot = grasp.point + UP * max(0.0, descent.height if descent.height > 0.01 else 0.0)
    grip = yield from squeeze(arm, spot, rotation)
    if not grip.holding:
        failed.append(grasp.manner)
        return grip_outcome(grip), None
    load = load_of(arm, thing, grasp)
    watch = Grip(arm)
    lifted = arm.position + UP * LIFT
    for _ in range(arm.ticks(0.6)):
        yield from arm.toward(lifted, rotation)
        if watch.lost():
            failed.append(grasp.manner)
            return Outcome(False, "it slipped out of the fingers while being lifted"), None
        if arm.position[2] > lifted[2] - 0.012:
            break
    return Outcome(True, f"holding something {cm(arm.opening)} wide"), load


def load_of(arm: Arm, thing: Estimate, grasp: Grasp | None) -> Load:
    """Return how `thing` lies in the closed hand; fingers on both sides have centred it."""
    offset = thing.position - arm.position
    if grasp is not None and not grasp.rim:
        offset = offset - float(offset @ grasp.travel) * grasp.travel
    rim = grasp is not None and grasp.rim
    return Load(offset, thing.extent, arm.rotation, _SAG * float(thing.extent[0]) if rim else 0.0)


# --------------------------------------------------------------------------- placing


@dataclass(frozen=True, slots=True)
class Goal:
    """Where the bottom of what is held shall come to rest."""

    spot: Array
    """World frame. Shape (3,)."""
    deepest: float
    """How far below `spot` it may be lowered until something carries it, metres."""
    tolerance: float = FUNNEL_RADIUS


def goal_on(place: Estimate) -> Goal:
    """Return the goal on top of a receptacle, over its middle; a small one asks for more care."""
    tolerance = min(FUNNEL_RADIUS, max(0.004, 0.12 * float(place.extent[:2].min())))
    return Goal(np.array([*place.position[:2], top_of(place)]), SINK, tolerance)


def goal_in(place: Estimate, load: Load, arm: Arm) -> Goal:
    """Return the goal inside a receptacle: as deep as the hand may reach between its walls."""
    walls = Surroundings(arm.sense.heights, place, margin=-1.0)
    above = np.array([*place.position[:2], 0.0])
    highest = walls.under_hand(Grasp(above, yaw_of(arm.rotation), 0.0), arm.hand)
    if not np.isfinite(highest):
        highest = top_of(place)
    # The underside of the hand stays over whatever is below it, walls or what lies inside.
    site = highest + 0.01 - arm.hand.hand_above
    below = float(arm.position[2]) - load.bottom(arm)
    return Goal(np.array([*above[:2], max(bottom_of(place) + 0.01, site - below)]), 0.0)


def carry(arm: Arm, load: Load, goal: Goal, around: Surroundings) -> Steps[Outcome]:
    """Lift what is held, bring it over the goal and lower it; stop as soon as it is lost."""
    watch, rotation, progress = Grip(arm), downward(arm.rotation), arm.progress()
    low = float(goal.spot[2])
    radius = float(load.extent[:2].max()) / 2.0
    between = around.corridor(load.middle(arm), goal.spot, radius)
    travel = max(between, low) + CLEARANCE + load.sag
    resting = 0
    for left in range(arm.ticks(6.0), -1, -1):
        offset = goal.spot - load.middle(arm)
        error, bottom = float(np.linalg.norm(offset[:2])), load.bottom(arm)
        if watch.lost():
            return Outcome(False, f"dropped it, and noticed {cm(error)} short of the receptacle")
        progress.stalled(_remaining(error, bottom, travel, low))
        if error < goal.tolerance and bottom - low < 0.008:
            return Outcome(True, "over the receptacle")
        if resting >= arm.ticks(_RESTING_S) and error < 0.03 and bottom - low < HOVER:
            return Outcome(True, f"rests {cm(max(0.0, bottom - low))} high")
        if left == 0 or progress.idle > 2 * progress.patience:
            why = "time was up" if left == 0 else "stalled"
            return Outcome(False, f"{why} {cm(error)} short of the receptacle")
        target = _onward(arm, goal, offset, bottom, travel)
        told, before = float(target[2] - arm.position[2]), float(arm.position[2])
        gently = error < 0.04 and bottom - low < _GENTLY
        yield from arm.toward(target, rotation, 0.5 if gently else 1.0)
        # Told to sink and not sinking: something carries the load.
        sinks = told > -0.006 or arm.position[2] < before - 0.001
        resting = 0 if sinks else resting + 1
    raise AssertionError("the last round returns")


def _remaining(error: float, bottom: float, travel: float, low: float) -> float:
    """Return what is left of the way, metres: up, over and down."""
    if error > 0.06:
        return error + max(0.0, travel - bottom) + travel - low
    return error + abs(bottom - low)


def _onward(arm: Arm, goal: Goal, offset: Array, bottom: float, travel: float) -> Array:
    """Return the hand's target that brings what is held up, over and down."""
    error, low = float(np.linalg.norm(offset[:2])), float(goal.spot[2])
    height = low + funnel(error, goal.tolerance, travel - low)
    free = 1.0 if error < 0.04 else float(np.clip((0.06 - travel + bottom) / 0.03, 0.0, 1.0))
    if error > 0.06:
        height = travel
    return np.asarray(arm.position + np.array([*(offset[:2] * free), height - bottom]))


def set_down(arm: Arm, load: Load, goal: Goal) -> Steps[Outcome]:
    """Lower until something carries it or the goal's depth is reached, release and retreat."""
    rotation = downward(arm.rotation)
    down = load.bottom(arm) - float(goal.spot[2]) + goal.deepest
    contact = Contact(False, 0.0)
    if down > 0.004:
        contact = yield from probe(arm, DOWN * down, rotation, speed=0.35, seconds=1.0)
    freed = yield from release(arm, wide=arm.opening + 0.03)
    if not freed.completed:
        return freed
    rise = yield from go(arm, arm.position + UP * 0.08, rotation, within=0.02, turn_within=0.5)
    how = "set down on contact" if contact.touched else "let go"
    if not rise.reached:
        return Outcome(True, f"{how}; {rise.outcome('the retreat').reason}")
    return Outcome(True, how)
