"""Reference values computed with scipy 1.17, by other routes than the code where there are any."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from zetta.skills.evolve.significance import (
    harm_bound,
    infrastructure_imbalance,
    probability_better,
    probability_wins_outnumber,
    safety_excess,
    tango,
    tango_interval,
    unpaired,
    win_share,
)

TANGO = [
    (0, 0, 50, 0.05, 1.6222, 0.05238),
    (0, 0, 100, 0.05, 2.2942, 0.01089),
    (3, 3, 100, 0.05, 1.7200, 0.04272),
    (5, 2, 100, 0.05, 2.4994, 0.00622),
    (2, 4, 100, 0.05, 1.0900, 0.13786),
    (1, 1, 50, 0.10, 2.1320, 0.01650),
    (2, 5, 200, 0.05, 2.0225, 0.02156),
    (8, 8, 200, 0.05, 2.2366, 0.01266),
]
UNPAIRED = [
    ((25, 50), (29, 50), 0.27373, 0.23375, 0.26547),
    ((16, 50), (36, 50), 5.949e-5, 3.528e-5, 3.528e-5),
    ((10, 20), (15, 20), 0.095396, 0.05872, 0.058734),
    ((15, 20), (19, 20), 0.090882, 0.052359, 0.053294),
    ((3, 20), (19, 20), 2.03e-7, 6.0e-8, 4.3e-8),
]


@pytest.mark.parametrize(("wins", "harms", "pairs", "margin", "z", "p"), TANGO)
def test_tango_gives_the_reference_values(
    wins: int, harms: int, pairs: int, margin: float, z: float, p: float
) -> None:
    test = tango(wins, harms, pairs, margin)
    assert test.z == pytest.approx(z, abs=1e-4)
    assert test.p == pytest.approx(p, abs=1e-5)


@pytest.mark.parametrize(("wins", "harms", "pairs", "margin"), [row[:4] for row in TANGO[2:]])
def test_the_closed_form_of_tango_is_the_maximum_of_the_likelihood(
    wins: int, harms: int, pairs: int, margin: float
) -> None:
    def loss(harmed: float) -> float:
        won = harmed - margin
        same = 1 - won - harmed
        return -float(
            wins * np.log(won) + harms * np.log(harmed) + (pairs - wins - harms) * np.log(same)
        )

    found = minimize_scalar(
        loss,
        bounds=(margin + 1e-12, (1 + margin) / 2 - 1e-12),
        method="bounded",
        options={"xatol": 1e-12},
    ).x
    variance = pairs * (2 * found - margin * (1 + margin))
    z = (wins - harms + pairs * margin) / np.sqrt(variance)
    assert tango(wins, harms, pairs, margin).z == pytest.approx(z, abs=1e-4)


@given(st.integers(0, 30), st.integers(0, 30), st.integers(1, 60))
def test_the_tango_interval_holds_the_estimate_and_turns_with_the_arms(
    wins: int, harms: int, same: int
) -> None:
    pairs = wins + harms + same
    low, high = tango_interval(wins, harms, pairs)
    assert -1 <= low <= (wins - harms) / pairs + 1e-9 <= high + 2e-9 <= 1 + 2e-9
    assert tango_interval(harms, wins, pairs) == pytest.approx((-high, -low), abs=1e-9)


def test_the_tango_interval_ends_where_the_test_begins_to_reject() -> None:
    low, _ = tango_interval(2, 4, 100, confidence=0.90)
    assert tango(2, 4, 100, -low).p == pytest.approx(0.05, abs=1e-6)


@given(st.integers(0, 40), st.integers(0, 40), st.integers(1, 80))
def test_non_inferiority_grows_with_wins_and_falls_with_harms(
    wins: int, harms: int, same: int
) -> None:
    pairs = wins + harms + same
    z = tango(wins, harms, pairs, 0.05).z
    assert tango(wins + 1, harms, pairs, 0.05).z > z
    assert tango(wins, harms + 1, pairs, 0.05).z < z


def test_tango_refuses_a_margin_that_is_none() -> None:
    with pytest.raises(ValueError, match="share between 0 and 1"):
        tango(1, 1, 10, 0.0)


@pytest.mark.parametrize(("first", "second", "fisher", "boschloo", "barnard"), UNPAIRED)
def test_unpaired_tests_give_the_reference_values(
    first: tuple[int, int],
    second: tuple[int, int],
    fisher: float,
    boschloo: float,
    barnard: float,
) -> None:
    test = unpaired(first, second)
    found = (test.fisher, test.boschloo, test.barnard)
    assert found == pytest.approx((fisher, boschloo, barnard), rel=1e-2, abs=1e-5)
    if fisher > 1e-3:
        assert found == pytest.approx((fisher, boschloo, barnard), abs=1e-4)


@pytest.mark.parametrize(
    ("first", "second", "probability"),
    [
        ((16, 50), (36, 50), 0.999970),
        ((25, 50), (29, 50), 0.786481),
        ((15, 20), (19, 20), 0.953451),
    ],
)
def test_posterior_of_two_rates_gives_the_reference_values(
    first: tuple[int, int], second: tuple[int, int], probability: float
) -> None:
    assert probability_better(first, second) == pytest.approx(probability, abs=1e-6)


@pytest.mark.parametrize(
    ("wins", "harms", "probability"),
    [(7, 1, 0.986627), (8, 2, 0.973963), (5, 0, 0.993128), (20, 8, 0.989206)],
)
def test_posterior_of_pairs_gives_the_reference_values(
    wins: int, harms: int, probability: float
) -> None:
    assert probability_wins_outnumber(wins, harms) == pytest.approx(probability, abs=1e-6)


@pytest.mark.parametrize(
    ("wins", "harms", "low", "high"),
    [(21, 1, 0.77156, 0.99885), (12, 3, 0.51911, 0.95669), (8, 2, 0.44390, 0.97479)],
)
def test_the_share_of_wins_gives_the_reference_interval(
    wins: int, harms: int, low: float, high: float
) -> None:
    assert win_share(wins, harms) == pytest.approx((low, high), abs=1e-5)


def test_the_harm_bound_falls_with_pairs_and_rises_with_harms() -> None:
    assert harm_bound(0, 59) < harm_bound(1, 59)
    assert harm_bound(1, 93) <= 0.0500 < harm_bound(1, 92)


def test_errors_of_machinery_in_one_arm_alone_are_an_imbalance() -> None:
    assert infrastructure_imbalance(0, 0, 31) == 1.0
    assert infrastructure_imbalance(0, 8, 31) < 0.05 < infrastructure_imbalance(3, 4, 31)


def test_safety_events_are_counted_against_those_of_the_baseline() -> None:
    assert safety_excess(0, 5) == pytest.approx(1 / 32)
    assert safety_excess(4, 5) == pytest.approx(0.5)
