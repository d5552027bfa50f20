"""How strict critics must be so that they leave successes alone: conformal, per episode.

A parameter may say which way is stricter (`stricter = "up"` or `"down"`). All such parameters of
a critic move together, in `LEVELS` equal steps from their defaults to that bound. The score of an
episode under a critic is the number of levels, counted from the loosest, up to which the critic
still fires in it: the higher, the more it takes to keep the critic quiet.

The scores of a fitting split turn into ranks, so that critics are comparable; the greatest rank
over all critics of an episode is then one number, and its conformal quantile over the successes
of another split is one threshold for the whole library. A new success that is exchangeable with
them raises any alarm with probability at most alpha (Vovk et al., Algorithmic Learning in a
Random World, 2005), and no correction for the number of critics is needed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.stats import beta

from zetta.critics.parameters import Parameter
from zetta.runtime.errors import ConfigError

LEVELS = 10
"""Steps from the default of a parameter to its strict bound."""
Scores = npt.NDArray[np.int64]
"""Shape (episodes, critics), from 0 (never fires) to LEVELS + 1 (fires at every level)."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """How strict each critic is to be."""

    alpha: float
    levels: Mapping[str, int | None]
    """Level by critic; None switches the critic off: no level keeps the bound."""
    fitted: int
    """Successes that the ranks were made from."""
    calibrated: int
    """Successes that the threshold was taken from."""
    rank: int | None
    """Which of the ordered greatest ranks is the threshold; None when there are too few."""
    sure_alpha: float
    """Bound on the share of successes with an alarm that holds with 90 % confidence in the draw
    of the calibration episodes; `alpha` itself holds on average over such draws."""


def conformal_rank(n: int, alpha: float) -> int | None:
    """Return k = ceil((n + 1)(1 - alpha)), or None when k > n.

    >>> conformal_rank(19, 0.05), conformal_rank(18, 0.05), conformal_rank(100, 0.1)
    (19, None, 91)
    """
    k = math.ceil((n + 1) * (1.0 - alpha) - 1e-9)
    return k if k <= n else None


def sure_rank(n: int, alpha: float, confidence: float = 0.9) -> int | None:
    """Return the smallest k whose threshold keeps the bound with `confidence`, or None.

    The share of future successes above the k-th of n is distributed as Beta(n + 1 - k, k).

    >>> sure_rank(50, 0.05), sure_rank(44, 0.05), sure_rank(99, 0.1)
    (50, None, 94)
    """
    ranks = np.arange(1, n + 1)
    enough = np.asarray(beta.cdf(alpha, n + 1 - ranks, ranks) >= confidence)
    return int(ranks[np.argmax(enough)]) if enough.any() else None


def sure_bound(n: int, k: int, confidence: float = 0.9) -> float:
    """Return the alpha that the k-th of n successes keeps with `confidence`."""
    return float(beta.ppf(confidence, n + 1 - k, k))


def values_at(parameters: Mapping[str, Parameter], level: int) -> dict[str, float]:
    """Return the parameters of a critic at a level of strictness; 0 is their defaults.

    >>> hold = Parameter("hold", 0.2, 0.1, 1.2, stricter="up")
    >>> values_at({"hold": hold}, 5)
    {'hold': 0.7}
    """
    values = {}
    for name, parameter in parameters.items():
        bound = {"up": parameter.high, "down": parameter.low}.get(parameter.stricter)
        if bound is not None:
            share = level / LEVELS
            values[name] = parameter.default + share * (bound - parameter.default)
    return values


def calibrate(names: Sequence[str], fit: Scores, held_out: Scores, alpha: float) -> Calibration:
    """Return the loosest levels at which a new success raises an alarm with at most `alpha`.

    Args:
        names: of the critics, one for each column.
        fit: scores of successes that the ranks are made from. Shape (F, J).
        held_out: scores of other successes. Shape (N, J).
        alpha: share of successes in which any critic may fire.

    Raises:
        ConfigError: `alpha` is no share, or there is no success to fit on.
    """
    if not 0.0 < alpha < 1.0:
        raise ConfigError(f"alpha is a share between 0 and 1, got {alpha:g}")
    if not len(fit):
        raise ConfigError("there is no success to fit ranks on; run more episodes")
    n = len(held_out)
    k = conformal_rank(n, alpha)
    if k is None:
        return Calibration(alpha, dict.fromkeys(names), len(fit), n, None, 1.0)
    greatest = np.sort([max(_ranks(row, fit)) for row in held_out])
    threshold = greatest[k - 1]
    levels = {name: _level(fit[:, j], threshold) for j, name in enumerate(names)}
    return Calibration(alpha, levels, len(fit), n, k, sure_bound(n, k))


def _ranks(row: npt.NDArray[np.int64], fit: Scores) -> list[float]:
    """Return how unusual each score of an episode is: the share of fitted ones below it.

    A score above all fitted ones counts beyond 1 by how far it is above, so that order is kept.
    """
    return [_rank(int(score), fit[:, j]) for j, score in enumerate(row)]


def _rank(score: int, fitted: npt.NDArray[np.int64]) -> float:
    return float(np.mean(fitted < score)) + max(0, score - int(fitted.max()))


def _level(fitted: npt.NDArray[np.int64], threshold: float) -> int | None:
    """Return the loosest level at which only scores of a rank above `threshold` fire.

    At level v an episode fires if its score is at least v + 1.
    """
    for level in range(LEVELS + 1):
        if _rank(level + 1, fitted) > threshold:
            return level
    return None
