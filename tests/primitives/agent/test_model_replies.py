"""Replies, prices, patience and the standing prompt, without a server."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.primitives.agent import model_drives as d
from zetta.primitives.agent.model_options import ModelOptions
from zetta.primitives.agent.patience import Patience
from zetta.primitives.agent.prices import Price, read_prices
from zetta.primitives.agent.prompt import plain_turn_text, standing_prompt
from zetta.primitives.agent.reply import MEMORY_MOST, ReplyProblem, read_reply
from zetta.runtime.errors import ConfigError

words = st.text(st.characters(blacklist_categories=("Cs", "Cc")), max_size=40)
commands = st.lists(st.sampled_from(["wait", "done", "move x +5", "pick red block"]), min_size=1)


@given(commands, words, words, words, st.integers(1, 6))
def test_every_reply_is_read_back_from_among_words(
    lines: list[str], plan: str, before: str, after: str, most: int
) -> None:
    written = json.dumps({"plan": plan, "commands": lines})
    around = f"{before.replace('{', '(').replace('<', '(')}\n{written}\n{after.replace('{', '(')}"
    reply = read_reply(around, most)
    assert reply.commands == tuple(lines[:most])
    assert bool(reply.remarks) == (len(lines) > most)
    assert " ".join(reply.plan.split()) == " ".join(
        "".join(c if c.isprintable() else " " for c in plan).split()
    )


@given(st.text(max_size=300))
def test_a_text_without_an_object_is_a_problem_in_a_sentence(text: str) -> None:
    with pytest.raises(ReplyProblem) as problem:
        read_reply(text.replace("}", ")"), 4)
    assert "\n" not in str(problem.value)


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(max_size=20),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(words, inner, max_size=4),
        max_leaves=12,
    )
)
def test_fields_of_any_shape_are_bounded_printable_texts(value: object) -> None:
    written = json.dumps({"commands": ["wait"], "memory": value, "scene": value})
    reply = read_reply(written, 4)
    assert len(reply.memory) <= MEMORY_MOST
    assert all(c.isprintable() or c == "\n" for c in reply.memory + reply.scene)
    reply.memory.encode("utf-8")


def test_a_text_of_lines_is_a_list_of_commands() -> None:
    assert read_reply('{"commands": "wait\\n\\n done "}', 4).commands == ("wait", "done")


def test_huge_texts_end_soon() -> None:
    for text in ("{" * 500_000, "[" * 500_000, '{"commands": [' * 50_000, "x" * 5_000_000):
        with pytest.raises(ReplyProblem):
            read_reply(text, 4)


def test_a_command_without_end_is_no_command() -> None:
    with pytest.raises(ReplyProblem, match="longer than 300"):
        read_reply(json.dumps({"commands": ["move " * 200]}), 4)


# --------------------------------------------------------------------------- the prompt


def test_the_standing_prompt_is_a_function_of_its_arguments_alone() -> None:
    one = standing_prompt(d.GRAMMAR, ("left", "right"), 3)
    assert one == standing_prompt(d.GRAMMAR, ("left", "right"), 3)
    assert "2 arms: left, right" in one
    assert "at most 3 commands" in one
    assert "one arm through" in standing_prompt(d.GRAMMAR, ("",), 3)
    assert one.count(d.GRAMMAR) == 1


def test_a_turn_in_plain_words_holds_everything_that_was_given() -> None:
    told = plain_turn_text(
        d.turn(memory="the block is red", history=("turn 1: looked",), remarks=("no such verb",))
    )
    for part in ("TASK: put the red block", "TURN 1", "move x +5: ok", "the block is red",
                 "turn 1: looked", "no such verb", "hand at", "44 turns are left"):  # fmt: skip
        assert part in told


# --------------------------------------------------------------------------- prices and patience


def test_a_table_of_prices_is_read(tmp_path: Path) -> None:
    path = tmp_path / "prices.json"
    path.write_text('{"openai:gpt-5": {"input": 1.25, "output": 10, "cached": 0.125}, "m": '
                    '{"input": 0, "output": 0}}')  # fmt: skip
    prices = read_prices(path)
    assert prices["openai:gpt-5"] == Price(1.25, 10, 0.125)
    assert prices["m"].dollars(10**9, 10**9) == 0.0


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("{", "cannot read"),
        ("[]", "holds no table"),
        ('{"m": 3}', "price of 'm'"),
        ('{"m": {"input": 1}}', "price of 'm'"),
        ('{"m": {"input": 1, "output": "2"}}', "price of 'm'"),
        ('{"m": {"input": -1, "output": 2}}', "expected 0 or more"),
        ('{"m": {"input": NaN, "output": 2}}', "expected 0 or more"),
    ],
)
def test_a_damaged_table_is_told(tmp_path: Path, text: str, what: str) -> None:
    path = tmp_path / "prices.json"
    path.write_text(text)
    with pytest.raises(ConfigError, match=what):
        read_prices(path)


@given(st.integers(1, 500), st.none() | st.floats(0, 1e6))
def test_pauses_are_bounded_and_never_shorter_than_asked(
    failures: int, asked: float | None
) -> None:
    pause = Patience().pause(failures, asked)
    assert pause >= (asked or 0.0)
    assert pause <= max(60.0, asked or 0.0)


@pytest.mark.parametrize("complaint", ["'temperature' does not work", "unknown field"])
def test_options_are_left_out_until_none_is_left(complaint: str) -> None:
    options = ModelOptions(temperature=0.5, effort="low")
    first = options.without_refused(complaint)
    assert first is not None
    assert first.in_use == (("effort",) if "temperature" in complaint else ("temperature",))
    second = first.without_refused(complaint)
    assert second is not None
    assert second.without_refused(complaint) is None
    assert len(second.notes) == 2
