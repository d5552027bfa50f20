"""The windowed operators of the critic language, at every tick of one long column at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.ndimage import maximum_filter1d, minimum_filter1d

Values: TypeAlias = npt.NDArray[Any]
"""Numbers or conditions, one for each tick. Shape (N,)."""
Flags: TypeAlias = npt.NDArray[np.bool_]
Ticks: TypeAlias = npt.NDArray[np.int64]

TWO_TICKS: Final = ("delta", "rate", "path_length", "crossed", "rose")
"""They look at two ticks at least."""


def shifted(x: Values, ticks: int) -> Values:
    """Return what was so many ticks ago; the first value before that. Shape (N,)."""
    return x if ticks == 0 else np.concatenate([np.repeat(x[:1], ticks), x])[: len(x)]


def count(flags: Values, ticks: int) -> Ticks:
    """Return at how many of the latest ticks something was true. Shape (N,)."""
    total = np.cumsum(flags, dtype=np.int64)
    before = np.zeros_like(total)
    before[ticks:] = total[:-ticks] if ticks else total
    return total - before


def _least(x: Values, ticks: int) -> Values:
    return minimum_filter1d(x, ticks, mode="nearest", origin=(ticks - 1) // 2)


def _greatest(x: Values, ticks: int) -> Values:
    return maximum_filter1d(x, ticks, mode="nearest", origin=(ticks - 1) // 2)


def sums(x: Values, ticks: int) -> Values:
    """Return sums over windows, each added up as numpy adds one window. Shape (N,)."""
    padded = np.concatenate([np.zeros(ticks - 1), x])
    return np.asarray(np.lib.stride_tricks.sliding_window_view(padded, ticks).sum(axis=1))


def since(a: Values, b: Values, ticks: int) -> Flags:
    """Say whether `b` was true within a window and `a` ever since. Shape (N,)."""
    place = np.arange(len(a))
    last = np.maximum.accumulate(np.where(b, place, -1))
    broken = np.maximum.accumulate(np.where(a, -1, place))
    return (last > place - ticks) & (last >= 0) & (broken <= last)


CONDITIONS: Final[Mapping[str, Callable[[Values, int], Values | Flags]]] = {
    "held": lambda x, k: count(x, k) == k,
    "once": lambda x, k: count(x, k) > 0,
    "rose": lambda x, k: count(x & ~shifted(x, 1), k - 1) > 0,
    "count": lambda x, k: count(x, k).astype(np.float64),
    "share": lambda x, k: count(x, k) / k,
}  # fmt: skip
"""Of conditions."""
NUMBERS: Final[Mapping[str, Callable[[Values, int], Values]]] = {
    "ago": lambda x, k: shifted(x, k - 1),
    "mean": lambda x, k: sums(x, k) / k,
    "minimum": _least,
    "maximum": _greatest,
    "delta": lambda x, k: x - shifted(x, k - 1),
    "spread": lambda x, k: _greatest(x, k) - _least(x, k),
    "path_length": lambda x, k: sums(np.abs(x - shifted(x, 1)), k - 1),
}  # fmt: skip
"""Of numbers."""
