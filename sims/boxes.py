"""Upright boxes: about things, from points on them, and before arms, as far as they reach."""

from __future__ import annotations

from typing import Final

import numpy as np

from zetta.runtime.core import Array
from zetta.runtime.workspace import Box

_ROUND: Final = 1.02
"""A box whose sides differ by less has no narrow side."""


def narrow_box(points: Array) -> tuple[Array, Array, float]:
    """Return centre, extent and yaw of the upright box whose first side is the narrowest.

    Args:
        points: corners of the thing. Shape (N, 3).

    Returns:
        Centre of shape (3,), full size of shape (3,), and the yaw of its first side in radians,
        in (-pi/2, pi/2]; 0 for what is about round.
    """
    angles = np.deg2rad(np.arange(0.0, 180.0, 2.5))
    across = points[:, :2] @ np.stack([np.cos(angles), np.sin(angles)])  # (N, 72)
    widths = np.ptp(across, axis=0)
    best = int(np.argmin(widths))
    round_ = widths.max() / widths[best] < _ROUND or widths[0] / widths[best] < _ROUND
    yaw = 0.0 if round_ else float(angles[best])
    return turned_box(points, yaw if yaw <= np.pi / 2 else yaw - np.pi)


def turned_box(points: Array, yaw: float) -> tuple[Array, Array, float]:
    """Return centre, extent and `yaw` of the upright box that is turned by `yaw`."""
    turn = np.array([[np.cos(yaw), -np.sin(yaw)], [np.sin(yaw), np.cos(yaw)]])
    own = np.column_stack([points[:, :2] @ turn, points[:, 2]])
    low, high = own.min(axis=0), own.max(axis=0)
    middle = (low + high) / 2
    return np.array([*(turn @ middle[:2]), middle[2]]), high - low, yaw


def room_before(
    T_world_base: Array, ahead: tuple[float, float], aside: float, heights: tuple[float, float]
) -> Box:
    """Return the upright box about what an arm reaches.

    Args:
        T_world_base: pose of its base. Shape (4, 4).
        ahead: from where to where it reaches along the base's x axis, metres.
        aside: how far it reaches along the y axis on either side, metres.
        heights: of floor and ceiling in the world, metres.
    """
    ends = [[x, side * aside, 0.0] for x in ahead for side in (-1, 1)]
    found = np.array(ends) @ T_world_base[:3, :3].T + T_world_base[:3, 3]
    (x0, y0), (x1, y1) = np.round(found.min(axis=0), 3)[:2], np.round(found.max(axis=0), 3)[:2]
    return Box((float(x0), float(y0), heights[0]), (float(x1), float(y1), heights[1]))
