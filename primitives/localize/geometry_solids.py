"""Upright boxes, cylinders and balls fitted to what one camera sees of them.

One picture shows the top and the near sides of a thing, so a mean of its points is off by
centimetres. A solid is fitted instead: its surface passes through the points, the rays of its
pixels meet it and the rays beside them do not. The outline keeps the far sides in place.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from scipy import ndimage
from scipy.optimize import least_squares
from scipy.spatial import ConvexHull, QhullError

from zetta.primitives.localize.clouds import Mask, pixels
from zetta.primitives.localize.geometry_segments import Segment
from zetta.runtime.core import Array

Form: TypeAlias = Literal["cube", "box", "cylinder", "ball"]
_TURNS = np.deg2rad([0.0, 15.0, 30.0, 45.0, 60.0, 75.0])
_YAW_AT = {"cube": 4, "box": 5}
_STEPS = np.linspace(0.0, 1.0, 6)
"""Where a ray is looked at between the top and the bottom of a solid."""
_MARGIN = 2
"""Pixels around a patch whose rays are to miss it."""
_SMALLEST = 0.004
_EXACT = 0.002
"""No depth is trusted more, metres."""
_MOST = 150
"""More rays of each sort tell nothing new."""


@dataclass(frozen=True, slots=True)
class Solid:
    """An upright solid. World frame, metres."""

    form: Form
    x: float
    y: float
    low: float
    """Lower face."""
    high: float
    """Upper face."""
    width: float
    """Along its first axis; a diameter for what is round."""
    depth: float
    """Along its second axis."""
    yaw: float
    """Radians; 0 for what is round."""
    misfit: float
    """Mean squared residual; about 1 for a good fit."""


@dataclass(frozen=True, slots=True)
class _View:
    """The rays and points that a solid has to explain."""

    eye: Array
    hits: Array
    """Directions of its own pixels. Shape (N, 3)."""
    misses: Array
    """Directions of pixels beside it. Shape (M, 3)."""
    points: Array
    """Where it was seen. Shape (P, 3)."""
    blur: float
    """Half the distance of neighbouring rays at the thing, metres."""
    noise: float


def fit(segment: Segment, form: Form) -> Solid:
    """Return the solid of a form that explains a patch best."""
    view = _view(segment)
    low = _floor(segment)

    def residuals(p: Array) -> Array:
        return _residuals(p, view, low, form)

    start = _ball(segment, view) if form == "ball" else _start(view.points, low, form)
    if form in ("cube", "box"):
        # Few pixels give a poor first yaw.
        turned = [np.append(start[:-1], start[-1] + turn) for turn in _TURNS]
        turned.sort(key=lambda p: float(np.sum(np.log1p(residuals(p) ** 2))))
        starts = turned[:2]
    else:
        starts = [start]
    scale = np.where(np.arange(len(start)) == _YAW_AT.get(form, -1), 0.3, 0.01)
    solids = []
    for first in starts:
        result = least_squares(
            residuals, first, loss="soft_l1", x_scale=scale, max_nfev=20, ftol=1e-3, xtol=1e-4
        )
        misfit = 2.0 * float(result.cost) / max(1, len(result.fun))
        solids.append(_solid(result.x, low, form, misfit))
    return min(solids, key=lambda s: s.misfit)


def proportions(segment: Segment) -> tuple[float, float]:
    """Return about how wide and how high a patch is, metres, without fitting anything."""
    points = segment.cloud.points[segment.solid]
    low = _floor(segment)
    _, size, _ = narrow_rectangle(_upper(points, low))
    pixel = float(np.median(np.linalg.norm(points - segment.cloud.eye, axis=1)))
    width = sum(size) / 2.0 + pixel * segment.cloud.pitch
    return width, float(np.percentile(points[:, 2], 90)) - low


def _upper(points: Array, low: float) -> Array:
    """Return where the upper face is seen from above. Shape (N, 2)."""
    top = float(np.percentile(points[:, 2], 90))
    upper = points[points[:, 2] > low + 0.6 * (top - low)]
    return (upper if len(upper) >= 3 else points)[:, :2]


def _view(segment: Segment) -> _View:
    cloud, mask = segment.cloud, segment.mask
    points = cloud.points[segment.solid]
    range_ = float(np.median(np.linalg.norm(points - cloud.eye, axis=1)))
    around = ndimage.binary_dilation(mask, iterations=_MARGIN) & ~mask & ~segment.unknown
    noise = max(_EXACT, segment.support.noise)
    return _View(
        cloud.eye,
        _directions(segment, ndimage.binary_dilation(~mask, iterations=_MARGIN) & mask),
        _directions(segment, around),
        _thinned(points),
        range_ * cloud.pitch / 2.0,
        noise,
    )


def _directions(segment: Segment, mask: Mask) -> Array:
    return _thinned(segment.cloud.rays[mask])


def _thinned(rows: Array) -> Array:
    if len(rows) <= _MOST:
        return rows
    return rows[np.linspace(0, len(rows) - 1, _MOST).astype(np.int64)]


def _floor(segment: Segment) -> float:
    """Return where the thing stands: on the support, or higher when it clearly does."""
    points = segment.cloud.points[segment.solid]
    x, y = (float(v) for v in points[:, :2].mean(axis=0))
    ground = segment.support.at(x, y)
    lowest = float(np.percentile(points[:, 2], 5))
    pitch = float(np.median(np.linalg.norm(points - segment.cloud.eye, axis=1)))
    pitch *= segment.cloud.pitch
    if lowest - ground < max(0.02, 2.0 * pitch, 4.0 * segment.support.noise):
        return ground
    # What stands hides the ground below itself; what floats, or lies on another thing, does not.
    feet = pixels(
        np.column_stack([points[:, :2], np.full(len(points), ground)]), segment.cloud.camera
    )
    rows, columns = np.clip(feet, 0, np.array(segment.mask.shape) - 1).T
    outside = (feet != np.stack([rows, columns], axis=1)).any(axis=1)
    hidden = outside | (segment.mask | segment.unknown)[rows, columns]
    return ground if hidden.mean() > 0.5 else lowest


def _start(points: Array, low: float, form: Form) -> Array:
    """Return first values: x, y, top, then width (and depth, and yaw) as the form has them."""
    top = float(np.percentile(points[:, 2], 90))
    (x, y), (width, depth), yaw = narrow_rectangle(_upper(points, low))
    if form == "cylinder":
        return np.array([x, y, top, (width + depth) / 2.0])
    if form == "cube":
        return np.array([x, y, top, max((width + depth) / 2.0, _SMALLEST), yaw])
    return np.array([x, y, top, width, depth, yaw])


def _ball(segment: Segment, view: _View) -> Array:
    """Return first values of a ball: its middle lies a radius behind what is seen of it."""
    radius = max(2.0 * view.blur * math.sqrt(float(segment.mask.sum()) / math.pi), _SMALLEST)
    middle = np.median(view.points, axis=0)
    away = (middle - view.eye) / np.linalg.norm(middle - view.eye)
    return np.append(middle + 0.75 * radius * away, radius)


def narrow_rectangle(spots: Array) -> tuple[tuple[float, float], tuple[float, float], float]:
    """Return middle, size and yaw of the smallest rectangle around points. Shape (N, 2).

    The first side is the one at `yaw`, in (-pi/4, pi/4].
    """
    corners = spots
    if len(spots) > 3:
        try:
            corners = spots[ConvexHull(spots).vertices]
        except QhullError:
            corners = spots
    edges = np.diff(np.vstack([corners, corners[:1]]), axis=0)
    angles = np.unique(np.round(np.mod(np.arctan2(edges[:, 1], edges[:, 0]), np.pi / 2), 4))
    angles = np.where(angles > np.pi / 4, angles - np.pi / 2, angles)
    best: tuple[float, Array, Array, float] | None = None
    for angle in angles if len(angles) else np.zeros(1):
        c, s = math.cos(angle), math.sin(angle)
        own = corners @ np.array([[c, -s], [s, c]])
        low, high = own.min(axis=0), own.max(axis=0)
        area = float(np.prod(np.maximum(high - low, _SMALLEST)))
        if best is None or area < best[0]:
            middle = np.array([[c, -s], [s, c]]) @ ((low + high) / 2.0)
            best = (area, middle, np.maximum(high - low, _SMALLEST), float(angle))
    assert best is not None
    _, middle, size, yaw = best
    return (float(middle[0]), float(middle[1])), (float(size[0]), float(size[1])), yaw


# --------------------------------------------------------------------------- distances


def _residuals(p: Array, view: _View, low: float, form: Form) -> Array:
    """Return what the solid leaves unexplained, in units of the noise or of half a pixel."""
    surface = _distance(view.points, p, low, form) / view.noise
    # A softened step: most certain is the solid in the middle of what the outline allows.
    hit = _softened(_clearance(view.eye, view.hits, p, low, form) / view.blur)
    miss = _softened(-_clearance(view.eye, view.misses, p, low, form) / view.blur)
    sizes = p[3:5] if form == "box" else p[3:4]
    prior = (np.minimum(sizes, _SMALLEST) - _SMALLEST) / 0.001
    if form == "ball":
        # Few noisy points say little about a radius; the ground below says more.
        prior = np.append(prior, (p[2] - p[3] - low) / (2.0 * view.noise))
    return np.concatenate([surface * _share(len(surface)), hit, miss, prior])


def _share(count: int) -> float:
    """Return the weight of one point: many points share one calibration, so they count less."""
    return min(1.0, math.sqrt(60.0 / max(count, 1)))


def _softened(value: Array) -> Array:
    return np.asarray(np.logaddexp(0.0, 2.0 * value) / 2.0)


def _distance(points: Array, p: Array, low: float, form: Form) -> Array:
    """Return the signed distance of points to the surface, negative inside. Shape (N,)."""
    if form == "ball":
        return np.asarray(np.linalg.norm(points - p[:3], axis=-1) - p[3])
    flat = _outline(points[..., :2], p, form)
    level = np.abs(points[..., 2] - (p[2] + low) / 2.0) - (p[2] - low) / 2.0
    outside = np.hypot(np.maximum(flat, 0.0), np.maximum(level, 0.0))
    return np.asarray(outside + np.minimum(np.maximum(flat, level), 0.0))


def _outline(spots: Array, p: Array, form: Form) -> Array:
    """Return the signed distance to the outline seen from above."""
    dx, dy = spots[..., 0] - p[0], spots[..., 1] - p[1]
    if form == "cylinder":
        return np.asarray(np.hypot(dx, dy) - p[3] / 2.0)
    yaw, width, depth = (p[4], p[3], p[3]) if form == "cube" else (p[5], p[3], p[4])
    c, s = math.cos(yaw), math.sin(yaw)
    a = np.abs(c * dx + s * dy) - width / 2.0
    b = np.abs(c * dy - s * dx) - depth / 2.0
    outside = np.hypot(np.maximum(a, 0.0), np.maximum(b, 0.0))
    return np.asarray(outside + np.minimum(np.maximum(a, b), 0.0))


def _clearance(eye: Array, rays: Array, p: Array, low: float, form: Form) -> Array:
    """Return how far rays pass by the solid; negative where they meet it. Shape (N,)."""
    if form == "ball":
        centre = p[:3] - eye
        unit = rays / np.linalg.norm(rays, axis=1, keepdims=True)
        off = centre - (unit @ centre)[:, None] * unit
        return np.asarray(np.linalg.norm(off, axis=1) - p[3])
    down = np.where(np.abs(rays[:, 2]) < 1e-6, -1e-6, rays[:, 2])
    enter, leave = (p[2] - eye[2]) / down, (low - eye[2]) / down
    along = enter[:, None] + (leave - enter)[:, None] * _STEPS  # (N, steps)
    spots = eye[:2] + along[..., None] * rays[:, None, :2]
    return np.asarray(_outline(spots, p, form).min(axis=1))


def _solid(p: Array, low: float, form: Form, misfit: float) -> Solid:
    x, y = float(p[0]), float(p[1])
    if form == "ball":
        z, radius = float(p[2]), abs(float(p[3]))
        return Solid(form, x, y, z - radius, z + radius, 2.0 * radius, 2.0 * radius, 0.0, misfit)
    high, width = max(float(p[2]), low + _SMALLEST), max(float(p[3]), _SMALLEST)
    if form == "cylinder":
        return Solid(form, x, y, low, high, width, width, 0.0, misfit)
    depth = width if form == "cube" else max(float(p[4]), _SMALLEST)
    yaw = float(p[4] if form == "cube" else p[5])
    turns = round(yaw / (math.pi / 2.0))
    if turns % 2:
        width, depth = depth, width
    return Solid(form, x, y, low, high, width, depth, yaw - turns * math.pi / 2.0, misfit)
