"""From an RGB-D picture and its calibration to what the networks see. numpy only.

The networks see world coordinates rather than depth, so that the camera may stand elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from zetta.runtime.core import Array, Camera, Image

Float32 = npt.NDArray[np.float32]

CAMERA: Final = "agentview"
PICTURE: Final = 256
"""Height and width of the picture in pixels; the networks are bound to it."""
TOP, BOTTOM = 40, 232
"""Rows that are looked at: above is wall, below the near edge of the table."""
STRIDE: Final = 2
"""The network answers for every other pixel, the odd ones."""
GRAY: Final = 0.45
SPREAD: Final = (0.3, 0.3, 0.15)
"""World x, y and height above the ground that count as 1, metres."""
REACH: Final = 3.0
"""Bound of a scaled coordinate."""
CROP: Final = 32
"""Side of a crop in pixels."""
WINDOW: Final = 0.17
"""Side of a crop in metres at the depth of what it shows."""


@dataclass(frozen=True, slots=True)
class View:
    """One picture, cropped to the rows that are looked at, with the point behind every pixel."""

    picture: Image
    """Shape (192, 256, 3)."""
    points: Float32
    """World coordinates, metres. Shape (192, 256, 3)."""
    ground: float
    """Height of the ground, world z: the median of all points."""
    camera: Camera

    @property
    def coarse(self) -> Float32:
        """Points of the pixels that the network answers for. Shape (96, 128, 3)."""
        return self.points[STRIDE - 1 :: STRIDE, STRIDE - 1 :: STRIDE]


def view(picture: Image, depth: Float32, camera: Camera) -> View:
    """Crop a whole picture and unproject its depth.

    Args:
        picture: upright RGB. Shape (256, 256, 3).
        depth: metres along the optical axis. Shape (256, 256).
        camera: its calibration.
    """
    points = unproject(depth[TOP:BOTTOM], camera, TOP)
    # Every fourth row and column is enough for a median.
    return View(picture[TOP:BOTTOM], points, float(np.median(points[::4, ::4, 2])), camera)


def unproject(depth: Float32, camera: Camera, first_row: int = 0) -> Float32:
    """Return the world point behind every pixel. Shape (H, W, 3), metres.

    Args:
        depth: metres along the optical axis. Shape (H, W).
        camera: calibration of the whole picture.
        first_row: row of the whole picture at which `depth` begins.
    """
    height, width = depth.shape
    k, pose = camera.intrinsics, camera.T_world_cam
    # The middle of a pixel lies half a pixel from its corner.
    x = (np.arange(width) + 0.5 - k[0, 2]) / k[0, 0]
    y = (np.arange(first_row, first_row + height) + 0.5 - k[1, 2]) / k[1, 1]
    turn = pose[:3, :3].astype(np.float32)
    rays = (
        x.astype(np.float32)[None, :, None] * turn[:, 0]
        + y.astype(np.float32)[:, None, None] * turn[:, 1]
        + turn[:, 2]
    )
    return np.asarray(rays * depth[..., None] + pose[:3, 3].astype(np.float32), np.float32)


def planes(seen: View) -> Float32:
    """Return the input of the dense network. Shape (6, 192, 256)."""
    color = seen.picture.astype(np.float32) * np.float32(1 / 255) - np.float32(GRAY)
    shift = np.array([0.0, 0.0, seen.ground], np.float32)
    where = (seen.points - shift) / np.array(SPREAD, np.float32)
    np.clip(where, -REACH, REACH, out=where)
    return np.ascontiguousarray(np.concatenate([color, where], axis=-1).transpose(2, 0, 1))


def crop(picture: Image, mask: npt.NDArray[np.bool_], center: Array, camera: Camera) -> Image:
    """Cut a metric window around a thing out of a cropped picture.

    Args:
        picture: cropped picture. Shape (192, 256, 3).
        mask: which of the coarse pixels belong to the thing. Shape (96, 128).
        center: middle of the thing, world frame, metres.
        camera: calibration of the whole picture.

    Returns:
        RGB and the mask (0 or 255). Shape (32, 32, 4).
    """
    pose, k = camera.T_world_cam, camera.intrinsics
    seen = pose[:3, :3].T @ (center - pose[:3, 3])
    depth = max(float(seen[2]), 0.05)
    middle = k[:2, :2].diagonal() * seen[:2] / depth + k[:2, 2] - [0.0, TOP]
    pitch = float(k[0, 0]) * WINDOW / depth / CROP
    at = (np.arange(CROP) + 0.5 - CROP / 2) * pitch
    columns, rows = middle[0] + at, middle[1] + at
    color = _bilinear(picture, rows - 0.5, columns - 0.5)
    coarse = mask[_inside(rows / STRIDE, mask.shape[0])][
        :, _inside(columns / STRIDE, mask.shape[1])
    ]
    coarse = coarse & _within(rows, STRIDE * mask.shape[0])[:, None]
    coarse &= _within(columns, STRIDE * mask.shape[1])[None]
    return np.concatenate([color, np.where(coarse, 255, 0)[..., None]], axis=-1).astype(np.uint8)


def _inside(at: Array, size: int) -> npt.NDArray[np.int64]:
    return np.clip(np.floor(at), 0, size - 1).astype(np.int64)


def _within(at: Array, size: int) -> npt.NDArray[np.bool_]:
    return np.asarray((at >= 0) & (at < size))


def _bilinear(picture: Image, rows: Array, columns: Array) -> Float32:
    """Sample on a grid of rows and columns; black outside. Shape (R, C, 3)."""
    height, width = picture.shape[:2]
    r0, c0 = np.floor(rows).astype(int), np.floor(columns).astype(int)
    fr, fc = (rows - r0).astype(np.float32), (columns - c0).astype(np.float32)
    total = np.zeros((len(rows), len(columns), 3), np.float32)
    for dr, wr in ((0, 1 - fr), (1, fr)):
        for dc, wc in ((0, 1 - fc), (1, fc)):
            rr, cc = r0 + dr, c0 + dc
            weight = wr[:, None] * wc[None]
            weight *= ((rr >= 0) & (rr < height))[:, None] & ((cc >= 0) & (cc < width))[None]
            part = picture[np.clip(rr, 0, height - 1)][:, np.clip(cc, 0, width - 1)]
            total += weight[..., None] * part
    return total
