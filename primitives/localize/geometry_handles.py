"""Handles of drawers and doors by depth alone: bars that stand out from an upright front.

A front is a plane that stands upright and looks at the robot, more or less; a handle is a small
long patch a few centimetres before it, level on a drawer and upright on a door. Which one a name
means follows from its words ("left", "top") and from where the robot stands: of several on that
side, those nearest to straight ahead, and of a stack of drawers that only a side is told of, the
top one.

Of a drawer that stands open, the handle is often below the picture. Its front is seen, and the
handle is then taken to be where handles are: before the front, below its upper edge.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias

import numpy as np
from scipy import ndimage

from zetta.primitives.localize.clouds import Cloud, Mask
from zetta.primitives.localize.sightings import Sighting
from zetta.runtime.core import Array, Proprio, read_only

_NAME: Final = re.compile(
    r"handle of (?:(left|right|top|middle|bottom) )?(?:cabinet )?(drawer|door|cabinet)"
    r"(?: of cabinet)?$"
)
_TURNS: Final = np.deg2rad(np.arange(-75.0, 76.0, 5.0))
"""Directions in which fronts are looked for, from straight towards the robot, radians."""
_LOOKS: Final = math.cos(math.radians(12.0))
"""A pixel belongs to a front that looks within this of its direction."""
_BIN: Final = 0.01
_LEAST_FRONT: Final = 150
"""Pixels that a front shows at least."""
_NEAREST, _FARTHEST = 0.018, 0.085
"""How far before its front a handle stands, metres."""
_LENGTH: Final = (0.05, 0.40)
"""Of a bar, metres."""
_THICK: Final = 0.055
_LONGER: Final = 1.8
"""How many times a bar is longer than it is high, or the other way round."""
_LEAST: Final = 8
"""Pixels that a handle shows at least."""
_SAME: Final = 0.04
"""Bars of two pictures whose middles are nearer, metres, are one."""
_STACKED: Final = 0.12
"""Handles whose sideways distance is less, metres, belong to one stack."""
_OUT: Final = (0.06, 0.50)
"""How far a drawer that stands open stands out, metres."""
_COUNTER: Final = 0.9
"""Fronts of drawers are below this, metres."""
_BODY: Final = 0.14
"""Nearer to the robot's middle than this, sideways, stands the robot itself, metres."""
_BOARD: Final = 0.035
"""How thick the board of a front may be, metres."""
_FLOOR: Final = 0.2
_LEAST_FACE: Final = 60
_FACE: Final = (0.20, 0.90)
"""How wide the front of a drawer is, metres."""
_BELOW_RIM, _BEFORE_FRONT = 0.09, 0.045
"""Where a handle is taken to be, metres."""
_TAKEN: Final = 0.45
"""Confidence of a handle that is not seen itself."""
Lies: TypeAlias = Literal["level", "upright"]


@dataclass(frozen=True, slots=True)
class Bar:
    """A handle that was seen."""

    position: Array
    """Shape (3,)."""
    yaw: float
    """Direction in which its front looks."""
    depth: float
    """From its front to its outer edge, metres."""
    width: float
    height: float
    pixels: int

    @property
    def lies(self) -> Lies:
        """Whether it is the handle of a drawer or of a door."""
        return "level" if self.width > self.height else "upright"


def names_a_handle(name: str) -> bool:
    """Say whether a name is one of a handle.

    >>> names_a_handle("handle of left drawer"), names_a_handle("red cube")
    (True, False)
    """
    return _NAME.match(name) is not None


def find_handles(
    seen: Sequence[Cloud], proprio: Proprio, names: Sequence[str]
) -> tuple[Sighting, ...]:
    """Return the handle that each name means, where it is seen.

    Args:
        seen: what the cameras saw, without the arm.
        proprio: where the robot stands; without a mobile base it looks along world x.
        names: names of handles.
    """
    x, y, yaw = (0.0, 0.0, 0.0) if proprio.base is None else (float(n) for n in proprio.base)
    bars = _merged([bar for cloud in seen for bar in _bars(cloud, yaw + math.pi)])
    found = []
    for name in names:
        match = _NAME.match(name)
        if match is None:
            continue
        side, kind = match.groups()
        lies: Lies = "level" if kind == "drawer" else "upright"
        own = [_Placed(bar, x, y, yaw) for bar in bars if bar.lies == lies]
        chosen = _chosen(own, side or "")
        if chosen is not None:
            found.append(_sighting(name, chosen.bar))
        elif kind == "drawer":
            stands_out = [s for c in seen if (s := _stands_out(c, (x, y, yaw), side)) is not None]
            found += [replace(s, name=name) for s in stands_out[:1]]
    return tuple(found)


class _Placed:
    """A bar as the robot sees it."""

    def __init__(self, bar: Bar, x: float, y: float, yaw: float) -> None:
        self.bar = bar
        dx, dy = bar.position[0] - x, bar.position[1] - y
        self.left = float(-math.sin(yaw) * dx + math.cos(yaw) * dy)
        self.height = float(bar.position[2])


def _chosen(own: list[_Placed], word: str) -> _Placed | None:
    if word in ("left", "right"):
        own = [p for p in own if (p.left > 0.0) == (word == "left")]
    if not own:
        return None
    nearest = min(own, key=lambda p: abs(p.left)).left
    stack = [p for p in own if abs(p.left - nearest) < _STACKED]
    stack.sort(key=lambda p: -p.height)
    if word == "bottom":
        return stack[-1]
    return stack[len(stack) // 2] if word == "middle" else stack[0]


def _sighting(name: str, bar: Bar) -> Sighting:
    confidence = min(0.95, 0.5 + bar.pixels / 100.0)
    extent = read_only([bar.depth, bar.width, bar.height])
    return Sighting(name, read_only(bar.position), extent, bar.yaw, confidence)


def _bars(cloud: Cloud, toward: float) -> list[Bar]:
    """Return the bars before every front of one picture; `toward` is the way to the robot."""
    normals, known = _normals(cloud)
    upright = known & (np.abs(normals[..., 2]) < 0.2)
    found: list[Bar] = []
    for yaw in _directions(normals[upright], toward):
        out = np.array([math.cos(yaw), math.sin(yaw), 0.0])
        reach = cloud.points @ out
        front = upright & (normals @ out > _LOOKS)
        for level in _levels(reach[front]):
            found += _before(cloud, front & (np.abs(reach - level) < _BIN), reach - level, yaw)
    return found


def _normals(cloud: Cloud) -> tuple[Array, Mask]:
    """Return the direction in which the surface at every pixel looks, and where it is known."""
    step = 2
    across = np.roll(cloud.points, -step, axis=1) - np.roll(cloud.points, step, axis=1)
    down = np.roll(cloud.points, -step, axis=0) - np.roll(cloud.points, step, axis=0)
    normal = np.cross(down, across)
    length = np.linalg.norm(normal, axis=-1, keepdims=True)
    normal = normal / np.maximum(length, 1e-12)
    away = np.einsum("hwc,hwc->hw", normal, cloud.rays) > 0.0
    normal[away] *= -1.0
    solid = ndimage.binary_erosion(cloud.valid, iterations=step)
    span = np.linalg.norm(across, axis=-1) + np.linalg.norm(down, axis=-1)
    range_ = np.linalg.norm(cloud.points - cloud.eye, axis=-1)
    smooth = span < 24.0 * step * cloud.pitch * range_
    return normal, solid & smooth & (length[..., 0] > 0.0)


def _directions(normals: Array, toward: float) -> list[float]:
    """Return the directions in which enough of what is seen looks, sharpened."""
    if len(normals) < _LEAST_FRONT:
        return []
    yaws = np.arctan2(normals[:, 1], normals[:, 0]) - toward
    yaws = np.angle(np.exp(1j * yaws))
    counts = np.array([(np.abs(yaws - turn) < np.deg2rad(5.0)).sum() for turn in _TURNS])
    found: list[float] = []
    for k, count in enumerate(counts):
        around = counts[max(0, k - 2) : k + 3]
        if count >= _LEAST_FRONT and count == around.max():
            near = np.abs(yaws - _TURNS[k]) < np.deg2rad(8.0)
            yaw = float(np.median(yaws[near]))
            if not any(abs(yaw - other) < np.deg2rad(6.0) for other in found):
                found.append(yaw)
    return [yaw + toward for yaw in found]


def _levels(reach: Array, least: int = _LEAST_FRONT) -> list[float]:
    """Return how far out the planes of one direction stand."""
    if len(reach) < least:
        return []
    bins = np.floor(reach / _BIN).astype(np.int64)
    first = int(bins.min())
    counts = np.convolve(np.bincount(bins - first), np.ones(2, np.int64))
    peaks = np.flatnonzero((counts >= least) & (counts == ndimage.maximum_filter1d(counts, 5)))
    found: list[float] = []
    for peak in peaks:
        near = np.abs(reach - (first + peak) * _BIN) < 1.5 * _BIN
        level = float(np.median(reach[near]))
        if not any(abs(level - other) < _BIN for other in found):
            found.append(level)
    return found


def _before(cloud: Cloud, front: Mask, before: Array, yaw: float) -> list[Bar]:
    """Return the bars that stand before one front and are seen against it."""
    out = np.array([math.cos(yaw), math.sin(yaw), 0.0])
    side = np.array([-math.sin(yaw), math.cos(yaw), 0.0])
    standing = cloud.valid & (before > _NEAREST) & (before < _FARTHEST)
    labels, count = ndimage.label(standing, structure=np.ones((3, 3)))
    found: list[Bar] = []
    for k, place in enumerate(ndimage.find_objects(labels, max_label=count), 1):
        own = labels[place] == k
        if own.sum() < _LEAST or _at_rim(place, labels.shape) or not _against(place, front):
            continue
        points = cloud.points[place][own]
        width, height = float(np.ptp(points @ side)), float(np.ptp(points[:, 2]))
        long, short = max(width, height), min(width, height)
        if not _LENGTH[0] < long < _LENGTH[1] or short > _THICK or long < _LONGER * short:
            continue
        far = float(np.percentile(before[place][own], 90.0))
        middle = (points.min(axis=0) + points.max(axis=0)) / 2.0
        # A bar is as deep as it is thick, and only its near side is seen.
        middle += (float((points @ out).max()) - min(short, 0.03) / 2.0 - middle @ out) * out
        found.append(Bar(middle, yaw, far, width, height, int(own.sum())))
    return found


def _at_rim(place: tuple[slice, ...], shape: tuple[int, ...]) -> bool:
    return any(s.start == 0 or s.stop == size for s, size in zip(place, shape, strict=True))


def _against(place: tuple[slice, ...], front: Mask) -> bool:
    """Say whether the front is seen about a patch: what stands free is no handle of it."""
    rows, columns = (slice(max(0, s.start - 4), s.stop + 4) for s in place)
    around = front[rows, columns]
    return float(around.sum()) > 0.2 * around.size


def _stands_out(
    cloud: Cloud, base: tuple[float, float, float], word: str | None
) -> Sighting | None:
    """Return where the handle of an open drawer must be, by its front; None where none is open."""
    x, y, yaw = base
    normals, known = _normals(cloud)
    out = -np.array([math.cos(yaw), math.sin(yaw), 0.0])
    side = np.array([-math.sin(yaw), math.cos(yaw), 0.0])
    reach, left = cloud.points @ out, (cloud.points - [x, y, 0.0]) @ side
    front = known & (normals @ out > _LOOKS) & (np.abs(left) > _BODY)
    front &= cloud.points[..., 2] < _COUNTER
    levels = _levels(reach[front], _LEAST_FACE)
    if not any(_OUT[0] < max(levels) - level < _OUT[1] for level in levels):
        return None
    # The whole board: its upper edge is seen where its face is not.
    face = cloud.valid & (np.abs(reach - max(levels)) < _BOARD) & (np.abs(left) > _BODY)
    face &= (cloud.points[..., 2] < _COUNTER) & (cloud.points[..., 2] > _FLOOR)
    if word in ("left", "right"):
        face &= (left > 0.0) == (word == "left")
    if face.sum() < _LEAST_FRONT:
        return None
    low, high = np.percentile(left[face], [2.0, 98.0])
    if not _FACE[0] < high - low < _FACE[1]:
        return None
    height = float(np.percentile(cloud.points[face][:, 2], 98.0)) - _BELOW_RIM
    middle = float(low + high) / 2.0 + float(np.array([x, y, 0.0]) @ side)
    far = max(levels) + _BEFORE_FRONT
    position = far * out + middle * side + np.array([0.0, 0.0, height])
    extent = read_only([_BEFORE_FRONT, _LENGTH[0], 0.03])
    return Sighting("", read_only(position), extent, yaw + math.pi, _TAKEN)


def _merged(bars: Sequence[Bar]) -> list[Bar]:
    """Return each bar once, as the picture shows it that shows most of it."""
    kept: list[Bar] = []
    for bar in sorted(bars, key=lambda b: -max(b.width, b.height)):
        apart = (float(np.linalg.norm(bar.position - other.position)) for other in kept)
        if all(distance > _SAME for distance in apart):
            kept.append(bar)
    return kept
