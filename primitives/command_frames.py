"""What a command's frame means in the world: the axes of hand, camera and world, and presets.

The gripper's frame: x across the fingers, y the axis along which they close, z where the hand
points. A camera's frame is that of its picture: x right, y up, z away from the camera. A turn is
right-handed about the world direction of its axis, in every frame: about the z axis of a camera it
looks clockwise in the picture.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from zetta.primitives.commands import TURNS, Direction, Frame, Move, Rotate
from zetta.primitives.motions_frames import DOWN, facing, turned
from zetta.runtime.core import Array, Camera
from zetta.runtime.errors import ConfigError, suggest

AHEAD = np.array([1.0, 0.0, 0.0])
"""Where `forward` points unless told otherwise: away from an arm whose base looks along world x."""

_TILT_DEG: Mapping[Direction, float] = {
    "down": 0.0,
    "down15": 15.0,
    "down30": 30.0,
    "down45": 45.0,
    "down60": 60.0,
    "down75": 75.0,
    "forward": 90.0,
}
_ALONG = 0.2
"""An axis keeps less than this of its length when it is nearly parallel to what it is laid across.
"""


def camera_of(command: Move | Rotate, cameras: Mapping[str, Camera]) -> Camera | None:
    """Return the camera whose frame a command speaks of; None where it speaks of no camera.

    Args:
        command: what was asked.
        cameras: calibrations by name, in the order of the environment's cameras.

    Raises:
        ConfigError: there is no camera of that name, or none at all.
    """
    if command.frame != "camera":
        return None
    if not cameras:
        raise ConfigError("no camera is calibrated here; use the frame world or gripper")
    if not command.camera:
        return next(iter(cameras.values()))
    if command.camera not in cameras:
        raise ConfigError(
            f"there is no camera {command.camera!r}; {suggest(command.camera, cameras)}"
        )
    return cameras[command.camera]


def axes_of(frame: Frame, rotation: Array, camera: Camera | None = None) -> Array:
    """Return the x, y and z axis of a frame in the world, as columns. Shape (3, 3).

    Args:
        frame: whose axes.
        rotation: present orientation of the hand. Shape (3, 3).
        camera: the camera of the frame `camera`.

    Raises:
        ConfigError: the frame is that of a camera and there is none.
    """
    if frame == "world":
        return np.eye(3)
    if frame == "gripper":
        return rotation
    if camera is None:
        raise ConfigError("the frame camera needs a camera; name one of the environment's")
    return np.asarray(camera.T_world_cam[:3, :3] * np.array([1.0, -1.0, 1.0]))  # up, not down


def world_displacement(move: Move, rotation: Array, camera: Camera | None = None) -> Array:
    """Return the displacement of the grip site in the world, metres. Shape (3,).

    Args:
        move: what was asked.
        rotation: orientation of the hand when the move begins. Shape (3, 3).
        camera: the camera of the frame `camera` at that moment.

    Raises:
        ConfigError: the frame is that of a camera and there is none.
    """
    return np.asarray(axes_of(move.frame, rotation, camera) @ np.array(move.displacement))


def turned_by(rotate: Rotate, rotation: Array, camera: Camera | None = None) -> Array:
    """Return the orientation of the hand after a turn about the grip site. Shape (3, 3).

    Args:
        rotate: what was asked.
        rotation: orientation of the hand when the turn begins. Shape (3, 3).
        camera: the camera of the frame `camera` at that moment.

    Raises:
        ConfigError: the frame is that of a camera and there is none.
    """
    axis = axes_of(rotate.frame, rotation, camera)[:, TURNS.index(rotate.turn)]
    return turned(rotation, axis, rotate.angle)


def pointing(direction: Direction, rotation: Array, ahead: Array = AHEAD) -> Array:
    """Return the orientation that points in a preset direction, turned as little as may be.

    Args:
        direction: where the hand shall point.
        rotation: present orientation of the hand. Shape (3, 3).
        ahead: horizontal unit vector that `forward` means. Shape (3,).
    """
    tilt = math.radians(_TILT_DEG[direction])
    approach = math.cos(tilt) * DOWN + math.sin(tilt) * ahead
    travel = rotation[:, 1] - (rotation[:, 1] @ approach) * approach
    if float(np.linalg.norm(travel)) < _ALONG:  # the fingers close along the new direction
        travel = np.cross(approach, rotation[:, 0])
    return facing(travel / np.linalg.norm(travel), approach)
