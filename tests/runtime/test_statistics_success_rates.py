"""The reference values were computed with scipy and statsmodels; see the module's sources."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zetta.runtime.success_rates import (
    EXACT_SIGN_FLIPS,
    clopper_pearson,
    lower_bound,
    macro_average,
    mcnemar,
    newcombe_paired,
    sign_flip,
    upper_bound,
    wilson,
)

WILSON = [
    (0, 10, 0, 0.2775),
    (0, 20, 0, 0.1611),
    (0, 50, 0, 0.0713),
    (0, 59, 0, 0.0611),
    (1, 20, 0.0089, 0.2361),
    (3, 20, 0.0524, 0.3604),
    (19, 20, 0.7639, 0.9911),
    (20, 20, 0.8389, 1),
    (10, 20, 0.2993, 0.7007),
    (9, 10, 0.5958, 0.9821),
    (32, 100, 0.2367, 0.4166),
    (71, 100, 0.6146, 0.7899),
    (368, 500, 0.6957, 0.7727),
]
EXACT = [
    (0, 10, 0, 0.3085, 0.2589, 0),
    (0, 20, 0, 0.1684, 0.1391, 0),
    (0, 50, 0, 0.0711, 0.0582, 0),
    (0, 59, 0, 0.0606, 0.0495, 0),
    (1, 20, 0.0013, 0.2487, 0.2161, 0.0026),
    (3, 20, 0.0321, 0.3789, 0.3437, 0.0422),
    (19, 20, 0.7513, 0.9987, 0.9974, 0.7839),
    (20, 20, 0.8316, 1, 1, 0.8609),
    (10, 20, 0.2720, 0.7280, 0.6980, 0.3020),
    (9, 10, 0.5550, 0.9975, 0.9949, 0.6058),
    (32, 100, 0.2302, 0.4208, 0.4051, 0.2431),
    (71, 100, 0.6107, 0.7964, 0.7841, 0.6263),
    (368, 500, 0.6950, 0.7741, 0.7683, 0.7016),
]
MCNEMAR = [
    (0, 0, 1, 1, 0.5),
    (1, 0, 0.5, 1, 0.25),
    (3, 0, 0.125, 0.25, 0.0625),
    (5, 0, 0.03125, 0.0625, 0.015625),
    (6, 0, 0.015625, 0.03125, 0.0078125),
    (7, 0, 0.0078125, 0.015625, 0.00390625),
    (5, 1, 0.109375, 0.21875, 0.0625),
    (7, 1, 0.0351562, 0.0703125, 0.0195313),
    (8, 1, 0.0195312, 0.0390625, 0.0107422),
    (8, 2, 0.0546875, 0.109375, 0.0327148),
    (9, 1, 0.0107422, 0.0214844, 0.00585937),
    (10, 2, 0.0192871, 0.0385742, 0.0112305),
    (12, 3, 0.0175781, 0.0351562, 0.0106354),
    (15, 5, 0.0206947, 0.0413895, 0.0133018),
    (20, 8, 0.0178491, 0.0356981, 0.0120598),
    (40, 20, 0.00674465, 0.0134893, 0.00492672),
    (3, 3, 0.65625, 1, 0.5),
    (2, 5, 0.9375, 0.453125, 0.855469),
]
NEWCOMBE = [
    ((15, 21, 1, 13), 0.40, 0.23567, 0.53032),
    ((30, 12, 3, 5), 0.18, 0.02802, 0.32385),
    ((40, 8, 2, 0), 0.12, -0.00693, 0.25094),
    ((0, 16, 0, 4), 0.80, 0.53051, 0.91934),
]
counts = st.integers(0, 60)


@pytest.mark.parametrize(("successes", "n", "low", "high"), WILSON)
def test_wilson_gives_the_reference_interval(
    successes: int, n: int, low: float, high: float
) -> None:
    assert wilson(successes, n) == pytest.approx((low, high), abs=6e-5)


@pytest.mark.parametrize(("successes", "n", "low", "high", "upper", "lower"), EXACT)
def test_exact_bounds_are_those_of_the_reference_table(
    successes: int, n: int, low: float, high: float, upper: float, lower: float
) -> None:
    assert clopper_pearson(successes, n) == pytest.approx((low, high), abs=6e-5)
    assert upper_bound(successes, n) == pytest.approx(upper, abs=6e-5)
    assert lower_bound(successes, n) == pytest.approx(lower, abs=6e-5)


@pytest.mark.parametrize(("wins", "harms", "one", "two", "mid"), MCNEMAR)
def test_mcnemar_gives_the_reference_p_values(
    wins: int, harms: int, one: float, two: float, mid: float
) -> None:
    test = mcnemar(wins, harms)
    found = (test.p_one_sided, test.p_two_sided, test.p_mid)
    assert found == pytest.approx((one, two, mid), rel=1e-4)


@pytest.mark.parametrize(("table", "difference", "low", "high"), NEWCOMBE)
def test_newcombe_gives_the_reference_interval(
    table: tuple[int, int, int, int], difference: float, low: float, high: float
) -> None:
    found, interval = newcombe_paired(*table)
    assert found == pytest.approx(difference)
    assert interval == pytest.approx((low, high), abs=2e-5)


def test_sign_flip_gives_the_reference_p_value() -> None:
    assert sign_flip([2, 1, 0, 1, 3, -1, 2, 0, 1, 2]) == 0.01953125


def test_sign_flip_takes_shares_as_exactly_as_counts() -> None:
    assert sign_flip([0.1, 0.2, -0.3, 0.3]) == sign_flip([1, 2, -3, 3])


@given(counts, counts)
def test_mcnemar_is_symmetric_in_two_sided_p_and_monotone_in_wins(wins: int, harms: int) -> None:
    assert mcnemar(wins, harms).p_two_sided == pytest.approx(mcnemar(harms, wins).p_two_sided)
    assert mcnemar(wins + 1, harms).p_one_sided <= mcnemar(wins, harms).p_one_sided + 1e-12


@given(st.integers(1, 200).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_holds_the_rate_and_stays_inside_zero_and_one(case: tuple[int, int]) -> None:
    low, high = wilson(*case)
    assert 0 <= low <= case[0] / case[1] <= high <= 1


@given(counts, counts, counts, st.integers(1, 60))
def test_newcombe_turns_its_sign_when_the_arms_are_exchanged(
    both: int, wins: int, harms: int, neither: int
) -> None:
    forward = newcombe_paired(both, wins, harms, neither)
    backward = newcombe_paired(both, harms, wins, neither)
    assert forward[0] == pytest.approx(-backward[0])
    assert forward[1] == pytest.approx((-backward[1][1], -backward[1][0]))


@given(st.lists(st.integers(-1, 1), max_size=EXACT_SIGN_FLIPS))
def test_sign_flip_of_single_pairs_is_the_exact_sign_test(differences: list[int]) -> None:
    wins, harms = differences.count(1), differences.count(-1)
    assert sign_flip(differences) == pytest.approx(mcnemar(wins, harms).p_one_sided)


def test_drawn_sign_flips_agree_with_the_exact_test() -> None:
    drawn = sign_flip([1] * 15 + [-1] * 5)
    assert drawn == pytest.approx(mcnemar(15, 5).p_one_sided, abs=2e-3)


def test_bootstrap_over_tasks_repeats_for_a_seed_and_agrees_with_scipy() -> None:
    from scipy.stats import bootstrap

    rates = [1.0, 0.9, 0.2, 0.0, 0.7, 0.7, 0.4, 1.0, 0.1, 0.5]
    ours = macro_average(rates, seed=3)
    theirs = bootstrap(
        (rates,), np.mean, method="percentile", rng=np.random.default_rng(5)
    ).confidence_interval
    assert ours == macro_average(rates, seed=3)
    assert ours.interval == pytest.approx((theirs.low, theirs.high), abs=0.02)


def test_one_task_has_no_interval_over_tasks() -> None:
    assert macro_average([0.4]).interval is None


@pytest.mark.parametrize(("successes", "n"), [(3, 2), (-1, 4)])
def test_impossible_counts_are_refused(successes: int, n: int) -> None:
    with pytest.raises(ValueError, match="successes"):
        wilson(successes, n)
