"""A picture that can be drawn into with world coordinates: enlarged, smooth, behind what is nearer.

Lines are drawn on a layer twice as fine and brought down with it; text goes on last.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from PIL import Image as Pillow
from PIL import ImageDraw, ImageFont

from zetta.primitives.projection import enlarged, place_of, segment
from zetta.runtime.core import Array, Camera, Image, read_only

Place: TypeAlias = tuple[float, float]
"""Column and row in the enlarged picture."""
Run: TypeAlias = tuple[Place, Place]
"""Both ends of a piece of a line that is seen."""
Colour: TypeAlias = tuple[int, int, int]
Box: TypeAlias = tuple[float, float, float, float]
"""Left, top, right, bottom."""

LONGEST_SIDE = 512
"""Smaller pictures are enlarged until their longer side has at least so many pixels."""
_FINE = 2
_COARSE_PICTURE = 4
"""Pictures enlarged by more keep their pixels: smoothing would show nothing but blur."""
_STEP = 3.0
"""Visibility is decided so many pixels apart."""
_HIDDEN, _HIDDEN_SHARE = 0.012, 0.01
"""A line is hidden by what is nearer by so much: metres, and share of the depth."""
_HALO: Colour = (16, 18, 22)


@dataclass(frozen=True, slots=True)
class Ink:
    """How a line looks; widths count for a picture of 512 pixels."""

    colour: Colour
    width: float = 2.0
    strength: float = 1.0
    """From 0, nothing, to 1, opaque."""
    halo: float = 1.0
    """Width of the dark rim on both sides, which keeps it readable on any ground."""


class Sheet:
    """One picture while it is drawn into."""

    def __init__(
        self,
        image: Image,
        camera: Camera,
        depth: npt.NDArray[np.float32] | None = None,
        longest_side: int = LONGEST_SIDE,
    ) -> None:
        """Enlarge a picture.

        Args:
            image: upright RGB. Shape (height, width, 3).
            camera: its calibration.
            depth: metres along the optical axis; with it, lines go behind what is nearer.
            longest_side: see `LONGEST_SIDE`.
        """
        height, width = image.shape[:2]
        self.factor = max(1, -(-longest_side // max(height, width)))
        self.size = (width * self.factor, height * self.factor)
        self.camera = enlarged(camera, self.factor)
        self.unit = max(1.0, max(self.size) / 512.0)
        """What a pixel of a picture of 512 is here."""
        self._depth = depth if depth is not None and depth.shape == (height, width) else None
        method = Pillow.Resampling.LANCZOS
        if self.factor > _COARSE_PICTURE:
            method = Pillow.Resampling.NEAREST
        picture = Pillow.fromarray(np.ascontiguousarray(image))
        self._picture = picture if self.factor == 1 else picture.resize(self.size, method)
        fine = (self.size[0] * _FINE, self.size[1] * _FINE)
        self._layer = Pillow.new("RGBA", fine, (*_HALO, 0))
        self._pen = ImageDraw.Draw(self._layer)
        self._texts: list[tuple[Place, str, Colour, float]] = []
        self._taken: list[Box] = []

    def where(self, point: Array) -> Place | None:
        """Return where a world point is seen; None where it is not in the picture."""
        return place_of(point, self.camera, self.size)

    # ------------------------------------------------------------------ lines

    def line(self, start: Array, end: Array, ink: Ink, *, through: bool = False) -> list[Run]:
        """Draw a straight line of the world and return the pieces that are seen.

        Args:
            start: world frame, metres. Shape (3,).
            end: the other end.
            ink: how it looks.
            through: whether it is drawn over what is nearer.
        """
        found = segment(start, end, self.camera, self.size)
        if found is None:
            return []
        count = 2 if through or self._depth is None else max(2, int(found.length / _STEP) + 1)
        places, depths = found.at(np.linspace(0.0, 1.0, count))
        seen = np.ones(count, dtype=bool) if count == 2 else self._seen(places, depths)
        runs = [(_place(places[first]), _place(places[last])) for first, last in _stretches(seen)]
        for run in runs:
            self.stroke(run, ink)
        return runs

    def stroke(self, places: Sequence[Place], ink: Ink) -> None:
        """Draw a line of the picture through some places."""
        points = [(x * _FINE, y * _FINE) for x, y in places]
        alpha = round(255 * ink.strength)
        if ink.halo:
            width = round((ink.width + 2.0 * ink.halo) * self.unit * _FINE)
            self._pen.line(points, (*_HALO, alpha // 2), width, joint="curve")
        width = max(1, round(ink.width * self.unit * _FINE))
        self._pen.line(points, (*ink.colour, alpha), width, joint="curve")

    def disc(self, place: Place, radius: float, colour: Colour, rim: Colour) -> None:
        """Draw a filled circle with a rim; the radius counts for a picture of 512 pixels."""
        x, y, r = place[0] * _FINE, place[1] * _FINE, radius * self.unit * _FINE
        width = max(1, round(1.5 * self.unit * _FINE))
        self._pen.ellipse((x - r, y - r, x + r, y + r), (*colour, 255), (*rim, 255), width)

    def _seen(self, places: Array, depths: Array) -> npt.NDArray[np.bool_]:
        assert self._depth is not None
        height, width = self._depth.shape
        columns = np.clip((places[:, 0] / self.factor).astype(np.int64), 0, width - 1)
        rows = np.clip((places[:, 1] / self.factor).astype(np.int64), 0, height - 1)
        there = self._depth[rows, columns].astype(np.float64)
        # A camera says 0 or nothing where it could not tell.
        known = np.isfinite(there) & (there > 0.0)
        nearer = np.where(known, there, np.inf) < depths * (1.0 - _HIDDEN_SHARE) - _HIDDEN
        return np.asarray(~nearer)

    # ------------------------------------------------------------------ text

    def text(self, place: Place, text: str, colour: Colour, size: float = 13.0) -> bool:
        """Write a label about a place unless another is there; say whether it was written.

        It is moved into the picture where it would stick out.
        """
        box = self._box(place, text, size)
        if not self.free(box):
            return False
        self.claim(box)
        centre = ((box[0] + box[2]) / 2.0, (box[1] + box[3]) / 2.0)
        self._texts.append((centre, text, colour, size))
        return True

    def write_over(self, place: Place, text: str, colour: Colour, size: float) -> None:
        """Write at a place that the caller has claimed."""
        self._texts.append((place, text, colour, size))

    def free(self, box: Box) -> bool:
        """Say whether no label is there."""
        return not any(
            box[0] < other[2] and other[0] < box[2] and box[1] < other[3] and other[1] < box[3]
            for other in self._taken
        )

    def claim(self, box: Box) -> None:
        """Keep labels away from a part of the picture."""
        self._taken.append(box)

    def _box(self, place: Place, text: str, size: float) -> Box:
        half_x = self._font(size).getlength(text) / 2.0 + 2.0 * self.unit
        half_y = (size / 2.0 + 2.0) * self.unit
        x = min(max(place[0], half_x), self.size[0] - half_x)
        y = min(max(place[1], half_y), self.size[1] - half_y)
        return (x - half_x, y - half_y, x + half_x, y + half_y)

    def _font(self, size: float) -> ImageFont.FreeTypeFont:
        font = ImageFont.load_default(size=size * self.unit)
        assert isinstance(font, ImageFont.FreeTypeFont)
        return font

    def finished(self) -> Image:
        """Return the picture, read-only."""
        layer = self._layer.resize(self.size, Pillow.Resampling.BOX)
        picture = Pillow.alpha_composite(self._picture.convert("RGBA"), layer).convert("RGB")
        pen = ImageDraw.Draw(picture)
        for place, text, colour, size in self._texts:
            pen.text(
                place, text, fill=colour, font=self._font(size), anchor="mm",
                stroke_width=max(1, round(1.5 * self.unit)), stroke_fill=_HALO,
            )  # fmt: skip
        return read_only(np.asarray(picture), np.uint8)


def _place(row: Array) -> Place:
    return (float(row[0]), float(row[1]))


def _stretches(seen: npt.NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Return first and last index of each stretch of at least two that are seen."""
    padded = np.concatenate([[False], seen, [False]]).astype(np.int8)
    change = np.flatnonzero(np.diff(padded))
    return [
        (int(first), int(last) - 1)
        for first, last in zip(change[::2], change[1::2], strict=True)
        if last - first >= 2
    ]
