"""Milestones are read off simulator truth, for goals of LIBERO's and of the toy's wording."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from zetta.runtime.core import Array, Truth
from zetta.runtime.errors import ConfigError
from zetta.skills.evolve.milestones import Progress, goals_of, learn_habits, progress_of
from zetta.skills.evolve.observed import ObservedEpisode

GOAL = "in soup_1 basket_1_contain_region"
TABLE, UP = 0.03, 0.15


def at(x: float, y: float, z: float, yaw: float = 0.0) -> Array:
    return np.array([x, y, z, 0.0, 0.0, np.sin(yaw / 2.0), np.cos(yaw / 2.0)])


def episode(
    path: list[tuple[float, float, float]],
    openings: list[float],
    hands: list[tuple[float, float, float]],
    done_at: int | None,
    basket_yaw: float = 0.0,
    name: str = "made",
) -> ObservedEpisode:
    """Return an episode in which the soup takes a path; one more moment than hands."""
    ticks = len(hands)
    truths = tuple(
        Truth(
            {"soup_1": at(*place), "basket_1": at(0.0, 0.3, 0.0, basket_yaw)},
            {GOAL: done_at is not None and k >= done_at},
        )
        for k, place in enumerate(path)
    )
    return ObservedEpisode(
        name=name,
        task="libero_object/0",
        instruction="pick up the soup and place it in the basket",
        control_hz=20.0,
        success=done_at is not None,
        hands=np.array(hands)[:, None],
        openings=np.array(openings)[:, None],
        closing=np.zeros((ticks, 1)),
        truths=truths,
        signals={},
    )


def carried(drop_at: int | None = None, grasp: bool = True, yaw: float = 0.0) -> ObservedEpisode:
    """Return an episode of 30 ticks: 5 to get there, 6 to grasp, up at 11, over at 20, open 22."""
    hands = [(0.0, 0.0, 0.5 - 0.47 * min(k, 5) / 5) for k in range(11)]
    hands += [(0.0, 0.3 * max(k - 14, 0) / 6, UP) for k in range(11, 20)]
    hands += [(0.0, 0.3, UP)] * 9
    openings = [0.08] * 6 + [0.06] * 16 + [0.08] * 7 if grasp else [0.08] * 29
    held = range(6, drop_at if drop_at is not None else 22) if grasp else range(0)
    place, path = (0.0, 0.0, TABLE), []
    for k in range(30):
        if k in held and k < 29:
            place = hands[k]
        elif k >= 22 or (drop_at is not None and k >= drop_at):
            place = (place[0], place[1], TABLE)
        path.append(place)
    done = 24 if grasp and drop_at is None else None
    return episode(path, openings, hands, done, yaw)


def ticks_of(progress: Progress) -> dict[str, int | None]:
    return {each.name: each.tick for each in progress.milestones}


def measured(one: ObservedEpisode) -> Progress:
    return progress_of(one, goals_of(one), learn_habits([carried()]))


def test_a_success_meets_every_milestone_in_order() -> None:
    met = ticks_of(measured(carried()))
    assert met == {
        "reached": 5, "grasped": 9, "lifted": 11, "at target": 20, "released": 22, "done": 24,
    }  # fmt: skip


def test_what_falls_on_the_way_never_gets_to_its_target() -> None:
    progress = measured(carried(drop_at=15))
    assert progress.missing is not None
    assert progress.missing.name == "at target"
    assert ticks_of(progress)["lifted"] == 11


def test_fingers_that_stay_open_grasp_nothing() -> None:
    progress = measured(carried(grasp=False))
    assert progress.missing is not None
    assert progress.missing.name == "grasped"


def test_a_hand_that_stays_away_reaches_nothing() -> None:
    away = replace(carried(grasp=False), hands=np.full((29, 1, 3), 0.5))
    progress = measured(away)
    assert progress.missing is not None
    assert progress.missing.name == "reached"


def test_a_goal_that_holds_needs_nothing_before_it() -> None:
    pushed = replace(carried(), hands=np.full((29, 1, 3), 0.5))
    assert set(ticks_of(measured(pushed)).values()) == {24}


def test_where_a_thing_belongs_turns_with_its_target() -> None:
    straight, turned = carried(), carried(yaw=np.pi / 2.0)
    for one in (straight, turned):
        (habit,) = learn_habits([one]).values()
        np.testing.assert_allclose(np.linalg.norm(habit.offset), 0.0, atol=1e-9)
    beside = replace(
        turned,
        truths=tuple(
            replace(truth, objects={**truth.objects, "soup_1": at(0.1, 0.3, TABLE)})
            for truth in turned.truths
        ),
    )
    (habit,) = learn_habits([beside]).values()
    np.testing.assert_allclose(habit.offset, [0.0, -0.1], atol=1e-9)


def test_phases_wait_for_the_next_milestone() -> None:
    phases = measured(carried()).phases(29)
    assert phases[[0, 4, 5, 8, 9, 10, 11, 19, 20, 21, 22, 28]].tolist() == [
        0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5,
    ]  # fmt: skip


def with_goals(*texts: str, instruction: str = "") -> ObservedEpisode:
    truth = Truth(
        {"bowl_1": at(0, 0, 0), "cabinet_1": at(0, 0, 0), "stove_1": at(0, 0, 0)},
        dict.fromkeys(texts, False),
        {"cabinet_1_top_level": 0.0, "cabinet_1_middle_level": 0.0, "stove_1_button": 0.0},
    )
    return replace(carried(), truths=(truth,) * 30, instruction=instruction)


def test_parts_are_bound_to_their_joints() -> None:
    goals = goals_of(with_goals("open cabinet_1_middle_region", "turnon stove_1"))
    assert [goal.joint for goal in goals] == ["cabinet_1_middle_level", "stove_1_button"]
    assert [goal.milestones for goal in goals] == [("moved", "done")] * 2


def test_a_place_without_an_owner_is_in_the_world() -> None:
    (goal,) = goals_of(with_goals("on bowl_1 main_table_front_region"))
    assert goal.target is None


def test_several_goals_follow_the_instruction() -> None:
    texts = ("on bowl_1 stove_1_cook_region", "turnon stove_1")
    one = with_goals(*texts, instruction="turn on the stove and put the bowl on it")
    assert [goal.text for goal in goals_of(one)] == [texts[1], texts[0]]


@pytest.mark.parametrize("text", ["flip bowl_1", "on spoon_1 bowl_1", "open bowl_1", "on bowl_1"])
def test_an_unknown_goal_is_one_sentence(text: str) -> None:
    with pytest.raises(ConfigError, match="is of no known kind"):
        goals_of(with_goals(text))


def test_no_goal_at_all_is_one_sentence() -> None:
    with pytest.raises(ConfigError, match="has no goal predicate"):
        goals_of(with_goals())
