"""Sightings of parts and places from the fixture that they belong to. numpy only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from zetta.primitives.localize.sightings import Sighting
from zetta.primitives.localize.tiny import cabinet
from zetta.primitives.localize.tiny.geometry import Float32
from zetta.primitives.localize.tiny.instances import Instance
from zetta.primitives.localize.tiny.vocabulary import EXTENTS, PARTS
from zetta.runtime.core import Array, read_only

RIDGE_RADIUS: Final = 0.055
"""Points of a knob's ridge lie within this distance of its pivot, metres."""
RIDGE_RISE: Final = 0.004
"""Height above the ridge's middle from which only the ridge is left, metres."""
_LEAST_POINTS: Final = 6


@dataclass(frozen=True, slots=True)
class Thing:
    """An instance with its name."""

    name: str
    confidence: float
    instance: Instance
    points: Float32
    """Surface points that belong to it. Shape (K, 3)."""
    around: Float32
    """These, and points that may belong to a part that has moved away. Shape (L, 3)."""
    parts: Float32
    """What each of them says about the centres of parts. Shape (K, MOST_PARTS, 3)."""


@dataclass(frozen=True, slots=True)
class Placed:
    """Where a part is."""

    position: Array
    yaw: float


def part_sightings(thing: Thing) -> dict[str, Placed]:
    """Return where the parts of a fixture are and how they are turned."""
    names, fixture = PARTS[thing.name], thing.instance
    voted = np.median(thing.parts[:, : len(names)], axis=0).astype(np.float64)
    centers = dict(zip(names, voted, strict=True))
    if thing.name == "cabinet":
        return _of_cabinet(thing, centers)
    yaws = dict.fromkeys(names, fixture.yaw)
    if thing.name == "stove":
        knob = "knob of stove"
        yaws[knob] = _across_ridge(thing.points, centers[knob], fixture.yaw + np.pi / 2)
    return {name: Placed(centers[name], _wrapped(yaws[name])) for name in names}


def sighting(name: str, part: str, placed: Placed, confidence: float) -> Sighting:
    """Return the sighting of a part that was asked for as `name`."""
    extent = np.array(EXTENTS[part])
    return Sighting(name, read_only(placed.position), read_only(extent), placed.yaw, confidence)


def _of_cabinet(thing: Thing, centers: dict[str, Array]) -> dict[str, Placed]:
    top = centers["top of cabinet"]
    stand = cabinet.pose(thing.points, top, thing.instance.yaw)
    levels = ("top", "middle", "bottom")
    insides = np.array([centers[f"inside of {level} drawer"] for level in levels])
    bars = np.array([centers[f"handle of {level} drawer"] for level in levels])
    out = cabinet.outwards(stand, insides, bars)
    facing = float(np.arctan2(out[1], out[0]))
    found = {"top of cabinet": Placed(np.array([*stand.center, top[2]]), _wrapped(stand.yaw))}
    for level, inside in zip(levels, insides, strict=True):
        measured = cabinet.opening(stand, out, float(top[2]), level, thing.around)
        floor = cabinet.drawer(stand, out, inside, measured)
        found[f"inside of {level} drawer"] = Placed(floor, facing)
        found[f"handle of {level} drawer"] = Placed(cabinet.bar(level, floor, out), facing)
    return found


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
