"""What trainers normalise with: extremes, mean, spread and quantiles of each feature.

All are exact for one episode. Over a data set extremes, mean and spread are exact too; quantiles
are counted in bins, so that memory does not grow with the data.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from zetta.runtime.core import Array, Image

QUANTILES: Final[Mapping[str, float]] = {
    "q01": 0.01,
    "q10": 0.10,
    "q50": 0.50,
    "q90": 0.90,
    "q99": 0.99,
}
BINS: Final = 10_000
"""A quantile of a data set is within a ten-thousandth of the feature's range."""
LEVELS: Final = 256
"""Values of a channel of a picture."""
Counts: TypeAlias = npt.NDArray[np.int64]
Summary: TypeAlias = Mapping[str, Array]
"""Statistic by its name in LeRobot: `min`, `max`, `mean`, `std`, `count`, `q01` …; each of shape
(D,), `count` of shape (1,)."""


def summary_of(values: Array) -> Summary:
    """Return the statistics of one feature in one episode. Shape of `values` (N, D), N > 0."""
    quantiles = np.quantile(values, list(QUANTILES.values()), axis=0, method="inverted_cdf")
    return {
        "min": values.min(axis=0),
        "max": values.max(axis=0),
        "mean": values.mean(axis=0),
        "std": values.std(axis=0),
        "count": np.array([len(values)]),
        **dict(zip(QUANTILES, quantiles, strict=True)),
    }


def counts_of(image: Image) -> Counts:
    """Count the values of each channel. Shape (3, 256)."""
    return np.stack([np.bincount(image[..., k].ravel(), minlength=LEVELS) for k in range(3)])


def summary_of_counts(counts: Counts, frames: int) -> Summary:
    """Return the statistics of pictures, with values from 0 to 1. Shape of `counts` (3, 256)."""
    levels = np.arange(LEVELS) / (LEVELS - 1)
    total = counts.sum(axis=1)
    mean = counts @ levels / total
    spread = np.sqrt((counts * (levels - mean[:, None]) ** 2).sum(axis=1) / total)
    reached = np.cumsum(counts, axis=1) / total[:, None]
    present = counts > 0
    return {
        "min": levels[present.argmax(axis=1)],
        "max": levels[LEVELS - 1 - present[:, ::-1].argmax(axis=1)],
        "mean": mean,
        "std": spread,
        "count": np.array([frames]),
        **{name: levels[(reached >= q - 1e-12).argmax(axis=1)] for name, q in QUANTILES.items()},
    }


def joined(summaries: Iterable[Summary]) -> dict[str, Array]:
    """Return the statistics of several episodes together, without quantiles.

    Raises:
        ValueError: there are none.
    """
    whole: dict[str, Array] = {}
    squares = np.zeros(0)
    for each in summaries:
        n = float(each["count"][0])
        if not whole:
            whole = {k: np.array(each[k], np.float64) for k in ("min", "max", "mean", "count")}
            squares = n * each["std"] ** 2
            continue
        before = float(whole["count"][0])
        # Chan, Golub and LeVeque 1983: sums of squares of two parts about their common mean.
        apart = each["mean"] - whole["mean"]
        squares = squares + n * each["std"] ** 2 + apart**2 * n * before / (n + before)
        whole["mean"] = whole["mean"] + apart * n / (n + before)
        whole["count"] = whole["count"] + n
        whole["min"] = np.minimum(whole["min"], each["min"])
        whole["max"] = np.maximum(whole["max"], each["max"])
    if not whole:
        raise ValueError("no statistics of no episodes")
    return {**whole, "std": np.sqrt(squares / whole["count"])}


class Binned:
    """Counts a feature's values between known extremes, for its quantiles."""

    def __init__(self, low: Array, high: Array) -> None:
        """Begin; shape of both (D,)."""
        self._low, self._width = low, np.where(high > low, high - low, 1.0) / BINS
        self._high = high
        self._counts = np.zeros((len(low), BINS), np.int64)

    def add(self, values: Array) -> None:
        """Count more values. Shape (N, D)."""
        places = np.clip((values - self._low) / self._width, 0, BINS - 1).astype(np.int64)
        for d, column in enumerate(places.T):
            self._counts[d] += np.bincount(column, minlength=BINS)

    def quantiles(self) -> dict[str, Array]:
        """Return each quantile, at the middle of its bin. Shape (D,)."""
        reached = np.cumsum(self._counts, axis=1) / self._counts.sum(axis=1, keepdims=True)
        found = {}
        for name, q in QUANTILES.items():
            bins = (reached >= q - 1e-12).argmax(axis=1)
            found[name] = np.clip(self._low + (bins + 0.5) * self._width, self._low, self._high)
        return found
