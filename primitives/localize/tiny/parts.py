"""Sightings of parts and places from the fixture that they belong to. numpy only."""

from __future__ import annotations

from typing import Final

import numpy as np

from zetta.primitives.localize.sightings import Sighting
from zetta.primitives.localize.tiny.geometry import Float32
from zetta.primitives.localize.tiny.instances import Instance
from zetta.primitives.localize.tiny.vocabulary import EXTENTS
from zetta.runtime.core import Array, read_only

RIDGE_RADIUS: Final = 0.055
"""Points of a knob's ridge lie within this distance of its pivot, metres."""
RIDGE_RISE: Final = 0.004
"""Height above the ridge's middle from which only the ridge is left, metres."""
_LEAST_POINTS: Final = 6


def part_sighting(
    name: str,
    part: str,
    fixture: Instance,
    position: Array,
    points: Float32,
    confidence: float,
) -> Sighting:
    """Return where a part is, how large and how turned.

    Args:
        name: how it was asked for.
        part: its name in the vocabulary.
        fixture: the instance that it belongs to.
        position: its centre as the fixture's pixels vote. Shape (3,).
        points: surface points of the fixture. Shape (K, 3).
        confidence: of the fixture.
    """
    yaw = fixture.yaw
    if part.startswith("handle of") and part.endswith("drawer"):
        yaw = _outward(fixture, position)
    elif part.endswith("drawer"):
        yaw = fixture.yaw + np.pi / 2  # its first side runs in and out
    elif part == "knob of stove":
        yaw = _across_ridge(points, position, fixture.yaw + np.pi / 2)
    extent = np.array(EXTENTS[part])
    return Sighting(name, read_only(position), read_only(extent), _wrapped(yaw), confidence)


def _outward(fixture: Instance, handle: Array) -> float:
    """Return the direction in which a drawer opens: square to the front, towards its handle."""
    yaw = fixture.yaw + np.pi / 2
    way = handle[:2] - fixture.center[:2]
    return yaw if way @ [np.cos(yaw), np.sin(yaw)] > 0 else yaw + np.pi


def _across_ridge(points: Float32, pivot: Array, otherwise: float) -> float:
    """Return the direction across the ridge of a knob from the points that rise above its disc."""
    away = points.astype(np.float64) - pivot
    near = (np.hypot(away[:, 0], away[:, 1]) < RIDGE_RADIUS) & (away[:, 2] > RIDGE_RISE)
    if int(near.sum()) < _LEAST_POINTS:
        return float(otherwise)
    flat = away[near, :2] - away[near, :2].mean(axis=0)
    _, axes = np.linalg.eigh(flat.T @ flat)
    return float(np.arctan2(axes[1, 0], axes[0, 0]))


def _wrapped(yaw: float) -> float:
    return float((yaw + np.pi) % (2 * np.pi) - np.pi)
