"""The decision on branches: exact, on distinct runs, and quiet where there is nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, fisher_exact

from zetta.runtime.errors import ConfigError
from zetta.runtime.records import from_json, to_json
from zetta.skills.evolve.branch_support import Support, stratified_test, supports
from zetta.skills.evolve.branches import FRESH_SAMPLE, UNCHANGED, Change, Continuation

FIX = Change("recovery", "regrasp")


def runs(
    change: Change, ends: Sequence[bool | None], snapshot: str = "s", alike: bool = False
) -> list[Continuation]:
    """Return one continuation for each end; `alike` ones all have the same trace."""
    drove = 20 if change is FIX else 0
    return [
        Continuation(
            snapshot, 10, change, seed, end, 50, drove,
            "" if end is None else f"{change.kind}{0 if alike else seed}",
            "Timeout: late" if end is None else "",
        )
        for seed, end in enumerate(ends)
    ]  # fmt: skip


def branches(
    unchanged: int, fresh: int, fixed: int, of: int = 8, snapshot: str = "s"
) -> list[Continuation]:
    def ends(successes: int) -> list[bool | None]:
        return [k < successes for k in range(of)]

    return [
        *runs(UNCHANGED, ends(unchanged), snapshot),
        *runs(FRESH_SAMPLE, ends(fresh), snapshot),
        *runs(FIX, ends(fixed), snapshot),
    ]


# --------------------------------------------------------------------------- the test


@given(
    st.tuples(st.integers(0, 9), st.integers(0, 9)), st.tuples(st.integers(0, 9), st.integers(0, 9))
)
def test_one_stratum_gives_fishers_test(control: tuple[int, int], treated: tuple[int, int]) -> None:
    (c, lost_c), (t, lost_t) = control, treated
    if min(c + lost_c, t + lost_t) == 0:
        return
    expected = fisher_exact([[t, lost_t], [c, lost_c]], alternative="greater").pvalue
    assert stratified_test([((c, c + lost_c), (t, t + lost_t))]).p == pytest.approx(expected)


def test_strata_of_one_against_one_give_the_sign_test() -> None:
    wins, harms, ties = [((0, 1), (1, 1))] * 7, [((1, 1), (0, 1))], [((1, 1), (1, 1))] * 3
    assert stratified_test([*wins, *harms, *ties]).p == pytest.approx(9 / 256)


def test_strata_are_convolved_and_not_pooled() -> None:
    # Pooled these are 8 of 10 against 2 of 10; snapshot by snapshot nothing differs.
    simpson = [((0, 8), (0, 2)), ((2, 2), (8, 8))]
    assert stratified_test(simpson).p == 1.0
    pooled = fisher_exact([[8, 2], [2, 8]], alternative="greater").pvalue
    assert pooled < 0.05


def test_the_p_is_that_of_sharing_out_the_successes_blindly() -> None:
    strata = [((1, 3), (3, 3)), ((0, 2), (2, 4))]
    rng = np.random.default_rng(0)
    reached = 0
    for _ in range(20_000):
        total = 0
        for (c, n_c), (t, n_t) in strata:
            ends = np.array([1] * (c + t) + [0] * (n_c + n_t - c - t))
            total += int(rng.permutation(ends)[:n_t].sum())
        reached += total >= 5
    assert stratified_test(strata).p == pytest.approx(reached / 20_000, abs=0.01)


def test_the_size_is_the_largest_tail_below_alpha() -> None:
    test = stratified_test([((0, 8), (5, 8))])
    tails = [stratified_test([((5 - k, 8), (k, 8))]).p for k in range(6)]
    assert test.size == pytest.approx(max(p for p in tails if p <= 0.05))
    assert stratified_test([((0, 1), (1, 1))]).size == 0.0


def test_a_snapshot_with_one_arm_says_nothing() -> None:
    whole = [((0, 4), (4, 4))]
    assert stratified_test([*whole, ((0, 0), (5, 5)), ((3, 3), (0, 0))]) == stratified_test(whole)
    assert stratified_test([]).p == stratified_test([]).smallest == 1.0


def test_impossible_counts_are_refused() -> None:
    with pytest.raises(ConfigError, match="from 0 to the number of runs"):
        stratified_test([((3, 2), (0, 1))])


def test_the_rule_keeps_its_risk_when_a_recovery_does_nothing() -> None:
    """Every way in which 3 + 3 + 3 exchangeable runs of each of two snapshots can end."""
    rate, n = 0.3, 3
    by_count = [float(binom.pmf(k, n, rate)) for k in range(n + 1)]
    pairs = list(product(range(n + 1), repeat=2))
    p = {
        (a, b): stratified_test([((x, n), (y, n)) for x, y in zip(a, b, strict=True)]).p
        for a, b in product(pairs, repeat=2)
    }
    chance = {pair: by_count[pair[0]] * by_count[pair[1]] for pair in pairs}
    risk = sum(
        chance[unchanged] * chance[fresh] * chance[fixed]
        for unchanged, fresh, fixed in product(pairs, repeat=3)
        if max(p[unchanged, fixed], p[fresh, fixed]) <= 0.05
    )
    assert 0.0 < risk <= 0.05


# --------------------------------------------------------------------------- the decision


def test_a_recovery_that_beats_both_is_supported() -> None:
    said = supports(branches(0, 1, 8))
    assert said.finding == "supported"
    assert said.skill == "regrasp"
    assert said.against_fresh.p == pytest.approx(0.000699, abs=1e-6)
    assert [(s.kind, s.successes, s.runs) for s in said.scores] == [
        ("unchanged", 0, 8), ("fresh sample", 1, 8), ("recovery", 8, 8),
    ]  # fmt: skip
    assert said.scores[2].interval[0] == pytest.approx(0.6306, abs=1e-4)


def test_a_recovery_that_only_beats_the_policys_bad_luck_is_not_supported() -> None:
    said = supports(branches(0, 7, 8))
    assert said.against_unchanged.p < 0.001
    assert (said.finding, said.null.p < 0.01) == ("not supported", True)
    assert said.reason.startswith("no better than a fresh sample (p = 0.5")


def test_a_recovery_that_changes_nothing_is_not_supported() -> None:
    assert supports(branches(0, 0, 0)).finding == "not supported"


def test_equal_traces_count_once_and_are_no_evidence() -> None:
    alike = [
        *runs(UNCHANGED, [False] * 8, alike=True),
        *runs(FRESH_SAMPLE, [False] * 8, alike=True),
        *runs(FIX, [True] * 8, alike=True),
    ]
    said = supports(alike)
    assert said.finding == "undecided"
    assert "add snapshots of other episodes" in said.reason
    assert [(s.runs, s.repeats) for s in said.scores] == [(1, 7)] * 3


def test_deterministic_branches_of_five_episodes_are_evidence() -> None:
    many = [
        run
        for k in range(5)
        for change, end in ((UNCHANGED, False), (FRESH_SAMPLE, False), (FIX, True))
        for run in runs(change, [end] * 3, f"s{k}", alike=True)
    ]
    assert supports(many).finding == "supported"
    assert supports(many).against_fresh.p == pytest.approx(1 / 32)
    assert supports([run for run in many if run.snapshot != "s0"]).finding == "undecided"


def test_errors_of_the_machinery_are_no_scores() -> None:
    one = [*branches(0, 0, 8)[:-1], *runs(FIX, [None])]
    one = [replace(run, seed=k) for k, run in enumerate(one)]
    said = supports(one)
    assert said.finding == "supported"
    assert (said.scores[2].runs, said.scores[2].errors) == (7, 1)


def test_uneven_errors_leave_it_undecided() -> None:
    kept = branches(0, 0, 0, of=8)[:16] + runs(FIX, [True] * 2 + [None] * 6)
    said = supports(kept)
    assert said.finding == "undecided"
    assert "unevenly" in said.reason


def test_a_recovery_that_never_drove_is_undecided() -> None:
    idle = [replace(run, recovery_ticks=0) for run in branches(0, 0, 8)]
    assert supports(idle).reason.startswith("the recovery never drove")


def test_what_does_not_belong_together_is_refused() -> None:
    with pytest.raises(ConfigError, match="recoveries none"):
        supports(runs(UNCHANGED, [False]))
    other = runs(Change("recovery", "reseat"), [True])
    with pytest.raises(ConfigError, match="regrasp, reseat"):
        supports([*branches(0, 0, 8), *other])
    with pytest.raises(ConfigError, match="given twice"):
        supports(branches(0, 0, 8) * 2)


def test_a_decision_is_one_json_record() -> None:
    said = supports(branches(1, 2, 8))
    assert from_json(Support, to_json(said)).reason == said.reason
