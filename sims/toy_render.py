"""Tiny pictures of the toy world: exact ray casting of boxes, cylinders and balls.

A pixel `(column, row)` is the ray through `(column + 0.5, row + 0.5)`; depth is metres along the
optical axis. Chroma is kept under shading, so a thing's colour word can be read off any pixel.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from zetta.runtime.core import Array, Camera, Image
from zetta.sims.toy_state import arm_rows, frozen, thing_rows
from zetta.sims.toy_tasks import TABLE_HALF, TABLE_Z, ToyTask

COLOURS: dict[str, tuple[int, int, int]] = {
    "red": (220, 30, 30),
    "green": (30, 180, 40),
    "blue": (40, 60, 220),
    "yellow": (235, 215, 30),
    "magenta": (205, 40, 205),
    "cyan": (30, 205, 215),
    "orange": (240, 130, 20),
}
TABLE_COLOUR = (150, 142, 134)
FLOOR_COLOUR = (70, 70, 74)
FINGER_COLOUR = (215, 215, 220)
PALM_COLOUR = (45, 45, 48)
LIGHT = np.array([0.30, 0.20, 0.93])
FAR = 10.0
"""Depth of rays that meet nothing, metres."""


@dataclass(frozen=True, slots=True)
class Lens:
    """A pinhole with square pixels."""

    height: int
    width: int
    focal: float
    """Pixels."""

    def intrinsics(self) -> Array:
        """Return K; the principal point is the middle of the picture. Shape (3, 3)."""
        return np.array(
            [
                [self.focal, 0.0, self.width / 2.0],
                [0.0, self.focal, self.height / 2.0],
                [0.0, 0.0, 1.0],
            ]
        )


@functools.cache
def _rays(lens: Lens) -> Array:
    """Return one direction per pixel with unit depth, optical frame. Shape (H*W, 3)."""
    u = (np.arange(lens.width) + 0.5 - lens.width / 2.0) / lens.focal
    v = (np.arange(lens.height) + 0.5 - lens.height / 2.0) / lens.focal
    x, y = np.meshgrid(u, v)
    return np.stack([x, y, np.ones_like(x)], axis=-1).reshape(-1, 3)  # (H*W, 3)


def look_at(eye: tuple[float, float, float], target: tuple[float, float, float]) -> Array:
    """Return the pose of an optical frame at `eye` that looks at `target`, world z up."""
    forward = np.array(target) - np.array(eye)
    forward /= np.linalg.norm(forward)
    right = np.cross(forward, [0.0, 0.0, 1.0])
    right /= np.linalg.norm(right)
    pose = np.eye(4)
    pose[:3, 0], pose[:3, 1], pose[:3, 2] = right, np.cross(forward, right), forward
    pose[:3, 3] = eye
    return pose


FRONT_POSE = look_at((0.60, 0.0, TABLE_Z + 0.66), (-0.02, 0.0, TABLE_Z + 0.05))
WRIST_OFFSET = np.array([0.06, 0.0, -0.11])
"""Position of the wrist camera in the frame of the end effector, whose z points to the table."""
WRIST_TILT = -0.25
"""Radians by which the wrist camera leans back towards the fingers."""


def rotation(quat: Array) -> Array:
    """Return the matrix of a quaternion xyzw. Shape (3, 3)."""
    x, y, z, w = (float(v) for v in quat)
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
        ]
    )


def wrist_pose(toy: ToyTask, pose: Array, arm: int) -> Array:
    """Return `T_world_cam` of the wrist camera of `arm` at a pose of the world."""
    row = arm_rows(toy, pose)[arm]
    turn = rotation(row[3:7])
    c, s = np.cos(WRIST_TILT), np.sin(WRIST_TILT)
    # The image's right is the gripper's y, its bottom points back to the fingers.
    local = np.array([[0.0, -c, s], [1.0, 0.0, 0.0], [0.0, s, c]])
    matrix = np.eye(4)
    matrix[:3, :3] = turn @ local
    matrix[:3, 3] = row[:3] + turn @ WRIST_OFFSET
    return matrix


def camera(name: str, lens: Lens, T_world_cam: Array) -> Camera:
    """Return the calibration of a picture taken through `lens` from `T_world_cam`."""
    return Camera(name, frozen(lens.intrinsics()), frozen(T_world_cam.copy()))


def draw(
    toy: ToyTask, pose: Array, lens: Lens, T_world_cam: Array
) -> tuple[Image, npt.NDArray[np.float32]]:
    """Return picture and depth of the world at `pose`."""
    rays = _rays(lens) @ T_world_cam[:3, :3].T  # (H*W, 3)
    canvas = Canvas(T_world_cam[:3, 3], rays)
    canvas.level(0.0, None, FLOOR_COLOUR)
    canvas.level(TABLE_Z, TABLE_HALF, TABLE_COLOUR)
    for thing, row in zip(toy.things, thing_rows(toy, pose), strict=True):
        size, colour = (thing.radius, thing.half_height), COLOURS[thing.colour]
        if thing.shape == "cube":
            c, s = np.cos(row[3]), np.sin(row[3])
            turn = np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
            canvas.box(row[:3], turn, np.array([size[0], size[0], size[1]]), colour)
        elif thing.shape == "ball":
            canvas.ball(row[:3], size[0], colour)
        else:
            canvas.can(row[:3], size[0], size[1], colour)
    for arm in arm_rows(toy, pose):
        _draw_gripper(canvas, arm)
    return canvas.picture(lens)


def _draw_gripper(canvas: Canvas, arm: Array) -> None:
    turn = rotation(arm[3:7])
    reach = arm[7] / 2.0 + 0.007
    for side in (-reach, reach):
        centre = arm[:3] + turn @ np.array([0.0, side, -0.02])
        canvas.box(centre, turn, np.array([0.008, 0.007, 0.03]), FINGER_COLOUR)
    palm = arm[:3] + turn @ np.array([0.0, 0.0, -0.065])
    canvas.box(palm, turn, np.array([0.018, 0.055, 0.015]), PALM_COLOUR)


def _shade(facing: npt.ArrayLike) -> Array:
    """Return brightness by the cosine between a face and the light."""
    return np.asarray(0.6 + 0.4 * np.maximum(facing, 0.0))


class Canvas:
    """Nearest hit of every ray so far."""

    def __init__(self, origin: Array, rays: Array) -> None:
        self._origin = origin
        self._rays = rays
        self._units = rays / np.sqrt(np.einsum("ij,ij->i", rays, rays))[:, None]
        self._depth = np.full(len(rays), FAR)
        self._colour = np.zeros((len(rays), 3))

    def level(
        self, z: float, half: tuple[float, float] | None, colour: tuple[int, int, int]
    ) -> None:
        """Draw a horizontal face at height `z`, endless or of half extents `half`."""
        down = self._rays[:, 2]
        enter = (z - self._origin[2]) / np.where(np.abs(down) < 1e-12, 1e-12, down)
        valid = (enter > 1e-4) & (enter < self._depth)
        if half is not None:
            x = self._origin[0] + enter * self._rays[:, 0]
            y = self._origin[1] + enter * self._rays[:, 1]
            valid &= (np.abs(x) <= half[0]) & (np.abs(y) <= half[1])
        self._depth[valid] = enter[valid]
        self._colour[valid] = np.array(colour, dtype=np.float64) * _shade(float(LIGHT[2]))

    def box(self, centre: Array, turn: Array, half: Array, colour: tuple[int, int, int]) -> None:
        """Draw a box of half extents `half`, turned by the matrix `turn`."""
        hit, origin, rays = self._near(centre, float(np.linalg.norm(half)))
        if not hit.size:
            return
        start = (origin - centre) @ turn
        local = rays @ turn
        local = np.where(np.abs(local) < 1e-12, 1e-12, local)
        first = (-half * np.sign(local) - start) / local  # (n, 3)
        last = (half * np.sign(local) - start) / local
        axis = np.argmax(first, axis=1)
        enter = np.take_along_axis(first, axis[:, None], axis=1)[:, 0]
        valid = (enter < last.min(axis=1)) & (enter > 1e-4)
        normal = -np.sign(np.take_along_axis(local, axis[:, None], axis=1)) * turn[:, axis].T
        self._paint(hit, valid, enter, normal, colour)

    def ball(self, centre: Array, radius: float, colour: tuple[int, int, int]) -> None:
        """Draw a ball."""
        hit, origin, rays = self._near(centre, radius)
        if not hit.size:
            return
        start = origin - centre
        a = np.einsum("ij,ij->i", rays, rays)
        b = rays @ start
        root = b * b - a * (start @ start - radius * radius)
        enter = (-b - np.sqrt(np.maximum(root, 0.0))) / a
        normal = (start + enter[:, None] * rays) / radius
        self._paint(hit, (root > 0.0) & (enter > 1e-4), enter, normal, colour)

    def can(
        self, centre: Array, radius: float, half_height: float, colour: tuple[int, int, int]
    ) -> None:
        """Draw an upright cylinder."""
        hit, origin, rays = self._near(centre, float(np.hypot(radius, half_height)))
        if not hit.size:
            return
        start = origin - centre
        flat, down = rays[:, :2], np.where(np.abs(rays[:, 2]) < 1e-12, 1e-12, rays[:, 2])
        a = np.maximum(np.einsum("ij,ij->i", flat, flat), 1e-12)
        b = flat @ start[:2]
        root = b * b - a * (start[:2] @ start[:2] - radius * radius)
        side = (-b - np.sqrt(np.maximum(root, 0.0))) / a
        side_z = start[2] + side * rays[:, 2]
        on_side = (root > 0.0) & (np.abs(side_z) <= half_height) & (side > 1e-4)
        cap = (-half_height * np.sign(down) - start[2]) / down
        spot = start[:2] + cap[:, None] * flat
        on_cap = (np.einsum("ij,ij->i", spot, spot) <= radius * radius) & (cap > 1e-4)
        normal = np.zeros_like(rays)
        normal[:, :2] = np.where(on_cap[:, None], 0.0, (start[:2] + side[:, None] * flat) / radius)
        normal[:, 2] = np.where(on_cap, -np.sign(down), 0.0)
        self._paint(hit, on_side | on_cap, np.where(on_cap, cap, side), normal, colour)

    def picture(self, lens: Lens) -> tuple[Image, npt.NDArray[np.float32]]:
        """Return the finished picture and its depth, read-only."""
        image = (self._colour + 0.5).astype(np.uint8).reshape(lens.height, lens.width, 3)
        depth = self._depth.astype(np.float32).reshape(lens.height, lens.width)
        image.flags.writeable = depth.flags.writeable = False
        return image, depth

    def _near(self, centre: Array, radius: float) -> tuple[npt.NDArray[np.intp], Array, Array]:
        """Return the rays that pass the sphere around a shape: most need no exact test."""
        offset = centre - self._origin
        reach = offset @ offset - radius * radius
        along = self._units @ offset
        hit = np.flatnonzero(along * along >= reach)
        return hit, self._origin, self._rays[hit]

    def _paint(
        self,
        hit: npt.NDArray[np.intp],
        valid: npt.NDArray[np.bool_],
        depth: Array,
        normal: Array,
        colour: tuple[int, int, int],
    ) -> None:
        nearer = valid & (depth < self._depth[hit])
        where = hit[nearer]
        self._depth[where] = depth[nearer]
        shade = _shade(normal[nearer] @ LIGHT)
        self._colour[where] = shade[:, None] * np.array(colour, dtype=np.float64)
