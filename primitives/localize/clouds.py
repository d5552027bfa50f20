"""Points in the world from depth pictures, without what the picture only seems to show."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.spatial.transform import Rotation

from zetta.runtime.core import ArmState, Array, Camera, Image, Observation

Mask = npt.NDArray[np.bool_]

NEAR, FAR = 0.05, 3.0
"""Depth that is believed, metres."""
JUMP = 0.02
"""Neighbouring pixels whose depth differs by more, plus `JUMP_SHARE` of it, lie on two things."""
JUMP_SHARE = 0.02


@dataclass(frozen=True, slots=True)
class HandShape:
    """Room that a parallel gripper fills, about its grip site.

    The frame is the end effector's: z points out of the fingers and y is the axis on which they
    close. The default has room for the grippers of the simulators and of a Panda.
    """

    finger_half: tuple[float, float] = (0.022, 0.068)
    """Half size of the fingers along x and y, metres."""
    finger_reach: float = 0.015
    """The fingers end this far beyond the grip site, metres."""
    palm_half: tuple[float, float] = (0.055, 0.125)
    """Half size of the palm and the wrist along x and y, metres."""
    palm_at: float = -0.032
    """Where the palm begins along z, metres."""
    length: float = 0.24
    """The wrist ends so far behind the grip site, metres."""


@functools.lru_cache(maxsize=16)
def _rays(height: int, width: int, intrinsics: bytes) -> Array:
    """Return one direction per pixel with unit depth, optical frame; K comes as its bytes."""
    k = np.frombuffer(intrinsics).reshape(3, 3)
    x = (np.arange(width) + 0.5 - k[0, 2]) / k[0, 0]
    y = (np.arange(height) + 0.5 - k[1, 2]) / k[1, 1]
    return np.stack([*np.meshgrid(x, y), np.ones((height, width))], axis=-1)  # (h, w, 3)


def world_points(depth: npt.NDArray[np.float32], camera: Camera) -> Array:
    """Return the world position of every pixel. Shape (height, width, 3).

    Pixel `(column, row)` is the ray through `(column + 0.5, row + 0.5)`.
    """
    rays = directions(depth.shape, camera)
    return np.asarray(rays * depth[..., None].astype(np.float64) + camera.T_world_cam[:3, 3])


def directions(shape: tuple[int, ...], camera: Camera) -> Array:
    """Return the ray of every pixel, one metre deep, world frame. Shape (height, width, 3)."""
    intrinsics = np.ascontiguousarray(camera.intrinsics, dtype=np.float64)
    local = _rays(shape[0], shape[1], intrinsics.tobytes())
    return np.asarray(local @ camera.T_world_cam[:3, :3].T)


def believable(depth: npt.NDArray[np.float32]) -> Mask:
    """Return which pixels show a surface: neither holes nor mixtures of two things at an edge.

    A mixed pixel floats between its neighbours, one clearly nearer and one clearly farther.
    """
    valid = np.isfinite(depth) & (depth > NEAR) & (depth < FAR)
    d = np.where(valid, depth, np.nan).astype(np.float64)
    floating = np.zeros(depth.shape, dtype=bool)
    limit = JUMP + JUMP_SHARE * np.nan_to_num(d)
    for axis in (0, 1):
        before = _shifted(d, 1, axis) - d
        after = _shifted(d, -1, axis) - d
        with np.errstate(invalid="ignore"):
            apart = (np.abs(before) > limit) & (np.abs(after) > limit)
            floating |= apart & (before * after < 0.0)
    return valid & ~floating


def _shifted(d: Array, step: int, axis: int) -> Array:
    """Return the neighbour of each pixel along `axis`; NaN at the rim."""
    moved = np.roll(d, step, axis=axis)
    rim = [slice(None), slice(None)]
    rim[axis] = slice(0, 1) if step > 0 else slice(-1, None)
    moved[tuple(rim)] = np.nan
    return moved


def in_hand(points: Array, arm: ArmState, shape: HandShape) -> Mask:
    """Return which points lie where the hand is. `points` has the shape (..., 3)."""
    own = (points - arm.ee_pos) @ Rotation.from_quat(arm.ee_quat).as_matrix()
    x, y, z = np.abs(own[..., 0]), np.abs(own[..., 1]), own[..., 2]
    fingers = (x < shape.finger_half[0]) & (y < shape.finger_half[1])
    # Between the fingers is what they hold, not what they are.
    fingers &= (y > arm.gripper_opening / 2.0 - 0.006) & (z < shape.finger_reach)
    palm = (x < shape.palm_half[0]) & (y < shape.palm_half[1]) & (z < shape.palm_at)
    return (fingers | palm) & (z > -shape.length)


def pixels(points: Array, camera: Camera) -> npt.NDArray[np.int64]:
    """Return row and column of the pixel that shows each world point. Shape (N, 2).

    What lies outside the picture, or behind the camera, gets an index outside it.
    """
    local = (points - camera.T_world_cam[:3, 3]) @ camera.T_world_cam[:3, :3]
    depth = local[:, 2]
    safe = np.where(depth > 1e-6, depth, 1.0)
    k = camera.intrinsics
    column = np.floor(local[:, 0] / safe * k[0, 0] + k[0, 2])
    row = np.floor(local[:, 1] / safe * k[1, 1] + k[1, 2])
    found = np.stack([row, column], axis=1)
    return np.where((depth > 1e-6)[:, None], found, -1.0).astype(np.int64)


@dataclass(frozen=True, slots=True)
class Cloud:
    """What one camera saw, pixel by pixel."""

    name: str
    points: Array
    """World frame, metres. Shape (height, width, 3)."""
    valid: Mask
    """Pixels that show a surface which is not the robot's hand. Shape (height, width)."""
    readable: Mask
    """Pixels with a depth that is believed, the hand included. Shape (height, width)."""
    image: Image
    rays: Array
    """Direction of every pixel, world frame. Shape (height, width, 3)."""
    eye: Array
    """Where the camera stands, world frame. Shape (3,)."""
    camera: Camera
    pitch: float
    """Radians between neighbouring pixels."""


def clouds(
    observation: Observation, shape: HandShape, cameras: tuple[str, ...] = ()
) -> tuple[Cloud, ...]:
    """Return the cloud of every camera with depth, or of the named ones."""
    found = []
    for name, depth in observation.depth.items():
        if cameras and name not in cameras:
            continue
        camera = observation.cameras[name]
        points = world_points(depth, camera)
        readable = believable(depth)
        valid = readable.copy()
        for arm in observation.proprio.arms:
            valid &= ~in_hand(points, arm, shape)
        image = observation.images.get(name)
        if image is None or image.shape[:2] != depth.shape:
            image = np.zeros((*depth.shape, 3), dtype=np.uint8)
        eye = np.asarray(camera.T_world_cam[:3, 3])
        rays = directions(depth.shape, camera)
        pitch = 1.0 / float(camera.intrinsics[0, 0])
        found.append(Cloud(name, points, valid, readable, image, rays, eye, camera, pitch))
    return tuple(found)
