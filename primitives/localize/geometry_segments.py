"""What stands on the table, as patches of one picture."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import ndimage

from zetta.primitives.localize.clouds import JUMP, Cloud, Mask
from zetta.primitives.localize.geometry_colours import VIVID, WORDS, classes
from zetta.primitives.localize.heights import Workspace
from zetta.runtime.core import Array

_BIN = 0.01
"""Width of the histogram of heights, metres."""
_MIN_PLANE = 30
"""Pixels that a support must show."""
_RISE = 0.010
"""What rises more above the support, metres, stands on it, unless the depth is noisier."""
_NOISES = 3.0
"""... in standard deviations of the depth."""
_OTHER_COLOUR = 60.0
"""What differs so much in RGB from the support is no part of it, even if it is flat."""
_MIN_PIXELS = 4
_SHARE = 0.2
"""A hue with a smaller share of a patch is a pattern on it and no thing of its own."""
_BROWN_IN_SHADE = ("red", "orange")
"""Hues whose side away from the light looks brown: a red cube has a red top and brown sides."""
_EIGHT = np.ones((3, 3), dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Support:
    """The plane on which things stand: z = a x + b y + c."""

    plane: Array
    """Shape (3,)."""
    noise: float
    """Standard deviation of the depth along z, metres."""
    colour: Array
    """Median RGB. Shape (3,)."""

    def height(self, points: Array) -> Array:
        """Return the height of points over the plane. `points` has the shape (..., 3)."""
        a, b, c = self.plane
        return np.asarray(points[..., 2] - (a * points[..., 0] + b * points[..., 1] + c))

    def at(self, x: float, y: float) -> float:
        """Return the world z of the plane."""
        return float(self.plane @ (x, y, 1.0))


@dataclass(frozen=True, slots=True)
class Segment:
    """One patch of a picture that seems to be one thing."""

    cloud: Cloud
    mask: Mask
    """Its pixels, with or without depth. Shape (height, width)."""
    solid: Mask
    """Those with a believable depth."""
    unknown: Mask
    """Pixels that say nothing about its outline: holes, the hand, whatever hides it."""
    shares: Array
    """Share of its pixels in each colour class. Shape (13,)."""
    support: Support
    cut: bool
    """It reaches the rim of the picture."""


def find_support(cloud: Cloud, workspace: Workspace) -> Support | None:
    """Return the most visible level plane within the workspace, or None when there is none."""
    inside = cloud.valid & workspace.holds(cloud.points)
    points = cloud.points[inside]
    if len(points) < _MIN_PLANE:
        return None
    bins = np.floor(points[:, 2] / _BIN).astype(np.int64)
    counts = np.bincount(bins - bins.min())
    # Noise spreads a plane over several bins.
    best = int(np.argmax(ndimage.uniform_filter1d(counts.astype(float), 3, mode="constant")))
    level = (best + bins.min() + 0.5) * _BIN
    plane, width = np.array([0.0, 0.0, level]), 1.5 * _BIN
    for _ in range(4):
        off = points[:, 2] - (points[:, :2] @ plane[:2] + plane[2])
        near = np.abs(off) < width
        if near.sum() < _MIN_PLANE:
            return None
        plane = _fitted(points[near])
        off = points[near, 2] - (points[near, :2] @ plane[:2] + plane[2])
        noise = 1.4826 * float(np.median(np.abs(off)))
        width = max(0.004, 3.0 * noise)
    # Off the plane and not off its bin: the most counted bin may be a neighbour.
    off = cloud.points[..., 2] - (cloud.points[..., :2] @ plane[:2] + plane[2])
    flat = inside & (np.abs(off) < max(width, 0.01))
    return Support(plane, noise, np.median(cloud.image[flat], axis=0))


def _fitted(points: Array) -> Array:
    """Return the plane of least squares; a slope of more than 3 degrees is taken for none."""
    system = np.column_stack([points[:, :2], np.ones(len(points))])
    plane = np.linalg.lstsq(system, points[:, 2], rcond=None)[0]
    if np.hypot(*plane[:2]) > np.tan(np.deg2rad(3.0)):
        return np.array([0.0, 0.0, float(np.median(points[:, 2]))])
    return np.asarray(plane)


def segments(cloud: Cloud, support: Support, workspace: Workspace) -> list[Segment]:
    """Return what stands on the support, thing by thing as far as depth and hue tell."""
    height = support.height(cloud.points)
    inside = workspace.holds(cloud.points)
    rise = max(_RISE, _NOISES * support.noise)
    different = np.linalg.norm(cloud.image - support.colour, axis=-1) > _OTHER_COLOUR
    word = classes(cloud.image)
    vivid = np.isin(word, VIVID)
    known = cloud.valid & inside
    standing = known & (height > rise)
    flat = known & different & (height > -rise) & _near_the_support(cloud, support)
    # Depth has holes where outlines are; the picture has none.
    hole = ~cloud.readable & different & vivid
    found: list[Segment] = []
    for patch in _patches(standing | flat | hole, cloud):
        for part in _hues(patch, word, vivid):
            if (part & known).sum() >= _MIN_PIXELS:
                found.append(_segment(part, cloud, known, word, support))
    return found


def _near_the_support(cloud: Cloud, support: Support) -> Mask:
    """Return which pixels do not lie beyond the rim of the table: far below it."""
    return support.height(cloud.points) > -max(0.02, 4.0 * support.noise)


def _patches(foreground: Mask, cloud: Cloud) -> list[Mask]:
    """Split the foreground where the depth jumps."""
    range_ = np.linalg.norm(cloud.points - cloud.eye, axis=-1)
    range_ = np.where(cloud.valid, range_, np.nan)
    low = ndimage.minimum_filter(np.where(np.isnan(range_), np.inf, range_), size=3)
    # The far side of a jump is cut off: nearer things keep their whole outline.
    behind = cloud.valid & foreground & (range_ - low > 2.0 * JUMP + 3.0 * cloud.pitch * range_)
    labels, count = ndimage.label(foreground & ~behind, structure=_EIGHT)
    patches = [labels == k for k in range(1, count + 1)]
    far, more = ndimage.label(foreground & behind, structure=_EIGHT)
    return [p for p in patches + [far == k for k in range(1, more + 1)] if p.sum() >= _MIN_PIXELS]


def _hues(patch: Mask, word: npt.NDArray[np.int64], vivid: Mask) -> list[Mask]:
    """Split a patch into its hues where more than one has a fair share; the rest joins them."""
    own = word[patch]
    counts = np.bincount(own, minlength=len(WORDS)).astype(float)
    counts[len(VIVID) :] = 0.0
    large = [k for k in np.flatnonzero(counts) if counts[k] >= max(_MIN_PIXELS, _SHARE * len(own))]
    if len(large) < 1 or (len(large) == 1 and counts[large[0]] > (1.0 - _SHARE) * len(own)):
        return [patch]
    parts: list[Mask] = []
    taken = [int(k) for k in large]
    warm = [k for k in large if WORDS[k] in _BROWN_IN_SHADE]
    for k in large:
        shades = [int(k), WORDS.index("brown")] if warm == [k] else [int(k)]
        taken += shades
        labels, count = ndimage.label(patch & np.isin(word, shades), structure=_EIGHT)
        parts += [labels == j for j in range(1, count + 1) if (labels == j).sum() >= _MIN_PIXELS]
    rest = patch & ~np.isin(word, taken)
    labels, count = ndimage.label(rest, structure=_EIGHT)
    return parts + [labels == j for j in range(1, count + 1) if (labels == j).sum() >= _MIN_PIXELS]


def segment_of(mask: Mask, cloud: Cloud, support: Support) -> Segment:
    """Return the patch of given pixels. `mask` has the shape (height, width)."""
    return _segment(mask, cloud, cloud.valid, classes(cloud.image), support)


def _segment(
    mask: Mask, cloud: Cloud, known: Mask, word: npt.NDArray[np.int64], support: Support
) -> Segment:
    solid = mask & known
    shares = np.bincount(word[mask], minlength=len(WORDS)) / mask.sum()
    range_ = np.linalg.norm(cloud.points - cloud.eye, axis=-1)
    nearest = float(np.percentile(range_[solid], 5))
    hides = cloud.valid & ~mask & (range_ < nearest - 0.01)
    rows, columns = np.nonzero(mask)
    height, width = mask.shape
    cut = bool(
        rows.min() == 0 or columns.min() == 0 or rows.max() == height - 1
        or columns.max() == width - 1
    )  # fmt: skip
    return Segment(cloud, mask, solid, (~cloud.valid & ~mask) | hides, shares, support, cut)
