"""Where to take hold of a thing from above, from its estimate and what stands around it.

What fits between the fingers is taken between them, a wider thing with a rim by the rim. Other
things are known as heights over the ground, so that the hand does not come down on the next one.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from zetta.primitives.motions_frames import half_turn, travel_of
from zetta.primitives.motions_reach import Reach, ReachModel, panda_reach
from zetta.runtime.core import Array, EnvSpec, Estimate, HeightGrid
from zetta.runtime.embodiment import ARM, opening_of


@dataclass(frozen=True, slots=True)
class HandGeometry:
    """A parallel gripper, measured from its grip site. Metres."""

    opening: float = 0.08
    """Widest distance between the fingers."""
    widest: float = 0.071
    """Widest thing that is taken between the fingers; wider ones are taken by their rim."""
    finger_below: float = 0.013
    """How far the finger tips reach below the grip site, with a little room."""
    finger_thick: float = 0.020
    """Thickness of a finger along its travel."""
    finger_half_width: float = 0.010
    """Half width of a finger across its travel."""
    hand_above: float = 0.028
    """Height of the hand's underside above the grip site, with a little room."""
    hand_half_along: float = 0.105
    """Half length of the hand along the fingers' travel."""
    hand_half_across: float = 0.035
    """Half width of the hand across it."""
    empty: float = 0.0025
    """An opening up to this after closing means that nothing is held."""
    least_pull: float = 0.03
    """A drawer that moves less was not opened."""
    longest_pull: float = 0.145
    """How far a drawer is pulled at most: at their end stops, bars slip out of the fingers."""
    longest_push: float = 0.25
    """How far one is pushed at most."""
    reach: ReachModel | None = None
    """Tells how far the arm is stretched; None where it need not be minded."""


PANDA = HandGeometry(reach=panda_reach)
"""The Franka Panda with its own hand."""
PIN_FINGERS = HandGeometry(
    finger_below=0.010, finger_thick=0.014, finger_half_width=0.007, hand_half_along=0.054,
    hand_half_across=0.007,
)  # fmt: skip
"""Two thin fingers without a palm, as the toy has them."""
_OF_PANDAS = ("libero", "maniskill", "robosuite", "robotwin", "twin")
_DEEP_DRAWERS = replace(PANDA, least_pull=0.31, longest_pull=0.34, longest_push=0.45)
"""Drawers of kitchens count as open when they are out that far."""
HANDS: Mapping[str, HandGeometry] = MappingProxyType(
    {**dict.fromkeys(_OF_PANDAS, PANDA), "robocasa": _DEEP_DRAWERS, "toy": PIN_FINGERS}
)
"""Hands by `EnvSpec.name`."""
_FRANKA = ("panda", "franka", "fr3")
"""Words in the model of an arm that has the Panda's links and hand."""
SOME_HAND = replace(PANDA, reach=None)
"""The hand of an arm of which nothing is known: that of the Panda, on an arm of any stretch."""


def hand_of(spec: EnvSpec) -> HandGeometry:
    """Return the hand in an environment: by what its arm says of itself, else by its name.

    A hand that opens wider or less wide takes things that are as much wider or slimmer.
    """
    model = spec.versions.get(ARM, "").lower()
    if not model:
        return HANDS.get(spec.name, SOME_HAND)
    hand = PANDA if any(word in model for word in _FRANKA) else SOME_HAND
    opening = opening_of(spec)
    if opening is None or abs(opening - hand.opening) < 1e-3:
        return hand
    widest = max(0.0, hand.widest + opening - hand.opening)
    return replace(hand, opening=opening, widest=widest)


SIDE_DEPTH = 0.026
"""How far below its top a thing between the fingers is taken, metres."""
Manner: TypeAlias = tuple[float, int]
"""Yaw and side of a grasp: what stays the same when it is tried elsewhere."""

_YAWS_DEG = (0, 15, -15, 30, -30, 45, -45, 60, -60, 75, -75, 90)
_ASIDE = (0.0, -0.01, 0.01, -0.02, 0.02, -0.03, 0.03)
_RIM_ASIDE = (0.0, -0.015, 0.015)
_FLAT = 0.035
"""A thing with a rim that is lower than this is taken as a plate, else as a bowl."""
_NEAR_ROUND = 0.85
"""A thing whose sides differ by less than this ratio may be round."""
_RIM_BAND = 0.015
"""Half width of the strip in which the height of a rim is read, metres."""
_TILTED = 0.012
"""A rim that is seen so far below the top of its thing is that of a tilted one, metres."""
_HAND_SEEN = 0.15
"""Within this distance of its grip site, a hand may be seen instead of the ground, metres."""
_LIMB = 0.12
"""The arm lies within this distance of the lines between its joints, metres."""
_TURN_COST = 0.1
"""Per radian: the unit of cost, about a centimetre of blocked room."""
_BLOCKED_COST = 10.0
_BEYOND_COST = 20.0
_FAILED_COST = 0.4
_SKEW_COST = 4.0
"""Per metre by which a thing is wider between the fingers than it need be."""


@dataclass(frozen=True, slots=True)
class Grasp:
    """One way to take hold of a thing with the hand pointing straight down."""

    point: Array
    """Where the grip site goes, world frame. Shape (3,)."""
    yaw: float
    """Turn about world z from the orientation whose fingers travel along y, radians."""
    width: float
    """What lies between the fingers, metres; 0 for a rim."""
    side: int = 0
    """Which rim along the fingers' travel, +1 or -1; 0 when the thing is between the fingers."""
    aside: float = 0.0
    """Distance from the thing's middle across the fingers' travel, metres."""
    blocked: float = 0.0
    """How far something reaches into the room of the hand or the fingers, metres; 0 is free."""

    @property
    def manner(self) -> Manner:
        """What stays the same when it is tried elsewhere."""
        return round(self.yaw, 2), self.side

    @property
    def rim(self) -> bool:
        """Whether only a rim is between the fingers."""
        return self.side != 0

    @property
    def travel(self) -> Array:
        """Horizontal direction along which the fingers close. Shape (3,)."""
        return travel_of(self.yaw)

    @property
    def across(self) -> Array:
        """Horizontal direction across it. Shape (3,)."""
        travel = self.travel
        return np.array([-travel[1], travel[0], 0.0])


def bottom_of(thing: Estimate) -> float:
    """Return the height of the lowest point of a thing, world z, metres."""
    return float(thing.position[2] - thing.extent[2] / 2.0)


def top_of(thing: Estimate) -> float:
    """Return the height of its highest point, world z, metres."""
    return float(thing.position[2] + thing.extent[2] / 2.0)


def width_of(thing: Estimate, direction: Array) -> float:
    """Return the width of the thing's box along a horizontal unit direction, metres."""
    x, y = _own(thing, direction)
    return float(thing.extent[0] * abs(x) + thing.extent[1] * abs(y))


def candidates(thing: Estimate, hand: HandGeometry) -> Iterator[Grasp]:
    """Yield the ways to take hold of a thing from above; none when it is too wide and has no rim.

    A thing that fits between the fingers one way or the other is not taken by its rim.
    """
    narrow = list(_between(thing, hand))
    yield from narrow or _by_rim(thing)


def _between(thing: Estimate, hand: HandGeometry) -> Iterator[Grasp]:
    height = float(thing.extent[2])
    depth = max(top_of(thing) - SIDE_DEPTH, bottom_of(thing) + min(0.5 * height, 0.03))
    own = [half_turn(thing.yaw), half_turn(thing.yaw + math.pi / 2.0)]
    for yaw in own + [math.radians(d) for d in _YAWS_DEG]:
        travel = travel_of(yaw)
        width = width_of(thing, travel)
        if _may_be_round(thing):
            width = min(width, float(thing.extent[:2].max()))
        if width > hand.widest:
            continue
        across = np.array([-travel[1], travel[0], 0.0])
        spare = max(0.0, width_of(thing, across) / 2.0 - 0.015)
        for aside in _ASIDE:
            if abs(aside) <= spare:
                point = thing.position + across * aside
                yield Grasp(np.array([*point[:2], depth]), yaw, width, 0, aside)


def _by_rim(thing: Estimate) -> Iterator[Grasp]:
    height = float(thing.extent[2])
    inside, depth = (0.004, 0.008) if height < _FLAT else (0.008, 0.025)
    for yaw in (math.radians(d) for d in _YAWS_DEG):
        travel = travel_of(yaw)
        across = np.array([-travel[1], travel[0], 0.0])
        radius = _radius(thing, travel)
        for side in (1, -1):
            for aside in _RIM_ASIDE:
                chord = math.sqrt(max(0.0, radius**2 - aside**2)) - inside
                spot = thing.position + travel * (side * chord) + across * aside
                point = np.array([*spot[:2], top_of(thing) - depth])
                yield Grasp(point, yaw, 0.0, side, aside)


def _may_be_round(thing: Estimate) -> bool:
    sides = thing.extent[:2]
    return float(sides.min()) > _NEAR_ROUND * float(sides.max())


def _radius(thing: Estimate, direction: Array) -> float:
    """Return the radius of the ellipse in the thing's box along a horizontal direction."""
    x, y = _own(thing, direction)
    return 0.5 * math.hypot(float(thing.extent[0]) * x, float(thing.extent[1]) * y)


def _own(thing: Estimate, direction: Array) -> tuple[float, float]:
    c, s = math.cos(thing.yaw), math.sin(thing.yaw)
    x, y = float(direction[0]), float(direction[1])
    return c * x + s * y, c * y - s * x


def choose(
    thing: Estimate,
    surroundings: Surroundings,
    hand: HandGeometry,
    reach: Reach | None = None,
    failed: Collection[Manner] = (),
    carried_by: Array | None = None,
) -> Grasp | None:
    """Return the grasp that is free, reached and asks for the least turning, or None.

    Args:
        thing: what shall be taken.
        surroundings: what stands around it.
        hand: the gripper.
        reach: the arm's present stretch; grasps beyond its comfort are avoided.
        failed: manners that have failed; they are avoided, not forbidden.
        carried_by: the displacement to where it shall be set down, where that is known: the arm
            must reach there, too. Shape (3,).
    """
    best, least = None, math.inf
    slim = min(width_of(thing, travel_of(thing.yaw + turn)) for turn in (0.0, math.pi / 2.0))
    for grasp in map(surroundings.on_rim, candidates(thing, hand)):
        cost = _TURN_COST * abs(grasp.yaw) + 2.0 * abs(grasp.aside) + 0.02 * (grasp.side < 0)
        cost += _FAILED_COST * (grasp.manner in failed)
        if not grasp.rim:
            cost += _SKEW_COST * max(0.0, width_of(thing, grasp.travel) - slim - 0.004)
        if reach is not None:
            cost += _BEYOND_COST * reach.beyond(grasp.point)
            if carried_by is not None:
                cost += _BEYOND_COST * reach.beyond(grasp.point + carried_by)
        if cost >= least:
            continue
        blocked = surroundings.blockage(grasp, hand)
        cost += _BLOCKED_COST * max(0.0, blocked - 0.002)
        if cost < least:
            best, least = replace(grasp, blocked=blocked), cost
    return best


class Surroundings:
    """What stands around a thing: the heights over the ground, the thing itself left out."""

    def __init__(
        self,
        grid: HeightGrid | None,
        thing: Estimate,
        margin: float = 0.008,
        held: tuple[Array, float] | None = None,
        hand: Array | None = None,
        reach: Reach | None = None,
    ) -> None:
        """Leave out of `grid` what belongs to `thing`, with a `margin` to all sides, metres.

        What is `held` (its middle and its radius) is left out too, as far as it was seen, and so
        is whatever stands as high as the `hand` itself around its grip site: the hand; and what
        is as high as the forearm where the arm's `reach` says that it is. Cells where nothing was
        seen count as free, and so does everything without a grid.
        """
        self._grid = grid
        self._middle, self._top = thing.position[:2], top_of(thing)
        if grid is None:
            return
        nx, ny = grid.heights.shape
        x = grid.origin[0] + grid.cell * (np.arange(nx)[:, None] + 0.5)
        y = grid.origin[1] + grid.cell * (np.arange(ny)[None, :] + 0.5)
        dx, dy = x - thing.position[0], y - thing.position[1]
        c, s = math.cos(thing.yaw), math.sin(thing.yaw)
        half = thing.extent[:2] / 2.0 + margin
        inside = (np.abs(c * dx + s * dy) <= half[0]) & (np.abs(c * dy - s * dx) <= half[1])
        seen = np.where(np.isfinite(grid.heights), grid.heights, -np.inf)
        own = inside & (seen > bottom_of(thing) + 0.01) & (seen < top_of(thing) + 0.02)
        self._own = np.column_stack([a[own] for a in np.broadcast_arrays(x, y, seen)])  # (N, 3)
        inside &= seen < top_of(thing) + 0.02  # what is higher hangs over it
        if held is not None:
            inside |= np.hypot(x - held[0][0], y - held[0][1]) <= held[1]
        if hand is not None:
            near = np.hypot(x - hand[0], y - hand[1]) <= _HAND_SEEN
            inside |= near & (seen > hand[2] - 0.02)
        if reach is not None:
            inside |= _of_the_limb(x, y, seen, reach)
        self._heights = np.where(inside, -np.inf, seen)  # (NX, NY)

    def on_rim(self, grasp: Grasp) -> Grasp:
        """Return a rim grasp moved to where the rim was seen, when the thing lies tilted.

        Heights have the coarseness of a cell, so the estimate counts while both agree.
        """
        if not grasp.rim or self._grid is None:
            return grasp
        offset = self._own[:, :2] - self._middle  # (N, 2)
        beside = np.abs(offset @ grasp.across[:2] - grasp.aside) < _RIM_BAND
        strip = self._own[beside & (grasp.side * (offset @ grasp.travel[:2]) > _RIM_BAND)]
        if len(strip) < 2:
            return grasp
        seen = float(strip[:, 2].max())
        lower = self._top - seen
        if lower < _TILTED:
            return grasp
        return replace(grasp, point=grasp.point - np.array([0.0, 0.0, lower]))

    def highest(self, points: Array) -> float:
        """Return the greatest height under `points`, shape (N, 2); -inf where all is free."""
        if self._grid is None:
            return -math.inf
        cells = np.floor((points - self._grid.origin) / self._grid.cell).astype(np.int64)
        inside = ((cells >= 0) & (cells < self._heights.shape)).all(axis=1)
        if not inside.any():
            return -math.inf
        return float(self._heights[cells[inside, 0], cells[inside, 1]].max())

    def blockage(self, grasp: Grasp, hand: HandGeometry) -> float:
        """Return how far something reaches into the room of fingers or hand, metres."""
        inner = hand.opening / 2.0 - 0.004
        along = np.linspace(inner, inner + hand.finger_thick, 3)
        width = hand.finger_half_width
        fingers = _around(grasp, np.concatenate([along, -along]), (-width, 0.0, width))
        z = float(grasp.point[2])
        in_fingers = self.highest(fingers) - (z - hand.finger_below)
        in_hand = self.under_hand(grasp, hand) - (z + hand.hand_above)
        return max(0.0, in_fingers, in_hand)

    def under_hand(self, grasp: Grasp, hand: HandGeometry) -> float:
        """Return the greatest height under the hand's own footprint at a grasp, metres."""
        half, across = hand.hand_half_along, hand.hand_half_across
        palm = _around(grasp, np.linspace(-half, half, 15), np.linspace(-across, across, 5))
        return self.highest(palm)

    def corridor(self, start: Array, end: Array, half_width: float) -> float:
        """Return the greatest height met on the straight way between two points, metres."""
        along = (end - start)[:2]
        length = float(np.linalg.norm(along))
        across = np.array([-along[1], along[0]]) / max(length, 1e-9) * half_width
        share = np.linspace(0.0, 1.0, 2 + int(length / 0.01))
        spots = start[:2] + share[:, None, None] * along + np.linspace(-1, 1, 5)[:, None] * across
        return self.highest(spots.reshape(-1, 2))  # (5 N, 2)

    def way_over(self, start: Array, end: Array, hand: HandGeometry, room: float) -> float:
        """Return how high the grip site travels from `start` to `end`, `room` above all below.

        The fingers pass over what is in their way, the hand over what is beside it.
        """
        fingers = self.corridor(start, end, 0.05) + hand.finger_below
        palm = self.corridor(start, end, hand.hand_half_along) - hand.hand_above
        return max(fingers, palm) + room


def _of_the_limb(x: Array, y: Array, seen: Array, reach: Reach) -> npt.NDArray[np.bool_]:
    """Return which cells show the arm: near a line from joint to joint, and as high."""
    result = np.zeros(seen.shape, dtype=bool)
    for start, end in ((reach.shoulder, reach.elbow), (reach.elbow, reach.wrist)):
        along = end - start
        dx, dy = x - start[0], y - start[1]
        length = max(float(along[:2] @ along[:2]), 1e-9)
        share = np.clip((dx * along[0] + dy * along[1]) / length, 0.0, 1.0)  # (NX, NY)
        beside = np.hypot(dx - share * along[0], dy - share * along[1])
        result |= (beside < _LIMB) & (seen > start[2] + share * along[2] - _LIMB)
    return result


def _around(grasp: Grasp, along: Array, across: Collection[float] | Array) -> Array:
    """Return points around the grasp, offsets along both of its axes. Shape (N, 2)."""
    sides = np.array(list(across))
    offsets = along[:, None, None] * grasp.travel[:2] + sides[:, None] * grasp.across[:2]
    return np.asarray((grasp.point[:2] + offsets).reshape(-1, 2))  # (N, 2)
