"""Many tests, one promise: risk spent over gate openings, and corrections over claims."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from scipy.stats import binom
from statsmodels.stats.multitest import multipletests

from zetta.skills.evolve.power import gain_distribution, sign_test_power

Spending: TypeAlias = Literal["inverse_square", "even"]
Correction: TypeAlias = Literal["bh", "by", "holm", "bonferroni"]
_STATSMODELS: dict[Correction, str] = {
    "bh": "fdr_bh",
    "by": "fdr_by",
    "holm": "holm",
    "bonferroni": "bonferroni",
}


def share_of_opening(opening: int) -> float:
    """Return 6 / (pi^2 t^2), the share of the risk of the t-th opening; all sum to 1."""
    if opening < 1:
        raise ValueError(f"openings are counted from 1, got {opening}")
    return 6 / (math.pi * opening) ** 2


def alpha_of_opening(
    opening: int, alpha: float, spending: Spending = "inverse_square", openings: int = 1
) -> float:
    """Return the risk that the t-th opening of a campaign may take; 0 when none is left.

    Each gate tests on a fresh block, so its p-value holds given the past, and the risks add up to
    at most `alpha` (union bound; sum of 1 / t^2 = pi^2 / 6). `even` divides by `openings`, a number
    fixed beforehand (Bonferroni).

    >>> [round(alpha_of_opening(t, 0.05), 6) for t in (1, 2, 3)]
    [0.030396, 0.007599, 0.003377]

    Raises:
        ValueError: `opening` is below 1.
    """
    share = share_of_opening(opening)
    if spending == "even":
        return alpha / openings if opening <= openings else 0.0
    return alpha * share


def straight_wins(alpha: float) -> int:
    """Return how many wins without a harm the exact sign test needs at `alpha`."""
    return math.ceil(-math.log2(alpha) - 1e-12)


@dataclass(frozen=True, slots=True)
class OnlineRejections:
    """What e-LOND rejects, test by test."""

    thresholds: tuple[float, ...]
    """E-value that the t-th test needs."""
    rejected: tuple[int, ...]
    """Numbers of the tests, from 1."""


def e_lond(e_values: Sequence[float], alpha: float) -> OnlineRejections:
    """Return the rejections of e-LOND, which bounds the false discovery rate as tests arrive.

    Xu and Ramdas 2024 (AISTATS): alpha_t = alpha g_t (R_{t-1} + 1), reject when E_t >= 1 / alpha_t;
    holds under any dependence. Here g_t = 6 / (pi^2 t^2).

    >>> e_lond((2.0, 61.2, 1.1, 400.0), 0.10).rejected
    (4,)
    """
    thresholds: list[float] = []
    rejected: list[int] = []
    for opening, e_value in enumerate(e_values, 1):
        thresholds.append(1 / (alpha * share_of_opening(opening) * (len(rejected) + 1)))
        if e_value >= thresholds[-1]:
            rejected.append(opening)
    return OnlineRejections(tuple(thresholds), tuple(rejected))


def e_bh(e_values: Sequence[float], alpha: float) -> tuple[int, ...]:
    """Return the places, from 0, of the e-values that e-BH rejects (Wang and Ramdas 2022).

    >>> e_bh((80, 31.9, 1.5), 0.10)
    (0, 1)
    """
    order = sorted(range(len(e_values)), key=lambda place: -e_values[place])
    rejected = 0
    for rank, place in enumerate(order, 1):
        if e_values[place] >= len(e_values) / (alpha * rank):
            rejected = rank
    return tuple(sorted(order[:rejected]))


@dataclass(frozen=True, slots=True)
class Adjusted:
    """P-values of a family of claims, adjusted for their number."""

    p_values: tuple[float, ...]
    rejected: tuple[bool, ...]


def adjust(p_values: Sequence[float], level: float, correction: Correction = "bh") -> Adjusted:
    """Adjust p-values that are looked at together, as in a table over tasks.

    Benjamini and Hochberg 1995 (`bh`), Benjamini and Yekutieli 2001 (`by`, any dependence), Holm
    1979, Bonferroni; computed by statsmodels.

    >>> adjust((0.001, 0.02, 0.9), 0.05).rejected
    (True, True, False)
    """
    if not p_values:
        return Adjusted((), ())
    rejected, adjusted, _, _ = multipletests(p_values, alpha=level, method=_STATSMODELS[correction])
    return Adjusted(tuple(float(p) for p in adjusted), tuple(bool(r) for r in rejected))


@dataclass(frozen=True, slots=True)
class ReusedBlock:
    """What happens when many null candidates are tried on one block."""

    any_significant: float
    """Probability that the exact test calls at least one of them better."""
    best_gain: float
    """Mean of the greatest observed gain."""


def reused_block(candidates: int, pairs: int, discordance: float, alpha: float) -> ReusedBlock:
    """Return how much a block of `pairs` flatters the best of several null candidates.

    Exact, for candidates whose outcomes are independent of each other.
    """
    half = discordance / 2
    one = sign_test_power(pairs, half, half, alpha)
    gains, masses = gain_distribution(pairs, half, half)
    below = masses.cumsum() ** candidates
    best = float((gains * (below - [0.0, *below[:-1]])).sum())
    return ReusedBlock(1 - (1 - one) ** candidates, best / pairs)


def ladder_step(candidates: int, pairs: int) -> float:
    """Return the resolution at which the Ladder lets a block be reused (Blum and Hardt 2015).

    (ln(K n) / n)^(1/3): too coarse at any number of episodes that a robot can run, so blocks here
    are burned after use instead.
    """
    return float((math.log(candidates * pairs) / pairs) ** (1 / 3))


def chance_of_more(promotions: int, alphas: Sequence[float]) -> float:
    """Return the probability of at least so many false promotions when each spends its whole risk.

    The upper tail of a sum of independent Bernoulli draws with those risks.

    >>> round(chance_of_more(1, (0.03, 0.0075)), 6)
    0.037275
    """
    masses = [1.0]
    for alpha, count in _counted(alphas):
        own = np.asarray(binom.pmf(np.arange(count + 1), count, alpha))
        joined = [0.0] * (promotions if promotions else 1)
        for i, mass in enumerate(masses):
            for j in range(min(count, len(joined) - 1 - i) + 1):
                joined[i + j] += mass * float(own[j])
        masses = joined
    return max(0.0, 1 - sum(masses)) if promotions else 1.0


def _counted(alphas: Sequence[float]) -> list[tuple[float, int]]:
    return [(alpha, alphas.count(alpha)) for alpha in sorted(set(alphas))]
