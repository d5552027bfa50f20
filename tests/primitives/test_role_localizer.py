"""From named things to roles, with the toy's truth as the finder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from zetta.primitives.localize.oracle import OracleFinder
from zetta.primitives.localize.role_localizer import RoleLocalizer
from zetta.primitives.localize.sightings import Sighting
from zetta.primitives.roles import parse_instruction
from zetta.runtime.core import (
    ArmState,
    Init,
    Landmark,
    Observation,
    Proprio,
    Scene,
    Sensing,
    read_only,
)
from zetta.runtime.errors import ConfigError
from zetta.sims.toy import ToyEnv
from zetta.sims.toy_tasks import toy_task


class Listed:
    """Knows what it was told, and remembers what it was asked."""

    level: Sensing = "vision"

    def __init__(self, *sightings: Sighting) -> None:
        self.sightings = sightings
        self.asked: tuple[str, ...] = ()

    def find(self, observation: Observation, names: Sequence[str]) -> tuple[Sighting, ...]:
        self.asked = tuple(names)
        return tuple(s for s in self.sightings if s.name in names)


def seen(name: str, x: float, y: float, z: float = 0.02, confidence: float = 0.9) -> Sighting:
    """Return a sighting of a 4 cm cube."""
    return Sighting(name, read_only([x, y, z]), read_only([0.04, 0.04, 0.04]), 0.0, confidence)


def at(t: float, hand: tuple[float, float, float] = (0.0, 0.0, 0.5), said: str = "") -> Observation:
    """Return an observation without pictures, with the hand at a place."""
    arm = ArmState(read_only(hand), read_only([1.0, 0, 0, 0]), read_only([0.0]), 0.04)
    return Observation(Proprio(t, (arm,)), said)


def test_toy_roles_are_where_the_toy_says_at_level_oracle() -> None:
    env = ToyEnv(toy_task("toy_distractors", 1))
    env.reset(Scene(env.toy.task, Init(3)))
    localizer = RoleLocalizer(
        OracleFinder(env.landmarks), parse_instruction(env.toy.task.instruction)
    )
    found = localizer.locate(env.observe(), ("object", "receptacle", "part"))
    truth = env.truth().objects

    assert set(found) == {"object", "receptacle"}
    assert found["object"].level == localizer.level == "oracle"
    np.testing.assert_allclose(found["object"].position, truth["cyan_can"][:3])
    np.testing.assert_allclose(found["receptacle"].position, truth["green_plate"][:3])
    np.testing.assert_allclose(found["object"].extent, [0.036, 0.036, 0.06])


def test_toy_landmarks_answer_to_general_words() -> None:
    env = ToyEnv(toy_task("toy_pick", 0))
    env.reset(Scene(env.toy.task, Init(0)))
    names = [s.name for s in OracleFinder(env.landmarks).find(env.observe(), ["cube", "red block"])]

    assert names == ["cube", "cube", "red block"]


def test_only_asked_roles_are_answered_and_unseen_ones_are_absent() -> None:
    finder = Listed(seen("milk", 0.1, 0.0))
    localizer = RoleLocalizer(finder, parse_instruction("put the milk in the basket"))

    assert set(localizer.locate(at(0.0), ("receptacle",))) == set()
    assert set(localizer.locate(at(0.0), ("object", "receptacle"))) == {"object"}
    assert localizer.locate(at(0.0), ()) == {}


def test_estimate_carries_time_and_the_finders_confidence() -> None:
    localizer = RoleLocalizer(Listed(seen("milk", 0.1, 0.0, confidence=0.37)),
                              parse_instruction("pick up the milk"))  # fmt: skip
    estimate = localizer.locate(at(1.25), ("object",))["object"]

    assert (estimate.role, estimate.t, estimate.confidence) == ("object", 1.25, 0.37)
    assert estimate.level == "vision"


def test_unknown_role_is_refused_with_the_known_ones() -> None:
    localizer = RoleLocalizer(Listed(), parse_instruction("pick up the milk"))

    with pytest.raises(ConfigError, match="no role 'objct'; did you mean 'object'"):
        localizer.locate(at(0.0), ("objct",))


def test_things_named_by_the_relation_are_looked_for_too() -> None:
    left, right = seen("black bowl", 0.0, -0.2), seen("black bowl", 0.0, 0.2)
    finder = Listed(left, right, seen("ramekin", 0.05, 0.25))
    localizer = RoleLocalizer(
        finder, parse_instruction("pick up the black bowl next to the ramekin")
    )

    assert localizer.locate(at(0.0), ("object",))["object"].position is right.position
    assert "ramekin" in finder.asked


def test_general_word_means_any_of_its_kind_and_one_thing_counts_once() -> None:
    black, white = seen("black bowl", 0.0, 0.2), seen("white bowl", 0.0, -0.2)
    again = replace(black, name="bowl", confidence=0.5)
    localizer = RoleLocalizer(Listed(again, black, white), parse_instruction("lift the right bowl"))
    estimate = localizer.locate(at(0.0), ("object",))["object"]

    assert (float(estimate.position[1]), estimate.confidence) == (0.2, 0.9)


def test_twin_that_was_meant_stays_the_one_when_the_other_comes_to_lie_further_left() -> None:
    finder = Listed(seen("block", 0.0, -0.1), seen("block", 0.0, 0.1))
    localizer = RoleLocalizer(finder, parse_instruction("pick up the left block"))
    localizer.locate(at(0.0), ("object",))
    finder.sightings = (seen("block", 0.02, -0.08), seen("block", 0.0, -0.3))
    estimate = localizer.locate(at(1.0), ("object",))["object"]

    assert tuple(estimate.position[:2]) == (0.02, -0.08)


def test_held_twin_is_followed_with_the_hand() -> None:
    finder = Listed(seen("block", 0.0, -0.1), seen("block", 0.0, 0.1))
    localizer = RoleLocalizer(finder, parse_instruction("pick up the left block"))
    localizer.locate(at(0.0), ("object",))
    localizer.locate(at(1.0, hand=(0.0, -0.1, 0.02)), ("object",))
    # Carried to the other side, past its twin.
    finder.sightings = (seen("block", 0.0, 0.3, 0.2), seen("block", 0.0, 0.1))
    estimate = localizer.locate(at(2.0, hand=(0.0, 0.3, 0.2)), ("object",))["object"]

    assert tuple(estimate.position) == (0.0, 0.3, 0.2)


def test_hand_over_the_other_twin_does_not_change_who_is_meant() -> None:
    finder = Listed(seen("block", 0.0, -0.1), seen("block", 0.0, 0.1))
    localizer = RoleLocalizer(finder, parse_instruction("pick up the left block"))
    localizer.locate(at(0.0), ("object",))
    estimate = localizer.locate(at(1.0, hand=(0.0, 0.1, 0.03)), ("object",))["object"]

    assert float(estimate.position[1]) == -0.1


def test_a_hidden_thing_is_absent_and_its_twin_is_not_taken_for_it() -> None:
    meant, twin = seen("red cube", 0.0, -0.1), seen("red cube", 0.0, 0.05)
    finder = Listed(meant, twin)
    localizer = RoleLocalizer(finder, parse_instruction("put the left red cube on the plate"))
    assert localizer.locate(at(0.0), ["object"])["object"].position[1] == -0.1

    finder.sightings = (twin,)  # the hand hides the one that is meant
    assert localizer.locate(at(1.0, hand=(0.0, -0.1, 0.05)), ["object"]) == {}
    finder.sightings = (seen("red cube", 0.01, -0.09), twin)
    assert localizer.locate(at(2.0), ["object"])["object"].position[1] == -0.09


def test_twins_whose_relation_cannot_be_judged_are_nobody() -> None:
    bowls = seen("black bowl", 0.0, -0.1), seen("black bowl", 0.0, 0.1, z=0.2)
    finder = Listed(*bowls, seen("plate", 0.3, 0.0))
    said = "pick up the black bowl on the cookie box and place it on the plate"
    localizer = RoleLocalizer(finder, parse_instruction(said))
    assert localizer.locate(at(0.0), ["object"]) == {}
    finder.sightings = bowls[1:]  # now one of them is hidden
    assert localizer.locate(at(0.5), ["object"]) == {}

    finder.sightings = (*bowls, seen("cookie box", 0.0, -0.1, z=-0.02))
    assert localizer.locate(at(1.0), ["object"])["object"].position[1] == -0.1


def test_two_roles_of_one_name_are_two_things() -> None:
    finder = Listed(seen("bowl", 0.0, -0.1), seen("bowl", 0.0, 0.1))
    roles = parse_instruction("stack the left bowl on the right bowl")
    found = RoleLocalizer(finder, roles).locate(at(0.0), ("object", "receptacle"))

    assert float(found["object"].position[1]) == -0.1
    assert float(found["receptacle"].position[1]) == 0.1


def test_earlier_time_begins_a_new_episode() -> None:
    finder = Listed(seen("block", 0.0, -0.1), seen("block", 0.0, 0.1))
    localizer = RoleLocalizer(finder, parse_instruction("pick up the left block"))
    localizer.locate(at(3.0), ("object",))
    finder.sightings = (seen("block", 0.0, -0.05), seen("block", 0.0, -0.3))
    estimate = localizer.locate(at(0.0), ("object",))["object"]

    assert float(estimate.position[1]) == -0.3


def test_instruction_of_the_observation_is_read_when_none_was_given() -> None:
    localizer = RoleLocalizer(Listed(seen("milk", 0.1, 0.0), seen("butter", 0.2, 0.0)))

    assert (
        float(localizer.locate(at(0.0, said="lift the milk"), ("object",))["object"].position[0])
        == 0.1
    )
    assert (
        float(localizer.locate(at(1.0, said="lift the butter"), ("object",))["object"].position[0])
        == 0.2
    )


@pytest.mark.parametrize(
    ("sentence", "whole", "position"),
    [
        ("put the milk in the basket", "basket", (0.3, 0.1, 0.01)),
        ("put the milk on the stove", "stove", (0.3, 0.1, 0.1)),
        ("put the milk on top of the cabinet", "wooden cabinet", (0.3, 0.1, 0.1)),
        ("put the milk to the right of the plate", "plate", (0.3, 0.26, 0.0)),
        ("push the milk to the front of the stove", "stove", (0.41, 0.1, 0.0)),
    ],
)
def test_place_that_no_finder_knows_follows_from_its_thing(
    sentence: str, whole: str, position: tuple[float, float, float]
) -> None:
    box = Sighting(whole, read_only([0.3, 0.1, 0.05]), read_only([0.1, 0.2, 0.1]), 0.0, 0.8)
    localizer = RoleLocalizer(Listed(box), parse_instruction(sentence))
    estimate = localizer.locate(at(0.0), ("receptacle",))["receptacle"]

    np.testing.assert_allclose(estimate.position, position, atol=1e-9)
    assert (float(estimate.extent[2]), estimate.confidence) == (0.0, 0.8)


def test_place_that_the_finder_knows_is_taken_as_it_is() -> None:
    mark = Landmark("inside of basket", (), read_only([0.1, 0.2, 0.03]), read_only([0.1] * 3), 0.0)
    basket = Landmark("basket", (), read_only([0.5, 0.5, 0.05]), read_only([0.2] * 3), 0.0)
    localizer = RoleLocalizer(
        OracleFinder(lambda: (basket, mark)), parse_instruction("put the milk in the basket")
    )

    found = localizer.locate(at(0.0), ("receptacle",))["receptacle"]
    assert tuple(found.position) == (0.1, 0.2, 0.03)


def test_heights_need_depth() -> None:
    env = ToyEnv(toy_task("toy_pick", 0))
    env.reset(Scene(env.toy.task, Init(0)))
    localizer = RoleLocalizer(Listed(), parse_instruction("pick up the milk"))

    assert localizer.heights(env.observe(["front"])) is None
    assert localizer.heights(env.observe(["front"], depth=True)) is not None


def test_a_faint_likeness_of_an_anchor_decides_no_relation() -> None:
    near, far = seen("black bowl", 0.0, 0.1), seen("black bowl", 0.4, 0.1)
    ghost = replace(seen("ramekin", 0.4, 0.15), confidence=0.55)
    finder = Listed(near, far, seen("ramekin", 0.0, 0.22), ghost)
    said = "pick up the black bowl next to the ramekin and place it on the plate"
    localizer = RoleLocalizer(finder, parse_instruction(said))

    assert localizer.locate(at(0.0), ["object"])["object"].position[0] == 0.0


def test_a_faint_likeness_elsewhere_is_no_sighting_of_what_is_hidden() -> None:
    plate = seen("plate", 0.0, 0.1)
    finder = Listed(plate)
    localizer = RoleLocalizer(finder, parse_instruction("put the cube on the plate"))
    aside, over = (0.0, -0.2, 0.1), (0.0, 0.1, 0.1)
    localizer.locate(at(0.0, hand=aside), ["receptacle"])

    finder.sightings = (replace(seen("plate", 0.3, 0.1), confidence=0.55),)
    assert localizer.locate(at(1.0, hand=aside), ["receptacle"]) == {}
    finder.sightings = (replace(seen("plate", 0.3, 0.1), confidence=0.9),)
    assert localizer.locate(at(2.0, hand=over), ["receptacle"]) == {}
    assert localizer.locate(at(3.0, hand=aside), ["receptacle"])["receptacle"].position[0] == 0.3


def test_what_came_along_with_the_hand_is_followed_past_its_twin() -> None:
    held, twin = seen("red cube", 0.0, -0.1), seen("red cube", 0.0, 0.1)
    finder = Listed(held, twin)
    localizer = RoleLocalizer(finder, parse_instruction("put the left red cube on the plate"))
    localizer.locate(at(0.0, hand=(0.0, -0.1, 0.05)), ["object"])

    # It passes over its twin's place and has pushed the twin away.
    finder.sightings = (seen("red cube", 0.0, 0.09), seen("red cube", 0.0, 0.15))
    found = localizer.locate(at(1.0, hand=(0.0, 0.09, 0.05)), ["object"])["object"]
    assert found.position[1] == 0.09


def test_what_is_only_inferred_is_believed_less() -> None:
    low, raised = seen("black bowl", 0.0, -0.1), seen("black bowl", 0.0, 0.1, z=0.05)
    finder = Listed(low, raised)
    said = "pick up the black bowl on the cookie box and place it on the plate"
    localizer = RoleLocalizer(finder, parse_instruction(said))

    inferred = localizer.locate(at(0.0), ["object"])["object"]
    assert inferred.position[1] == 0.1
    assert inferred.confidence == pytest.approx(0.6 * raised.confidence)
    again = RoleLocalizer(finder, parse_instruction(said))
    again.restore(localizer.state())
    assert again.locate(at(0.5), ["object"])["object"].confidence == inferred.confidence
    finder.sightings = (low, raised, seen("cookie box", 0.0, 0.1, z=0.01))
    again.begin()
    assert again.locate(at(1.0), ["object"])["object"].confidence == raised.confidence
