"""Poses as matrices for calibration, and whether a set of them can tell anything."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from scipy.spatial.transform import Rotation

from zetta.runtime.core import Array
from zetta.runtime.errors import ConfigError

MIN_TURN_RAD: Final = np.deg2rad(20.0)
"""The hand must have turned by as much between two of the pictures."""
MIN_SECOND_RAD: Final = np.deg2rad(5.0)
"""And by as much, as a standard deviation, about a second axis."""
ALIKE_RAD, ALIKE_M = float(np.deg2rad(3.0)), 0.01
"""Poses that are nearer to each other in both are one."""


def transform(rotvec: Array, pos: Array) -> Array:
    """Return the homogeneous matrix of an axis-angle vector and a position. Shape (4, 4)."""
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = Rotation.from_rotvec(rotvec).as_matrix(), pos
    return T


def vector(T: Array) -> Array:
    """Undo `transform`: axis-angle, then position. Shape (6,).

    >>> vector(transform(np.array([0.0, 0.0, 0.5]), np.array([1.0, 2.0, 3.0]))).round(6).tolist()
    [0.0, 0.0, 0.5, 1.0, 2.0, 3.0]
    """
    return np.concatenate([Rotation.from_matrix(T[:3, :3]).as_rotvec(), T[:3, 3]])


def inverse(T: Array) -> Array:
    """Return the way back. Shape (4, 4)."""
    back = np.eye(4)
    back[:3, :3], back[:3, 3] = T[:3, :3].T, -T[:3, :3].T @ T[:3, 3]
    return back


def apart(one: Array, other: Array) -> tuple[float, float]:
    """Return how far two poses are apart: radians, metres."""
    between = inverse(one) @ other
    angle = float(np.linalg.norm(Rotation.from_matrix(between[:3, :3]).as_rotvec()))
    return angle, float(np.linalg.norm(one[:3, 3] - other[:3, 3]))


def alike(one: Array, other: Array) -> bool:
    """Say whether two poses tell the same."""
    angle, distance = apart(one, other)
    return angle < ALIKE_RAD and distance < ALIKE_M


def check_turns(poses: Sequence[Array], least: int) -> None:
    """Refuse poses of a hand from which a camera cannot be placed.

    Two turns about axes that are not parallel are what a hand-eye calibration needs (Tsai and Lenz,
    1989): with one axis the place along it stays unknown.

    Args:
        poses: of the hand, in the base. Shape (4, 4) each.
        least: how many there must be.

    Raises:
        ConfigError: too few, too alike, or all turned about one axis.
    """
    if len(poses) < least:
        raise ConfigError(
            f"{len(poses)} different poses of the hand with the board in view are too few; take "
            f"{least} at least, 15 are good"
        )
    widest = max(apart(a, b)[0] for a in poses for b in poses)
    if widest < MIN_TURN_RAD:
        raise ConfigError(
            f"the hand turned by at most {np.rad2deg(widest):.0f} degrees between the pictures; "
            f"turn it by {np.rad2deg(MIN_TURN_RAD):.0f} and more, about different axes"
        )
    mean = Rotation.from_matrix(np.stack([T[:3, :3] for T in poses])).mean()
    turns = np.stack([(mean.inv() * Rotation.from_matrix(T[:3, :3])).as_rotvec() for T in poses])
    spread = np.linalg.svd(turns - turns.mean(axis=0), compute_uv=False) / np.sqrt(len(poses))
    if spread[1] < MIN_SECOND_RAD:
        raise ConfigError(
            "the hand turned about one axis only (by "
            f"{np.rad2deg(spread[0]):.0f} degrees, about a second one by "
            f"{np.rad2deg(spread[1]):.1f}); turn it about a second axis as well"
        )


def projected(K: Array, T_cam_board: Array, points: Array) -> Array:
    """Return where points of the board are seen. Shape (N, 2), pixels."""
    seen = points @ T_cam_board[:3, :3].T + T_cam_board[:3, 3]
    flat = seen @ K.T
    return flat[:, :2] / np.maximum(flat[:, 2:], 1e-6)
