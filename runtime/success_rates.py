"""Numbers about success: intervals, exact paired tests, and averages over tasks.

Scenes of one task are near copies of each other, so a count over many scenes of few tasks says
little about other tasks. Averages over tasks therefore carry an interval bootstrapped over tasks,
beside the Wilson interval of the pooled count. Every function is pure and seeded.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from scipy.special import bdtr, bdtrc, betaincinv, ndtri  # scipy.stats takes two seconds to import

Interval: TypeAlias = tuple[float, float]

BOOTSTRAP_DRAWS = 10_000
EXACT_SIGN_FLIPS = 16
"""Up to this many scenes every assignment of signs is counted; above, signs are drawn."""
SIGN_FLIP_DRAWS = 100_000
ROUNDING = 1e-9
"""Sums of shares that differ by less are equal."""


def wilson(successes: int, n: int, confidence: float = 0.95) -> Interval:
    """Return Wilson's score interval of a success rate (Wilson 1927).

    No episodes say nothing: `n = 0` gives the whole range.

    >>> [round(bound, 4) for bound in wilson(9, 10)]
    [0.5958, 0.9821]

    Raises:
        ValueError: the counts are impossible.
    """
    _check_counts(successes, n)
    if n == 0:
        return 0.0, 1.0
    z = float(ndtri(0.5 + confidence / 2))
    rate = successes / n
    centre = (rate + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(rate * (1 - rate) / n + z * z / (4 * n * n))
    low = 0.0 if successes == 0 else centre - half
    high = 1.0 if successes == n else centre + half
    return low, high


def clopper_pearson(successes: int, n: int, confidence: float = 0.95) -> Interval:
    """Return the exact two-sided interval of a rate (Clopper and Pearson 1934).

    >>> [round(bound, 4) for bound in clopper_pearson(9, 10)]
    [0.555, 0.9975]

    Raises:
        ValueError: the counts are impossible.
    """
    one_sided = (1 + confidence) / 2
    return lower_bound(successes, n, one_sided), upper_bound(successes, n, one_sided)


def upper_bound(successes: int, n: int, confidence: float = 0.95) -> float:
    """Return the exact one-sided upper bound of a rate (Clopper and Pearson 1934).

    >>> round(upper_bound(0, 59), 4)
    0.0495

    Raises:
        ValueError: the counts are impossible.
    """
    _check_counts(successes, n)
    if successes == n:
        return 1.0
    return float(betaincinv(successes + 1, n - successes, confidence))


def lower_bound(successes: int, n: int, confidence: float = 0.95) -> float:
    """Return the exact one-sided lower bound of a rate (Clopper and Pearson 1934).

    Raises:
        ValueError: the counts are impossible.
    """
    _check_counts(successes, n)
    if successes == 0:
        return 0.0
    return float(betaincinv(successes, n - successes + 1, 1 - confidence))


@dataclass(frozen=True, slots=True)
class PairedTest:
    """The exact McNemar (sign) test: only pairs that disagree inform it."""

    wins: int
    """Pairs in which only the second arm succeeded."""
    harms: int
    """Pairs in which only the first arm succeeded."""
    p_one_sided: float
    """P(at least this many wins) when both arms are equally good."""
    p_two_sided: float
    p_mid: float
    """One-sided mid-p: a description, never a decision."""


def mcnemar(wins: int, harms: int) -> PairedTest:
    """Return the exact test of `wins` against `harms` under Binomial(wins + harms, 1/2).

    >>> mcnemar(7, 1).p_one_sided
    0.03515625

    Raises:
        ValueError: a count is negative.
    """
    if wins < 0 or harms < 0:
        raise ValueError(f"counts of pairs must not be negative; got {wins} and {harms}")
    pairs = wins + harms
    at_least = float(bdtrc(wins - 1, pairs, 0.5)) if wins else 1.0
    more = float(bdtrc(wins, pairs, 0.5)) if harms else 0.0
    smaller_tail = float(bdtr(min(wins, harms), pairs, 0.5)) if pairs else 1.0
    return PairedTest(wins, harms, at_least, min(1.0, 2 * smaller_tail), (at_least + more) / 2)


def newcombe_paired(
    both: int, wins: int, harms: int, neither: int, confidence: float = 0.95
) -> tuple[float, Interval]:
    """Return the paired difference of two success rates and its interval.

    Newcombe 1998 (Statistics in Medicine 17, 2635), method 10: Wilson limits of both rates,
    joined by a continuity-corrected correlation.

    >>> [round(bound, 5) for bound in newcombe_paired(30, 12, 3, 5)[1]]
    [0.02802, 0.32385]

    Raises:
        ValueError: a count is negative, or there are no pairs.
    """
    n = both + wins + harms + neither
    if n == 0 or min(both, wins, harms, neither) < 0:
        raise ValueError(f"need counts of pairs, got {both}, {wins}, {harms}, {neither}")
    second, first = both + wins, both + harms
    low_2, high_2 = wilson(second, n, confidence)
    low_1, high_1 = wilson(first, n, confidence)
    rate_2, rate_1 = second / n, first / n
    phi = _correlation(both, wins, harms, neither)
    below = _joined(rate_2 - low_2, high_1 - rate_1, phi)
    above = _joined(high_2 - rate_2, rate_1 - low_1, phi)
    difference = (wins - harms) / n
    return difference, (difference - below, difference + above)


def chance_gain(differing: int, pairs: int) -> float:
    """Return the gain that two equally good arms reach or stay below in 19 of 20 cases.

    Given so many pairs that differ, wins are Binomial(differing, 1/2). It is the null that stands
    beside an observed gain.

    >>> chance_gain(10, 50), chance_gain(0, 50)
    (0.12, 0.0)

    Raises:
        ValueError: the counts are impossible, or there are no pairs.
    """
    _check_counts(differing, pairs)
    if pairs == 0:
        raise ValueError("a gain needs at least one pair")
    at_most = bdtr(np.arange(differing + 1), differing, 0.5)
    wins = int(np.argmax(at_most >= 0.95))
    return (2 * wins - differing) / pairs


def sign_flip(sums: Sequence[float], seed: int = 0) -> float:
    """Return the one-sided p-value of the summed differences when signs are exchangeable.

    With several policy seeds on one scene the pairs of that scene are not independent: `sums`
    holds one sum of (second - first) per scene, and whole scenes change sign.

    >>> sign_flip([2, 1, 0, 1, 3, -1, 2, 0, 1, 2])
    0.01953125
    """
    values = np.array([value for value in sums if value], dtype=np.float64)
    if values.size == 0:
        return 1.0
    observed = float(values.sum()) - ROUNDING
    if values.size <= EXACT_SIGN_FLIPS:
        bits = np.arange(2**values.size)[:, None] >> np.arange(values.size) & 1
        return float(np.mean((2 * bits - 1) @ values >= observed))
    generator = np.random.default_rng(seed)
    signs = 2 * generator.integers(0, 2, (SIGN_FLIP_DRAWS, values.size), dtype=np.int8) - 1
    reached = int(np.count_nonzero(signs.astype(np.float64) @ values >= observed))
    return (reached + 1) / (SIGN_FLIP_DRAWS + 1)  # the observed assignment counts as one draw


@dataclass(frozen=True, slots=True)
class MacroAverage:
    """An average over tasks: each task weighs the same."""

    mean: float
    interval: Interval | None
    """Percentile interval over resampled tasks; None for fewer than two tasks."""
    tasks: int


def macro_average(per_task: Sequence[float], seed: int = 0) -> MacroAverage:
    """Return the mean over tasks and its 95 % interval bootstrapped over tasks.

    >>> macro_average([0.5, 0.5, 0.5]).interval
    (0.5, 0.5)

    Raises:
        ValueError: there is no task.
    """
    values = np.asarray(per_task, dtype=np.float64)
    if values.size == 0:
        raise ValueError("an average over tasks needs at least one task")
    mean = float(values.mean())
    if values.size < 2:
        return MacroAverage(mean, None, int(values.size))
    generator = np.random.default_rng(seed)
    draws = generator.integers(0, values.size, (BOOTSTRAP_DRAWS, values.size))
    means = values[draws].mean(axis=1)
    low, high = np.quantile(means, (0.025, 0.975))
    return MacroAverage(mean, (float(low), float(high)), int(values.size))


def _check_counts(successes: int, n: int) -> None:
    if not 0 <= successes <= n:
        raise ValueError(f"expected 0 <= successes <= n; got {successes} of {n}")


def _correlation(both: int, wins: int, harms: int, neither: int) -> float:
    margins = (both + wins) * (harms + neither) * (both + harms) * (wins + neither)
    if margins == 0:
        return 0.0
    product = float(both * neither - wins * harms)
    if product > 0:
        product = max(product - (both + wins + harms + neither) / 2, 0.0)
    return product / math.sqrt(margins)


def _joined(near: float, far: float, phi: float) -> float:
    return math.sqrt(max(near * near - 2 * phi * near * far + far * far, 0.0))
