"""The sequence of what is sent to an arm, as poses or as joint positions, step by step."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol, TypeAlias

import numpy as np

from zetta.hw_drivers.arm_limits import Distances, Limits
from zetta.hw_drivers.decisions import Reading
from zetta.hw_drivers.keep_out import meets
from zetta.hw_drivers.shaping import Course, Room, Shaper, at_rest
from zetta.runtime.core import Array
from zetta.runtime.errors import SafetyStop, SpecMismatch
from zetta.runtime.tracking import Quat, Vec, quat_of_rotvec, rotation_between, rotvec_of_quat

Forward: TypeAlias = Callable[[Array], Array]
"""Joint positions, shape (J,), to the grip site in the frame of the workspace, shape (3,)."""

ROUNDING = 1e-9
"""Metres or radians that positions may differ by for the sake of rounding."""
OUTSIDE_AT_START = 0.01
"""Metres that a hand may begin outside the workspace, as tracking errors leave it, to come in."""
UNIT_TOLERANCE = 1e-3
"""A quaternion may be so far from unit length before it counts as no rotation."""


@dataclass(frozen=True, slots=True)
class Track:
    """Where the sequence is: what was sent last, and how each part of it moves."""

    place: Array
    """Position and quaternion, shape (7,), or joint positions, shape (J,)."""
    courses: tuple[Course, ...]
    goal: Array
    """What it was last led to, in the form of `place`."""

    @property
    def rests(self) -> bool:
        """Nothing of it moves."""
        return all(course.rests for course in self.courses)

    def stopped_here(self) -> Track:
        """Return a sequence that begins here, from rest."""
        return replace(self, courses=tuple(at_rest(c.velocity.size) for c in self.courses))


class Tracker(Protocol):
    """Leads a sequence of one kind of command."""

    def goal(self, values: Array) -> Array:
        """Return finite command values as a goal.

        Raises:
            SpecMismatch: they are no goal.
        """
        ...

    def values(self, track: Track) -> Array:
        """Return what to send, in the form of a command."""
        ...

    def start(self, reading: Reading) -> Track:
        """Return the sequence that begins where the arm is, from rest.

        Raises:
            SafetyStop: the arm is where it must not be.
        """
        ...

    def jump(self, track: Track, goal: Array) -> str:
        """Say how a goal is too far from what was sent last, or nothing."""
        ...

    def lag(self, track: Track, reading: Reading) -> str:
        """Say how the arm is too far from what was sent last, or nothing."""
        ...

    def confine(self, goal: Array) -> tuple[Array, str]:
        """Return the nearest goal that is allowed, and what it was brought into.

        Raises:
            SpecMismatch: none near it is allowed.
        """
        ...

    def advance(self, track: Track, goal: Array, factor: float) -> tuple[Track, str]:
        """Return the sequence one tick later towards `goal`, and what keeps it from there."""
        ...

    def brake(self, track: Track, factor: float) -> Track:
        """Return the sequence one tick later on the shortest way to rest that is found."""
        ...

    def coast(self, track: Track) -> Track:
        """Return the sequence one tick later on the way to rest that it has; searches nothing."""
        ...


class PoseTracker:
    """Leads poses of the grip site."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._point = Shaper(limits.translation, limits.timing.tick, limits.overshoot.translation)
        self._turn = Shaper(limits.rotation, limits.timing.tick, limits.overshoot.rotation)

    def goal(self, values: Array) -> Array:
        """Return position and quaternion; an axis-angle beyond a full turn is refused."""
        turn = float(np.abs(values[3:]).max())
        if turn > 2.0 * math.pi or float(np.linalg.norm(values[3:])) > 2.0 * math.pi:
            raise SpecMismatch(f"an axis-angle is at most a full turn, got {turn:g} rad")
        return np.array([*values[:3], *quat_of_rotvec(_vec(values[3:]))])

    def values(self, track: Track) -> Array:
        """Return position and axis-angle. Shape (6,)."""
        return np.array([*track.place[:3], *rotvec_of_quat(_quat(track.place[3:]))])

    def start(self, reading: Reading) -> Track:
        """Begin where the hand is; barely outside the workspace it may come back in."""
        out = float(np.linalg.norm(self._limits.workspace.excess(reading.ee_pos)))
        if out > OUTSIDE_AT_START:
            raise SafetyStop(
                f"the hand is {100 * out:.1f} cm outside the workspace "
                f"({self._limits.workspace}); bring it back by hand, then clear"
            )
        place = np.array([*reading.ee_pos, *_unit(reading.ee_quat)])
        for keep_out in self._limits.keep_out:
            if keep_out.box.holds(place[:3]):
                raise SafetyStop(
                    f"the hand is inside the keep-out box {keep_out.name!r}; "
                    "bring it out by hand, then clear"
                )
        return Track(place, (at_rest(3), at_rest(3)), place)

    def jump(self, track: Track, goal: Array) -> str:
        """Compare distance and angle with the jump limits."""
        return _far_pose(track.place, goal, self._limits.jump, "the target is")

    def lag(self, track: Track, reading: Reading) -> str:
        """Compare distance and angle with the following limits."""
        place = np.array([*reading.ee_pos, *_unit(reading.ee_quat)])
        return _far_pose(track.place, place, self._limits.following, "the hand is")

    def confine(self, goal: Array) -> tuple[Array, str]:
        """Bring the position into the workspace; refuse one in a keep-out box."""
        near = self._limits.workspace.nearest(goal[:3])
        for keep_out in self._limits.keep_out:
            if keep_out.box.holds(near):
                raise SpecMismatch(f"the target is inside the keep-out box {keep_out.name!r}")
        moved = float(np.linalg.norm(near - goal[:3]))
        if moved == 0.0:
            return goal, ""
        what = (
            f"the target is {100 * moved:.1f} cm outside the workspace ({self._limits.workspace})"
        )
        return np.array([*near, *goal[3:]]), what

    def advance(self, track: Track, goal: Array, factor: float) -> tuple[Track, str]:
        """Move and turn independently of one another, each within its limits."""
        point, turn = track.courses
        way = goal[:3] - track.place[:3]
        angle = np.array(rotation_between(_quat(track.place[3:]), _quat(goal[3:])))
        same = np.array_equal(goal, track.goal)
        point, why = self._point.advance(point, way, factor, self._room(track), same)
        turn, why_turn = self._turn.advance(turn, angle, factor, _free, same)
        later = self._moved(track, point, turn, goal)
        reasons = [f"position: {why}"] if why else []
        reasons += [f"rotation: {why_turn}"] if why_turn else []
        return later if reasons else replace(later, place=goal), "; ".join(reasons)

    def brake(self, track: Track, factor: float) -> Track:
        """Bring both to rest."""
        point, turn = track.courses
        point = self._point.brake(point, factor, self._room(track))
        return self._moved(track, point, self._turn.brake(turn, factor, _free), track.goal)

    def coast(self, track: Track) -> Track:
        """Take the next step of both plans."""
        point, turn = track.courses
        return self._moved(track, point.coast(), turn.coast(), track.goal)

    def _moved(self, track: Track, point: Course, turn: Course, goal: Array) -> Track:
        quat = _turned(_quat(track.place[3:]), _vec(turn.velocity))
        place = np.array([*(track.place[:3] + point.velocity), *quat])
        return Track(place, (point, turn), goal)

    def _room(self, track: Track) -> Room:
        box, here = self._limits.workspace, track.place[:3]
        # A sequence that begins outside, within the tolerance, may use the room that its plan uses.
        planned = here + np.cumsum(track.courses[0].plan.velocity, axis=0)
        low = np.minimum(box.low, np.minimum(here, planned.min(axis=0))) - ROUNDING
        high = np.maximum(box.high, np.maximum(here, planned.max(axis=0))) + ROUNDING

        def room(ways: Array) -> str:
            points = here + ways
            if (points < low).any() or (points > high).any():
                return "the workspace"
            line = np.vstack([here, points])
            return next((k.name for k in self._limits.keep_out if meets(line, k.box)), "")

        return room


class JointTracker:
    """Leads joint positions; the hand's own limits are kept through `forward`."""

    def __init__(self, limits: Limits, forward: Forward) -> None:
        self._limits = limits
        self._forward = forward
        self._joints = Shaper(limits.joint, limits.timing.tick, limits.overshoot.joint)

    def goal(self, values: Array) -> Array:
        """Return the values: they are a goal already."""
        return values

    def values(self, track: Track) -> Array:
        """Return joint positions. Shape (J,)."""
        return track.place

    def start(self, reading: Reading) -> Track:
        """Begin where the joints are; the hand must be in the workspace and in no keep-out box."""
        place = np.array(reading.joint_pos)
        hit = self._blocked(self._hands(place[None, :]))
        if hit:
            raise SafetyStop(f"the hand is not clear of {hit}; move it by hand, then clear")
        return Track(place, (at_rest(place.size),), place)

    def jump(self, track: Track, goal: Array) -> str:
        """Compare the farthest joint with the jump limit."""
        return self._too_far(track.place, goal, self._limits.jump.joint, "its target is")

    def lag(self, track: Track, reading: Reading) -> str:
        """Compare the farthest joint with the following limit."""
        joints = np.asarray(reading.joint_pos)
        return self._too_far(track.place, joints, self._limits.following.joint, "it is")

    def confine(self, goal: Array) -> tuple[Array, str]:
        """Bring each joint into its range; refuse where the hand would be in a keep-out box."""
        near = np.clip(goal, self._limits.joint_low, self._limits.joint_high)
        hand = self._hands(near[None, :])
        for keep_out in self._limits.keep_out:
            if keep_out.box.holds(hand[0]):
                raise SpecMismatch(
                    f"the target puts the hand inside the keep-out box {keep_out.name!r}"
                )
        if not self._limits.workspace.holds(hand[0]):
            raise SpecMismatch("the target puts the hand outside the workspace")
        out = np.flatnonzero(near != goal)
        if out.size == 0:
            return goal, ""
        first = int(out[0])
        return near, f"{self._limits.joints[first]} was asked beyond its range"

    def advance(self, track: Track, goal: Array, factor: float) -> tuple[Track, str]:
        """Move all joints together."""
        same = np.array_equal(goal, track.goal)
        way = goal - track.place
        course, why = self._joints.advance(track.courses[0], way, factor, self._room(track), same)
        place = track.place + course.velocity if why else goal
        return Track(place, (course,), goal), f"joints: {why}" if why else ""

    def brake(self, track: Track, factor: float) -> Track:
        """Bring all joints to rest."""
        course = self._joints.brake(track.courses[0], factor, self._room(track))
        return Track(track.place + course.velocity, (course,), track.goal)

    def coast(self, track: Track) -> Track:
        """Take the next step of the plan."""
        course = track.courses[0].coast()
        return Track(track.place + course.velocity, (course,), track.goal)

    def _room(self, track: Track) -> Room:
        here = track.place
        # Joints that begin at the very end of their range, or a reading's noise beyond it.
        low = np.minimum(self._limits.joint_low, here) - ROUNDING
        high = np.maximum(self._limits.joint_high, here) + ROUNDING

        def room(ways: Array) -> str:
            joints = here + ways
            if (joints < low).any() or (joints > high).any():
                return "the range of a joint"
            return self._blocked(self._hands(np.vstack([here, joints])))

        return room

    def _hands(self, joints: Array) -> Array:
        """Return where the hand is at each row. Shape (N, 3)."""
        hands = np.array([self._forward(row) for row in joints], dtype=np.float64)
        if hands.shape != (len(joints), 3) or not np.isfinite(hands).all():
            raise SpecMismatch("the forward kinematics gave no three finite numbers")
        return hands

    def _blocked(self, hands: Array) -> str:
        """Say what a way of the hand runs into, or that it is too fast, or nothing."""
        box = self._limits.workspace
        if (hands < np.array(box.low) - ROUNDING).any() or (
            hands > np.array(box.high) + ROUNDING
        ).any():
            return "the wall of the workspace"
        for keep_out in self._limits.keep_out:
            if meets(hands, keep_out.box):
                return f"the keep-out box {keep_out.name!r}"
        steps = np.linalg.norm(np.diff(hands, axis=0), axis=1)
        limit = float(self._limits.translation.velocity[0]) * self._limits.timing.tick
        return "the speed limit of the hand" if (steps > limit).any() else ""

    def _too_far(self, place: Array, other: Array, limit: float, what: str) -> str:
        gaps = np.abs(other - place)
        first = int(np.argmax(gaps))
        if gaps[first] <= limit:
            return ""
        return (
            f"{self._limits.joints[first]}: {what} {gaps[first]:.3g} rad from the one sent last, "
            f"at most {limit:g} is allowed"
        )


def _far_pose(place: Array, other: Array, limit: Distances, what: str) -> str:
    """Say how one pose is too far from the other, or nothing."""
    gap = float(np.linalg.norm(other[:3] - place[:3]))
    if not gap <= limit.translation:
        return (
            f"{what} {gap:.3g} m from the one sent last, at most {limit.translation:g} is allowed"
        )
    angle = float(np.linalg.norm(rotation_between(_quat(place[3:]), _quat(other[3:]))))
    if not angle <= limit.rotation:
        return (
            f"{what} turned {angle:.3g} rad from the one sent last, "
            f"at most {limit.rotation:g} is allowed"
        )
    return ""


def _free(ways: Array) -> str:
    """Rotations run into nothing."""
    del ways
    return ""


def _vec(values: Array) -> Vec:
    x, y, z = values.tolist()
    return x, y, z


def _quat(values: Array) -> Quat:
    x, y, z, w = values.tolist()
    return x, y, z, w


def _unit(quat: Array) -> Array:
    length = float(np.linalg.norm(quat))
    if not abs(length - 1.0) <= UNIT_TOLERANCE:
        raise SpecMismatch(f"a quaternion has length 1, the reading's has {length:g}")
    return np.asarray(quat / length)


def _turned(quat: Quat, turn: Vec) -> Array:
    """Return `quat` turned by an axis-angle of the same frame, of unit length. Shape (4,)."""
    ax, ay, az, aw = quat_of_rotvec(turn)
    bx, by, bz, bw = quat
    turned = np.array(
        [
            aw * bx + ax * bw + ay * bz - az * by,
            aw * by - ax * bz + ay * bw + az * bx,
            aw * bz + ax * by - ay * bx + az * bw,
            aw * bw - ax * bx - ay * by - az * bz,
        ]
    )
    return np.asarray(turned / np.linalg.norm(turned))
