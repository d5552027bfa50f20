"""Whether a hand gets along a straight way: workspace, joint angles and stretch, point by point."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from scipy.spatial.transform import Rotation

from zetta.primitives.command_results import StopReason
from zetta.primitives.grasps import PANDA, HandGeometry
from zetta.primitives.kinematics import Kinematics
from zetta.primitives.motions import cm
from zetta.primitives.motions_frames import matrix_of
from zetta.runtime.core import ArmState, Array
from zetta.runtime.workspace import Box

EVERY = 0.03
"""A way is looked at every so many metres."""
EVERY_TURN = math.radians(15.0)
"""And at every so many radians."""
_LEAP = 1.0
"""Joints that turn further than this from one point to the next fold the arm over, radians."""
_STRAIGHTER = 0.006
"""An arm held back by its stretch ends short by about this, which still counts as reached, metres.
"""
_SLACK = 1e-6


@dataclass(frozen=True, slots=True)
class DryArm:
    """One arm as it is known before anything moves."""

    name: str
    home: ArmState
    """As it was when the episode began."""
    workspace: Box | None = None
    """Where its grip site may be; None bounds nothing."""
    kinematics: Kinematics | None = None
    """None checks limits and workspace only."""
    hand: HandGeometry = PANDA
    """Its gripper, and how far the arm may be stretched."""


@dataclass(frozen=True, slots=True)
class Pose:
    """Where a hand is or will be."""

    position: Array
    """Of the grip site in the world, metres. Shape (3,)."""
    rotation: Array
    """Shape (3, 3)."""
    joints: Array | None = None
    """Radians; None where no model of the arm speaks of them. Shape (J,)."""
    estimated: bool = False
    """It rests on an estimate of where a thing is."""


@dataclass(frozen=True, slots=True)
class Blocked:
    """Why a pose or a command is refused."""

    stop: StopReason
    why: str
    """What follows the command in a sentence, such as "leaves the workspace by 3.1 cm in z"."""


@dataclass(frozen=True, slots=True)
class Way:
    """How far a straight way is free."""

    end: Pose
    """The last pose that was fine."""
    fine: float
    """Share of the way up to there, 0 to 1."""
    refused_at: float = 1.0
    """Share at which it was refused."""
    blocked: Blocked | None = None
    """Why; None when all of it is fine."""


def present(arm: DryArm, state: ArmState) -> Pose:
    """Return where a hand is; without joints where the model does not speak of this arm."""
    pose = Pose(np.array(state.ee_pos), matrix_of(state.ee_quat))
    solver = arm.kinematics
    if solver is None or len(state.joint_pos) != solver.size:
        return pose
    found = solver.solve(pose.position, pose.rotation, state.joint_pos)
    return replace(pose, joints=found.joints) if found.reached else pose


def step_to(arm: DryArm, start: Pose, before: Pose, goal: Pose) -> Pose | Blocked:
    """Return `goal` with its joint angles, or why the hand cannot be there.

    Args:
        arm: whose hand.
        start: where the command begins; what is amiss there already is no reason to refuse.
        before: the last pose on the way.
        goal: the pose in question.
    """
    outside = None if arm.workspace is None else _outside(arm.workspace, start, goal)
    if outside is not None:
        return outside
    if arm.kinematics is None or before.joints is None:
        return replace(goal, joints=None)
    found = arm.kinematics.solve(goal.position, goal.rotation, before.joints)
    if not found.reached:
        left = f"{cm(found.position_error)} and {math.degrees(found.turn_error):.0f} degrees"
        return Blocked("unreachable", f"leads where no joint angles do, {left} off at best")
    if float(np.abs(found.joints - before.joints).max()) > _LEAP:
        return Blocked("unreachable", "would have the arm fold over on its way")
    reached = replace(goal, joints=found.joints)
    longest = max(_longest(arm) + _STRAIGHTER, _stretch(arm, start) + _SLACK)
    if _stretch(arm, reached) > longest:
        return Blocked("unreachable", "would stretch the arm straight")
    return reached


def straight(arm: DryArm, start: Pose, position: Array, rotation: Array) -> Way:
    """Return how far the hand gets on the straight way to a pose, turning evenly."""
    last, fine = start, 0.0
    for share, goal in _points(start, position, rotation):
        reached = step_to(arm, start, last, goal)
        if isinstance(reached, Blocked):
            return Way(last, fine, share, _at_the_end(arm, start, position, reached))
        last, fine = reached, share
    return Way(last, 1.0)


def _at_the_end(arm: DryArm, start: Pose, position: Array, blocked: Blocked) -> Blocked:
    """Return the reason with the figure of the way's end, not of the point that was looked at."""
    if blocked.stop != "limit" or arm.workspace is None:
        return blocked
    return _outside(arm.workspace, start, Pose(position, start.rotation)) or blocked


def at(arm: DryArm, start: Pose, position: Array, rotation: Array) -> Pose | Blocked:
    """Return the pose at a point that is gone to by some way, or why the hand cannot be there.

    The joint angles may be found from anywhere, so folding over counts for nothing.
    """
    goal = Pose(position, rotation, estimated=True)
    if arm.kinematics is None or start.joints is None:
        return step_to(arm, start, start, goal)
    found = arm.kinematics.solve(position, rotation, start.joints)
    return step_to(arm, start, replace(start, joints=found.joints), goal)


def _points(start: Pose, position: Array, rotation: Array) -> Iterator[tuple[float, Pose]]:
    way = position - start.position
    turn = Rotation.from_matrix(rotation @ start.rotation.T).as_rotvec()
    length = max(np.linalg.norm(way) / EVERY, np.linalg.norm(turn) / EVERY_TURN)
    count = max(1, math.ceil(float(length) - 1e-9))
    for n in range(1, count + 1):
        share = n / count
        facing = Rotation.from_rotvec(share * turn).as_matrix() @ start.rotation
        goal = Pose(start.position + share * way, facing, estimated=start.estimated)
        yield share, goal


def _outside(box: Box, start: Pose, goal: Pose) -> Blocked | None:
    """Say by how much a pose is outside, unless the hand was there already and comes back."""
    amiss, excess = box.excess(start.position), box.excess(goal.position)
    too_low = excess < np.minimum(amiss, 0.0) - _SLACK
    too_high = excess > np.maximum(amiss, 0.0) + _SLACK
    if not (too_low | too_high).any():
        return None
    axis = int(np.argmax(np.where(too_low | too_high, np.abs(excess), 0.0)))
    side = "below" if excess[axis] < 0.0 else "above"
    edge = (box.low if excess[axis] < 0.0 else box.high)[axis]
    why = f"leaves the workspace, {cm(abs(float(excess[axis])))} {side} {'xyz'[axis]} {cm(edge)}"
    return Blocked("limit", why)


def _longest(arm: DryArm) -> float:
    return math.inf if arm.hand.reach is None else arm.hand.reach(arm.home).longest


def _stretch(arm: DryArm, pose: Pose) -> float:
    """Return the distance from shoulder to wrist, metres; 0 where it need not be minded."""
    if arm.hand.reach is None or pose.joints is None:
        return 0.0
    quat = Rotation.from_matrix(pose.rotation).as_quat()
    reach = arm.hand.reach(ArmState(pose.position, quat, pose.joints, 0.0))
    return float(np.linalg.norm(reach.wrist - reach.shoulder))
