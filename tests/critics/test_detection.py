"""Alarms against alarms that look at nothing."""

from __future__ import annotations

import numpy as np

from zetta.critics.detection import (
    Watched,
    at_a_fixed_tick,
    detection,
    shuffled,
    upper_bound,
)


def episodes(informed: bool) -> list[Watched]:
    """Make 60 successes of 60-200 ticks and 40 failures of 300 that go wrong at tick 50."""
    rng = np.random.default_rng(3)
    made = []
    for _ in range(60):
        ticks = int(rng.integers(60, 200))
        alarm = None if informed else int(rng.integers(0, 300))
        made.append(Watched(True, ticks, 300, alarm if alarm is None or alarm < ticks else None))
    for k in range(40):
        alarm = 60 + k % 10 if informed else int(rng.integers(0, 300))
        made.append(Watched(False, 300, 300, alarm, onset=50))
    return made


def test_informed_alarms_find_failures_in_time_and_leave_successes_alone() -> None:
    found = detection(episodes(informed=True))
    assert (found.successes, found.failures) == (60, 40)
    assert (found.false_alarms, found.found, found.timely) == (0, 40, 40)
    assert found.delay == 14.5
    assert found.lead is not None
    assert found.lead > 0.75
    assert found.false_alarm_bound == upper_bound(0, 60) < 0.05


def test_a_fixed_tick_finds_failures_too_but_late_when_it_may_not_disturb_successes() -> None:
    fixed = at_a_fixed_tick(episodes(informed=True), false_alarms=0)
    assert fixed.false_alarms == 0
    assert fixed.found == 40
    assert fixed.timely == 0


def test_a_fixed_tick_may_disturb_as_many_successes_as_the_critics_do() -> None:
    made = episodes(informed=True)
    fixed = at_a_fixed_tick(made, false_alarms=6)
    assert fixed.false_alarms == 6
    assert at_a_fixed_tick(made, false_alarms=60).false_alarms == 60


def test_shuffled_alarms_are_no_better_than_chance() -> None:
    made = episodes(informed=True)
    mixed = shuffled(made)
    assert abs(mixed.found - 16) <= 1
    assert mixed.false_alarms > 10


def test_alarms_that_know_nothing_look_good_only_because_failures_last_longer() -> None:
    found = detection(episodes(informed=False))
    assert found.found == 40
    assert found.false_alarms < 40


def test_no_failures_and_no_successes_are_counted_as_such() -> None:
    found = detection([])
    assert (found.timely_share, found.false_alarm_bound, found.lead) == (0.0, 1.0, None)
