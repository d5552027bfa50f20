"""The router: little regret, bounded harm, and nothing deployed that is not sure."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np
import pytest

from zetta.skills.evolve.router import (
    NOOP,
    Call,
    Credit,
    HarmLimits,
    Router,
    allowed,
    execution_rate,
    gain_bound,
    greedy,
    kl_index,
    kl_ucb,
    learn,
    quarantined,
    thompson,
)

RATES = {NOOP: 0.35, "good": 0.75, "fair": 0.45, "poor": 0.2}
CALLS, SEEDS = 600, range(8)


def regret(choose: Callable[[Router, np.random.Generator], str], seed: int) -> float:
    """Return the success that was missed in expectation, over all calls."""
    generator = np.random.default_rng(seed)
    router = Router(("good", "fair", "poor"))
    missed = 0.0
    for _ in range(CALLS):
        arm = choose(router, generator)
        missed += max(RATES.values()) - RATES[arm]
        router = learn(router, Call("pick", arm, bool(generator.random() < RATES[arm])))
    return missed


def uniform(router: Router, generator: np.random.Generator) -> str:
    return router.arms[int(generator.integers(len(router.arms)))]


@pytest.mark.parametrize(
    "choose",
    [
        pytest.param(lambda r, g: thompson(r, "pick", g), id="thompson"),
        pytest.param(lambda r, g: kl_ucb(r, "pick"), id="kl-ucb"),
    ],
)
def test_regret_is_a_small_part_of_that_of_chance(
    choose: Callable[[Router, np.random.Generator], str],
) -> None:
    for seed in SEEDS:
        assert regret(choose, seed) < regret(uniform, seed) / 3


@pytest.mark.parametrize("seed", SEEDS)
def test_an_arm_that_breaks_what_works_is_given_up(seed: int) -> None:
    """It solves more than doing nothing, and breaks two fifths of what works without it."""
    generator = np.random.default_rng(seed)
    router = Router(("rough",))
    calls = 0
    for _ in range(300):
        arm = thompson(router, "pick", generator)
        alone = bool(generator.random() < 0.4)
        with_skill = bool(generator.random() < 0.6) if alone else bool(generator.random() < 0.8)
        solved = with_skill if arm == "rough" else alone
        router = learn(router, Call("pick", arm, solved, alone if arm == "rough" else None))
        calls += arm == "rough"
    credit = router.credit("pick", "rough")

    assert credit.harms <= router.limits.most + 1
    assert calls < 60
    assert allowed(router, "pick") == (NOOP,)
    assert thompson(router, "pick", generator) == kl_ucb(router, "pick") == NOOP


def repeated(router: Router, call: Call, times: int) -> Router:
    for _ in range(times):
        router = learn(router, call)
    return router


def test_one_harm_beyond_the_forgiven_ones_quarantines_everywhere() -> None:
    router = Router(("skill",), HarmLimits(share=1.0, most=1))
    harm = Call("pick", "skill", False, True)
    router = repeated(router, harm, 1)
    assert quarantined(router) == ()
    router = learn(router, Call("place", "skill", False, True))
    assert quarantined(router) == ("skill",)
    assert allowed(router, "another context") == (NOOP,)


def test_a_share_of_harm_that_is_surely_too_high_stops_an_arm_where_it_was_seen() -> None:
    router = Router(("skill",), HarmLimits(share=0.1, most=99))
    router = repeated(router, Call("pick", "skill", False, True), 2)
    assert allowed(router, "pick") == (NOOP,)
    assert allowed(router, "place") == (NOOP, "skill")
    calm = repeated(router, Call("pick", "skill", True, True), 40)
    assert allowed(calm, "pick") == (NOOP, "skill")


def test_selection_and_execution_are_credited_apart() -> None:
    router = Router(("skill",))
    router = learn(router, Call("pick", "skill", True, True, completed=True))  # no need to call
    router = learn(router, Call("pick", "skill", True, False, completed=False))  # luck
    router = learn(router, Call("pick", "skill", False, None, completed=True))
    credit = router.credit("pick", "skill")

    assert credit == Credit(3, 2, compared=2, wins=1, harms=0, executions=3, completed=2)
    assert execution_rate([credit]) == pytest.approx(2 / 3)
    assert execution_rate([Credit()]) is None
    assert router.credit("pick", NOOP) == Credit(calls=2, solved=1)


def test_only_a_sure_gain_is_deployed() -> None:
    router = Router(("lucky", "sure"))
    assert greedy(router, "pick") == NOOP
    router = repeated(router, Call("pick", "lucky", True), 50)  # never compared with doing nothing
    router = repeated(router, Call("pick", "lucky", True, False), 2)
    assert greedy(router, "pick") == NOOP
    router = repeated(router, Call("pick", "sure", True, False), 12)
    assert greedy(router, "pick") == "sure"
    assert greedy(router, "place") == NOOP
    assert gain_bound(Credit(compared=20, wins=10, harms=10)) < 0


@pytest.mark.parametrize(("solved", "calls"), [(0, 5), (3, 10), (7, 7), (40, 100)])
def test_the_index_is_where_the_divergence_reaches_the_budget(solved: int, calls: int) -> None:
    budget, rate = math.log(500), solved / calls
    index = kl_index(solved, calls, budget)
    assert rate <= index <= 1.0
    if index < 1.0 - 1e-9:
        first = 0.0 if rate == 0 else rate * math.log(rate / index)
        reached = first + (1 - rate) * math.log((1 - rate) / (1 - index))
        assert calls * reached == pytest.approx(budget, rel=1e-6)
    assert kl_index(solved, 2 * calls, budget) <= 1.0


def test_equal_seeds_choose_alike_and_an_unknown_arm_is_refused() -> None:
    def run(seed: int) -> Mapping[str, Mapping[str, Credit]]:
        generator, router = np.random.default_rng(seed), Router(("good", "fair"))
        for _ in range(50):
            arm = thompson(router, "pick", generator)
            router = learn(router, Call("pick", arm, bool(generator.random() < RATES[arm])))
        return router.credits

    assert run(3) == run(3)
    with pytest.raises(ValueError, match="no arm 'bad'"):
        learn(Router(("good",)), Call("pick", "bad", True))
