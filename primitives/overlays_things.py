"""Things in the picture: a number on each that was found, and a ruler that stands beside it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from zetta.primitives.localize.table import Table
from zetta.primitives.overlays_sheet import Box, Colour, Ink, Place, Sheet
from zetta.primitives.projection import project
from zetta.runtime.core import Array, Estimate

_MARK: Colour = (255, 230, 60)
_RULER = Ink((255, 230, 60), 1.6)
_TICK_INK = Ink((255, 230, 60), 1.1, halo=0.6)
_LEADER = Ink((255, 230, 60), 1.2)
_DARK: Colour = (16, 18, 22)
_RADIUS, _TEXT = 8.5, 12.0
_LOWEST = 0.01
"""Things less high than this above the table get no ruler, metres."""
_ROOM = 0.012
"""Distance of a ruler from its thing, metres."""
_SLANT = 0.4
"""A ruler that is foreshortened to less than this share of its length is left out."""
_LEAST_TICK = 2.5
"""Ticks nearer together than this, in pixels of a picture of 512, are left out."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A found thing and its number."""

    number: int
    name: str
    estimate: Estimate

    @property
    def legend(self) -> str:
        """What a caption says about it.

        Such as `1 black bowl (x 12.0, y -3.5, z 91.2 cm)`.
        """
        x, y, z = (round(100.0 * float(v), 1) + 0.0 for v in self.estimate.position)  # no -0.0
        return f"{self.number} {self.name} (x {x:.1f}, y {y:.1f}, z {z:.1f} cm)"

    @property
    def top(self) -> float:
        """World z of its highest point, metres."""
        return float(self.estimate.position[2] + self.estimate.extent[2] / 2.0)


def marks_of(estimates: Mapping[str, Estimate]) -> tuple[Mark, ...]:
    """Number what was found, in the order given, from 1."""
    return tuple(Mark(i, name, e) for i, (name, e) in enumerate(estimates.items(), start=1))


@dataclass(frozen=True, slots=True)
class PlacedMark:
    """Where a thing is in the picture, and where its number goes."""

    mark: Mark
    at: Place
    disc: Place


def place_marks(sheet: Sheet, marks: Sequence[Mark]) -> tuple[PlacedMark, ...]:
    """Find room for the number of each thing that is in the picture, and keep it free.

    Where two would cover each other, one moves aside.
    """
    placed = []
    for mark in marks:
        at = sheet.where(mark.estimate.position)
        if at is None:
            continue
        room = (p for p in _candidates(at, sheet.unit) if sheet.free(_box(p, sheet.unit)))
        disc = next(room, at)
        sheet.claim(_box(disc, sheet.unit))
        placed.append(PlacedMark(mark, at, disc))
    return tuple(placed)


def draw_marks(sheet: Sheet, placed: Sequence[PlacedMark]) -> None:
    """Draw a numbered disc for each thing; one that moved aside gets a line to its thing."""
    for one in placed:
        if one.disc != one.at:
            sheet.stroke([one.at, one.disc], _LEADER)
            sheet.disc(one.at, 2.0, _MARK, _DARK)
        sheet.disc(one.disc, _RADIUS, _DARK, _MARK)
        sheet.write_over(one.disc, str(one.mark.number), _MARK, _TEXT)


def draw_rulers(sheet: Sheet, marks: Sequence[Mark], table: Table) -> int:
    """Stand a ruler beside each thing, from the table to its top, with ticks every centimetre.

    Returns:
        How many were drawn: flat things get none, nor does what is seen from above.
    """
    count = 0
    for mark in marks:
        rise = mark.top - table.height
        if rise >= _LOWEST and sheet.where(mark.estimate.position) is not None:
            count += _ruler(sheet, _beside(sheet, mark.estimate, table), rise)
    return count


def _beside(sheet: Sheet, estimate: Estimate, table: Table) -> Array:
    """Return the point of the table right of a thing as the camera sees it. Shape (3,)."""
    right = sheet.camera.T_world_cam[:2, 0]
    right = right / max(float(np.linalg.norm(right)), 1e-6)
    c, s = np.cos(estimate.yaw), np.sin(estimate.yaw)
    own = np.abs([c * right[0] + s * right[1], c * right[1] - s * right[0]])
    half = float(own @ estimate.extent[:2]) / 2.0
    flat = estimate.position[:2] + (half + _ROOM) * right
    return np.array([flat[0], flat[1], table.height])


def _ruler(sheet: Sheet, foot: Array, rise: float) -> bool:
    up = np.array([0.0, 0.0, 1.0])
    start, end = sheet.where(foot), sheet.where(foot + rise * up)
    if start is None or end is None:
        return False
    along = np.subtract(end, start)
    length = float(np.hypot(*along))
    depth = float(project(foot, sheet.camera)[1][0])
    if length < _SLANT * rise * float(sheet.camera.intrinsics[1, 1]) / depth:
        return False  # seen from above, a height has hardly any length
    sheet.line(foot, foot + rise * up, _RULER, through=True)
    spacing = length / (100.0 * rise)
    across = np.array([-along[1], along[0]]) / length * sheet.unit
    across = across if across[0] >= 0.0 else -across
    for count in range(int(100.0 * rise + 1e-6) + 1):
        at = sheet.where(foot + count / 100.0 * up)
        fifth = count % 5 == 0
        if at is None or (not fifth and spacing < _LEAST_TICK * sheet.unit):
            continue
        tip = np.array(at) + across * (8.0 if fifth else 4.0)
        sheet.stroke([at, (float(tip[0]), float(tip[1]))], _TICK_INK)
        if fifth and count:
            beyond = tip + across * 7.0
            sheet.text((float(beyond[0]), float(beyond[1])), str(count), _MARK, 10.0)
    return True


def _candidates(at: Place, unit: float) -> Iterator[Place]:
    yield at
    for ring in (1.0, 1.6):
        for turn in range(8):
            angle = turn * np.pi / 4.0 - np.pi / 2.0
            reach = ring * 2.6 * _RADIUS * unit
            yield (at[0] + reach * float(np.cos(angle)), at[1] + reach * float(np.sin(angle)))


def _box(at: Place, unit: float) -> Box:
    reach = _RADIUS * unit
    return (at[0] - reach, at[1] - reach, at[0] + reach, at[1] + reach)
