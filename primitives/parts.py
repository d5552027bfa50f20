"""Drawers, knobs and things that are pushed: motions on parts, from estimates alone.

The first axis of a handle's estimate points outward, the way in which its drawer opens; that of a
knob lies across its ridge.
"""

from __future__ import annotations

import math

import numpy as np

from zetta.primitives.grasps import HandGeometry, Surroundings, bottom_of, top_of
from zetta.primitives.motions import Arm, Arrival, Steps, cm, fly, go
from zetta.primitives.motions_carrying import FUNNEL_RADIUS, funnel
from zetta.primitives.motions_frames import (
    DOWN,
    UP,
    angle_between,
    downward,
    facing,
    half_turn,
    nearer_sign,
    turned,
)
from zetta.primitives.motions_gripper import Grip, grip_outcome, release, squeeze
from zetta.runtime.core import Array, Estimate, Outcome

PULL_TILT = math.radians(70.0)
"""Tilt of the hand from straight down when it pinches a handle: it passes under what is above."""
PUSH_TILT = math.radians(45.0)
SHORTEST_PULL = 0.03
"""A part that moved less than this was not worked, metres."""
TWIST = 1.1
"""Angle by which a knob is twisted, radians."""
_AHEAD = 0.03
"""How far the goal runs ahead of a hand that pulls or pushes: what bounds its force, metres."""
_LEAD = 0.3
"""The same for a hand that twists, radians."""
_ASKEW = 0.2
"""A hand that is left turned by more than this at a handle cannot turn any further, radians."""
_SLOW = 6e-4
"""A hand that gets on by less than this in a tick is stopped, metres."""
_FLAT = 0.035
"""What is lower and hollow is dragged from inside its rim, anything else pushed from behind."""
_INSIDE = 0.02
"""How far ahead of the middle of a plate the fingers go in to drag it, metres."""
_PRESS = 0.007
"""How far below that the hand aims while dragging, metres: or the fingers climb over the rim."""
_OVER_GROUND = 0.014
"""Height of the grip site over the ground while dragging, metres."""


def outward(part: Estimate) -> Array:
    """Return the horizontal direction of the first axis of a part. Shape (3,)."""
    return np.array([math.cos(part.yaw), math.sin(part.yaw), 0.0])


def pull(arm: Arm, part: Estimate) -> Steps[Outcome]:
    """Pinch a handle and pull until it stops or is far enough; once more if it slipped away.

    An arm that got no further has met the end of a joint: it then takes the handle with its fingers
    the other way round.
    """
    across = _across(arm, part)
    outcome, stuck = yield from _pull_once(arm, part, across)
    now = arm.estimate(part.role)
    if outcome.completed or now is None or now.t <= part.t:
        return outcome
    return (yield from _pull_once(arm, now, -across if stuck else across))[0]


def _across(arm: Arm, part: Estimate) -> Array:
    """Return the way in which the fingers open on a handle, or its opposite. Shape (3,).

    Beside a mobile base, the wrist of its Panda has room on one side only: that finger is below
    which is the right one of a hand that points down, for a handle to the right of the base.
    """
    across = outward(part) * math.cos(PULL_TILT) - UP * math.sin(PULL_TILT)
    base = arm.sense.proprio.base
    if base is None:
        return nearer_sign(across, arm.rotation)
    way = part.position[:2] - base[:2]
    return across if math.cos(base[2]) * way[1] < math.sin(base[2]) * way[0] else -across


def _pull_once(arm: Arm, part: Estimate, across: Array) -> Steps[tuple[Outcome, bool]]:
    """Pinch a handle, one finger above and one below it, and pull.

    Returns:
        How it ended, and whether the arm met the end of a joint.
    """
    out = outward(part)
    axis = -out * math.sin(PULL_TILT) + DOWN * math.cos(PULL_TILT)
    rotation = facing(across, axis)
    point = part.position + 0.004 * axis
    arm.closing = False
    arrival = yield from line_up(arm, point, rotation, good_enough=0.015)
    if not arrival.reached:
        yield from go(arm, arm.position - 0.08 * axis, rotation, within=0.03, turn_within=0.5)
        yield from arm.look(part.role)
        return arrival.outcome("the handle"), arrival.turn_left > _ASKEW
    grip = yield from squeeze(arm, point, rotation)
    outcome, moved, slipped = grip_outcome(grip), 0.0, False
    if grip.holding:
        moved, slipped = yield from _slide(arm, out, rotation, arm.hand.longest_pull, Grip(arm))
        trouble = "the handle slipped out of the fingers after" if slipped else ""
        outcome = _opened(moved, trouble, arm.hand)
    stuck = not slipped and SHORTEST_PULL < moved < arm.hand.least_pull
    yield from release(arm, wide=0.05)
    away = arm.position - 0.10 * axis + 0.03 * UP
    yield from go(arm, away, rotation, within=0.03, turn_within=0.5)
    yield from arm.look(part.role)
    now = arm.estimate(part.role)
    if now is not None and now.t > part.t and grip.holding:
        seen = float((now.position - part.position) @ out)
        if outcome.completed or seen >= SHORTEST_PULL:
            trouble = "" if outcome.completed else f"{outcome.reason}; it moved"
            return _opened(seen, trouble, arm.hand), stuck
    return outcome, stuck


def _opened(moved: float, trouble: str, hand: HandGeometry) -> Outcome:
    if moved < hand.least_pull:
        return Outcome(False, f"{trouble or 'it did not open: the handle moved'} {cm(moved)}")
    if trouble and moved < 0.5 * hand.longest_pull:
        return Outcome(False, f"{trouble} {cm(moved)}")
    return Outcome(True, f"{trouble or 'pulled it open by'} {cm(moved)}")


def _slide(
    arm: Arm, along: Array, rotation: Array, most: float, watch: Grip | None = None
) -> Steps[tuple[float, bool]]:
    """Move along a line until stopped; return how far, and whether the grip was lost."""
    start, moved, slow, fastest = arm.position, 0.0, 0, 0.0
    for tick in range(arm.ticks(4.0)):
        yield from arm.toward(start + along * (moved + _AHEAD), rotation)
        before, moved = moved, float((arm.position - start) @ along)
        fastest = max(fastest, moved - before)
        slow = slow + 1 if moved - before < max(_SLOW, 0.3 * fastest) else 0
        if watch is not None and watch.lost():
            return moved, True
        if moved >= most or (tick >= 8 and slow >= 3):
            break
    return moved, False


def press(arm: Arm, part: Estimate) -> Steps[Outcome]:
    """Push a handle against its outward direction, with closed fingers, until it stops."""
    out = outward(part)
    axis = -out * math.sin(PUSH_TILT) + DOWN * math.cos(PUSH_TILT)
    # The long side of the hand lies along the front, or it meets the handles above.
    rotation = facing(nearer_sign(np.cross(UP, out), arm.rotation), axis)
    arm.closing = True
    before = part.position + 0.10 * out + 0.12 * UP
    if top_of(part) + 0.05 > arm.position[2]:
        yield from go(arm, arm.position + 0.08 * UP, arm.rotation, within=0.03)
    yield from go(arm, before, rotation, within=0.03, turn_within=0.3)
    front = part.position + 0.05 * out
    arrival = yield from go(arm, front, rotation, within=0.02, turn_within=0.3)
    if arrival.short > 0.04:
        return arrival.outcome("the front of the handle")
    moved, _ = yield from _slide(arm, -out, rotation, arm.hand.longest_push)
    yield from go(arm, arm.position + 0.06 * out + 0.02 * UP, rotation, within=0.02, turn_within=1)
    if moved >= arm.hand.longest_push:
        return Outcome(False, f"pushed {cm(moved)} and nothing stopped the hand")
    return Outcome(True, f"pushed {cm(moved)} until it stopped")


def turn(arm: Arm, part: Estimate, clockwise: bool = False) -> Steps[Outcome]:
    """Pinch the ridge of a knob and twist it, which way as seen from above."""
    rotation = facing(nearer_sign(outward(part), arm.rotation), DOWN)
    point = np.array([*part.position[:2], top_of(part) - 0.008])
    arm.closing = False
    arrival = yield from line_up(arm, point, rotation, standoff=0.10, good_enough=0.06)
    if not arrival.reached:
        return arrival.outcome("the knob")
    spot = arm.position if arrival.short > 0.02 else point
    grip = yield from squeeze(arm, spot, rotation)
    outcome = grip_outcome(grip)
    if grip.holding:
        angle = yield from _twist(arm, spot, rotation, -1.0 if clockwise else 1.0)
        said = f"twisted it by {math.degrees(angle):.0f} degrees"
        outcome = Outcome(angle > 0.5 * TWIST, said)
    yield from release(arm, wide=0.05)
    rise = arm.position + 0.10 * UP
    yield from go(arm, rise, arm.rotation, within=0.03, turn_within=0.5)
    return outcome


def _twist(arm: Arm, spot: Array, rotation: Array, sense: float) -> Steps[float]:
    """Turn about the vertical until the angle is reached or the hand turns no further.

    `sense` is 1 for counter-clockwise and -1 for clockwise; the angle counts that way.
    """
    progress, start = arm.progress(), arm.rotation
    angle = 0.0
    for _ in range(arm.ticks(3.0)):
        if angle >= TWIST or progress.stalled(-angle):
            break
        yield from arm.toward(spot, turned(rotation, UP, sense * (angle + _LEAD)))
        relative = arm.rotation @ start.T
        angle = sense * math.atan2(float(relative[1, 0]), float(relative[0, 0]))
    return angle


def push(arm: Arm, thing: Estimate, place: Estimate) -> Steps[Outcome]:
    """Move a thing along the ground to a place: dragged from inside its rim, or from behind."""
    way = (place.position - thing.position)[:2]
    length = float(np.linalg.norm(way))
    if length < FUNNEL_RADIUS:
        return Outcome(True, "it is there already")
    along = np.array([*(way / length), 0.0])
    hollow = float(thing.extent[2]) < _FLAT and float(thing.extent[:2].min()) > arm.hand.widest
    radius = float(thing.extent[:2].max()) / 2.0
    ground = bottom_of(thing)
    around = Surroundings(arm.sense.heights, thing, margin=0.02, hand=arm.position, reach=arm.reach)
    ahead = thing.position + along * radius
    if around.corridor(ahead, thing.position + along * length, radius) > ground + 0.02:
        return Outcome(False, "something stands in the way; carry it instead")
    start = thing.position + along * (_INSIDE if hollow else -(radius + 0.03))
    start[2] = ground + (_OVER_GROUND if hollow else max(_OVER_GROUND, thing.extent[2] / 2.0))
    rotation = downward(arm.rotation, None if hollow else half_turn(math.atan2(*way[::-1])))
    arm.closing = True
    over = max(around.way_over(arm.position, start, arm.hand, 0.03), float(start[2]) + 0.06)
    arrival = yield from fly(arm, start + 0.06 * UP, rotation, over)
    if arrival.short > 0.03:
        return arrival.outcome("the start of the push")
    for _ in range(arm.ticks(0.8)):
        if arm.opening < 0.01:
            break
        yield from arm.toward(start + 0.06 * UP, rotation)
    yield from go(arm, start, rotation, within=0.008, turn_within=0.3)
    left = yield from _shove(
        arm, thing, place, rotation, hollow, float(start[2]) - (_PRESS if hollow else 0.0)
    )
    yield from go(arm, arm.position + 0.08 * UP, rotation, within=0.02, turn_within=0.5)
    return Outcome(left < 0.02, f"pushed it until {cm(left)} from the receptacle")


def _shove(
    arm: Arm,
    thing: Estimate,
    place: Estimate,
    rotation: Array,
    hollow: bool,
    height: float,
) -> Steps[float]:
    """Push toward a place, looking where the thing is; return the metres left.

    A drag from inside is stable; whoever pushes from behind must keep behind the middle, so it
    goes slowly and looks often.
    """
    line = _level(place.position - thing.position)
    line = line / float(np.linalg.norm(line))
    every, speed = (arm.ticks(0.2), 1.0) if hollow else (1, 0.3)
    seen, looked_at = thing, arm.position
    left = best = math.inf
    idle = 0
    for tick in range(arm.ticks(6.0)):
        # Between looks, the thing is taken to move along with the hand.
        left = float((place.position - seen.position - (arm.position - looked_at)) @ line)
        if tick % every == 0 or left < FUNNEL_RADIUS:
            yield from arm.look(thing.role)
            seen, looked_at = arm.estimate(thing.role) or seen, arm.position
            left = float((place.position - seen.position) @ line)
            idle = 0 if left < best - 0.001 else idle + every
            best = min(best, left)
        offset = _level(arm.position - seen.position)
        passed = not hollow and float(offset @ line) > 0.0
        if left < FUNNEL_RADIUS or passed or idle > arm.ticks(1.0):
            break
        way = _level(place.position - seen.position)
        along = line if hollow else way / float(np.linalg.norm(way))
        beside = offset - float(offset @ along) * along
        goal = arm.position + along * min(_AHEAD, left + 0.01) - (0.0 if hollow else 2.0) * beside
        goal[2] = height
        yield from arm.toward(goal, rotation, speed)
    return float(np.linalg.norm((place.position - seen.position)[:2]))


def _level(vector: Array) -> Array:
    return vector * [1.0, 1.0, 0.0]


def line_up(
    arm: Arm,
    point: Array,
    rotation: Array,
    *,
    standoff: float = 0.12,
    within: float = 0.008,
    good_enough: float = 0.03,
) -> Steps[Arrival]:
    """Come to a point along the hand's own axis, lined up before getting near.

    Where the arm gets no nearer, `good_enough` metres before the point count as reached.
    """
    axis, start, progress = rotation[:, 2], arm.position, arm.progress()
    for left in range(arm.ticks(6.0), -1, -1):
        offset = point - arm.position
        before = float(offset @ axis)
        beside = float(np.linalg.norm(offset - before * axis))
        angle = angle_between(rotation, arm.rotation)
        lined_up = beside < FUNNEL_RADIUS and angle < 0.2
        stalled = progress.stalled(abs(before) + beside + 0.1 * angle)
        reached = lined_up and (before < within or (stalled and before < good_enough))
        if reached or stalled or left == 0:
            moved = float(np.linalg.norm(arm.position - start))
            short = float(np.linalg.norm(offset))
            return Arrival(reached, short, moved, angle, stalled)
        gap = max(funnel(beside, FUNNEL_RADIUS, standoff), funnel(0.1 * angle, 0.015, standoff))
        yield from arm.toward(point - axis * gap, rotation)
    raise AssertionError("the last round returns")
