"""How far an arm is stretched, from its joints: a straight arm cannot bend again.

Operational-space control has no force across a straight elbow, so motions keep away from it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from zetta.primitives.motions_frames import matrix_of
from zetta.runtime.core import ArmState, Array
from zetta.runtime.errors import SpecMismatch

_PANDA = (
    (0.0, 0.0, 0.333),
    (0.0, -math.pi / 2, 0.0),
    (0.0, math.pi / 2, 0.316),
    (0.0825, math.pi / 2, 0.0),
    (-0.0825, -math.pi / 2, 0.384),
    (0.0, math.pi / 2, 0.0),
    (0.088, math.pi / 2, 0.0),
)
"""Modified Denavit-Hartenberg rows `a, alpha, d` of joints 1 to 7 (Franka Emika documentation)."""
_SITE = 0.107 + 0.097
"""Flange and hand: distance of the grip site from the seventh joint's frame, metres."""
_HAND_TURN = -math.pi / 4
"""The hand is mounted turned by this angle."""


@dataclass(frozen=True, slots=True)
class Reach:
    """Where an arm's shoulder and wrist are now, world frame, metres."""

    shoulder: Array
    """Centre about which the upper arm swings. Shape (3,)."""
    wrist: Array
    """Centre of the wrist. Shape (3,)."""
    elbow: Array
    """Centre of the elbow. Shape (3,)."""
    longest: float
    """Distance between both that shall not be exceeded."""
    comfortable: float
    """Distance that grasps and places should not exceed."""
    wrist_inward: float
    """Distance of the wrist from the axis of a hand that points down."""
    wrist_above: float
    """Height of the wrist over the grip site of such a hand."""

    def bent(self, step: Array) -> Array:
        """Return `step`, a displacement of the hand, without what would straighten the arm."""
        arm = self.wrist - self.shoulder
        length = float(np.linalg.norm(arm))
        outward = arm / length
        excess = float(step @ outward) - max(self.longest - length, -0.03)
        return np.asarray(step - max(0.0, excess) * outward)

    def beyond(self, point: Array) -> float:
        """Return how far a downward hand at `point` is beyond comfort, metres."""
        radial = float(np.linalg.norm((point - self.shoulder)[:2])) - self.wrist_inward
        rise = float(point[2] - self.shoulder[2]) + self.wrist_above
        return max(0.0, math.hypot(radial, rise) - self.comfortable)


ReachModel: TypeAlias = Callable[[ArmState], Reach]
"""Tells from an arm's own sensors how far it is stretched."""


def panda_reach(state: ArmState) -> Reach:
    """Return the reach of a Franka Panda; the place of its base follows from the hand's pose.

    Raises:
        SpecMismatch: the arm has not seven joints.
    """
    if len(state.joint_pos) != len(_PANDA):
        raise SpecMismatch(
            f"a Panda has {len(_PANDA)} joints and this arm reports {len(state.joint_pos)}; "
            "give the robot the hand geometry of its own arm (zetta.primitives.grasps)"
        )
    *joints, site = _panda_points(state.joint_pos.tolist())
    # The points are in the hand's frame at the site; the measured pose puts them into the world.
    turn = matrix_of(state.ee_quat)
    to_world = turn @ site[:3, :3].T
    shoulder, elbow, wrist = (state.ee_pos + to_world @ (j - site[:3, 3]) for j in joints)
    return Reach(shoulder, wrist, elbow, 0.70, 0.69, 0.088, _SITE)


def _panda_points(joints: list[float]) -> tuple[Array, Array, Array, Array]:
    """Return shoulder, elbow and wrist (3,) and grip site (4, 4) in the frame of the base."""
    pose, frames = np.eye(4), []
    for (a, alpha, d), angle in zip(_PANDA, joints, strict=True):
        pose = pose @ _link(a, alpha, d, angle)
        frames.append(pose)
    site = pose @ _link(0.0, 0.0, _SITE, _HAND_TURN)
    return frames[1][:3, 3], frames[3][:3, 3], frames[5][:3, 3], site


def _link(a: float, alpha: float, d: float, angle: float) -> Array:
    c, s, ca, sa = math.cos(angle), math.sin(angle), math.cos(alpha), math.sin(alpha)
    return np.array(
        [
            [c, -s, 0.0, a],
            [s * ca, c * ca, -sa, -sa * d],
            [s * sa, c * sa, ca, ca * d],
            [0.0, 0.0, 0.0, 1.0],
        ]
    )
