"""Where a cabinet stands, from its flat top: votes alone do not tell well how it is turned.

A cabinet is rigid but for its drawers, and the size of its top is known. The rectangle around the
points of the top gives the direction of its sides to a degree; the votes say which side is which,
and which way the drawers open. How far one is open, the points of its bar say, or else the votes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from zetta.primitives.localize.tiny.geometry import Float32
from zetta.primitives.localize.tiny.outline import side
from zetta.runtime.core import Array

SIDES: Final = np.array([0.255, 0.191])
"""Size of the top along the first and the second axis, metres."""
FACE: Final = 0.005
"""Points less than this below the highest ones belong to the top, metres."""
ENDS: Final = (0.5, 99.5)
"""Percentiles of points that count as the ends of the top."""
LEAST_POINTS: Final = 40
SPACING: Final = 0.005
"""About the distance between neighbouring points of the top, metres."""
CREDIBLE: Final = 0.06
"""Metres by which the top may lie from where the votes have it; else something lies on it."""
SHUT: Final = 0.005
"""From the middle of the top outwards to the middle of a shut drawer, metres."""
AJAR: Final = 0.05
"""Votes for less than this are no evidence that a drawer is open, metres."""
OPEN: Final = 0.17
"""The same for a drawer that is as open as can be."""
BAR_OUT, BAR_ASIDE = 0.1125, 0.006
"""From the middle of a drawer to its bar: outwards, and to the right as one looks out, metres."""
BAR_RISE: Final = {"top": 0.028, "middle": 0.023, "bottom": 0.024}
"""From the floor of a drawer to the middle of its bar, metres."""
BAR_DEPTH: Final = {"top": 0.038, "middle": 0.112, "bottom": 0.181}
"""From the top of the cabinet down to the middle of a bar, metres."""
BAR_HALF: Final = (0.0075, 0.044, 0.008)
"""Half the size of a bar outwards, along the front and upwards, metres."""
_LEAST_BAR_POINTS: Final = 3


@dataclass(frozen=True, slots=True)
class Pose:
    """Where a cabinet stands."""

    center: Array
    """Middle of its top, world x and y. Shape (2,)."""
    yaw: float
    """Direction of its first axis, radians; half a turn makes no difference."""


def pose(points: Float32, voted: Array, voted_yaw: float) -> Pose:
    """Return where a cabinet stands.

    Args:
        points: surface points of the cabinet, world. Shape (K, 3).
        voted: middle of its top as the pixels vote. Shape (3,).
        voted_yaw: direction of its first axis as they vote.
    """
    by_votes = Pose(voted[:2], voted_yaw)
    highest = float(np.percentile(points[:, 2], 99)) if len(points) else 0.0
    face = points[points[:, 2] > highest - FACE, :2].astype(np.float64)
    if len(face) < LEAST_POINTS or abs(highest - voted[2]) > 0.02:
        return by_votes
    yaw = _nearest_quarter(side(face, ENDS)[0], voted_yaw)
    turn = _turn(yaw)
    own, expected = face @ turn, voted[:2] @ turn
    low, high = np.percentile(own, ENDS, axis=0)
    middle = np.array([_middle(*row) for row in zip(low, high, SIDES, expected, strict=True)])
    center = turn @ middle
    return Pose(center, yaw) if np.linalg.norm(center - voted[:2]) < CREDIBLE else by_votes


def opening(stand: Pose, out: Array, top: float, level: str, points: Float32) -> float | None:
    """Return how far the middle of a drawer is out, by the points of its bar; None when unseen.

    Args:
        stand: where the cabinet stands.
        out: unit vector in which drawers open. Shape (2,).
        top: height of the cabinet's top.
        level: top, middle or bottom.
        points: surface points of the cabinet. Shape (K, 3).
    """
    right = np.array([out[1], -out[0]])
    away = points[:, :2] - stand.center
    outward, aside = away @ out, away @ right - BAR_ASIDE
    rise = points[:, 2] - (top - BAR_DEPTH[level])
    near = (np.abs(aside) < BAR_HALF[1]) & (np.abs(rise) < BAR_HALF[2])
    near &= outward > BAR_OUT
    if int(near.sum()) < _LEAST_BAR_POINTS:
        return None
    return float(outward[near].max()) - BAR_OUT - BAR_HALF[0]


def outwards(stand: Pose, insides: Array, bars: Array) -> Array:
    """Return the unit vector in which drawers open.

    Args:
        stand: where the cabinet stands.
        insides: middles of the drawers as the pixels vote. Shape (3, 3).
        bars: middles of their bars as the pixels vote. Shape (3, 3).
    """
    out = _turn(stand.yaw)[:, 1]
    way = (bars - insides)[:, :2].mean(axis=0)
    return np.asarray(out if way @ out > 0 else -out)


def drawer(stand: Pose, out: Array, inside: Array, measured: float | None) -> Array:
    """Return the middle of a drawer's floor: on the line in which it slides. Shape (3,).

    Args:
        stand: where the cabinet stands.
        out: unit vector in which drawers open. Shape (2,).
        inside: the place as the pixels vote. Shape (3,).
        measured: how far it is out by the points of its bar, where those are seen.
    """
    opened = measured
    if opened is None:
        voted = float((inside[:2] - stand.center) @ out)
        # A bar that nobody sees is mostly below an open drawer, and its own drawer shut.
        opened = voted if voted > AJAR else SHUT
    opened = float(np.clip(opened, SHUT - 0.01, OPEN))
    return np.array([*(stand.center + opened * out), inside[2]])


def bar(level: str, inside: Array, out: Array) -> Array:
    """Return the middle of a drawer's bar from the middle of its floor. Shape (3,)."""
    right = np.array([out[1], -out[0]])
    place = inside[:2] + BAR_OUT * out + BAR_ASIDE * right
    return np.array([*place, inside[2] + BAR_RISE[level]])


def _nearest_quarter(yaw: float, wanted: float) -> float:
    quarters = yaw + np.arange(4) * np.pi / 2
    away = np.abs((quarters - wanted + np.pi / 2) % np.pi - np.pi / 2)
    return float(quarters[int(np.argmin(away))])


def _turn(yaw: float) -> Array:
    return np.array([[np.cos(yaw), -np.sin(yaw)], [np.sin(yaw), np.cos(yaw)]])


def _middle(low: float, high: float, side: float, expected: float) -> float:
    """Return the middle of a side of which one end may be hidden or beyond the picture."""
    if high - low > side - 3 * SPACING:
        return (low + high) / 2
    ends = (low + side / 2 - SPACING / 2, high - side / 2 + SPACING / 2)
    return min(ends, key=lambda end: abs(end - expected))
