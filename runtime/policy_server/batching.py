"""When to run the policy, and for whom: one pure function, apart from threads and clocks.

Several robots share one policy, and a network takes eight observations in little more time than
one. So it can pay to wait a moment for the others; but a robot that is alone must never wait, and
a policy whose time grows with every row gains nothing from waiting.

The rule. Whoever is late is turned away. The rest are served by priority, then by deadline (each
request is given one, so that those who named none are not passed over for ever), then by arrival.
They are served at once when everybody who has asked lately is there, when the batch is full, when
the policy gains nothing from company, or when the time that waiting may take is over. That time is
at most a share of what company saves, at most what the deadlines leave, and nothing at all while
the next request is expected later than that.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

BUCKETS: Final = (1, 2, 4, 8)
"""Rows that a batch may have: shapes that stay the same are compiled, and measured, once."""
WAIT_SHARE: Final = 0.5
"""Of what one row saves in company, the share that may be spent on waiting for it."""
WORTH: Final = 0.1
"""Company that saves less than this share of a single inference is not waited for."""
SMOOTHING: Final = 0.2
"""Weight of the newest measurement."""
REMEMBERED: Final = 200
"""Single inferences after which larger ones are measured again: one unlucky measurement, such as
that of a first call, must not decide for ever."""
PATIENCE_S: Final = 1.0
"""A request without a deadline is ordered as if it had this one."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """One request that was not begun yet."""

    session: int
    arrived: float
    """Seconds on the engine's clock, as all times here."""
    deadline: float = math.inf
    priority: int = 0
    """Higher goes first."""


@dataclass(frozen=True, slots=True)
class Pace:
    """What was measured so far."""

    cost_s: Mapping[int, float] = field(default_factory=dict)
    """Seconds of one inference by bucket."""
    singles: int = 0
    """Inferences of one row in a row."""
    gap_s: float = 0.0
    """Seconds from a request, or from an answer, to the next request."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What to do now."""

    late: tuple[int, ...] = ()
    """Sessions whose request is turned away."""
    take: tuple[int, ...] = ()
    """Sessions that are served now; empty means wait."""
    rows: int = 0
    """Bucket of the batch."""
    wait_s: float = math.inf
    """How long to wait for a new request before deciding again."""


def decide(
    waiting: Sequence[Waiting],
    active: int,
    idle_since: float,
    now: float,
    pace: Pace,
    most: int,
    max_wait_s: float,
) -> Decision:
    """Return what to do with the requests that wait, at most one of each session.

    Args:
        waiting: all of them.
        active: sessions that have asked lately, those that wait included.
        idle_since: when the policy had last finished.
        now: the present.
        pace: what was measured.
        most: rows of the largest batch.
        max_wait_s: longest wait for company, seconds.

    >>> decide([Waiting(7, 0.0)], 1, 0.0, 0.0, Pace(), 8, 0.01).take
    (7,)
    """
    late = tuple(each.session for each in waiting if each.deadline <= now)
    ready = sorted((each for each in waiting if each.deadline > now), key=_urgency)
    if not ready:
        return Decision(late)
    wait_s = _wait_s(ready, active, idle_since, now, pace, most, max_wait_s)
    if wait_s > 0.0:
        return Decision(late, wait_s=wait_s)
    served = ready[: 1 if _alone_is_best(pace) else most]
    return Decision(late, tuple(each.session for each in served), bucket(len(served)), 0.0)


def bucket(count: int) -> int:
    """Return the smallest number of rows that holds `count`.

    >>> [bucket(n) for n in (1, 2, 3, 5, 8)]
    [1, 2, 4, 8, 8]
    """
    return next(rows for rows in BUCKETS if rows >= count)


def measured(pace: Pace, rows: int, seconds: float) -> Pace:
    """Return `pace` after an inference."""
    singles = pace.singles + 1 if rows == 1 else 0
    known = {1: pace.cost_s[1]} if singles > REMEMBERED and 1 in pace.cost_s else pace.cost_s
    before = known.get(rows, seconds)
    cost_s = {**known, rows: before + SMOOTHING * (seconds - before)}
    return replace(pace, cost_s=cost_s, singles=singles % (REMEMBERED + 1))


def waited(pace: Pace, gap_s: float) -> Pace:
    """Return `pace` after a request came so late, or had not yet come when nobody waited on."""
    return replace(pace, gap_s=pace.gap_s + SMOOTHING * (gap_s - pace.gap_s))


def saving_s(pace: Pace) -> float:
    """Return the seconds that one row saves in a batch; a first guess before one was measured.

    >>> round(saving_s(Pace({1: 0.021, 8: 0.028})), 3)
    0.02
    """
    single = pace.cost_s.get(1)
    if single is None:
        return 0.0
    largest = max(pace.cost_s)
    if largest == 1:
        return single  # to be found out, once
    return max(0.0, single - (pace.cost_s[largest] - single) / (largest - 1))


def _alone_is_best(pace: Pace) -> bool:
    """Tell whether a batch costs as much as its rows one by one."""
    return 1 in pace.cost_s and saving_s(pace) <= WORTH * pace.cost_s[1]


def _urgency(each: Waiting) -> tuple[int, float, float, int]:
    deadline = min(each.deadline, each.arrived + PATIENCE_S)
    return (-each.priority, deadline, each.arrived, each.session)


def _wait_s(
    ready: Sequence[Waiting],
    active: int,
    idle_since: float,
    now: float,
    pace: Pace,
    most: int,
    max_wait_s: float,
) -> float:
    """Return how much longer company is waited for."""
    if len(ready) >= min(active, most) or _alone_is_best(pace):
        return 0.0
    cap = min(max_wait_s, WAIT_SHARE * saving_s(pace))
    if pace.gap_s > cap:
        return 0.0
    start = max(idle_since, min(each.arrived for each in ready))
    rows = bucket(min(len(ready) + 1, most))
    busy = pace.cost_s.get(rows, max(pace.cost_s.values(), default=0.0))
    slack = min(each.deadline for each in ready) - busy
    return max(0.0, min(start + cap, slack) - now)
