"""How many pairs an effect needs, and what noise alone would show."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.special import bdtrc, gammaln, xlogy
from scipy.stats import binom

from zetta.runtime.success_rates import upper_bound
from zetta.skills.evolve.sequential import Boundary, best_boundary, operate

Floats: TypeAlias = npt.NDArray[np.float64]

SAW_TOOTH = 6
"""Power of an exact test falls a little at some numbers of pairs; so many in a row must suffice."""
MOST_PAIRS = 100_000
NOISE_QUANTILE = 0.95


def sign_test_power(pairs: int, win_rate: float, harm_rate: float, alpha: float) -> float:
    """Return the power of the exact one-sided sign test at a fixed number of pairs.

    Exact: the test's power given the number of differing pairs (Bennett and Underwood 1970,
    Biometrics 26, 339), averaged over that number.

    >>> round(sign_test_power(20, 0.411, 0.02, 0.025), 6)
    0.773152
    """
    return float(_powers(np.array([pairs]), win_rate, harm_rate, alpha)[0])


def pairs_needed(win_rate: float, harm_rate: float, alpha: float, power: float) -> int:
    """Return the least number of pairs from which the fixed exact test keeps its power.

    >>> pairs_needed(0.411, 0.02, 0.025, 0.8)
    21

    Raises:
        ValueError: there is no gain to find, or it needs more than MOST_PAIRS.
    """
    if win_rate <= harm_rate:
        raise ValueError(f"wins of {win_rate:g} beside harms of {harm_rate:g} are no gain to find")
    low, high = 2, 64
    while high <= MOST_PAIRS:
        sizes = np.arange(low, high + SAW_TOOTH)
        enough = _powers(sizes, win_rate, harm_rate, alpha) >= power
        lasting = np.lib.stride_tricks.sliding_window_view(enough, SAW_TOOTH).all(axis=1)
        if lasting.any():
            return int(sizes[int(np.argmax(lasting))])
        low, high = high, 2 * high
    raise ValueError(f"the effect needs more than {MOST_PAIRS} pairs; declare a larger one")


def _powers(
    pairs: npt.NDArray[np.int64], win_rate: float, harm_rate: float, alpha: float
) -> Floats:
    """Return the power at each number of pairs. Shape (N,)."""
    differing_rate = win_rate + harm_rate
    if differing_rate <= 0.0:
        return np.zeros(len(pairs))
    differing = np.arange(int(pairs.max()) + 1)
    given = _power_given(differing, win_rate / differing_rate, alpha)
    return np.asarray(_binomial_masses(pairs, differing, differing_rate) @ given)


def _binomial_masses(
    pairs: npt.NDArray[np.int64], counts: npt.NDArray[np.int64], rate: float
) -> Floats:
    """Return P(Binomial(n, rate) = d). Shape (N, D); several times faster than scipy's pmf."""
    n, d = pairs[:, None], counts[None, :]
    ways = gammaln(n + 1) - gammaln(d + 1) - gammaln(np.maximum(n - d, 0) + 1)
    logs = ways + xlogy(d, rate) + xlogy(np.maximum(n - d, 0), 1 - rate)
    return np.asarray(np.where(d <= n, np.exp(logs), 0.0))  # (N, D)


def _power_given(differing: npt.NDArray[np.int64], share: float, alpha: float) -> Floats:
    least = np.asarray(binom.isf(alpha, differing, 0.5), dtype=np.int64) + 1
    # The inverse is found in floating point: at an exact tie it may be one too strict.
    looser = np.where(least >= 1, bdtrc(least - 2.0, differing, 0.5), 1.0)
    least = np.where((least >= 2) & (looser <= alpha), least - 1, least)
    # Above all counts nothing is rejected; `sf` is then 0.
    return np.asarray(binom.sf(least - 1, differing, share))


def sequential_pairs_needed(win_rate: float, harm_rate: float, alpha: float, power: float) -> int:
    """Return the least cap on pairs at which the best sequential boundary has the power."""

    def suffices(pairs: int) -> bool:
        boundary = best_boundary(alpha, win_rate, harm_rate, pairs)
        return operate(boundary, win_rate, harm_rate, pairs).power >= power

    # Looks cost a little power, so the fixed test's number is where the search begins.
    pairs = pairs_needed(win_rate, harm_rate, alpha, power)
    while not suffices(pairs):
        pairs += max(1, pairs // 20)
    while pairs > 1 and suffices(pairs - 1):
        pairs -= 1
    return pairs


@dataclass(frozen=True, slots=True)
class Saving:
    """What looking early saves against the fixed test of no more power."""

    fixed_pairs: int
    """Pairs of the smallest fixed test with the sequential test's power."""
    expected_pairs: float
    """Of the sequential test, at the declared effect."""
    power: float
    """Of the sequential test."""

    @property
    def share(self) -> float:
        """Share of rollouts that are saved."""
        return 1 - self.expected_pairs / self.fixed_pairs


def saving(boundary: Boundary, win_rate: float, harm_rate: float, pairs: int) -> Saving:
    """Return what the sequential test of at most `pairs` saves at the effect, exactly.

    It is compared with the smallest fixed test of the same alpha that is as powerful, not with a
    larger one. Both arms stop together, so a share of pairs is a share of rollouts.
    """
    operation = operate(boundary, win_rate, harm_rate, pairs)
    sizes = np.arange(1, 4 * pairs)
    powers = _powers(sizes, win_rate, harm_rate, boundary.alpha)
    fixed = int(sizes[int(np.argmax(powers >= operation.power - 1e-12))])
    return Saving(fixed, operation.expected_pairs, operation.power)


def gain_distribution(
    pairs: int, win_rate: float, harm_rate: float
) -> tuple[npt.NDArray[np.int64], Floats]:
    """Return wins minus harms, from -pairs to pairs, and the probability of each. Shape (2n+1,).

    Exact: the law of one pair, convolved by squaring.
    """
    one = np.array([harm_rate, 1 - win_rate - harm_rate, win_rate])
    total = np.ones(1)
    power, left = one, pairs
    while left:
        if left & 1:
            total = np.convolve(total, power)
        left >>= 1
        if left:
            power = np.convolve(power, power)
    return np.arange(-pairs, pairs + 1), total


def noise_floor(discordance: float, pairs: int) -> float:
    """Return the 95 % quantile of the observed gain when both arms are the same policy.

    Wins are Binomial(D, 1/2) given D differing pairs. A gain at or below it is within noise.

    >>> noise_floor(0.10, 50)
    0.08
    """
    gains, masses = gain_distribution(pairs, discordance / 2, discordance / 2)
    return float(gains[int(np.argmax(masses.cumsum() >= NOISE_QUANTILE - 1e-12))]) / pairs


def harm_pairs_needed(margin: float, harms: int, confidence: float = 0.95) -> int:
    """Return how many pairs with so many harms bring the exact bound down to `margin`.

    >>> [harm_pairs_needed(0.05, harms) for harms in range(4)]
    [59, 93, 124, 153]
    """
    pairs = harms + 1
    while upper_bound(harms, pairs, confidence) > margin:
        pairs += 1
    return pairs


@lru_cache(maxsize=1024)
def most_harms(margin: float, pairs: int, confidence: float = 0.95) -> int:
    """Return the most harms among `pairs` that the exact bound forgives; -1 when not even none."""
    harms = -1
    while harms + 1 < pairs and upper_bound(harms + 1, pairs, confidence) <= margin:
        harms += 1
    return harms


def no_harm_power(margin: float, pairs: int, harm_rate: float, confidence: float = 0.95) -> float:
    """Return the probability to pass the exact harm bound at a true rate of harm."""
    allowed = most_harms(margin, pairs, confidence)
    return float(binom.cdf(allowed, pairs, harm_rate)) if allowed >= 0 else 0.0


def steps_without_a_miss(rate: float, confidence: float = 0.95) -> int:
    """Return how many events without one miss bound the rate of misses.

    >>> steps_without_a_miss(1e-3)
    2995
    """
    return math.ceil(math.log(1 - confidence) / math.log1p(-rate))
