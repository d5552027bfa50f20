"""Tests and bounds on a fixed number of pairs: what the gate asks, and what a report adds.

A pair is one scene and one policy seed under two arms. A *win* is a pair in which only the
candidate succeeded, a *harm* one in which only the baseline did. The exact sign test, Wilson's,
Clopper and Pearson's and Newcombe's intervals are in `zetta.runtime.success_rates`, conformal ranks
in `zetta.critics.calibration`; here is what only the evolution loop needs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import betaln, ndtr, ndtri
from scipy.stats import barnard_exact, beta, boschloo_exact, fisher_exact

from zetta.runtime.success_rates import Interval, clopper_pearson, mcnemar, upper_bound


@dataclass(frozen=True, slots=True)
class NonInferiority:
    """A test that a paired difference is not below minus a margin."""

    z: float
    """Score statistic; standard normal at the edge of the hypothesis, large when not inferior."""
    p: float
    """One-sided."""


def tango(wins: int, harms: int, pairs: int, margin: float) -> NonInferiority:
    """Test that the candidate's success rate is at most `margin` below the baseline's.

    Tango 1998 (Statistics in Medicine 17, 891): the score test of a paired difference with the
    variance of the likelihood's maximum under the hypothesis, in closed form. It is asymptotic:
    with fewer than 50 pairs, or fewer than 5 that differ, it needs an exact bound beside it.

    >>> round(tango(3, 3, 100, 0.05).z, 4)
    1.72

    Raises:
        ValueError: the counts are impossible, or the margin is no share above 0.
    """
    _check_pairs(wins, harms, pairs)
    if not 0.0 < margin < 1.0:
        raise ValueError(f"a margin is a share between 0 and 1, got {margin:g}")
    z = _tango_score(wins, harms, pairs, -margin)
    return NonInferiority(z, float(ndtr(-z)))


def tango_interval(wins: int, harms: int, pairs: int, confidence: float = 0.95) -> Interval:
    """Return the differences that Tango's score test does not reject.

    Tango 1998 (Statistics in Medicine 17, 891), by bisection of the score in the difference.

    >>> [round(bound, 3) for bound in tango_interval(21, 1, 50)]
    [0.249, 0.544]

    Raises:
        ValueError: the counts are impossible.
    """
    _check_pairs(wins, harms, pairs)
    limit = float(ndtri((1 + confidence) / 2))
    # The upper limit is the lower one of the exchanged arms.
    return _lower_limit(wins, harms, pairs, limit), -_lower_limit(harms, wins, pairs, limit)


def harm_bound(harms: int, pairs: int, confidence: float = 0.95) -> float:
    """Return the exact upper bound of the share of pairs that the candidate breaks.

    Clopper and Pearson 1934 (Biometrika 26, 404), one-sided; 0 of 59 is the first to be below 5 %.

    >>> harm_bound(0, 59) <= 0.05 < harm_bound(0, 58)
    True

    Raises:
        ValueError: the counts are impossible.
    """
    return upper_bound(harms, pairs, confidence)


def win_share(wins: int, harms: int, confidence: float = 0.95) -> Interval:
    """Return the interval of the share of wins among pairs that differ.

    Clopper and Pearson 1934 (Biometrika 26, 404), given the number of such pairs.

    Raises:
        ValueError: a count is negative.
    """
    return clopper_pearson(wins, wins + harms, confidence)


@dataclass(frozen=True, slots=True)
class UnpairedTest:
    """One-sided p-values that the second arm succeeds more often, without common scenes."""

    fisher: float
    """Needlessly conservative; for comparison only."""
    boschloo: float
    barnard: float


def unpaired(first: tuple[int, int], second: tuple[int, int]) -> UnpairedTest:
    """Compare two arms that share no scenes, as on an arm that cannot be reset exactly.

    Fisher 1922, Boschloo 1970 (Statistica Neerlandica 24, 1), Barnard 1945 (Nature 156, 177),
    all as in scipy.

    Args:
        first: successes and episodes of the baseline.
        second: successes and episodes of the candidate.

    Raises:
        ValueError: the counts are impossible.
    """
    for successes, n in (first, second):
        if not 0 <= successes <= n or n == 0:
            raise ValueError(f"expected 0 <= successes <= n with n > 0; got {successes} of {n}")
    table = np.array([[second[0], first[0]], [second[1] - second[0], first[1] - first[0]]])
    return UnpairedTest(
        float(fisher_exact(table, alternative="greater").pvalue),
        float(boschloo_exact(table, alternative="greater").pvalue),
        float(barnard_exact(table, alternative="greater").pvalue),
    )


def probability_better(first: tuple[int, int], second: tuple[int, int]) -> float:
    """Return the posterior probability that the second rate is the higher; it never decides.

    Uniform priors on both rates; the exact sum of Beta functions in Miller, "Formulas for Bayesian
    A/B testing".

    >>> round(probability_better((25, 50), (29, 50)), 6)
    0.786481
    """
    a_1, b_1 = 1 + first[0], 1 + first[1] - first[0]
    a_2, b_2 = 1 + second[0], 1 + second[1] - second[0]
    return sum(
        math.exp(
            float(betaln(a_1 + i, b_1 + b_2) - betaln(1 + i, b_2) - betaln(a_1, b_1))
            - math.log(b_2 + i)
        )
        for i in range(a_2)
    )


def probability_wins_outnumber(wins: int, harms: int) -> float:
    """Return the posterior probability that a differing pair is rather a win; it never decides.

    Jeffreys' prior Beta(1/2, 1/2) on the share of wins (Jeffreys 1946).

    >>> round(probability_wins_outnumber(7, 1), 6)
    0.986627
    """
    return float(beta.sf(0.5, wins + 0.5, harms + 0.5))


def infrastructure_imbalance(missing_baseline: int, missing_candidate: int, pairs: int) -> float:
    """Return the two-sided p-value that errors of machinery hit one arm more than the other.

    Fisher 1922, as in scipy. Below 0.05 the comparison is not to be trusted.
    """
    table = np.array(
        [
            [missing_candidate, pairs - missing_candidate],
            [missing_baseline, pairs - missing_baseline],
        ]
    )
    return float(fisher_exact(table).pvalue)


def safety_excess(baseline: int, candidate: int) -> float:
    """Return the one-sided p-value that the candidate causes more events of one kind.

    Given their sum, two Poisson counts of equal exposure are Binomial(sum, 1/2) (Przyborowski and
    Wilenski 1940, Biometrika 31, 313).

    >>> safety_excess(0, 5)
    0.03125
    """
    return mcnemar(candidate, baseline).p_one_sided


def _tango_score(wins: int, harms: int, pairs: int, difference: float) -> float:
    """Return Tango's z for the hypothesis of a true `difference`; 0 / 0 is no evidence: 0."""
    a = 2 * pairs
    b = -wins - harms + (2 * pairs - wins + harms) * difference
    c = -harms * difference * (1 - difference)
    share_harmed = (math.sqrt(max(b * b - 4 * a * c, 0.0)) - b) / (2 * a)
    variance = pairs * (2 * share_harmed + difference * (1 - difference))
    distance = wins - harms - pairs * difference
    if variance <= 0.0:
        return 0.0 if distance == 0 else math.copysign(math.inf, distance)
    return distance / math.sqrt(variance)


def _lower_limit(wins: int, harms: int, pairs: int, limit: float) -> float:
    """Return the difference, at or below the estimate, at which the score falls to `limit`."""
    low, high = -1.0, (wins - harms) / pairs
    for _ in range(60):  # halving a range of at most 2 this often leaves less than 1e-17
        middle = (low + high) / 2
        if _tango_score(wins, harms, pairs, middle) > limit:
            low = middle
        else:
            high = middle
    return low


def _check_pairs(wins: int, harms: int, pairs: int) -> None:
    if min(wins, harms) < 0 or wins + harms > pairs or pairs < 1:
        raise ValueError(f"expected wins + harms <= pairs; got {wins} + {harms} of {pairs}")
