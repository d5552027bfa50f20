"""Power, families of tests and pass^k: reference values and exact properties."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zetta.runtime.success_rates import mcnemar
from zetta.skills.evolve.multiplicity import (
    Correction,
    adjust,
    alpha_of_opening,
    chance_of_more,
    e_bh,
    e_lond,
    ladder_step,
    reused_block,
    straight_wins,
)
from zetta.skills.evolve.power import (
    gain_distribution,
    harm_pairs_needed,
    most_harms,
    no_harm_power,
    noise_floor,
    pairs_needed,
    saving,
    sequential_pairs_needed,
    sign_test_power,
    steps_without_a_miss,
)
from zetta.skills.evolve.reliability import (
    Repetitions,
    mean_pass_power,
    pass_power,
    pass_power_kept,
)
from zetta.skills.evolve.sequential import best_boundary, operate, sign_boundary

# Baseline, candidate, harm rate; pairs at alpha/power .05/.8 .025/.8 .025/.9 .005/.9; power at
# alpha .025 with 10, 20, 50, 100, 200 pairs.
NEEDED = [
    (0.32, 0.711, 0.0, (16, 19, 22, 28), (0.152, 0.857, 1, 1, 1)),
    (0.32, 0.711, 0.02, (18, 21, 26, 35), (0.165, 0.773, 0.999, 1, 1)),
    (0.32, 0.711, 0.05, (21, 25, 31, 43), (0.179, 0.675, 0.991, 1, 1)),
    (0.32, 0.711, 0.32 * 0.289, (25, 30, 39, 53), (0.186, 0.570, 0.965, 1, 1)),
    (0.15, 0.95, 0.0, (7, 9, 9, 12), (0.967, 1, 1, 1, 1)),
    (0.15, 0.95, 0.02, (8, 9, 11, 15), (0.898, 0.999, 1, 1, 1)),
    (0.7356, 0.9356, 0.0, (33, 39, 45, 57), (0.006, 0.196, 0.952, 1, 1)),
    (0.7356, 0.9356, 0.02, (40, 47, 59, 81), (0.009, 0.201, 0.835, 0.994, 1)),
    (0.7356, 0.9356, 0.05, (50, 61, 78, 107), (0.015, 0.196, 0.699, 0.961, 1)),
    (0.70, 0.80, 0.0, (66, 78, 91, 116), (0, 0.011, 0.384, 0.942, 1)),
    (0.70, 0.80, 0.02, (94, 114, 144, 199), (0, 0.019, 0.317, 0.734, 0.974)),
    (0.70, 0.80, 0.05, (134, 168, 215, 297), (0.001, 0.032, 0.241, 0.544, 0.875)),
    (0.70, 0.80, 0.14, (251, 313, 412, 575), (0.008, 0.049, 0.149, 0.310, 0.593)),
    (0.75, 0.80, 0.0, (134, 157, 184, 234), (0, 0, 0.038, 0.384, 0.938)),
    (0.75, 0.80, 0.02, (240, 303, 390, 530), (0, 0.001, 0.061, 0.262, 0.597)),
    (0.75, 0.80, 0.05, (398, 498, 652, 909), (0, 0.005, 0.069, 0.178, 0.373)),
    (0.75, 0.80, 0.15, (901, 1133, 1503, 2111), (0.003, 0.021, 0.056, 0.098, 0.189)),
    (0.90, 0.92, 0.0, (335, 394, 462, 587), (0, 0, 0, 0.015, 0.213)),
    (0.90, 0.92, 0.02, (996, 1244, 1631, 2274), (0, 0, 0.006, 0.045, 0.134)),
]
PASS_POWERS = [
    (20, 19, 5, 0.75, 0.773781, 0.295996),
    (20, 18, 5, 0.552632, 0.590490, 0.189999),
    (20, 15, 5, 0.193692, 0.237305, 0.047826),
    (10, 9, 3, 0.7, 0.729, 0.222365),
    (10, 5, 3, 0.083333, 0.125, 0.011006),
    (10, 2, 3, 0.0, 0.008, 5e-5),
    (20, 20, 20, 1.0, 1.0, 0.05),
]
P_VALUES = (0.001, 0.008, 0.0195, 0.0352, 0.0625, 0.11, 0.25, 0.5, 0.66, 0.94)


@pytest.mark.parametrize(("baseline", "candidate", "harm", "pairs", "powers"), NEEDED)
def test_pairs_and_power_are_those_of_the_reference_table(
    baseline: float,
    candidate: float,
    harm: float,
    pairs: tuple[int, ...],
    powers: tuple[float, ...],
) -> None:
    win = candidate - baseline + harm
    levels = ((0.05, 0.8), (0.025, 0.8), (0.025, 0.9), (0.005, 0.9))
    assert tuple(pairs_needed(win, harm, alpha, power) for alpha, power in levels) == pairs
    found = [sign_test_power(n, win, harm, 0.025) for n in (10, 20, 50, 100, 200)]
    assert found == pytest.approx(powers, abs=6e-4)


@pytest.mark.parametrize(
    ("pairs", "win", "harm", "power"),
    [
        (20, 0.411, 0.02, 0.773152),
        (100, 0.08, 0.03, 0.223206),
        (50, 0.25, 0.05, 0.699305),
    ],
)
def test_power_gives_the_reference_values(
    pairs: int, win: float, harm: float, power: float
) -> None:
    assert sign_test_power(pairs, win, harm, 0.025) == pytest.approx(power, abs=1e-6)


def test_power_is_the_sum_over_every_sequence_of_outcomes() -> None:
    total = 0.0
    for sequence in itertools.product((1, -1, 0), repeat=8):
        wins, harms = sequence.count(1), sequence.count(-1)
        chance = 0.4**wins * 0.1**harms * 0.5 ** (8 - wins - harms)
        # 1/32 is reached exactly by five straight wins, where rounding must not decide.
        total += chance * (mcnemar(wins, harms).p_one_sided <= 1 / 32)
    assert sign_test_power(8, 0.4, 0.1, 1 / 32) == pytest.approx(total)


def test_no_gain_is_never_found_and_a_tiny_one_is_refused() -> None:
    with pytest.raises(ValueError, match="no gain to find"):
        pairs_needed(0.1, 0.1, 0.025, 0.8)


@pytest.mark.parametrize("candidate", [0.71, 0.711])
def test_stopping_early_saves_two_fifths_of_the_rollouts_of_an_equally_powerful_test(
    candidate: float,
) -> None:
    win, harm, alpha = candidate - 0.32 + 0.02, 0.02, alpha_of_opening(1, 0.05)
    saved = saving(best_boundary(alpha, win, harm, 31), win, harm, 31)
    assert saved.share >= 0.40
    assert saved.power >= 0.95
    # The fixed test it is compared with is the smallest that is as powerful.
    assert sign_test_power(saved.fixed_pairs, win, harm, alpha) >= saved.power
    assert sign_test_power(saved.fixed_pairs - 1, win, harm, alpha) < saved.power


def test_the_cap_that_a_sequential_test_needs_is_the_least() -> None:
    cap = sequential_pairs_needed(0.411, 0.02, 0.0076, 0.8)
    best = [best_boundary(0.0076, 0.411, 0.02, pairs) for pairs in (cap - 1, cap)]
    assert operate(best[0], 0.411, 0.02, cap - 1).power < 0.8
    assert operate(best[1], 0.411, 0.02, cap).power >= 0.8


@pytest.mark.parametrize(
    ("discordance", "floors"),
    [
        (0.02, (5, 4, 2, 1.5)),
        (0.05, (10, 6, 4, 2.5)),
        (0.10, (10, 8, 5, 3.5)),
        (0.20, (15, 10, 7, 5)),
    ],
)
def test_the_noise_floor_is_that_of_the_reference(
    discordance: float, floors: tuple[float, ...]
) -> None:
    found = [100 * noise_floor(discordance, pairs) for pairs in (20, 50, 100, 200)]
    assert found == pytest.approx(floors)


@given(st.integers(1, 80), st.floats(0, 0.5), st.floats(0, 0.5))
@settings(max_examples=30)
def test_the_law_of_the_gain_is_a_law_with_the_right_mean(
    pairs: int, win: float, harm: float
) -> None:
    gains, masses = gain_distribution(pairs, win, harm)
    assert masses.sum() == pytest.approx(1.0)
    assert float((gains * masses).sum()) == pytest.approx(pairs * (win - harm), abs=1e-9)


@pytest.mark.parametrize(
    ("margin", "needed"),
    [
        (0.01, [299, 473, 628, 773]),
        (0.02, [149, 236, 313, 386]),
        (0.05, [59, 93, 124, 153]),
        (0.10, [29, 46, 61, 76]),
        (0.20, [14, 22, 30, 37]),
    ],
)
def test_pairs_without_harm_are_those_of_the_reference(margin: float, needed: list[int]) -> None:
    assert [harm_pairs_needed(margin, harms) for harms in range(4)] == needed


@pytest.mark.parametrize(
    ("pairs", "allowed", "passes"),
    [
        (59, 0, (1.0, 0.744, 0.553, 0.304, 0.048)),
        (153, 3, (1.0, 0.992, 0.931, 0.634, 0.049)),
        (300, 8, (1.0, 1.0, 0.996, 0.849, 0.034)),
    ],
)
def test_the_chance_to_pass_the_harm_bound_is_that_of_the_reference(
    pairs: int, allowed: int, passes: tuple[float, ...]
) -> None:
    assert most_harms(0.05, pairs) == allowed
    found = [no_harm_power(0.05, pairs, rate) for rate in (0, 0.005, 0.01, 0.02, 0.05)]
    assert found == pytest.approx(passes, abs=6e-4)


def test_a_miss_rate_of_one_in_a_thousand_needs_2995_steps() -> None:
    assert steps_without_a_miss(1e-3) == 2995


def test_the_risk_of_an_opening_is_that_of_the_reference() -> None:
    spent = [alpha_of_opening(opening, 0.05) for opening in range(1, 11)]
    first, later = (0.030396, 0.007599, 0.003377, 0.0019, 0.001216), spent[5:]
    assert spent[:5] == pytest.approx(first, abs=1e-6)
    assert later == pytest.approx((0.000844, 0.00062, 0.000475, 0.000375, 0.000304), abs=1e-6)
    wins = {opening: straight_wins(alpha_of_opening(opening, 0.05)) for opening in (1, 2, 3, 5)}
    assert wins == {1: 6, 2: 8, 3: 9, 5: 10}
    assert straight_wins(alpha_of_opening(10, 0.05)) == 12
    assert straight_wins(alpha_of_opening(20, 0.05)) == 14


def test_all_openings_together_risk_no_more_than_alpha() -> None:
    assert sum(alpha_of_opening(opening, 0.05) for opening in range(1, 100_000)) < 0.05
    even = [alpha_of_opening(opening, 0.05, "even", 6) for opening in range(1, 20)]
    assert sum(even) == pytest.approx(0.05)
    assert even[6:] == [0.0] * 13


def test_e_lond_gives_the_reference_thresholds_and_rejections() -> None:
    found = e_lond((2.0, 61.2, 1.1, 400.0, 18.1, 9000.0), 0.10)
    assert found.thresholds == pytest.approx(
        (16.45, 65.80, 148.04, 263.19, 205.62, 296.09), abs=0.006
    )
    assert found.rejected == (4, 6)


@pytest.mark.parametrize(
    ("correction", "rejections"), [("bh", 2), ("by", 1), ("holm", 1), ("bonferroni", 1)]
)
def test_corrections_reject_as_many_as_the_reference(
    correction: Correction, rejections: int
) -> None:
    assert sum(adjust(P_VALUES, 0.05, correction).rejected) == rejections


def test_benjamini_hochberg_gives_the_reference_p_values() -> None:
    assert adjust(P_VALUES, 0.05).p_values == pytest.approx(
        (0.01, 0.04, 0.065, 0.088, 0.125, 0.18333, 0.35714, 0.625, 0.73333, 0.94), abs=1e-5
    )
    assert adjust((), 0.05).rejected == ()


def test_e_bh_rejects_the_largest_that_are_large_enough() -> None:
    e_values = (1.5, 80, 31.875, 22.04, 10.5, 6.2, 2.857, 1, 0.457, 0.2202)
    assert e_bh(e_values, 0.10) == ()
    assert e_bh((1.5, 100, 50.0, 34.0, *e_values[4:]), 0.10) == (1, 2, 3)


@pytest.mark.parametrize(
    ("candidates", "chance", "best"),
    [(1, 0.021, None), (5, 0.111, 7.2), (10, 0.215, 9.7), (20, 0.379, 11.8), (50, 0.685, 14.2)],
)
def test_a_block_that_is_used_again_flatters_as_in_the_simulated_reference(
    candidates: int, chance: float, best: float | None
) -> None:
    found = reused_block(candidates, 50, 0.2, 0.05)
    assert found.any_significant == pytest.approx(chance, abs=0.025)
    if best is not None:
        assert 100 * found.best_gain == pytest.approx(best, abs=0.3)


def test_the_ladder_is_too_coarse_for_robots() -> None:
    assert ladder_step(20, 50) == pytest.approx(0.52, abs=0.005)
    assert ladder_step(20, 10_000) == pytest.approx(0.11, abs=0.005)


def test_the_chance_of_more_promotions_is_the_tail_of_the_sum() -> None:
    alphas = [0.03, 0.0076] * 3
    tails = [0.0] * 8
    for hits in itertools.product((0, 1), repeat=6):
        mass = np.prod([a if hit else 1 - a for a, hit in zip(alphas, hits, strict=True)])
        for count in range(sum(hits) + 1):
            tails[count] += float(mass)
    assert [chance_of_more(k, alphas) for k in range(8)] == pytest.approx(tails)


@pytest.mark.parametrize(("runs", "successes", "k", "unbiased", "plug_in", "lower"), PASS_POWERS)
def test_pass_power_gives_the_reference_values(
    runs: int, successes: int, k: int, unbiased: float, plug_in: float, lower: float
) -> None:
    found = pass_power(runs, successes, k)
    assert found.unbiased == pytest.approx(unbiased, abs=1e-6)
    assert found.plug_in == pytest.approx(plug_in, abs=1e-6)
    assert found.lower == pytest.approx(lower, abs=2e-6)


@given(st.floats(0.05, 0.95), st.integers(1, 5))
@settings(max_examples=20)
def test_pass_power_is_unbiased(rate: float, k: int) -> None:
    from scipy.stats import binom

    masses = binom.pmf(range(9), 8, rate)
    mean = sum(float(m) * pass_power(8, c, k).unbiased for c, m in enumerate(masses))
    assert mean == pytest.approx(rate**k)


def test_the_mean_of_pass_power_has_an_interval_over_scenes() -> None:
    counts = [(10, c) for c in (10, 9, 10, 7, 8, 10, 9, 10)]
    mean, interval = mean_pass_power(counts, 3)
    assert interval is not None
    assert interval[0] < mean < interval[1]
    assert mean_pass_power(counts, 3) == (mean, interval)
    assert mean_pass_power([(8, 8)] * 6, 3) == (1.0, None)


def test_reliability_that_is_kept_passes_and_one_that_is_lost_does_not() -> None:
    kept = [Repetitions(f"s{i}", 8, 6, 6) for i in range(6)]
    lost = [Repetitions(f"s{i}", 8, 7, 5) for i in range(6)]
    assert pass_power_kept(kept, 3, 0.05) == (0.0, 1 / 64)
    difference, p = pass_power_kept(lost, 3, 0.05)
    assert difference < -0.05
    assert p == 1.0


def test_the_sequential_boundary_is_not_weaker_at_a_larger_effect() -> None:
    boundary = sign_boundary(0.025, 20)
    powers = [operate(boundary, win, 0.02, 31).power for win in (0.1, 0.2, 0.3, 0.4, 0.5)]
    assert powers == sorted(powers)
