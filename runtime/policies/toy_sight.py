"""Where coloured things are, from one small picture with depth and calibration."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from zetta.runtime.core import Array, Camera, Image

COLOURS: dict[str, tuple[int, int, int]] = {
    "red": (220, 30, 30),
    "orange": (240, 130, 20),
    "yellow": (235, 215, 30),
    "green": (30, 180, 40),
    "cyan": (30, 205, 215),
    "blue": (40, 60, 220),
    "magenta": (205, 40, 205),
}
"""What the colour words mean, as RGB; brightness is ignored."""
MIN_SATURATION = 0.4
"""Greyer pixels belong to the table, the floor or the gripper."""
FLAT = 0.018
"""What rises less than this above the table, in metres, is flat."""
TOP = 0.007
"""Pixels within this distance of the highest one, in metres, show the upper face."""
ALONE = 0.05
"""Pixels of a standing thing lie within this distance of its middle, metres."""
MIN_PIXELS = 3


@dataclass(frozen=True, slots=True)
class Blob:
    """One coloured thing in the picture."""

    colour: str
    flat: bool
    position: Array
    """Middle of its upper face, world frame, metres. Shape (3,)."""
    pixels: int


def points(depth: npt.NDArray[np.float32], camera: Camera) -> Array:
    """Return the world position of every pixel. Shape (height, width, 3).

    Pixel `(column, row)` is the ray through `(column + 0.5, row + 0.5)`.
    """
    height, width = depth.shape
    k = camera.intrinsics
    x = (np.arange(width) + 0.5 - k[0, 2]) / k[0, 0]
    y = (np.arange(height) + 0.5 - k[1, 2]) / k[1, 1]
    rays = np.stack([*np.meshgrid(x, y), np.ones((height, width))], axis=-1)  # (h, w, 3)
    local = rays * depth[..., None].astype(np.float64)
    return np.asarray(local @ camera.T_world_cam[:3, :3].T + camera.T_world_cam[:3, 3])


def blobs(image: Image, depth: npt.NDArray[np.float32], camera: Camera) -> tuple[float, list[Blob]]:
    """Return the height of the table and every coloured thing on it.

    The height is NaN when no table can be seen, for instance in a black picture.
    """
    rgb = image.astype(np.float64)
    brightest = rgb.max(axis=-1)
    grey = 1.0 - rgb.min(axis=-1) / np.maximum(brightest, 1.0) < MIN_SATURATION
    seen = (depth > 0.0) & (brightest > 20.0)
    world = points(depth, camera)
    table = _table_height(world[grey & seen & (brightest > 100.0)])
    if np.isnan(table):
        return table, []
    vivid = seen & ~grey
    chroma = rgb[vivid] / brightest[vivid, None]
    words = list(COLOURS)
    palette = np.array([COLOURS[word] for word in words], dtype=np.float64)
    palette /= palette.max(axis=1, keepdims=True)
    nearest = np.argmin(((chroma[:, None] - palette) ** 2).sum(axis=-1), axis=1)
    found: list[Blob] = []
    for index, word in enumerate(words):
        found += _things(word, world[vivid][nearest == index], table)
    return table, found


def _table_height(spots: Array) -> float:
    """Return the commonest height, to the centimetre, refined by the median around it."""
    if len(spots) < MIN_PIXELS:
        return float("nan")
    levels, counts = np.unique(np.round(spots[:, 2], 2), return_counts=True)
    level = levels[np.argmax(counts)]
    return float(np.median(spots[np.abs(spots[:, 2] - level) < 0.01, 2]))


def _things(colour: str, spots: Array, table: float) -> list[Blob]:
    """Split the pixels of one colour into what stands and what lies flat."""
    found = []
    tall = spots[:, 2] > table + FLAT
    if tall.sum() >= MIN_PIXELS - 1:
        middle = _upper_face(spots[tall])
        near = np.hypot(*(spots[:, :2] - middle[:2]).T) < ALONE
        found.append(Blob(colour, False, middle, int(near.sum())))
        spots = spots[~near]
    if len(spots) >= 3 * MIN_PIXELS:
        found.append(Blob(colour, True, _upper_face(spots), len(spots)))
    return found


def _upper_face(spots: Array) -> Array:
    upper = spots[spots[:, 2] > spots[:, 2].max() - TOP]
    return np.asarray(upper.mean(axis=0))
