"""Poses between the arm's base and the world: the one place where an arm's frames are changed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np

from zetta.runtime.core import Array
from zetta.runtime.tracking import Quat, Vec, quat_of_rotvec, rotvec_of_quat


@dataclass(frozen=True, slots=True)
class Pose:
    """A place and an orientation, in a frame that the name of the variable gives."""

    pos: Array
    """Metres. Shape (3,)."""
    quat: Array
    """xyzw. Shape (4,)."""

    def __matmul__(self, other: Pose) -> Pose:
        """Chain: `A_b @ B_c` is the pose of `c` in the frame of `A`.

        >>> quarter = Pose(np.zeros(3), np.array([0.0, 0.0, 0.5**0.5, 0.5**0.5]))
        >>> ahead = Pose(np.array([1.0, 0.0, 0.0]), np.array([0.0, 0.0, 0.0, 1.0]))
        >>> (quarter @ ahead).pos.round(6)[:2].tolist()
        [0.0, 1.0]
        """
        return Pose(self.pos + matrix(self.quat) @ other.pos, product(self.quat, other.quat))

    def inverse(self) -> Pose:
        """Return the way back."""
        back = self.quat * np.array([-1.0, -1.0, -1.0, 1.0])
        return Pose(-matrix(back) @ self.pos, back)

    def transform(self) -> Array:
        """Return it as a homogeneous matrix. Shape (4, 4)."""
        T = np.eye(4)
        T[:3, :3], T[:3, 3] = matrix(self.quat), self.pos
        return T


def product(one: Array, other: Array) -> Array:
    """Return the rotation `one` after `other`, both xyzw, of unit length. Shape (4,)."""
    ax, ay, az, aw = one
    bx, by, bz, bw = other
    quat = np.array(
        (
            aw * bx + ax * bw + ay * bz - az * by,
            aw * by - ax * bz + ay * bw + az * bx,
            aw * bz + ax * by - ay * bx + az * bw,
            aw * bw - ax * bx - ay * by - az * bz,
        )
    )
    return cast(Array, quat / np.linalg.norm(quat))


def matrix(quat: Array) -> Array:
    """Return the rotation matrix of a quaternion (xyzw). Shape (3, 3)."""
    x, y, z, w = quat / np.linalg.norm(quat)
    return np.array(
        (
            (1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)),
            (2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)),
            (2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)),
        )
    )


def rotation(rotvec: Array) -> Array:
    """Return the quaternion (xyzw) of an axis-angle vector, radians. Shape (4,)."""
    return np.array(quat_of_rotvec(cast(Vec, tuple(rotvec.tolist()))))


def rotation_vector(quat: Array) -> Array:
    """Return the axis-angle vector of a quaternion (xyzw), radians. Shape (3,)."""
    return np.array(rotvec_of_quat(cast(Quat, tuple(quat.tolist()))))
