"""Planted faults are found again: what was missed, since when, and which failures are alike."""

from __future__ import annotations

import json
from functools import cache

import numpy as np
import pytest

from zetta.runtime.cli.planted_faults import FaultyWorlds, Planted
from zetta.runtime.errors import ConfigError, SpecMismatch
from zetta.runtime.records import from_json, to_json
from zetta.skills.evolve.clusters import FEWEST, POOLED, group_failures, medoid
from zetta.skills.evolve.diagnosis import Diagnosis, diagnose
from zetta.skills.evolve.divergence import distances, divergence, fit_band
from zetta.skills.evolve.failure_evidence import check_picture_folder
from zetta.skills.evolve.failure_features import FailureFeatures
from zetta.skills.evolve.milestones import learn_habits
from zetta.skills.evolve.observed import ObservedEpisode
from zetta.skills.evolve.progress_signals import course_of

FEW, MANY = 2, 6


@cache
def worlds() -> FaultyWorlds:
    return FaultyWorlds()


@cache
def successes() -> tuple[ObservedEpisode, ...]:
    return tuple(worlds().successes(20))


@cache
def planted(fault: str, count: int) -> tuple[Planted, ...]:
    return tuple(worlds().failures(fault, count))


@cache
def diagnosed() -> Diagnosis:
    failures = [*planted("slip", MANY), *planted("wrong object", MANY), *planted("knocked away", 1)]
    return diagnose([*successes(), *(each.episode for each in failures)], errors=("broken",))


# ---------------------------------------------------------------------------- divergence


@pytest.mark.parametrize(("fault", "late"), [("slip", 1), ("wrong object", 3)])
def test_a_planted_fault_is_dated(fault: str, late: int) -> None:
    habits = learn_habits(successes())
    band = fit_band([course_of(each, habits) for each in successes()])
    for each in planted(fault, MANY):
        tick = divergence(band, course_of(each.episode, habits))
        assert tick is not None
        assert abs(tick - each.onset) <= late


def test_successes_stay_in_the_band_of_others() -> None:
    habits = learn_habits(successes())
    courses = [course_of(each, habits) for each in successes()]
    band = fit_band(courses)
    assert band.left <= 1
    assert band.rate == pytest.approx(0.05)
    fewer = fit_band(courses[:9])
    assert fewer.rate == pytest.approx(0.1)
    said = [divergence(fewer, course) is not None for course in courses[9:]]
    assert sum(said) <= 4


def test_a_success_is_no_distance_from_itself() -> None:
    habits = learn_habits(successes())
    courses = [course_of(each, habits) for each in successes()]
    assert distances(fit_band(courses), courses[0]).max() == 0.0


def test_too_few_successes_show_no_band() -> None:
    habits = learn_habits(successes())
    with pytest.raises(ConfigError, match="2 successes show no band"):
        fit_band([course_of(each, habits) for each in successes()[:2]])


# ---------------------------------------------------------------------------- groups


def clouds(sizes: list[int], apart: float, seed: int = 0) -> FailureFeatures:
    rng = np.random.default_rng(seed)
    rows = [
        rng.normal(0.0, 0.3, (size, 4)) + apart * np.eye(4)[k % 4] for k, size in enumerate(sizes)
    ]
    return FailureFeatures(tuple("abcd"), np.concatenate(rows))


def test_clear_groups_are_found_and_small_ones_pooled() -> None:
    grouping = group_failures(clouds([8, 12, 4], 8.0), ["grasped"] * 24)
    assert grouping.labels.tolist() == [1] * 8 + [0] * 12 + [POOLED] * 4
    assert grouping.agreement > 0.9
    assert min(grouping.recovered) > 0.9


def test_one_cloud_is_one_group() -> None:
    rng = np.random.default_rng(3)
    noise = FailureFeatures(tuple("abcdefgh"), rng.normal(size=(40, 8)))
    grouping = group_failures(noise, ["grasped"] * 40)
    # Noise has no groups: either all are one, or what was cut does not come back.
    assert grouping.labels.max() <= 0


def test_groups_depend_on_features_and_seed_alone() -> None:
    features = clouds([7, 9, 6], 2.0)
    first, second = (group_failures(features, ["lifted"] * 22, 1) for _ in range(2))
    assert first.labels.tolist() == second.labels.tolist()
    assert (first.agreement, first.recovered) == (second.agreement, second.recovered)


def test_failures_that_miss_different_milestones_are_never_together() -> None:
    grouping = group_failures(clouds([12], 1.0), ["reached"] * 5 + ["grasped"] * 7)
    assert set(grouping.labels[:5]).isdisjoint(set(grouping.labels[5:]) - {POOLED})


@pytest.mark.parametrize("count", [1, 2, 4])
def test_a_handful_is_pooled(count: int) -> None:
    assert (
        group_failures(clouds([count], 1.0), ["done"] * count).labels.tolist() == [POOLED] * count
    )


def test_equal_failures_are_one_group() -> None:
    same = FailureFeatures(("a",), np.ones((6, 1)))
    assert group_failures(same, ["done"] * 6).labels.tolist() == [0] * 6


def test_the_medoid_is_nearest_to_all() -> None:
    features = FailureFeatures(("a",), np.array([[0.0], [1.0], [2.0], [9.0]]))
    assert medoid(features, [0, 1, 2]) == 1


# ---------------------------------------------------------------------------- the whole


def test_alike_faults_are_grouped_and_the_odd_one_is_pooled() -> None:
    groups = [each.cluster for each in diagnosed().failures]
    slips, wrong, knocked = groups[:MANY], groups[MANY : 2 * MANY], groups[-1]
    for own in (slips, wrong):
        assert max(own.count(0), own.count(1)) >= FEWEST
    assert set(slips).isdisjoint(set(wrong) - {POOLED})
    assert knocked == POOLED
    assert diagnosed().pooled == groups.count(POOLED)


def test_each_failure_has_its_milestone_and_each_group_its_words() -> None:
    diagnosis = diagnosed()
    missing = [each.missing for each in diagnosis.failures]
    assert missing == ["at target"] * MANY + ["reached"] * MANY + ["grasped"]
    for cluster in diagnosis.clusters:
        assert FEWEST <= cluster.size <= MANY
        assert cluster.medoid in {each.episode for each in diagnosis.failures}
        assert cluster.signals
        assert not any("truth." in each.name or "oracle" in each.name for each in cluster.signals)
        assert all(each.name.startswith("truth.") for each in cluster.truth)


def test_errors_of_the_machinery_stay_apart() -> None:
    assert diagnosed().errors == ("broken",)
    assert "broken" not in {each.episode for each in diagnosed().failures}


def test_a_diagnosis_goes_to_json_and_back() -> None:
    plain = json.loads(json.dumps(to_json(diagnosed()), allow_nan=False))
    assert to_json(from_json(Diagnosis, plain)) == plain
    with pytest.raises(SpecMismatch):
        from_json(Diagnosis, {**plain, "verdict": "fine"})


def test_a_diagnosis_is_the_same_again() -> None:
    episodes = [*successes()[:6], *(each.episode for each in planted("slip", FEW))]
    assert to_json(diagnose(episodes)) == to_json(diagnose(episodes))


def test_without_failures_or_successes_there_is_nothing_to_say() -> None:
    with pytest.raises(ConfigError, match="no failure among 20 episodes"):
        diagnose(successes())
    with pytest.raises(ConfigError, match="no success among 2 episodes"):
        diagnose([each.episode for each in planted("slip", FEW)])
    with pytest.raises(ConfigError, match="3 successes with the same milestones"):
        diagnose([successes()[0], *(each.episode for each in planted("slip", FEW))])


def test_pictures_stay_out_of_results() -> None:
    from pathlib import Path

    with pytest.raises(ConfigError, match="no pictures are kept"):
        check_picture_folder(Path("results/diagnosis"))
    check_picture_folder(Path("runs/results-of-today"))
