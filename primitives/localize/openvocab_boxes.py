"""Detections in one picture, and what gives them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from zetta.primitives.localize.clouds import Mask
from zetta.runtime.core import Array, Image

_OVERLAP = 0.6
"""Boxes of one name that overlap more, as share of their union, are one thing."""


@dataclass(frozen=True, slots=True)
class Box:
    """A detection in one picture."""

    name: str
    corners: Array
    """Left, top, right, bottom in pixels. Shape (4,)."""
    score: float


class Detector(Protocol):
    """Finds named things in one picture."""

    def detect(self, image: Image, names: Sequence[str]) -> list[Box]:
        """Return the boxes of every name."""
        ...


class Segmenter(Protocol):
    """Gives the outline of what is in a box."""

    def outline(self, image: Image, corners: Array) -> Mask:
        """Return the pixels of the thing in a box. Shape (height, width)."""
        ...


def suppressed(boxes: Sequence[Box]) -> list[Box]:
    """Return the strongest of boxes that lie over each other under one name.

    >>> a = Box("cup", np.array([0.0, 0.0, 10.0, 10.0]), 0.9)
    >>> b = Box("cup", np.array([1.0, 0.0, 11.0, 10.0]), 0.5)
    >>> suppressed([b, a]) == [a]
    True
    """
    kept: list[Box] = []
    for box in sorted(boxes, key=lambda b: -b.score):
        if not any(
            box.name == k.name and _overlap(box.corners, k.corners) > _OVERLAP for k in kept
        ):
            kept.append(box)
    return kept


def _overlap(a: Array, b: Array) -> float:
    """Return the intersection of two boxes as share of their union."""
    size = np.maximum(np.minimum(a[2:], b[2:]) - np.maximum(a[:2], b[:2]), 0.0)
    common = float(np.prod(size))
    whole = float(np.prod(a[2:] - a[:2]) + np.prod(b[2:] - b[:2])) - common
    return common / whole if whole > 0.0 else 0.0
