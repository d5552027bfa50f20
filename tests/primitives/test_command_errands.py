from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zetta.primitives import commands as c
from zetta.primitives.command_errands import errand_for_look
from zetta.primitives.command_things import ThingCommand, errand_of
from zetta.primitives.roles import Errand, Phrase, Relation, parse_instruction
from zetta.runtime.errors import ConfigError

CUBE, PLATE = Phrase("red cube"), Phrase("green plate")
TOLD = parse_instruction("put the red cube on the green plate").steps
WORDS = (
    "the", "a", "of", "on", "in", "to", "from", "and", "both", "left", "top", "drawer", "handle",
    "knob", "stove", "bowl", "next", "between", "not", "it", "'s", "&", ",", "-", "red", "open",
    "put", "off", "two", "middle", "7", "é", "",
)  # fmt: skip


@pytest.mark.parametrize(
    ("command", "errand", "role"),
    [
        (c.Pick("the blue cube"), Errand("pick", Phrase("blue cube")), "object"),
        (
            c.Pick("bowl next to the ramekin"),
            Errand("pick", Phrase("bowl", Relation("next to", ("ramekin",)))),
            "object",
        ),
        (
            c.Place("stove"),
            Errand("place", CUBE, Phrase("burner of stove"), placement="on"),
            "receptacle",
        ),
        (
            c.Place("top drawer", "in"),
            Errand("place", CUBE, Phrase("inside of top drawer"), placement="in"),
            "receptacle",
        ),
        (c.Open("top drawer"), Errand("open", part=Phrase("handle of top drawer")), "part"),
        (c.Close("microwave"), Errand("close", part=Phrase("handle of microwave")), "part"),
        (c.TurnKnob("stove"), Errand("turn_on", part=Phrase("knob of stove")), "part"),
        (c.TurnKnob("stove", False), Errand("turn_off", part=Phrase("knob of stove")), "part"),
        (
            c.Push("plate", "front of the stove"),
            Errand("push", Phrase("plate"), Phrase("front of stove"), placement="beside"),
            "object",
        ),
        (c.GoAbove("green plate"), Errand("pick", PLATE), "object"),
    ],
)
def test_a_command_is_the_errand_that_an_instruction_would_be(
    command: ThingCommand, errand: Errand, role: str
) -> None:
    assert errand_of(command, (), CUBE) == (errand, role)


def test_a_thing_of_the_instruction_brings_its_receptacle_along() -> None:
    assert errand_of(c.Pick("red cube"), TOLD, None) == (TOLD[0], "object")
    assert errand_of(c.GoAbove("green plate"), TOLD, None) == (TOLD[0], "receptacle")
    assert errand_of(c.Place("green plate"), TOLD, CUBE) == (TOLD[0], "receptacle")


def test_which_of_several_twins_is_meant_is_taken_from_the_instruction() -> None:
    steps = parse_instruction("put the left mug on the plate").steps

    assert errand_of(c.Pick("mug"), steps, None)[0].object == Phrase("mug", Relation("left"))
    assert errand_of(c.Pick("right mug"), steps, None)[0] == Errand(
        "pick", Phrase("mug", Relation("right"))
    )


def test_what_goes_elsewhere_than_the_instruction_says_is_an_errand_of_its_own() -> None:
    errand, _ = errand_of(c.Place("yellow plate"), TOLD, CUBE)

    assert errand == Errand("place", CUBE, Phrase("yellow plate"), placement="on")


def test_what_was_put_into_a_container_is_found_under_its_plain_name() -> None:
    steps = parse_instruction("put the soup in the basket").steps

    assert errand_for_look("basket", steps) == (steps[0], "receptacle")


@pytest.mark.parametrize("words", ["", "the", "cube and the ball", "on", "!"])
def test_what_names_no_single_thing_is_refused_with_an_example(words: str) -> None:
    with pytest.raises(ConfigError, match="say it like"):
        errand_of(c.Pick(words), (), None)


@given(st.lists(st.sampled_from(WORDS), max_size=6), st.integers(0, 6))
def test_any_words_are_an_errand_or_are_refused(words: list[str], kind: int) -> None:
    text = " ".join(words)
    made: tuple[ThingCommand, ...] = (
        c.Pick(text), c.Place(text), c.Place(text, "in"), c.Open(text), c.TurnKnob(text),
        c.Push(text, "bowl"), c.GoAbove(text),
    )  # fmt: skip
    try:
        errand, role = errand_of(made[kind], (), None)
    except ConfigError:
        return
    assert errand.phrases[role].name  # type: ignore[index]
