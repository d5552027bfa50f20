"""Orientations of a hand and small vector tools.

A hand is described by two of its axes: `travel`, along which the fingers close, and `approach`, in
which it points. As rotation matrix: second and third column, as `ArmState.ee_quat` reports them.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.spatial.transform import Rotation

from zetta.runtime.core import Array

UP = np.array([0.0, 0.0, 1.0])
DOWN = np.array([0.0, 0.0, -1.0])


def facing(travel: Array, approach: Array) -> Array:
    """Return the orientation with these axes, unit and perpendicular. Shape (3, 3).

    >>> facing(np.array([0.0, -1.0, 0.0]), DOWN).diagonal().tolist()
    [1.0, -1.0, -1.0]
    """
    return np.column_stack([np.cross(travel, approach), travel, approach])


def travel_of(yaw: float) -> Array:
    """Return the horizontal direction in which the fingers of a downward hand close. Shape (3,).

    >>> travel_of(0.0).tolist()
    [0.0, 1.0, 0.0]
    """
    return np.array([-math.sin(yaw) + 0.0, math.cos(yaw), 0.0])


def yaw_of(rotation: Array) -> float:
    """Return the yaw whose `travel_of` is nearest to that of `rotation`, in (-pi/2, pi/2]."""
    yaw = math.atan2(-float(rotation[0, 1]), float(rotation[1, 1]))
    return half_turn(yaw)


def half_turn(yaw: float) -> float:
    """Return the equal grasp in (-pi/2, pi/2]: the two fingers may change places.

    >>> round(half_turn(3.0), 4)
    -0.1416
    """
    return -((-yaw + math.pi / 2.0) % math.pi - math.pi / 2.0)


def nearer_sign(travel: Array, rotation: Array) -> Array:
    """Return `travel` or its opposite, whichever is nearer to that of the present `rotation`."""
    return travel if float(travel @ rotation[:, 1]) >= 0.0 else -travel


def downward(rotation: Array, yaw: float | None = None) -> Array:
    """Return the downward orientation nearest to `rotation`; `yaw` None keeps its turn."""
    if yaw is None:
        yaw = yaw_of(rotation)
    return facing(nearer_sign(travel_of(yaw), rotation), DOWN)


def matrix_of(quat: Array) -> Array:
    """Return the rotation matrix of a quaternion (xyzw). Shape (3, 3)."""
    return np.asarray(Rotation.from_quat(quat).as_matrix())


def turned(rotation: Array, axis: Array, angle: float) -> Array:
    """Return `rotation` turned about a world axis by `angle` radians."""
    return np.asarray(Rotation.from_rotvec(angle * axis).as_matrix() @ rotation)


def angle_between(one: Array, other: Array) -> float:
    """Return the angle between two orientations, radians."""
    cosine = (float(np.sum(one * other)) - 1.0) / 2.0
    return math.acos(min(1.0, max(-1.0, cosine)))


def limited(vector: Array, most: float) -> Array:
    """Return `vector` shortened so that no component exceeds `most`; it keeps its direction.

    >>> limited(np.array([4.0, 2.0]), 1.0).tolist()
    [1.0, 0.5]
    """
    return np.asarray(vector * min(1.0, most / max(float(np.abs(vector).max()), 1e-9)))
