"""Sets the numbers of one critic so that it pays most, and says what that is on other episodes.

Numbers are tuned by CMA-ES (Hansen 2016, arXiv:1604.00772; package `cmaes`) within their bounds.
Episodes are parted into two halves; each half sets the numbers that the other one scores, and the
mean of the two is the honest pay-off. The numbers that are kept are then set on all episodes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from zetta.critics.parameters import Parameter
from zetta.runtime.core import Array
from zetta.runtime.errors import ConfigError
from zetta.skills.evolve.critic_arrays import ArrayProgram, Corpus
from zetta.skills.evolve.payoffs import PayoffTable, first_alarms
from zetta.skills.evolve.window_arrays import Flags, Ticks

SCREENED: Final = 24
"""Sets of numbers that every critic is first looked at with."""
ROUNDS: Final = 12
"""Generations of CMA-ES."""
POPULATION: Final = 10
AS_GOOD: Final = 0.01
"""Pay-offs for each failure that are so near count as equal."""
DIGITS: Final = 4
"""Significant digits of a number; what is judged is what is written."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One set of numbers, and when the critic then fires."""

    values: Mapping[str, float]
    alarms: Ticks
    """First alarm in each episode, -1 for none. Shape (E,)."""


@dataclass(frozen=True, slots=True)
class Tuned:
    """Numbers that pay, and how much they do on episodes that did not set them."""

    values: Mapping[str, float]
    alarms: Ticks
    held_out: float
    """For each failure of the group."""
    fitted: float
    """On all episodes, by which the numbers were set."""


@dataclass(frozen=True, slots=True)
class OpenCritic:
    """A critic with open numbers, over all episodes."""

    program: ArrayProgram
    parameters: tuple[Parameter, ...]
    corpus: Corpus

    def sample(self, values: Mapping[str, float], startable: Flags) -> Sample:
        """Return when it fires with these numbers and the recovery may start."""
        return Sample(values, first_alarms(self.program.fires(values), startable, self.corpus))

    def values(self, point: Array) -> dict[str, float]:
        """Return the numbers of a point of the unit cube. Shape (P,)."""
        return {
            p.name: rounded(p.low + float(np.clip(x, 0.0, 1.0)) * (p.high - p.low), p)
            for p, x in zip(self.parameters, point, strict=True)
        }

    def point(self, values: Mapping[str, float]) -> Array:
        """Return the point of the unit cube that some numbers are. Shape (P,)."""
        return np.array(
            [(values[p.name] - p.low) / max(p.high - p.low, 1e-12) for p in self.parameters]
        )


def rounded(value: float, parameter: Parameter) -> float:
    """Return a number as it is written, within its bounds."""
    return min(max(float(f"{value:.{DIGITS}g}"), parameter.low), parameter.high)


def screen(critic: OpenCritic, startable: Flags, rng: np.random.Generator) -> tuple[Sample, ...]:
    """Return the critic with its defaults and with numbers from all over their bounds."""
    points = rng.random((SCREENED - 1, len(critic.parameters)))
    sets = [{p.name: p.default for p in critic.parameters}, *map(critic.values, points)]
    return tuple(critic.sample(values, startable) for values in sets)


def tune(
    critic: OpenCritic,
    table: PayoffTable,
    startable: Flags,
    halves: Sequence[Ticks],
    samples: Sequence[Sample],
    seed: int,
    cross: bool = True,
) -> Tuned:
    """Set the numbers of a critic.

    Args:
        critic: with its numbers open.
        table: what its recovery is worth when.
        startable: where the recovery may start. Shape (N,).
        halves: two sets of episodes.
        samples: where to begin from.
        seed: of the draws.
        cross: let each half score the numbers of the other one; otherwise the first half sets
            the numbers and the second one scores them.
    """
    ways = [(halves[0], halves[1]), (halves[1], halves[0])][: 2 if cross else 1]
    scores = []
    for k, (fit, score) in enumerate(ways):
        best = _best(critic, lambda s, f=fit: table.payoff(s.alarms, f), startable, samples,  # type: ignore[misc]
                     seed + k)  # fmt: skip
        scores.append(table.payoff(best.alarms, score))
    everybody = np.concatenate(list(halves))
    best = _best(critic, lambda s: table.payoff(s.alarms, everybody), startable, samples, seed + 2)
    return Tuned(
        best.values, best.alarms, float(np.mean(scores)), table.payoff(best.alarms, everybody)
    )


def _best(
    critic: OpenCritic,
    worth: Callable[[Sample], float],
    startable: Flags,
    samples: Sequence[Sample],
    seed: int,
) -> Sample:
    """Return what pays, amid numbers that pay as much: given sets, and what CMA-ES finds."""
    tried = [(worth(sample), sample) for sample in samples]
    size = len(critic.parameters)
    if size:
        best = max(tried, key=lambda each: each[0])[1]
        # In one dimension there is no covariance to adapt, so a second one lies idle.
        start = np.append(critic.point(best.values), [0.5] * (size == 1))
        bounds = np.tile([0.0, 1.0], (len(start), 1))
        search = _cma()(mean=start, sigma=0.2, bounds=bounds, seed=seed, population_size=POPULATION)
        for _ in range(ROUNDS):
            points = [search.ask() for _ in range(POPULATION)]
            found = [critic.sample(critic.values(x[:size]), startable) for x in points]
            scored = [(worth(sample), sample) for sample in found]
            tried += scored
            # It looks for the least.
            search.tell([(x, -score) for x, (score, _) in zip(points, scored, strict=True)])
    return _amid(critic, tried)


def _amid(critic: OpenCritic, tried: Sequence[tuple[float, Sample]]) -> Sample:
    """Return the middle one of those that pay as much as the best, so that none lies on an edge."""
    top = max(score for score, _ in tried)
    good = [sample for score, sample in tried if score >= top - AS_GOOD]
    points = np.array([critic.point(sample.values) for sample in good])  # (G, P)
    away = np.abs(points - np.median(points, axis=0)).sum(axis=1)
    return good[int(np.argmin(away))]


def _cma() -> Any:
    try:
        from cmaes import CMA
    except ImportError:
        raise ConfigError(
            "a search needs cmaes, which is not installed; pip install 'zetta[evolve]'"
        ) from None
    return CMA
