"""World points and lines in a picture, with its calibration.

Picture coordinates are continuous: pixel `(column, row)` covers `column` to `column + 1`, so its
middle is at `+ 0.5`, and an enlarged picture has the same calibration times the factor.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from zetta.runtime.core import Array, Camera, read_only

NEAR = 0.02
"""Nearer than this to the camera nothing is drawn, metres along the optical axis."""


@dataclass(frozen=True, slots=True)
class Segment:
    """The part of a straight line that lies inside a picture."""

    start: tuple[float, float]
    """Column and row."""
    end: tuple[float, float]
    start_depth: float
    """Metres along the optical axis."""
    end_depth: float

    @property
    def length(self) -> float:
        """Pixels."""
        return float(np.hypot(self.end[0] - self.start[0], self.end[1] - self.start[1]))

    def at(self, share: Array) -> tuple[Array, Array]:
        """Return places and depths along it: shapes (N, 2) and (N,); `share` runs from 0 to 1.

        Equal steps in the picture are no equal steps in the world: 1 / depth is what is linear.
        """
        places = np.outer(1.0 - share, self.start) + np.outer(share, self.end)
        return places, 1.0 / ((1.0 - share) / self.start_depth + share / self.end_depth)


def enlarged(camera: Camera, factor: float) -> Camera:
    """Return the calibration of the picture enlarged by `factor`."""
    scale = np.diag([factor, factor, 1.0])
    return Camera(camera.name, read_only(scale @ camera.intrinsics), camera.T_world_cam)


def in_camera(points: Array, camera: Camera) -> Array:
    """Return world points in the optical frame. Shape (N, 3)."""
    pose = camera.T_world_cam
    return np.asarray((np.atleast_2d(points) - pose[:3, 3]) @ pose[:3, :3])


def project(points: Array, camera: Camera) -> tuple[Array, Array]:
    """Return where world points are seen.

    Args:
        points: world frame, metres. Shape (N, 3).
        camera: the calibration.

    Returns:
        Column and row, shape (N, 2), NaN for what is not in front of the camera; and the depth
        along the optical axis in metres, shape (N,).

    >>> straight = Camera("c", np.array([[100.0, 0, 50], [0, 100.0, 40], [0, 0, 1]]), np.eye(4))
    >>> project(np.array([[0.1, 0.0, 1.0], [0.0, 0.0, -1.0]]), straight)[0].tolist()
    [[60.0, 40.0], [nan, nan]]
    """
    local = in_camera(points, camera)
    depth = local[:, 2]
    seen = depth > 1e-6
    flat = np.where(seen[:, None], local / np.where(seen, depth, 1.0)[:, None], np.nan)
    return np.asarray((flat @ camera.intrinsics.T)[:, :2]), depth


def place_of(point: Array, camera: Camera, size: tuple[int, int]) -> tuple[float, float] | None:
    """Return column and row of one world point; None where it is not in the picture.

    Args:
        point: world frame, metres. Shape (3,).
        camera: the calibration.
        size: width and height of the picture.
    """
    (place,), (depth,) = project(point, camera)
    inside = depth > NEAR and 0.0 <= place[0] <= size[0] and 0.0 <= place[1] <= size[1]
    return (float(place[0]), float(place[1])) if inside else None


def segment(start: Array, end: Array, camera: Camera, size: tuple[int, int]) -> Segment | None:
    """Return what of a straight line in the world is inside the picture; None for nothing.

    What lies behind the near plane is cut off before projecting: a point behind the camera would
    turn up on the wrong side of the picture.
    """
    ends = in_camera(np.stack([start, end]), camera)
    depths = ends[:, 2]
    if depths.max() <= NEAR:
        return None
    if depths.min() < NEAR:
        behind = int(np.argmin(depths))
        share = (NEAR - depths[behind]) / (depths[1 - behind] - depths[behind])
        ends[behind] += share * (ends[1 - behind] - ends[behind])
    places = (ends / ends[:, 2:] @ camera.intrinsics.T)[:, :2]
    inside = _within(places[0], places[1], size)
    if inside is None:
        return None
    whole = Segment(
        (float(places[0, 0]), float(places[0, 1])), (float(places[1, 0]), float(places[1, 1])),
        float(ends[0, 2]), float(ends[1, 2]),
    )  # fmt: skip
    (first, last), cut_depths = whole.at(np.array(inside))
    return Segment(
        (float(first[0]), float(first[1])), (float(last[0]), float(last[1])),
        float(cut_depths[0]), float(cut_depths[1]),
    )  # fmt: skip


def _within(start: Array, end: Array, size: tuple[int, int]) -> tuple[float, float] | None:
    """Return the shares of a picture line at which it enters and leaves the picture.

    Source: Y. Liang and B. Barsky, "A new concept and method for line clipping", 1984.
    """
    enter, leave = 0.0, 1.0
    along = end - start
    for axis in (0, 1):
        for way, room in ((-along[axis], start[axis]), (along[axis], size[axis] - start[axis])):
            if way == 0.0:
                if room < 0.0:
                    return None
            elif way < 0.0:
                enter = max(enter, float(room / way))
            else:
                leave = min(leave, float(room / way))
    return (enter, leave) if enter < leave else None
