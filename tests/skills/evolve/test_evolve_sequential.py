"""Boundaries and e-values: reference values, exact error, and what stopping saves."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zetta.skills.evolve.evalues import (
    chance_to_cross,
    e_mix,
    e_no_harm,
    e_point,
    wald,
    win_share_anytime,
    wins_needed,
)
from zetta.skills.evolve.sequential import best_boundary, operate, sign_boundary
from zetta.skills.evolve.significance import win_share

BOUNDARIES = [
    (0.025, 20, 0.021925, "7:7, 11:10, 14:12, 16:13, 19:15"),
    (
        0.025,
        40,
        0.023694,
        "8:8, 12:11, 15:13, 18:15, 20:16, 23:18, 25:19, 28:21, 31:23, 33:24, 35:25, 38:27, 40:28",
    ),
    (
        0.05,
        40,
        0.048122,
        "7:7, 11:10, 14:12, 16:13, 19:15, 21:16, 24:18, 26:19, 29:21, 31:22, 33:23, 36:25, 38:26, "
        "40:27",
    ),
]
# Simulated: win rate, harm rate, pairs, most differing, power, mean pairs.
SIMULATED = [
    (0.411, 0.02, 50, 20, 0.998, 19.5),
    (0.22, 0.02, 100, 20, 0.985, 40.2),
    (0.12, 0.02, 200, 30, 0.955, 96),
    (0.07, 0.02, 400, 40, 0.871, 231),
    (0.1, 0.1, 200, 40, 0.021, None),
]
E_VALUES = [
    (0, 0, 1, 1, 1),
    (1, 0, 1.5, 1.5, 1.8),
    (3, 0, 3.75, 3.375, 5.832),
    (5, 0, 10.5, 7.59375, 18.8957),
    (6, 0, 18.1429, 11.3906, 34.0122),
    (7, 0, 31.875, 17.0859, 61.222),
    (5, 1, 2.85714, 3.79688, 3.77914),
    (7, 1, 6.97222, 8.54297, 12.2444),
    (8, 1, 11.2556, 12.8145, 22.0399),
    (8, 2, 4.00202, 6.40723, 4.40798),
    (9, 1, 18.5091, 19.2217, 39.6719),
    (10, 2, 9.44056, 14.4163, 14.2819),
    (12, 3, 8.90646, 16.2183, 9.25465),
    (15, 5, 6.35552, 13.6842, 2.15892),
    (20, 8, 5.88446, 12.9893, 0.326355),
    (40, 20, 8.97325, 10.5451, 1.70412e-4),
    (3, 3, 0.457143, 0.421875, 0.046656),
    (2, 5, 0.220238, 0.0703125, 0.0010368),
]


@pytest.mark.parametrize(("alpha", "most", "spent", "stops"), BOUNDARIES)
def test_boundaries_are_those_of_the_reference(
    alpha: float, most: int, spent: float, stops: str
) -> None:
    boundary = sign_boundary(alpha, most)
    assert ", ".join(f"{d}:{b}" for d, b in boundary.stops) == stops
    assert boundary.spent == pytest.approx(spent, abs=1e-6)


@pytest.mark.parametrize(("win", "harm", "pairs", "most", "power", "mean"), SIMULATED)
def test_exact_power_and_length_agree_with_the_simulated_reference(
    win: float, harm: float, pairs: int, most: int, power: float, mean: float | None
) -> None:
    operation = operate(sign_boundary(0.025, most), win, harm, pairs)
    assert operation.power == pytest.approx(power, abs=0.012)  # 6,000 simulated tests
    if mean is not None:
        # The reference goes on when the boundary cannot be reached any more; this test does not.
        assert operation.expected_pairs == pytest.approx(mean, rel=0.06)
        assert operation.expected_pairs <= mean + 0.5


@given(st.sampled_from([0.05, 0.025, 0.0076]), st.integers(1, 40), st.floats(0.01, 0.5))
def test_the_error_under_no_gain_is_at_most_what_the_boundary_spends(
    alpha: float, most: int, rate: float
) -> None:
    boundary = sign_boundary(alpha, most)
    assert boundary.spent <= alpha + 1e-12
    assert operate(boundary, rate, rate, 60).power <= boundary.spent + 1e-12


def test_power_is_the_sum_over_every_sequence_of_outcomes() -> None:
    boundary, win, harm, pairs = sign_boundary(0.2, 4), 0.5, 0.2, 7
    power = expected = 0.0
    for sequence in itertools.product((1, -1, 0), repeat=pairs):
        chance = math.prod({1: win, -1: harm, 0: 1 - win - harm}[x] for x in sequence)
        wins = harms = ran = 0
        while boundary.reachable(wins, harms, pairs - ran) and not boundary.crossed(wins, harms):
            wins += sequence[ran] == 1
            harms += sequence[ran] == -1
            ran += 1
        power += chance * boundary.crossed(wins, harms)
        expected += chance * ran
    operation = operate(boundary, win, harm, pairs)
    assert operation.power == pytest.approx(power)
    assert operation.expected_pairs == pytest.approx(expected)


@given(st.integers(0, 19), st.integers(0, 19))
def test_more_wins_never_uncross_and_more_harms_never_help(wins: int, harms: int) -> None:
    boundary = sign_boundary(0.025, 40)
    remaining = 40
    assert boundary.reachable(wins + 1, harms, remaining) or not boundary.reachable(
        wins, harms, remaining
    )
    assert boundary.reachable(wins, harms, remaining) or not boundary.reachable(
        wins, harms + 1, remaining
    )


def test_the_best_boundary_is_no_weaker_than_any_other() -> None:
    best = best_boundary(0.0304, 0.411, 0.02, 31)
    found = operate(best, 0.411, 0.02, 31).power
    assert found >= max(
        operate(sign_boundary(0.0304, most), 0.411, 0.02, 31).power for most in range(1, 32)
    )


def test_impossible_questions_are_refused() -> None:
    with pytest.raises(ValueError, match="alpha between 0 and 1"):
        sign_boundary(1.5, 20)
    with pytest.raises(ValueError, match="sum to at most 1"):
        operate(sign_boundary(0.025, 20), 0.8, 0.3, 31)


@pytest.mark.parametrize(("wins", "harms", "mixed", "three_quarters", "nine_tenths"), E_VALUES)
def test_e_values_are_those_of_the_reference(
    wins: int, harms: int, mixed: float, three_quarters: float, nine_tenths: float
) -> None:
    found = (e_mix(wins, harms), e_point(wins, harms, 0.75), e_point(wins, harms, 0.9))
    assert found == pytest.approx((mixed, three_quarters, nine_tenths), rel=1e-5)


@pytest.mark.parametrize(("alpha", "chance"), [(0.05, 0.03416), (0.025, 0.01669), (0.01, 0.0072)])
def test_an_e_value_rarely_ever_crosses_without_a_gain(alpha: float, chance: float) -> None:
    assert chance_to_cross(alpha, 400) == pytest.approx(chance, abs=1e-5)


@pytest.mark.parametrize(
    ("alpha", "needed"),
    [
        (0.05, [7, 10, 12, 14, 16, 18, 20, 22, 24]),
        (0.025, [8, 11, 14, 16, 18, 20, 22, 24, 26]),
        (0.005, [11, 14, 17, 19, 21, 24, 26, 28, 30]),
    ],
)
def test_wins_needed_by_harms_are_those_of_the_reference(alpha: float, needed: list[int]) -> None:
    assert [wins_needed(alpha, harms) for harms in range(9)] == needed


@given(st.integers(0, 12), st.integers(0, 12))
def test_the_mixed_e_value_is_the_mean_over_bets(wins: int, harms: int) -> None:
    shares = (np.arange(20_000) + 0.5) / 40_000 + 0.5
    bets = (2 * shares) ** wins * (2 * (1 - shares)) ** harms
    assert e_mix(wins, harms) == pytest.approx(float(bets.mean()), rel=1e-6)


@given(st.integers(0, 30), st.integers(0, 30))
def test_a_bet_is_fair_or_worse_under_no_gain(wins: int, harms: int) -> None:
    ahead = (e_mix(wins + 1, harms) + e_mix(wins, harms + 1)) / 2
    assert ahead == pytest.approx(e_mix(wins, harms))


@pytest.mark.parametrize("share", [0.5, 0.8])
def test_the_anytime_interval_ever_misses_the_share_in_at_most_alpha(share: float) -> None:
    missed, unstopped = 0.0, {0: 1.0}  # probability by number of wins
    for differing in range(1, 61):
        moved: dict[int, float] = {}
        for wins, mass in unstopped.items():
            moved[wins + 1] = moved.get(wins + 1, 0.0) + mass * share
            moved[wins] = moved.get(wins, 0.0) + mass * (1 - share)
        for wins in list(moved):
            low, high = win_share_anytime(wins, differing - wins, 0.2)
            if not low <= share <= high:
                missed += moved.pop(wins)
        unstopped = moved
    assert 0.01 < missed <= 0.2


def test_an_interval_for_all_times_is_wider_than_one_for_one_time() -> None:
    low, high = win_share_anytime(12, 3)
    exact = win_share(12, 3)
    assert low < exact[0] < 0.8 < exact[1] < high
    assert win_share_anytime(0, 0) == (0.0, 1.0)
    assert win_share_anytime(5, 0)[1] == 1.0


def test_59_pairs_without_a_difference_show_no_harm_at_any_time() -> None:
    assert e_no_harm([0] * 58, 0.05) == pytest.approx(19.6, abs=0.05)
    assert e_no_harm([0] * 59, 0.05) == pytest.approx(20.6, abs=0.05)
    assert e_no_harm([0] * 59 + [-1], 0.05) == pytest.approx(0.0, abs=1e-12)
    with pytest.raises(ValueError, match="a bet is from 0"):
        e_no_harm([0], 0.05, bet=2.0)


def test_walds_test_gives_the_reference_values() -> None:
    test = wald(0.75, 0.025, 0.1)
    assert (test.win, test.harm) == pytest.approx((0.40547, -0.69315), abs=1e-5)
    assert (test.promote, test.futile) == pytest.approx((3.68888, -2.30259), abs=1e-5)
    assert test.straight_wins == 10
