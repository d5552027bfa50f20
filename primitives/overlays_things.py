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
        x, y, z = (100.0 * float(v) + 0.0 for v in self.estimate.position)
        return f"{self.number} {self.name} (x {x:.1f}, y {y:.1f}, z {z:.1f} cm)"

    @property
    def top(self) -> float:
        """World z of its highest point, metres."""
        return float(self.estimate.position[2] + self.estimate.extent[2] / 2.0)


def marks_of(estimates: Mapping[str, Estimate]) -> tuple[Mark, ...]:
    """Number what was found, in the order given, from 1."""
    return tuple(Mark(i, name, e) for i, (name, e) in enumerate(estimates.items(), start=1))


def draw_marks(sheet: Sheet, marks: Sequence[Mark]) -> tuple[Mark, ...]:
    """Put a numbered disc on each thing and return those that are in the picture.

    Where two would cover each other, one moves aside and a line leads to its thing.
    """
    shown = []
    for mark in marks:
        at = sheet.where(mark.estimate.position)
        if at is None:
            continue
        shown.append(mark)
        place = next(
            (p for p in _candidates(at, sheet.unit) if sheet.free(_box(p, sheet.unit))), at
        )
        sheet.claim(_box(place, sheet.unit))
        if place != at:
            sheet.stroke([at, place], _LEADER)
            sheet.disc(at, 2.0, _MARK, _DARK)
        sheet.disc(place, _RADIUS, _DARK, _MARK)
        sheet.write_over(place, str(mark.number), _MARK, _TEXT)
    return tuple(shown)


def draw_rulers(sheet: Sheet, marks: Sequence[Mark], table: Table) -> None:
    """Stand a ruler beside each thing, from the table to its top, with ticks every centimetre."""
    for mark in marks:
        rise = mark.top - table.height
        if rise >= _LOWEST and sheet.where(mark.estimate.position) is not None:
            _ruler(sheet, _beside(sheet, mark.estimate, table), rise)


def _beside(sheet: Sheet, estimate: Estimate, table: Table) -> Array:
    """Return the point of the table right of a thing as the camera sees it. Shape (3,)."""
    right = sheet.camera.T_world_cam[:2, 0]
    right = right / max(float(np.linalg.norm(right)), 1e-6)
    c, s = np.cos(estimate.yaw), np.sin(estimate.yaw)
    own = np.abs([c * right[0] + s * right[1], c * right[1] - s * right[0]])
    half = float(own @ estimate.extent[:2]) / 2.0
    flat = estimate.position[:2] + (half + _ROOM) * right
    return np.array([flat[0], flat[1], table.height])


def _ruler(sheet: Sheet, foot: Array, rise: float) -> None:
    up = np.array([0.0, 0.0, 1.0])
    ends = sheet.where(foot), sheet.where(foot + rise * up)
    if ends[0] is None or ends[1] is None:
        return
    along = np.subtract(ends[1], ends[0])
    length = float(np.hypot(*along))
    spacing = length / (100.0 * rise)
    depth = float(project(foot, sheet.camera)[1][0])
    if length < _SLANT * rise * float(sheet.camera.intrinsics[1, 1]) / depth:
        return  # seen from above, a height has hardly any length
    sheet.line(foot, foot + rise * up, _RULER, through=True)
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
