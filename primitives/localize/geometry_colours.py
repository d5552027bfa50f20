"""Colour words and pixels."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from zetta.runtime.core import Array, Image

WORDS: tuple[str, ...] = (
    "red", "orange", "yellow", "green", "cyan", "blue", "purple", "magenta", "pink", "brown",
    "black", "grey", "white",
)  # fmt: skip
"""Class numbers of `classes` are positions in this tuple."""
VIVID = tuple(range(WORDS.index("brown")))
"""Classes that have a hue."""
_HUES = np.array([15.0, 42.0, 70.0, 160.0, 200.0, 260.0, 285.0, 320.0, 345.0])
"""Upper end of the hue of each vivid class in degrees; above the last one it is red again."""
_SATURATED = 0.35
_DARK, _BROWN, _BRIGHT = 60.0, 125.0, 175.0
_NEAR: Mapping[str, tuple[str, ...]] = {
    "red": ("orange", "pink", "brown"),
    "orange": ("red", "yellow", "brown"),
    "yellow": ("orange",),
    "green": ("cyan",),
    "cyan": ("green", "blue"),
    "blue": ("cyan", "purple"),
    "purple": ("magenta", "blue"),
    "magenta": ("purple", "pink"),
    "pink": ("magenta", "red"),
    "brown": ("orange", "red"),
    "black": ("grey",),
    "grey": ("black", "white"),
    "white": ("grey",),
}
"""Classes that a worse light may make of a colour."""
_NEAR_WORTH = 0.4


def classes(image: Image) -> npt.NDArray[np.int64]:
    """Return the colour word of every pixel as a position in `WORDS`. Shape (height, width).

    >>> [WORDS[k] for k in classes(np.array([[[220, 30, 30], [20, 20, 25]]], np.uint8))[0]]
    ['red', 'black']
    """
    rgb = image.astype(np.float64)
    value, low = rgb.max(axis=-1), rgb.min(axis=-1)
    spread = value - low
    hue = _hue(rgb, value, np.maximum(spread, 1e-9))
    vivid = np.searchsorted(_HUES, hue, side="right") % len(_HUES)
    result = np.where((vivid <= 1) & (value < _BROWN), WORDS.index("brown"), vivid)
    grey = np.where(value > _BRIGHT, WORDS.index("white"), WORDS.index("grey"))
    result = np.where(spread < _SATURATED * value, grey, result)
    return np.asarray(np.where(value < _DARK, WORDS.index("black"), result), dtype=np.int64)


def _hue(rgb: Array, value: Array, spread: Array) -> Array:
    red, green, blue = rgb[..., 0], rgb[..., 1], rgb[..., 2]
    sector = np.where(
        value == red,
        ((green - blue) / spread) % 6.0,
        np.where(value == green, (blue - red) / spread + 2.0, (red - green) / spread + 4.0),
    )
    return np.asarray(60.0 * sector)


def likeness(word: str, shares: Array) -> float:
    """Return how well a colour word describes something.

    Args:
        word: one of `WORDS`, or "gray".
        shares: share of its pixels in each class. Shape (13,).

    Returns:
        A number in [0, 1].
    """
    word = "grey" if word == "gray" else word
    own = float(shares[WORDS.index(word)])
    near = sum(float(shares[WORDS.index(other)]) for other in _NEAR[word])
    return min(1.0, own + _NEAR_WORTH * near)
