"""Where the hand is, in the picture: its cross and foot, the world's axes, the jaw."""

from __future__ import annotations

import numpy as np

from zetta.primitives.localize.table import Table
from zetta.primitives.motions_frames import matrix_of
from zetta.primitives.overlays_sheet import Colour, Ink, Place, Sheet
from zetta.runtime.core import ArmState, Array

AXIS_LENGTH = 0.05
"""Length of the axis arrows, metres."""
_TICK = 0.01
_AXIS_COLOURS: tuple[Colour, Colour, Colour] = ((255, 92, 92), (92, 230, 92), (96, 150, 255))
_CROSS = Ink((255, 255, 255), 2.0)
_PLUMB = Ink((255, 255, 255), 1.4)
_JAW = Ink((0, 236, 236), 2.2)
_DASH = 0.01
"""Length of a dash of the plumb line, metres."""
_BEYOND = 0.02
"""The jaw's line reaches so far beyond each finger, metres."""
_ARM, _FOOT, _BAR = 9.0, 6.0, 6.0
"""Half lengths in pixels of a picture of 512."""


def draw_cross(sheet: Sheet, arm: ArmState, table: Table, name: str = "") -> None:
    """Draw a cross at the grip site and a dashed line from it straight down to the table.

    The foot of that line says over which point of the grid the hand is, which the cross alone
    does not: it could be near and low or far and high.
    """
    grip = arm.ee_pos
    foot = np.array([grip[0], grip[1], table.height])
    drop = float(grip[2]) - table.height
    for step in range(int(abs(drop) / (2.0 * _DASH)) + 1 if abs(drop) > _DASH else 0):
        top = np.clip(2.0 * step * _DASH / abs(drop), 0.0, 1.0)
        low = np.clip((2.0 * step + 1.0) * _DASH / abs(drop), 0.0, 1.0)
        sheet.line(grip + top * (foot - grip), grip + low * (foot - grip), _PLUMB, through=True)
    at = sheet.where(foot)
    if at is not None and abs(drop) > _DASH:
        _plus(sheet, at, _FOOT, _PLUMB, turned=True)
    at = sheet.where(grip)
    if at is not None:
        _plus(sheet, at, _ARM, _CROSS)
        if name:
            sheet.text((at[0], at[1] - 18.0 * sheet.unit), name, _CROSS.colour)


def draw_axes(sheet: Sheet, arm: ArmState) -> None:
    """Draw the world's axes at the grip site as arrows of 5 cm with a tick every centimetre."""
    for axis, colour in enumerate(_AXIS_COLOURS):
        ink = Ink(colour, 2.0)
        way = np.eye(3)[axis]
        tip = arm.ee_pos + AXIS_LENGTH * way
        sheet.line(arm.ee_pos, tip, ink, through=True)
        start, end = sheet.where(arm.ee_pos), sheet.where(tip)
        if start is None or end is None:
            continue
        along = np.subtract(end, start)
        length = float(np.hypot(*along))
        if length > 10.0 * sheet.unit:
            _ticks(sheet, arm.ee_pos, way, along / length, ink)
            _head(sheet, end, along / length, ink)
        ahead = along / max(length, 1e-6) * max(0.0, 11.0 * sheet.unit)
        sheet.text((end[0] + ahead[0], end[1] + ahead[1]), f"+{'xyz'[axis]}", colour)


def draw_jaw(sheet: Sheet, arm: ArmState) -> None:
    """Draw the line along which the fingers close, with a bar where each finger is."""
    travel = matrix_of(arm.ee_quat)[:, 1]
    half = arm.gripper_opening / 2.0
    reach = half + _BEYOND
    sheet.line(arm.ee_pos - reach * travel, arm.ee_pos + reach * travel, _JAW, through=True)
    ends = [sheet.where(arm.ee_pos + side * half * travel) for side in (-1.0, 1.0)]
    if ends[0] is None or ends[1] is None:
        return
    along = np.subtract(ends[1], ends[0])
    length = float(np.hypot(*along))
    if length < 2.0 * sheet.unit:
        return
    across = np.array([-along[1], along[0]]) / length * _BAR * sheet.unit
    for end in (ends[0], ends[1]):
        _bar(sheet, end, across, _JAW)


def _plus(sheet: Sheet, at: Place, half: float, ink: Ink, turned: bool = False) -> None:
    reach = half * sheet.unit
    ways = ((0.7, 0.7), (0.7, -0.7)) if turned else ((1.0, 0.0), (0.0, 1.0))
    for way in ways:
        _bar(sheet, at, np.array(way) * reach, ink)


def _bar(sheet: Sheet, at: Place, half: Array, ink: Ink) -> None:
    """Draw a short line of the picture through a place, `half` to each side."""
    x, y = float(half[0]), float(half[1])
    sheet.stroke([(at[0] - x, at[1] - y), (at[0] + x, at[1] + y)], ink)


def _ticks(sheet: Sheet, start: Array, way: Array, along: Array, ink: Ink) -> None:
    across = np.array([-along[1], along[0]]) * 3.0 * sheet.unit
    thin = Ink(ink.colour, 1.2, halo=0.6)
    for count in range(1, round(AXIS_LENGTH / _TICK)):
        at = sheet.where(start + count * _TICK * way)
        if at is not None:
            _bar(sheet, at, across, thin)


def _head(sheet: Sheet, tip: Place, along: Array, ink: Ink) -> None:
    across = np.array([-along[1], along[0]])
    back = np.array(tip) - 6.0 * sheet.unit * along
    wing = 4.0 * sheet.unit * across
    left, right = back + wing, back - wing
    sheet.stroke([(float(left[0]), float(left[1])), tip, (float(right[0]), float(right[1]))], ink)
