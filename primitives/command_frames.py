"""The frames of commands: which way is x in the world, in the gripper, in a picture.

World: x straight ahead of the robot, y to its left, z up. Gripper: z is where the hand points, y
the axis along which the fingers close. Camera, for people: x right in the picture, y up in the
picture, z away from the camera. That frame is left-handed; a turn about its axes still follows the
right hand around the axis as it lies in the world.
"""

from __future__ import annotations

import math
import re

import numpy as np

from zetta.primitives.commands import TURNS, Direction, Turn
from zetta.primitives.motions_frames import DOWN, downward, turned
from zetta.runtime.core import Array, Camera


def camera_axes(camera: Camera) -> Array:
    """Return the axes of a picture as columns, world frame. Shape (3, 3).

    >>> pose = np.diag([1.0, -1.0, -1.0, 1.0])  # looks straight down
    >>> camera_axes(Camera("top", np.eye(3), pose)).diagonal().tolist()
    [1.0, 1.0, -1.0]
    """
    return np.asarray(camera.T_world_cam[:3, :3] * [1.0, -1.0, 1.0])


def axis_of(turn: Turn, axes: Array) -> Array:
    """Return the axis of a roll, pitch or yaw in the world. Shape (3,)."""
    return np.asarray(axes[:, TURNS.index(turn)])


def tilt_of(direction: Direction) -> float:
    """Return how far a preset points away from straight down, radians.

    >>> [round(math.degrees(tilt_of(name))) for name in ("down", "down45", "forward")]
    [0, 45, 90]
    """
    if direction == "forward":
        return math.pi / 2.0
    return math.radians(float(re.sub(r"\D", "", direction) or 0.0))


def pointing(direction: Direction, rotation: Array, ahead: Array) -> Array:
    """Return the orientation that points as a preset says, as little turned as may be.

    Args:
        direction: the preset.
        rotation: the present orientation, shape (3, 3); its turn about the vertical is kept.
        ahead: horizontal unit vector straight ahead of the robot. Shape (3,).
    """
    return turned(downward(rotation), np.cross(DOWN, ahead), tilt_of(direction))
