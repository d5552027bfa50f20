"""Where a straight way meets a box: end points alone would let a fast step pass through."""

from __future__ import annotations

import numpy as np

from zetta.runtime.core import Array
from zetta.runtime.workspace import Box


def meets(points: Array, box: Box) -> bool:
    """Say whether a polyline touches a box, its surface included. `points`: shape (N, 3), metres.

    By slabs: a piece meets the box where the stretches that it spends between each pair of
    parallel faces overlap.

    >>> wall = Box((0.4, -1.0, -1.0), (0.6, 1.0, 1.0))
    >>> meets(np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0]]), wall)
    True
    >>> meets(np.array([[0.0, 0.0, 0.0], [0.39, 0.0, 0.0]]), wall)
    False
    """
    low, high = np.array(box.low), np.array(box.high)
    if (points.max(axis=0) < low).any() or (points.min(axis=0) > high).any():
        return False
    start, way = points[:-1], np.diff(points, axis=0)  # (N - 1, 3)
    if len(start) == 0:
        return bool(((points[0] >= low) & (points[0] <= high)).all())
    # Along an axis with no way at all the piece is between the faces always or never.
    still = np.abs(way) < 1e-12
    between = (start >= low) & (start <= high)
    safe_way = np.where(still, 1.0, way)
    one, other = (low - start) / safe_way, (high - start) / safe_way
    enter = np.where(still, np.where(between, -np.inf, np.inf), np.minimum(one, other))
    leave = np.where(still, np.where(between, np.inf, -np.inf), np.maximum(one, other))
    first = np.maximum(enter.max(axis=1), 0.0)
    last = np.minimum(leave.min(axis=1), 1.0)
    return bool((first <= last).any())
