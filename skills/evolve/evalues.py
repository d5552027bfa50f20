"""Evidence that may be watched for ever and merged: e-values of pairs, and Wald's test.

An e-value is a bet against the hypothesis that nothing is gained; under it the bet's worth has an
expectation of at most 1 at any time, so it ever reaches 1 / alpha with probability at most alpha
(Ville 1939; Ramdas and others 2023, Statistical Science 38, 576).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq
from scipy.special import betaln, xlog1py, xlogy
from scipy.stats import beta

from zetta.runtime.success_rates import Interval


def e_point(wins: int, harms: int, share: float) -> float:
    """Return the e-value of a bet that a differing pair is a win with probability `share`.

    (2 share)^wins (2 (1 - share))^harms: a product of 1 + lambda x with lambda = 2 share - 1, so a
    supermartingale whenever the mean gain, given the past, is not positive (Wald 1945).

    >>> e_point(3, 0, 0.75)
    3.375

    Raises:
        ValueError: `share` is not within [1/2, 1).
    """
    if not 0.5 <= share < 1.0:
        raise ValueError(f"a bet on wins is a share from 0.5 to below 1, got {share:g}")
    return math.exp(wins * math.log(2 * share) + harms * math.log(2 * (1 - share)))


def e_mix(wins: int, harms: int) -> float:
    """Return the e-value mixed evenly over shares from 1/2 to 1.

    2^(D+1) B(wins+1, harms+1) P(Beta(wins+1, harms+1) > 1/2) with D = wins + harms: the method of
    mixtures of Robbins 1970 (Annals of Mathematical Statistics 41, 1397) with a uniform prior.

    >>> round(e_mix(5, 0), 4), round(e_mix(2, 5), 6)
    (10.5, 0.220238)
    """
    tail = beta.logsf(0.5, wins + 1, harms + 1)
    bets = (wins + harms + 1) * math.log(2)
    return math.exp(bets + float(betaln(wins + 1, harms + 1)) + float(tail))


def wins_needed(alpha: float, harms: int) -> int:
    """Return the least number of wins beside `harms` at which `e_mix` reaches 1 / alpha."""
    wins = 0
    while e_mix(wins, harms) < 1 / alpha:
        wins += 1
    return wins


def chance_to_cross(alpha: float, most_differing: int) -> float:
    """Return the exact probability under no gain that `e_mix` ever reaches 1 / alpha."""
    crossed = 0.0
    unstopped = np.zeros(most_differing + 1)  # probability by number of wins
    unstopped[0] = 1.0
    # Going up in wins `e_mix` rises, so each number of harms has one least number of wins.
    needed = 0
    for differing in range(1, most_differing + 1):
        unstopped[1:] = (unstopped[1:] + unstopped[:-1]) / 2
        unstopped[0] /= 2
        while needed <= differing and e_mix(needed, differing - needed) < 1 / alpha:
            needed += 1
        crossed += float(unstopped[needed:].sum())
        unstopped[needed:] = 0.0
    return crossed


def win_share_anytime(wins: int, harms: int, alpha: float = 0.05) -> Interval:
    """Return an interval of the share of wins that holds at all times at once.

    The shares at which a bet mixed evenly over (0, 1) has not reached 1 / alpha: those t with
    B(wins+1, harms+1) < t^wins (1-t)^harms / alpha (Robbins 1970). Wider than an interval for one
    number of pairs; for watching a test that runs.
    """
    differing = wins + harms
    if differing == 0:
        return 0.0, 1.0
    peak = wins / differing

    def excess(share: float) -> float:
        likelihood = float(xlogy(wins, share) + xlog1py(harms, -share))
        return likelihood - float(betaln(wins + 1, harms + 1)) - math.log(alpha)

    low = 0.0 if wins == 0 else float(brentq(excess, 1e-300, peak))
    high = 1.0 if harms == 0 else float(brentq(excess, peak, 1 - 1e-16))
    return low, high


def e_no_harm(differences: Iterable[int], margin: float, bet: float | None = None) -> float:
    """Return the e-value against a mean difference of at most minus `margin`.

    The product of 1 + bet (x + margin) over differences x in -1, 0, 1. The anytime version of the
    no-harm rule: 59 pairs without a difference reach 20 at a margin of 0.05.

    Args:
        differences: candidate minus baseline, pair by pair.
        margin: share of harm that is still tolerated.
        bet: at most 1 / (1 - margin), which is the default: there one harm ends all hope.

    Raises:
        ValueError: the bet could become negative.
    """
    most = 1 / (1 - margin)
    chosen = most if bet is None else bet
    if not 0.0 <= chosen <= most:
        raise ValueError(f"a bet is from 0 to {most:g} at a margin of {margin:g}, got {chosen:g}")
    return math.prod(max(0.0, 1 + chosen * (x + margin)) for x in differences)


@dataclass(frozen=True, slots=True)
class WaldTest:
    """Wald's sequential probability ratio test on differing pairs (Wald 1945)."""

    win: float
    """Added to the log ratio by a win."""
    harm: float
    """Added by a harm; negative."""
    promote: float
    """Upper end of the log ratio."""
    futile: float
    """Lower end."""

    @property
    def straight_wins(self) -> int:
        """Wins without a harm that suffice."""
        return math.ceil(self.promote / self.win)


def wald(share: float, alpha: float, miss: float) -> WaldTest:
    """Return Wald's test of a share of wins of 1/2 against `share`.

    Its upper end is ln(1 / alpha), which is valid by Ville's inequality without approximation; its
    lower end is ln(miss), which only gives up.
    """
    return WaldTest(
        math.log(2 * share), math.log(2 * (1 - share)), math.log(1 / alpha), math.log(miss)
    )
