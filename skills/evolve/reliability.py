"""pass^k: how often a scene is solved k times in a row, and whether that got worse."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import bootstrap

from zetta.runtime.success_rates import BOOTSTRAP_DRAWS, Interval, lower_bound, sign_flip


@dataclass(frozen=True, slots=True)
class Repetitions:
    """One scene, run several times under both arms."""

    scene: str
    runs: int
    baseline: int
    """Successes among the runs."""
    candidate: int


@dataclass(frozen=True, slots=True)
class PassPower:
    """Three readings of one scene's pass^k."""

    unbiased: float
    plug_in: float
    """(c / n)^k: biased upwards; printed because others print it."""
    lower: float
    """95 % one-sided, from the exact bound of the rate."""


def pass_power(runs: int, successes: int, k: int) -> PassPower:
    """Return pass^k, the probability that k fresh runs all succeed.

    C(c, k) / C(n, k) is unbiased (Yao and others 2024, tau-bench).

    >>> round(pass_power(20, 18, 5).unbiased, 6)
    0.552632

    Raises:
        ValueError: there are fewer than k runs, or the counts are impossible.
    """
    if not 0 <= successes <= runs or not 1 <= k <= runs:
        raise ValueError(
            f"pass^k needs 0 <= successes <= runs and k <= runs; got {successes}, {runs}, k = {k}"
        )
    return PassPower(
        math.comb(successes, k) / math.comb(runs, k),
        (successes / runs) ** k,
        lower_bound(successes, runs) ** k,
    )


def mean_pass_power(
    counts: Sequence[tuple[int, int]], k: int, seed: int = 0
) -> tuple[float, Interval | None]:
    """Return the mean of pass^k over scenes and its 95 % interval bootstrapped over scenes.

    BCa (Efron 1987, JASA 82, 171), 10,000 draws, as in scipy; no interval where all scenes are
    alike, or there is only one.

    Args:
        counts: (runs, successes) of each scene.
        k: how many runs in a row.
        seed: of the bootstrap.
    """
    values = np.array([pass_power(runs, successes, k).unbiased for runs, successes in counts])
    mean = float(values.mean())
    if len(values) < 2 or np.ptp(values) == 0.0:
        return mean, None
    found = bootstrap(
        (values,),
        np.mean,
        n_resamples=BOOTSTRAP_DRAWS,
        method="BCa",
        rng=np.random.default_rng(seed),
    ).confidence_interval
    return mean, (float(found.low), float(found.high))


def pass_power_kept(
    scenes: Sequence[Repetitions], k: int, margin: float, seed: int = 0
) -> tuple[float, float]:
    """Return the mean difference of pass^k and the p-value that it lost `margin` or more.

    Each scene gives one paired difference; at the edge of the hypothesis the differences plus the
    margin are symmetric about 0, and whole scenes change sign (Fisher 1935's randomisation test).
    """
    differences = [
        pass_power(each.runs, each.candidate, k).unbiased
        - pass_power(each.runs, each.baseline, k).unbiased
        for each in scenes
    ]
    p = sign_flip([difference + margin for difference in differences], seed)
    return sum(differences) / len(differences), p
