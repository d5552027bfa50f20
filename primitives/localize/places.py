"""Places on and beside things, from the box of the thing, for finders that do not know them."""

from __future__ import annotations

import math

import numpy as np

from zetta.primitives.localize.relations import View
from zetta.primitives.localize.sightings import Sighting
from zetta.runtime.core import Array, read_only

BESIDE = 0.06
"""What is put beside a thing stands so far from its edge, metres, measured to the middle."""
_SPOT = 0.08
"""Side of a place beside a thing, metres."""
_BOTTOM = 0.01
"""Thickness of a container's bottom, metres."""
_ON_TOP = ("top", "burner")
_WITHIN = ("inside", "bottom", "board")
_SIDES = ("left", "right", "front", "back")


def whole_of(name: str) -> str | None:
    """Return the thing on which a place is, or None for what is no such place.

    >>> whole_of("burner of stove"), whole_of("handle of top drawer"), whole_of("plate")
    ('stove', None, None)
    """
    part, _, whole = name.partition(" of ")
    return whole if whole and part in (*_ON_TOP, *_SIDES, *_WITHIN) else None


def placed(name: str, whole: Sighting, view: View) -> Sighting | None:
    """Return the place called `name` on or beside `whole`; None where its box does not tell.

    A place is flat: its height is the surface on which things come to rest.
    """
    part = name.partition(" of ")[0]
    x, y, z = (float(v) for v in whole.position)
    flat = read_only([whole.extent[0], whole.extent[1], 0.0])
    if part in _ON_TOP or part in _WITHIN:
        # A shelf has its board half way up.
        within = z if part == "board" else whole.bottom + _BOTTOM
        z = whole.top if part in _ON_TOP else within
        return Sighting(name, read_only([x, y, z]), flat, whole.yaw, whole.confidence)
    if part in _SIDES:
        way = view.toward(part)
        spot = np.array([x, y]) + way * (_half_width(whole, way) + BESIDE)
        box = read_only([_SPOT, _SPOT, 0.0])
        return Sighting(
            name,
            read_only([*spot, whole.bottom]),
            box,
            math.atan2(way[1], way[0]),
            whole.confidence,
        )
    return None if name != whole.name else whole


def _half_width(whole: Sighting, way: Array) -> float:
    """Return how far the box reaches along a horizontal direction from its middle."""
    c, s = math.cos(whole.yaw), math.sin(whole.yaw)
    own = np.abs([c * way[0] + s * way[1], c * way[1] - s * way[0]])
    return float(own @ whole.extent[:2] / 2.0)
