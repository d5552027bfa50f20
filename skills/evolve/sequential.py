"""The exact group-sequential sign test: look after every pair, stop early, keep the error bound.

Only pairs that differ inform the test. Given their number, wins are Binomial(., 1/2) under the
hypothesis of no gain, whatever the scenes are like, so the boundary needs no model of the scenes.
The risk alpha is spent evenly over the number of differing pairs, and at each number the boundary
takes the largest set of top counts that fits: the spending of Lan and DeMets 1983 (Biometrika 70,
659), computed exactly, in the spirit of the risk budget of STEP (Snyder and others 2025).

One boundary serves one block of pairs. Evidence of many days is merged by e-values instead
(`zetta.skills.evolve.evalues`); both on the same pairs would spend the risk twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from scipy.special import bdtrik

ROUNDING = 1e-15
"""A mass that exceeds the budget by less is floating-point noise."""
LIKELY = 0.999
"""Boundaries longer than this quantile of the number of differing pairs are not considered."""


@dataclass(frozen=True, slots=True)
class Boundary:
    """When to stop for the candidate."""

    alpha: float
    wins: tuple[int | None, ...]
    """Wins that suffice at 1, 2, ... differing pairs; None where no stop is possible."""
    spent: float
    """Probability to stop when nothing is gained: at most alpha."""

    @property
    def most_differing(self) -> int:
        """Differing pairs after which the test is over."""
        return len(self.wins)

    @property
    def stops(self) -> tuple[tuple[int, int], ...]:
        """(differing pairs, wins that suffice), where a stop is possible."""
        return tuple((d, b) for d, b in enumerate(self.wins, 1) if b is not None)

    def crossed(self, wins: int, harms: int) -> bool:
        """Say whether these counts end the test for the candidate."""
        differing = wins + harms
        if not 0 < differing <= self.most_differing:
            return False
        needed = self.wins[differing - 1]
        return needed is not None and wins >= needed

    def reachable(self, wins: int, harms: int, remaining: int) -> bool:
        """Say whether `remaining` more pairs can still end the test for the candidate.

        Stopping when they cannot changes no decision, so it costs no risk.
        """
        differing = wins + harms
        return any(
            wins + (d - differing) >= needed
            for d, needed in self.stops
            if differing < d <= differing + remaining
        )


@lru_cache(maxsize=256)
def sign_boundary(alpha: float, most_differing: int) -> Boundary:
    """Return the boundary that spends `alpha` evenly over `most_differing` differing pairs.

    >>> sign_boundary(0.025, 20).stops
    ((7, 7), (11, 10), (14, 12), (16, 13), (19, 15))

    Raises:
        ValueError: alpha is no share, or there is no pair.
    """
    if not 0.0 < alpha < 1.0 or most_differing < 1:
        raise ValueError(
            f"need alpha between 0 and 1 and at least one pair; got {alpha:g} and {most_differing}"
        )
    unstopped = np.zeros(most_differing + 1)  # probability by number of wins, under no gain
    unstopped[0] = 1.0
    spent = 0.0
    wins: list[int | None] = []
    for differing in range(1, most_differing + 1):
        unstopped[1:] = (unstopped[1:] + unstopped[:-1]) / 2
        unstopped[0] /= 2
        first, mass = _top_counts(unstopped, alpha * differing / most_differing - spent)
        wins.append(first)
        if first is not None:
            spent += mass
            unstopped[first:] = 0.0
    return Boundary(alpha, tuple(wins), spent)


def _top_counts(mass: npt.NDArray[np.float64], budget: float) -> tuple[int | None, float]:
    """Return the least count such that it and all above fit the budget, and their mass."""
    first, taken = None, 0.0
    for count in range(len(mass) - 1, -1, -1):
        if mass[count] == 0.0:
            continue
        if taken + float(mass[count]) > budget + ROUNDING:
            break
        taken += float(mass[count])
        first = count
    return first, taken


@dataclass(frozen=True, slots=True)
class Operation:
    """What a sequential test does, on average over exact probabilities."""

    power: float
    """Probability to stop for the candidate."""
    expected_pairs: float
    """Pairs run until the test stops, for whatever reason."""
    most_pairs: int


def operate(boundary: Boundary, win_rate: float, harm_rate: float, pairs: int) -> Operation:
    """Return power and mean length of the test, exactly.

    The state after each pair is (differing pairs, wins); its probability is carried forward, so
    nothing is simulated. The test also stops when the boundary can no longer be reached.

    Args:
        boundary: of the test.
        win_rate: share of pairs that only the candidate solves.
        harm_rate: share of pairs that only the baseline solves.
        pairs: most pairs that are run.

    Raises:
        ValueError: the rates are no shares of one whole, or there is no pair.
    """
    if min(win_rate, harm_rate) < 0 or win_rate + harm_rate > 1 + ROUNDING or pairs < 1:
        raise ValueError(
            "need rates that sum to at most 1, and a pair; got "
            f"{win_rate:g}, {harm_rate:g} and {pairs} pairs"
        )
    size = boundary.most_differing + 1
    running = np.zeros((size, size))  # (differing, wins)
    running[0, 0] = 1.0
    crossed, to_go = _crossed(boundary), _wins_to_go(boundary)
    power = expected = 0.0
    for ran in range(1, pairs + 1):
        moved = running * (1 - win_rate - harm_rate)
        moved[1:, 1:] += running[:-1, :-1] * win_rate
        moved[1:, :] += running[:-1, :] * harm_rate
        won = float(moved[crossed].sum())
        moved[crossed] = 0.0
        hopeless = to_go > pairs - ran
        lost = float(moved[hopeless].sum())
        moved[hopeless] = 0.0
        power += won
        expected += ran * (won + lost)
        running = moved
    return Operation(power, expected, pairs)


def _crossed(boundary: Boundary) -> npt.NDArray[np.bool_]:
    """Return which (differing, wins) end the test for the candidate."""
    size = boundary.most_differing + 1
    needed = np.array([size, *(size if b is None else b for b in boundary.wins)])
    return np.asarray(np.arange(size) >= needed[:, None])  # (differing, wins)


def _wins_to_go(boundary: Boundary) -> npt.NDArray[np.int64]:
    """Return how many straight wins from (differing, wins) end the test; too many when none do."""
    size = boundary.most_differing + 1
    differing, wins = np.meshgrid(np.arange(size), np.arange(size), indexing="ij")
    to_go = np.full((size, size), np.iinfo(np.int64).max)
    for d, needed in reversed(boundary.stops):  # the nearest stop is written last
        ahead = d - differing
        to_go = np.where((ahead > 0) & (wins + ahead >= needed), ahead, to_go)
    return to_go


def best_boundary(alpha: float, win_rate: float, harm_rate: float, pairs: int) -> Boundary:
    """Return the boundary of the greatest power at the declared effect; the shorter one on ties.

    The choice uses alpha and the declared effect only, never an outcome, so it keeps the bound.
    """

    def merit(boundary: Boundary) -> tuple[float, float]:
        operation = operate(boundary, win_rate, harm_rate, pairs)
        return round(operation.power, 9), -operation.expected_pairs

    # Hardly a block differs more often; spending risk further out only slows the test down.
    differing = int(bdtrik(LIKELY, pairs, win_rate + harm_rate)) + 1
    candidates = range(1, min(pairs, differing) + 1)
    return max((sign_boundary(alpha, most) for most in candidates), key=merit)
