"""What trainers normalise with: extremes, mean, spread and quantiles of each feature.

All are exact for one episode. Over a data set extremes, mean and spread are exact too; quantiles
are counted in bins, so that memory does not grow with the data.
"""

from __future__ import annotations

from collections.abc import Mapping
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
ROUNDING: Final = 1e-12
"""Of shares that are summed."""
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
        **{name: levels[(reached >= q - ROUNDING).argmax(axis=1)] for name, q in QUANTILES.items()},
    }


class Joined:
    """Gathers the statistics of several episodes into those of all, without quantiles."""

    def __init__(self, first: Summary) -> None:
        """Begin with one episode."""
        self._count = float(first["count"][0])
        self._mean = first["mean"]
        self._squares = self._count * first["std"] ** 2
        self.low, self.high = first["min"], first["max"]

    def add(self, other: Summary) -> None:
        """Take in one more episode."""
        n = float(other["count"][0])
        whole = self._count + n
        # Chan, Golub and LeVeque 1983: sums of squares of two parts about their common mean.
        apart = other["mean"] - self._mean
        self._squares = self._squares + n * other["std"] ** 2 + apart**2 * n * self._count / whole
        self._mean = self._mean + apart * n / whole
        self._count = whole
        self.low = np.minimum(self.low, other["min"])
        self.high = np.maximum(self.high, other["max"])

    def summary(self) -> Summary:
        """Return the statistics so far."""
        return {
            "min": self.low,
            "max": self.high,
            "mean": self._mean,
            "std": np.sqrt(self._squares / self._count),
            "count": np.array([round(self._count)]),
        }


class Binned:
    """Counts a feature's values between known extremes, for its quantiles."""

    def __init__(self, low: Array, high: Array) -> None:
        """Begin; shape of both (D,)."""
        self._low = low
        self._step = np.where(high > low, high - low, 1.0) / (BINS - 1)
        self._counts = np.zeros((len(low), BINS), np.int64)

    def add(self, values: Array) -> None:
        """Count more values. Shape (N, D)."""
        nearest = np.rint((values - self._low) / self._step).astype(np.int64)
        for d, column in enumerate(np.clip(nearest, 0, BINS - 1).T):
            self._counts[d] += np.bincount(column, minlength=BINS)

    def quantiles(self) -> dict[str, Array]:
        """Return each quantile, to the nearest bin; extremes are met exactly. Shape (D,)."""
        reached = np.cumsum(self._counts, axis=1) / self._counts.sum(axis=1, keepdims=True)
        return {
            name: self._low + (reached >= q - ROUNDING).argmax(axis=1) * self._step
            for name, q in QUANTILES.items()
        }
