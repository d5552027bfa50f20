"""The decision when to run, for whom: its promises hold whatever waits and was measured."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zetta.runtime.policy_server.batching import (
    BUCKETS,
    PATIENCE_S,
    REMEMBERED,
    WAIT_SHARE,
    Decision,
    Pace,
    Waiting,
    bucket,
    decide,
    measured,
    saving_s,
    waited,
)

MAX_WAIT_S = 0.05
NETWORK = Pace({1: 0.021, 2: 0.022, 4: 0.024, 8: 0.028}, gap_s=0.0005)
"""20 ms and 1 ms a row; everybody asks again at once."""
LINEAR = Pace({1: 0.010, 2: 0.020}, gap_s=0.0005)
"""Company saves nothing."""

times = st.floats(0.0, 10.0)
paces = st.builds(
    Pace,
    st.dictionaries(st.sampled_from(BUCKETS), st.floats(0.0, 1.0)),
    st.integers(0, REMEMBERED),
    st.floats(0.0, 1.0),
)


@st.composite
def queues(draw: st.DrawFn) -> list[Waiting]:
    count = draw(st.integers(0, 12))
    return [
        Waiting(
            session,
            draw(times),
            draw(st.floats(0.0, 20.0) | st.just(math.inf)),
            draw(st.integers(-1, 1)),
        )
        for session in range(count)
    ]


def ask(
    waiting: Sequence[Waiting],
    active: int | None = None,
    now: float = 10.0,
    pace: Pace = NETWORK,
    most: int = 8,
    idle_since: float = 10.0,
) -> Decision:
    known = len(waiting) if active is None else active
    return decide(waiting, known, idle_since, now, pace, most, MAX_WAIT_S)


@given(queues(), st.integers(0, 8), paces, st.sampled_from(BUCKETS))
def test_everybody_is_turned_away_served_or_kept_and_nobody_twice(
    waiting: list[Waiting], others: int, pace: Pace, most: int
) -> None:
    decision = ask(waiting, len(waiting) + others, pace=pace, most=most)
    known = {each.session: each for each in waiting}

    assert set(decision.late) == {s for s, each in known.items() if each.deadline <= 10.0}
    assert len(set(decision.take)) == len(decision.take) <= decision.rows or not decision.take
    assert not set(decision.take) & set(decision.late)
    assert set(decision.take) <= set(known)
    assert decision.rows <= most
    assert not decision.take or decision.rows in BUCKETS


@given(queues(), st.integers(0, 8), paces)
def test_those_served_are_never_less_urgent_than_those_left(
    waiting: list[Waiting], others: int, pace: Pace
) -> None:
    decision = ask(waiting, len(waiting) + others, pace=pace, most=4)
    if not decision.take:
        return
    known = {each.session: each for each in waiting}
    gone = {*decision.take, *decision.late}

    def urgency(session: int) -> tuple[float, float]:
        each = known[session]
        return (-each.priority, min(each.deadline, each.arrived + PATIENCE_S))

    left = [urgency(session) for session in known if session not in gone]
    assert not left or max(map(urgency, decision.take)) <= min(left)


@given(queues(), st.integers(0, 8), paces)
def test_something_happens_or_the_wait_is_short_and_within_every_deadline(
    waiting: list[Waiting], others: int, pace: Pace
) -> None:
    decision = ask(waiting, len(waiting) + others, pace=pace)
    in_time = [each.deadline for each in waiting if each.deadline > 10.0]
    if in_time and not decision.take:
        assert 0.0 < decision.wait_s <= MAX_WAIT_S + 1e-9
        assert 10.0 + decision.wait_s <= min(in_time) + 1e-9
    if not in_time:
        assert decision.wait_s == math.inf


@given(paces, st.floats(0.0, 5.0), times)
def test_one_robot_alone_never_waits(pace: Pace, left: float, idle_since: float) -> None:
    alone = [Waiting(3, 10.0, 10.0 + left + 1e-6)]

    decision = ask(alone, active=1, pace=pace, idle_since=idle_since)

    assert decision.take == (3,)
    assert decision.rows == 1


@given(queues(), st.integers(0, 8), paces)
def test_waiting_comes_to_an_end(waiting: list[Waiting], others: int, pace: Pace) -> None:
    later = 10.0 + MAX_WAIT_S + 1e-9
    decision = ask(waiting, len(waiting) + others, now=later, pace=pace)

    assert decision.take or all(each.deadline <= later for each in waiting)


def test_company_that_is_about_to_come_is_waited_for() -> None:
    seven = [Waiting(n, 10.0) for n in range(7)]

    assert 0.0 < ask(seven, active=8).wait_s <= WAIT_SHARE * saving_s(NETWORK)
    assert ask([*seven, Waiting(7, 10.0)], active=8).take == tuple(range(8))


def test_company_that_comes_late_or_saves_nothing_is_not_waited_for() -> None:
    two = [Waiting(n, 10.0) for n in range(2)]
    rare = Pace(NETWORK.cost_s, gap_s=0.1)

    assert ask(two, active=8, pace=rare).take == (0, 1)
    assert ask(two, active=8, pace=LINEAR).take == (0,)


def test_higher_priority_goes_first_then_the_earlier_deadline_then_who_came_first() -> None:
    waiting = [
        Waiting(0, 9.0),
        Waiting(1, 9.9, deadline=10.1),
        Waiting(2, 9.5, priority=1),
        Waiting(3, 8.5),
    ]

    assert ask(waiting, most=2).take == (2, 3)
    assert ask(waiting, most=4).take == (2, 3, 0, 1)


def test_a_linear_policy_is_measured_in_company_again_after_a_while() -> None:
    pace = LINEAR
    for _ in range(REMEMBERED + 1):
        pace = measured(pace, 1, 0.010)

    assert 2 not in pace.cost_s
    assert saving_s(pace) > 0.0


def test_measurements_follow_what_is_measured() -> None:
    pace = Pace()
    for _ in range(60):
        pace = waited(measured(pace, 4, 0.5), 0.25)

    assert pace.cost_s[4] == pytest.approx(0.5)
    assert pace.gap_s == pytest.approx(0.25, rel=0.01)


@pytest.mark.parametrize("count", range(1, 9))
def test_a_bucket_is_the_smallest_that_holds_the_batch(count: int) -> None:
    assert bucket(count) >= count
    assert bucket(count) == 1 or bucket(count) / 2 < count
