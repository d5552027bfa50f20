"""Where to take hold of an object from above: candidates, and the choice between them.

Choices are made to be imitable: the hand keeps its upright start orientation and takes the same
side of a rim again and again, unless something stands in the way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from zetta.runtime.core import Array
from zetta.sims.libero.world import HeightMap

MAX_OPENING = 0.08
"""Widest opening of the Panda gripper in metres."""
MAX_WIDTH = 0.071
"""Widest object that is taken between the fingers; wider ones are taken by their rim."""
FINGER_BELOW_SITE = 0.013
"""How far the finger tips reach below the grip site, with a little room."""
HAND_ABOVE_SITE = 0.028
"""Height of the hand's underside above the grip site, with a little room."""
MAP_HALF = 0.18
"""Half side of the height map that a choice needs: rim radius plus half a hand."""

_YAWS_DEG = (0, -15, 15, -30, 30, -45, 45, -60, 60, -75, 75, -90, 90)
_WRIST_INWARD = 0.088
"""Distance of the wrist centre from the hand's axis (Panda, joint 7)."""
_WRIST_ABOVE = 0.204
"""Height of the wrist centre over the grip site when the hand points down."""
_COMFORTABLE_REACH = 0.675
"""Distance shoulder to wrist; 0.70 is a straight arm."""
_RIM_ASIDE = (0.0, -0.015, 0.015)
_RIM_BAND = 0.015
_RIM_HEIGHT = 0.035
_ASIDE = (0.0, -0.01, 0.01, -0.02, 0.02, -0.03, 0.03)
_HAND_HALF = (0.105, 0.035)
"""Half length along the fingers' travel and half width of the hand."""


Manner: TypeAlias = tuple[float, int, float]
"""Yaw, side and aside of a grasp."""


@dataclass(frozen=True, slots=True)
class Grasp:
    """One way to take hold of an object with the hand pointing straight down."""

    point: Array
    """Where the grip site goes, world frame. Shape (3,)."""
    yaw: float
    """Turn about world z from the upright orientation whose fingers move along y."""
    width: float
    """What lies between the fingers, metres; 0 for a rim."""
    side: int
    """Which rim along the fingers' travel, +1 or -1; 0 when the object is between the fingers."""
    blocked: float
    """How far something reaches into the hand's or the fingers' space, metres; 0 is free."""
    aside: float
    """Distance from the object's middle across the fingers' travel, metres."""

    @property
    def manner(self) -> Manner:
        """What stays the same when the object lies elsewhere."""
        return self.yaw, self.side, self.aside

    @property
    def rim(self) -> bool:
        """Whether only a rim is between the fingers."""
        return self.side != 0

    @property
    def tolerance(self) -> Array:
        """Allowed error along the fingers' travel and across it before closing. Shape (2,)."""
        room = 0.012 if self.rim else (MAX_OPENING - self.width) / 2 - 0.002
        return np.array([min(0.012, max(0.004, room)), 0.012])


@dataclass(frozen=True, slots=True)
class GripStyle:
    """How deep a kind of object is taken."""

    rim_inside: float = 0.008
    """Distance of the grip site from the rim towards the middle."""
    rim_depth: float = 0.025
    """Distance of the grip site below the rim."""
    side_depth: float = 0.026
    """Distance of the grip site below the top of an object that fits between the fingers."""
    rim_only: bool = False
    along: Array | None = None
    """Direction (x, y) the fingers must travel along, where only that one is possible."""


def finger_travel(yaw: float) -> Array:
    """Return the horizontal direction in which the fingers travel. Shape (2,).

    >>> finger_travel(0.0).round(3).tolist()
    [0.0, 1.0]
    """
    return np.array([-np.sin(yaw) + 0.0, np.cos(yaw)])


def candidates(points: Array, style: GripStyle) -> Iterator[Grasp]:
    """Yield grasps of the object whose collision corners are `points`, shape (N, 3)."""
    low, high = points.min(axis=0), points.max(axis=0)
    middle = (low + high)[:2] / 2
    depth = max(high[2] - style.side_depth, low[2] + min(0.5 * (high[2] - low[2]), 0.03))
    for yaw in np.deg2rad(_YAWS_DEG):
        axis = finger_travel(yaw)
        if style.along is not None and abs(float(axis @ style.along)) < 0.9:
            continue
        across = np.array([-axis[1], axis[0]])
        reach = points[:, :2] @ axis
        width = float(reach.max() - reach.min())
        if width <= MAX_WIDTH and not style.rim_only:
            spot = middle + axis * ((reach.max() + reach.min()) / 2 - middle @ axis)
            spare = max(0.0, float(np.ptp(points[:, :2] @ across)) / 2 - 0.015)
            for aside in _ASIDE:
                if abs(aside) <= spare:
                    point = np.array([*(spot + across * aside), depth])
                    yield Grasp(point, float(yaw), width, 0, 0.0, aside)
            continue
        yield from _rim_grasps(points, style, float(yaw))


def _rim_grasps(points: Array, style: GripStyle, yaw: float) -> Iterator[Grasp]:
    """Yield grasps of both rims along the fingers' travel, also a little beside their apex."""
    axis = finger_travel(yaw)
    across = np.array([-axis[1], axis[0]])
    rim = points[points[:, 2] > points[:, 2].max() - _RIM_HEIGHT]  # a mug's handle is lower
    middle = (rim.min(axis=0) + rim.max(axis=0))[:2] / 2
    reach = (rim[:, :2] - middle) @ axis
    for side in (1, -1):
        edge = float((side * reach).max())
        top = rim[side * reach > edge - _RIM_BAND, 2].max()  # lower than elsewhere when tilted
        for aside in _RIM_ASIDE:
            radius = np.sqrt(max(0.0, edge**2 - aside**2)) - style.rim_inside
            spot = middle + axis * side * radius + across * aside
            yield Grasp(np.array([*spot, top - style.rim_depth]), yaw, 0.0, side, 0.0, aside)


def blockage(grasp: Grasp, scene: HeightMap) -> float:
    """Return how far the scene reaches into the space of the fingers or the hand, metres."""
    axis = finger_travel(grasp.yaw)
    across = np.array([-axis[1], axis[0]])
    half = MAX_OPENING / 2 - 0.004
    fingers = _footprint(grasp, axis, across, (half, half + 0.01, half + 0.02), (-0.01, 0.0, 0.01))
    along = np.linspace(-_HAND_HALF[0], _HAND_HALF[0], 15)
    hand = _footprint(grasp, axis, across, tuple(along), (-0.035, -0.018, 0.0, 0.018, 0.035))
    both = np.concatenate([fingers, 2 * grasp.point[:2] - fingers])
    in_fingers = scene.highest(both) - (grasp.point[2] - FINGER_BELOW_SITE)
    in_hand = scene.highest(hand) - (grasp.point[2] + HAND_ABOVE_SITE)
    return max(0.0, float(in_fingers), float(in_hand))


def costs(
    points: Array, scene: HeightMap, style: GripStyle, extra: Callable[[Grasp], float]
) -> Iterator[tuple[float, Grasp]]:
    """Yield every way to take hold of an object, with what speaks against it.

    Args:
        points: collision corners of the object, shape (N, 3).
        scene: heights around the object, the object left out.
        style: how deep this kind of object is taken.
        extra: what else speaks against a grasp; a quarter turn of the hand costs 0.16.
    """
    fitting = list(candidates(points, style))
    if any(not g.rim for g in fitting):
        fitting = [g for g in fitting if not g.rim]
    for grasp in fitting:
        blocked = blockage(grasp, scene)
        cost = 0.1 * abs(grasp.yaw) + 0.02 * (grasp.side < 0) + 10.0 * max(0.0, blocked - 0.002)
        cost += 2.0 * abs(grasp.aside) + extra(grasp)
        cost += 0.0 if grasp.rim else 4.0 * max(0.0, grasp.width - 0.064)
        yield cost, replace(grasp, blocked=blocked)


def choose(
    points: Array, scene: HeightMap, style: GripStyle, extra: Callable[[Grasp], float]
) -> Grasp | None:
    """Return the grasp that is free and asks for the least turning, or None without candidate.

    Arguments as for `costs`.
    """
    found = list(costs(points, scene, style, extra))
    return min(found, key=lambda pair: pair[0])[1] if found else None


def overreach(point: Array, shoulder: Array) -> float:
    """Return how far the arm is stretched beyond comfort, hand down at `point`, metres."""
    radial = float(np.linalg.norm((point - shoulder)[:2])) - _WRIST_INWARD
    rise = float(point[2] - shoulder[2]) + _WRIST_ABOVE
    return max(0.0, float(np.hypot(radial, rise)) - _COMFORTABLE_REACH)


def _footprint(
    grasp: Grasp,
    axis: Array,
    across: Array,
    along: tuple[float, ...],
    aside: tuple[float, ...],
) -> Array:
    """Return points around the grasp, offsets along both axes. Shape (N, 2)."""
    return np.array([grasp.point[:2] + axis * r + across * u for r in along for u in aside])
