"""What is drawn into a picture for an agent, so that it can read metres off it.

The calibration that came with the picture places everything; nothing is drawn by eye. Distances are
in centimetres in the world frame, as the semantic commands take them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

import numpy.typing as npt
from numpy import float32

from zetta.primitives.localize.table import Table
from zetta.primitives.overlays_grid import draw_fine_grid, draw_grid
from zetta.primitives.overlays_hand import draw_axes, draw_cross, draw_jaw
from zetta.primitives.overlays_sheet import LONGEST_SIDE, Sheet
from zetta.primitives.overlays_things import Mark, draw_marks, draw_rulers, marks_of, place_marks
from zetta.runtime.core import ArmState, Camera, Estimate, Image
from zetta.runtime.errors import ConfigError, suggest


@dataclass(frozen=True, slots=True)
class Overlays:
    """What is drawn into pictures."""

    grid: bool = True
    """Lines every 10 cm on the table, with their x and y in cm at the ends."""
    fine_grid: bool = True
    """Faint lines half way between."""
    cross: bool = True
    """The grip site, and a line from it straight down to the table."""
    axes: bool = True
    """The world's axes at the grip site: 5 cm long, a tick every centimetre."""
    jaw: bool = True
    """The line along which the fingers close, with a bar at each finger."""
    marks: bool = True
    """A number on each thing that was found."""
    ruler: bool = True
    """A ruler beside each thing, from the table to its top."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of those that are drawn."""
        return tuple(name for name in OVERLAY_NAMES if getattr(self, name))


OVERLAY_NAMES: tuple[str, ...] = tuple(field.name for field in fields(Overlays))
NO_OVERLAYS = Overlays(*(False for _ in OVERLAY_NAMES))


def parse_overlays(text: str) -> Overlays:
    """Read a list of names, `all` or `none`.

    Raises:
        ConfigError: there is no overlay of such a name.

    >>> parse_overlays("grid, cross").names, parse_overlays("all") == Overlays()
    (('grid', 'cross'), True)
    """
    wanted = text.strip().lower()
    if wanted == "all":
        return Overlays()
    if wanted == "none":
        return NO_OVERLAYS
    names = [part.strip().replace("-", "_") for part in wanted.split(",") if part.strip()]
    if not names:
        raise ConfigError(
            f"got no overlay in {text!r}; expected all, none or any of {', '.join(OVERLAY_NAMES)}"
        )
    for name in names:
        if name not in OVERLAY_NAMES:
            raise ConfigError(f"unknown overlay {name!r}; {suggest(name, OVERLAY_NAMES)}")
    return Overlays(**{name: name in names for name in OVERLAY_NAMES})


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What is known of the world when a picture is drawn into."""

    table: Table
    arms: Sequence[ArmState] = ()
    names: Sequence[str] = ()
    """Names of the arms; written beside their crosses where there are several."""
    estimates: Mapping[str, Estimate] | None = None
    """What was found, by the name that the legend gives it."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """A picture with its overlays."""

    image: Image
    """Shape (height, width, 3), uint8 RGB; enlarged where it was small."""
    marks: tuple[Mark, ...] = ()
    """The numbered things that are in it."""
    rulers: int = 0
    hand: bool = False
    """Whether a grip site is in it."""


def draw_overlays(
    image: Image,
    camera: Camera,
    around: Surroundings,
    overlays: Overlays | None = None,
    depth: npt.NDArray[float32] | None = None,
    longest_side: int = LONGEST_SIDE,
) -> Drawn:
    """Draw into a copy of a picture.

    Args:
        image: upright RGB. Shape (height, width, 3).
        camera: its calibration.
        around: what is known of the world.
        overlays: what is drawn; all by default.
        depth: metres along the optical axis; with it, the grid goes behind what stands on it.
        longest_side: smaller pictures are enlarged by a whole number until they are so large.
    """
    wanted = overlays or Overlays()
    sheet = Sheet(image, camera, depth, longest_side)
    marks = marks_of(around.estimates or {})
    # Numbers are placed first and drawn last: labels make room for them and lines do not cover
    # them.
    placed = place_marks(sheet, marks) if wanted.marks else ()
    if wanted.fine_grid:
        draw_fine_grid(sheet, around.table)
    if wanted.grid:
        draw_grid(sheet, around.table)
    rulers = draw_rulers(sheet, marks, around.table) if wanted.ruler else 0
    _draw_hands(sheet, around, wanted)
    draw_marks(sheet, placed)
    hands = any(sheet.where(arm.ee_pos) is not None for arm in around.arms)
    return Drawn(sheet.finished(), tuple(one.mark for one in placed), rulers, hands)


def _draw_hands(sheet: Sheet, around: Surroundings, wanted: Overlays) -> None:
    # With one arm there is nothing to tell apart.
    names = around.names if len(around.arms) > 1 else ("",) * len(around.arms)
    for arm, name in zip(around.arms, names, strict=True):
        if wanted.jaw:
            draw_jaw(sheet, arm)
        if wanted.axes:
            draw_axes(sheet, arm)
        if wanted.cross:
            draw_cross(sheet, arm, around.table, name)
