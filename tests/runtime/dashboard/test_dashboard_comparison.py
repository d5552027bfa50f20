"""Pairs of two runs: by scene, exact, and never across scenes that differ."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from zetta.runtime.dashboard.comparison import Side, compare_runs, comparison_json
from zetta.runtime.dashboard.records import EpisodeRow
from zetta.runtime.dashboard.store import Store
from zetta.runtime.errors import ConfigError
from zetta.runtime.success_rates import mcnemar, newcombe_paired

FIRST, SECOND = Side("a"), Side("b")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = Store(tmp_path / "index.sqlite")
    yield store
    store.close()


def row(run: str, init: int, success: int | None, **more: object) -> EpisodeRow:
    made = EpisodeRow(
        f"{run}-{init}-{len(more)}-{more}", run, f"{run}/{init}", name=f"{init:03d}", suite="s",
        init=str(init), success=success, scene=f"scene {init}",
    )  # fmt: skip
    return replace(made, **more)  # type: ignore[arg-type]


def again(run: str, number: int, success: int) -> EpisodeRow:
    """Return one repetition of a scene."""
    return replace(row(run, 0, success), id=f"{run}-again-{number}", name=f"{number:03d}")


def test_pairs_are_counted_and_tested_as_the_library_says(store: Store) -> None:
    outcomes = [(1, 1), (0, 1), (0, 1), (1, 0), (0, 0), (0, 1)]
    for init, (first, second) in enumerate(outcomes):
        store.keep_episodes([row("a", init, first), row("b", init, second)])
    found = comparison_json(compare_runs(store, FIRST, SECOND))

    assert found["counts"] == {
        "both": 1, "win": 3, "harm": 1, "neither": 1, "unlike": 0, "unscored": 0,
    }  # fmt: skip
    assert found["test"]["p_two_sided"] == mcnemar(3, 1).p_two_sided
    assert found["test"]["difference"] == newcombe_paired(1, 3, 1, 1)[0]
    assert [each["outcome"] for each in found["rows"]][:2] == ["harm", "win"]


def test_errors_and_what_nobody_judged_are_no_score(store: Store) -> None:
    store.keep_episodes([row("a", 0, None, error="it broke"), row("b", 0, 1)])
    store.keep_episodes([row("a", 1, None), row("b", 1, 1)])
    found = comparison_json(compare_runs(store, FIRST, SECOND))

    assert found["counts"]["unscored"] == 2
    assert found["test"] is None


def test_scenes_that_settled_otherwise_are_not_compared(store: Store) -> None:
    store.keep_episodes([row("a", 0, 0), row("b", 0, 1, scene="another")])
    store.keep_episodes([row("a", 1, 0), row("b", 1, 1, scene="")])  # nobody kept its digest
    found = compare_runs(store, FIRST, SECOND)

    assert found.counts()["unlike"] == 1
    assert found.counts()["win"] == 1


def test_other_policy_seeds_and_other_starts_have_no_partner(store: Store) -> None:
    store.keep_episodes([row("a", 0, 1), row("a", 1, 1), row("b", 0, 1, policy_seed=7)])
    store.keep_episodes([row("b", 1, 0)])
    found = compare_runs(store, FIRST, SECOND)

    assert (len(found.pairs), found.only_first, found.only_second) == (1, 1, 1)


def test_repetitions_of_one_scene_are_paired_in_order(store: Store) -> None:
    for number, (first, second) in enumerate([(0, 1), (1, 0)]):
        store.keep_episodes([again("a", number, first), again("b", number, second)])
    outcomes = [pair.outcome for pair in compare_runs(store, FIRST, SECOND).pairs]

    assert sorted(outcomes) == ["harm", "win"]


def test_two_arms_of_one_evaluation_are_two_sides(store: Store) -> None:
    store.keep_episodes([row("a", 0, 0, arm="none"), row("a", 0, 1, arm="starter")])
    found = compare_runs(store, Side("a", "none"), Side("a", "starter"))

    assert [pair.outcome for pair in found.pairs] == ["win"]


def test_a_side_without_episodes_is_refused(store: Store) -> None:
    store.keep_episodes([row("a", 0, 1)])
    with pytest.raises(ConfigError, match="has no episodes"):
        compare_runs(store, FIRST, SECOND)
    with pytest.raises(ConfigError, match="with itself"):
        compare_runs(store, FIRST, FIRST)


def test_a_page_holds_only_what_is_asked_for(store: Store) -> None:
    for init in range(12):
        store.keep_episodes([row("a", init, init % 2), row("b", init, 1)])
    compared = compare_runs(store, FIRST, SECOND)
    found = comparison_json(compared, ["win"], offset=4, most=5)

    assert found["total"] == 6
    assert [each["init"] for each in found["rows"]] == ["8", "10"]
    assert found["counts"]["both"] == 6
