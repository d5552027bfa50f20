"""How a thing is turned, from the outline of the points that are seen of it.

Votes for a yaw are weak: most layouts that one learns from show a thing as its suite has it.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from zetta.primitives.localize.tiny.geometry import Float32
from zetta.runtime.core import Array

LEAST_POINTS: Final = 8
CLEAR: Final = 1.15
"""Share by which one side must be longer than the other to tell them apart."""
ENDS: Final = (1.0, 99.0)
"""Percentiles of points taken for the ends of a thing: single points stray."""


def side(points: Array, ends: tuple[float, float] = ENDS) -> tuple[float, Array]:
    """Return the direction of a side of the smallest rectangle around some points, and its spans.

    Args:
        points: shape (N, 2), metres.
        ends: percentiles of points that count as the ends.

    Returns:
        An angle in [0, pi/2), and the spans along it and square to it. Shape (2,).
    """
    angles = np.deg2rad(np.arange(0.0, 90.0, 1.0))
    along = np.stack([np.cos(angles), np.sin(angles)])  # (2, 90)
    across = np.stack([-along[1], along[0]])
    spans = np.stack(
        [np.ptp(np.percentile(points @ axes, ends, axis=0), axis=0) for axes in (along, across)]
    )
    best = int(np.argmin(spans[0] * spans[1]))
    return float(angles[best]), spans[:, best]


def yaw(points: Float32, extent: Array, voted: float) -> float:
    """Return the direction of the narrow side of a thing, radians in (-pi/2, pi/2].

    Args:
        points: surface points of the thing, world. Shape (K, 3).
        extent: its full size as the pixels vote, metres. Shape (3,).
        voted: the direction as they vote, for what is seen of too little.
    """
    if len(points) < LEAST_POINTS:
        return voted
    angle, spans = side(points[:, :2].astype(np.float64))
    narrow, wide = sorted(extent[:2])
    if wide < CLEAR * narrow:
        # About as long as wide: any side will do, so the one nearest to the axes of the world.
        return angle if angle <= np.pi / 4 else angle - np.pi / 2
    first = abs(spans[0] - narrow) + abs(spans[1] - wide)
    second = abs(spans[1] - narrow) + abs(spans[0] - wide)
    turned = angle if first <= second else angle + np.pi / 2
    return float(turned if turned <= np.pi / 2 else turned - np.pi)
