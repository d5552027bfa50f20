"""The gate on candidates whose truth is known."""

from __future__ import annotations

import json
from functools import cache

import numpy as np
import pytest

from zetta.runtime.errors import ConfigError
from zetta.runtime.records import from_json, to_json
from zetta.skills.evolve.nulls import NullRun, openings_sustained, run_naive, run_null
from zetta.skills.evolve.outcome_models import SceneModel, exchangeable, planted
from zetta.skills.evolve.plans import GatePlan, plan_gate
from zetta.skills.evolve.sequential import operate

SMALL = 300


@cache
def default_plan() -> GatePlan:
    return plan_gate()


@cache
def small_run() -> NullRun:
    return run_null(SMALL, 5, default_plan(), SceneModel(quiet_elsewhere=True))


def test_equal_seeds_give_equal_records_and_they_survive_json() -> None:
    run = run_null(40, 1, default_plan())
    assert run == run_null(40, 1, default_plan())
    assert run != run_null(40, 2, default_plan())
    assert from_json(NullRun, json.loads(json.dumps(to_json(run)))) == run


def test_nulls_differ_from_their_parent_as_often_as_the_model_says() -> None:
    rng = np.random.default_rng(3)
    for discordance in (0.02, 0.1, 0.3):
        scenes = SceneModel(discordance=(discordance, discordance))
        sealed = exchangeable(3000, default_plan(), scenes, rng).sealed
        differ = sealed.baseline != sealed.candidate
        assert differ.mean() == pytest.approx(discordance, abs=0.006)
        assert sealed.baseline.mean() == pytest.approx(0.32, abs=0.02)


def test_scenes_chosen_for_a_failure_are_solved_again_as_often_as_chance_says() -> None:
    rng = np.random.default_rng(4)
    scenes = SceneModel(discordance=(0.2, 0.2))
    again = exchangeable(3000, default_plan(), scenes, rng).same_scene.baseline.mean()
    # E[p(1-p)] / E[1-p]: half of the discordance over the failure rate.
    assert again == pytest.approx(0.1 / 0.68, abs=0.01)


def test_planted_fixes_have_the_declared_effect() -> None:
    plan = default_plan()
    cohort = planted(3000, plan, SceneModel(), np.random.default_rng(5))
    sealed, kept = cohort.sealed, cohort.no_harm
    wins = (sealed.candidate & ~sealed.baseline).mean()
    harms = (~sealed.candidate & sealed.baseline).mean()
    assert wins == pytest.approx(plan.effect.win_rate, abs=0.01)
    assert harms == pytest.approx(plan.effect.harm, abs=0.004)
    assert (kept.candidate == kept.baseline).all()


def test_nulls_are_promoted_no_more_often_than_the_risk_that_was_spent() -> None:
    run = small_run()
    assert run.reached_gate >= 5
    assert run.discordant > 0
    assert run.promoted.count <= run.reached_gate
    assert run.chance > 0.001
    assert run.alone.chance > 0.001
    assert sum(each.count for each in run.ended) == SMALL


def test_the_risk_on_record_is_that_of_the_openings() -> None:
    run = small_run()
    campaigns, rest = divmod(run.reached_gate, openings_sustained(default_plan()))
    alphas = [boundary.alpha for boundary in default_plan().boundaries]
    whole = campaigns * sum(alphas[: openings_sustained(default_plan())])
    assert run.alpha_spent == pytest.approx(whole + sum(alphas[:rest]))


def test_the_sequential_test_alone_errs_as_often_as_computed() -> None:
    plan = default_plan()
    scenes = SceneModel(discordance=(0.43, 0.43))
    run = run_null(600, 6, plan, scenes)
    sizes = [operate(b, 0.215, 0.215, 31).power for b in plan.boundaries[:2]]
    assert run.alone.superior.low <= np.mean(sizes) <= run.alone.superior.high


def test_a_gate_without_a_fresh_parent_is_fooled_often_and_more_so_when_asked_again() -> None:
    naive = run_naive(400, SceneModel(0.7356), np.random.default_rng(7))
    assert 0.24 <= naive.gained.rate <= 0.45
    assert naive.fooled.rate >= 0.10
    assert naive.campaigns_fooled.rate >= 3 * naive.fooled.rate
    assert naive.fooled.count <= min(naive.gained.count, naive.rescued.count)


def test_noise_that_cannot_be_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"differs from itself in 0 to 0\.435"):
        SceneModel(discordance=(0.1, 0.5))
    with pytest.raises(ConfigError, match="at least one candidate"):
        run_null(0, 1, default_plan())


@pytest.mark.slow
@pytest.mark.parametrize("quiet", [False, True])
def test_two_thousand_nulls_certify_the_gate(quiet: bool) -> None:
    run = run_null(2000, 0, default_plan(), SceneModel(quiet_elsewhere=quiet))
    assert run.promoted.upper <= 0.05
    assert run.chance > 0.001
    assert run.alone.superior.rate <= run.alone.spent
    assert run.planted_promoted.rate >= 0.80
    assert run.planted_promoted.low >= 0.78


@pytest.mark.slow
@pytest.mark.parametrize("discordance", [0.02, 0.1, 0.3])
def test_the_size_of_the_whole_gate_keeps_alpha_at_any_noise(discordance: float) -> None:
    scenes = SceneModel(discordance=(discordance, discordance), quiet_elsewhere=True)
    run = run_null(500, 8, default_plan(), scenes)
    error = (0.05 * 0.95 / 500) ** 0.5
    assert run.promoted.rate <= 0.05 + 3 * error
    assert run.alone.superior.rate <= run.alone.alpha + 3 * error
