"""How well alarms tell failures from successes, beside alarms that look at nothing.

An alarm is the first tick at which anything fires. Failures run to the end of their budget and
successes stop early, so an alarm at a fixed tick already finds most failures: what critics are
worth is what they add to that, at the same share of false alarms.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np
from scipy.stats import beta

TIMELY = 0.6
"""An alarm is timely while at least this share of the step budget is left."""
SHUFFLES = 200


@dataclass(frozen=True, slots=True)
class Watched:
    """One episode without interventions, and when critics would have fired first."""

    success: bool
    ticks: int
    max_steps: int
    alarm: int | None
    """First tick with a verdict; None when there was none."""
    onset: int | None = None
    """Tick at which things began to go wrong, where that is known."""


@dataclass(frozen=True, slots=True)
class Detection:
    """What alarms were worth on some episodes."""

    successes: int
    false_alarms: int
    """Successes with an alarm."""
    failures: int
    found: int
    """Failures with an alarm at any time."""
    timely: int
    """Failures with an alarm that left enough of the budget, `TIMELY` of it if nothing is said."""
    lead: float | None
    """Median of the budget that was left at the alarm in found failures, as a share."""
    delay: float | None
    """Median ticks from onset to alarm, in found failures whose onset is known."""

    @property
    def false_alarm_bound(self) -> float:
        """Upper 95 % Clopper-Pearson bound of the share of successes with an alarm."""
        return upper_bound(self.false_alarms, self.successes)

    @property
    def timely_share(self) -> float:
        """Timely alarms over failures; 0 without failures."""
        return self.timely / self.failures if self.failures else 0.0


def upper_bound(k: int, n: int, confidence: float = 0.95) -> float:
    """Return the one-sided Clopper-Pearson upper bound of k out of n; 1 when n is 0.

    >>> round(upper_bound(0, 59), 4), upper_bound(5, 5)
    (0.0495, 1.0)
    """
    return 1.0 if k >= n else float(beta.ppf(confidence, k + 1, n - k))


def detection(episodes: Sequence[Watched], timely: float = TIMELY) -> Detection:
    """Count alarms on successes and on failures; `timely` is the share of budget to be left."""
    failed = [e for e in episodes if not e.success]
    found = [(e, e.alarm) for e in failed if e.alarm is not None]
    left = [1.0 - alarm / e.max_steps for e, alarm in found]
    delays = [alarm - e.onset for e, alarm in found if e.onset is not None]
    return Detection(
        successes=len(episodes) - len(failed),
        false_alarms=sum(e.success and e.alarm is not None for e in episodes),
        failures=len(failed),
        found=len(found),
        timely=sum(share >= timely for share in left),
        lead=median(left) if left else None,
        delay=median(delays) if delays else None,
    )


def at_a_fixed_tick(
    episodes: Sequence[Watched], false_alarms: int, timely: float = TIMELY
) -> Detection:
    """Return what an alarm at one tick for all finds, at no more than so many false alarms.

    The tick is the earliest that at most `false_alarms` successes outlast.
    """
    lengths = sorted((e.ticks for e in episodes if e.success), reverse=True)
    tick = lengths[false_alarms] if false_alarms < len(lengths) else 0
    return detection([_alarmed(e, tick if e.ticks > tick else None) for e in episodes], timely)


def shuffled(episodes: Sequence[Watched], seed: int = 0, timely: float = TIMELY) -> Detection:
    """Return what the same alarms find when they are dealt out to episodes at random.

    Counts are means over many deals, rounded. An alarm after the end of an episode is none.
    """
    rng = np.random.default_rng(seed)
    deals = []
    for _ in range(SHUFFLES):
        order = rng.permutation(len(episodes))
        dealt = [(e, episodes[k].alarm) for e, k in zip(episodes, order, strict=True)]
        deals.append(
            detection(
                [_alarmed(e, a if a is not None and a < e.ticks else None) for e, a in dealt],
                timely,
            )
        )
    leads = [deal.lead for deal in deals if deal.lead is not None]
    return Detection(
        successes=deals[0].successes,
        false_alarms=round(float(np.mean([d.false_alarms for d in deals]))),
        failures=deals[0].failures,
        found=round(float(np.mean([d.found for d in deals]))),
        timely=round(float(np.mean([d.timely for d in deals]))),
        lead=median(leads) if leads else None,
        delay=None,
    )


def _alarmed(episode: Watched, alarm: int | None) -> Watched:
    return Watched(episode.success, episode.ticks, episode.max_steps, alarm, episode.onset)
