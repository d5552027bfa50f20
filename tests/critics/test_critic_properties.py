"""Whatever the language takes ends, answers with a verdict, and changes nothing."""

from __future__ import annotations

import ast
import math

import pytest
from critic_grammar import Grammar
from critic_texts import HEAD, PARAMETERS, compiled, problems_of
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st

from zetta.critics.critic import is_disarmed
from zetta.critics.language import CheckedCritic, analyse_critic
from zetta.critics.values import MAX_WORK
from zetta.runtime.core import Verdict
from zetta.runtime.signals import SIGNALS

SEEDS = st.integers(0, 2**32 - 1)
# A seed cannot be shrunk, and explaining traces every line, which is ten times slower.
PHASES = (Phase.explicit, Phase.reuse, Phase.generate)


def check_one(seed: int) -> str:
    """Compile one program that obeys the language, let it judge, and look at all it did.

    Returns what became of it.
    """
    grammar = Grammar(seed)
    source, window = grammar.program(), grammar.window()
    checked = analyse_critic(source, "critic.py", SIGNALS, PARAMETERS)
    if isinstance(checked, tuple):
        # What is drawn is right but may be too large.
        assert all("units of work" in problem.reason for problem in checked), (source, checked)
        return "too large"
    before = window.snapshot()
    critic = compiled(source)

    verdict = critic.judge(window)

    assert isinstance(verdict, Verdict), source
    assert all(math.isfinite(value) for value in verdict.evidence.values())
    assert critic.judge(window) == verdict
    assert compiled(source).judge(window) == verdict
    assert window.snapshot() == before
    assert checked.work <= MAX_WORK
    return "disarmed" if is_disarmed(verdict) else verdict.decision


@settings(max_examples=300, deadline=None, phases=PHASES)
@given(seed=SEEDS)
def test_valid_critic_always_answers_with_a_verdict(seed: int) -> None:
    check_one(seed)


@pytest.mark.slow
@pytest.mark.timeout(900)
@settings(max_examples=5000, deadline=None, phases=PHASES)
@given(seed=SEEDS)
def test_five_thousand_valid_critics_answer_with_a_verdict(seed: int) -> None:
    check_one(seed)


def test_critics_that_are_drawn_come_to_every_end() -> None:
    # The property above would say nothing if all were too large or disarmed.
    ends = [check_one(seed) for seed in range(120)]

    assert set(ends) >= {"pass", "recover", "abort", "disarmed"}
    assert ends.count("too large") < len(ends) / 3


@settings(max_examples=200, deadline=None)
@given(text=st.text(max_size=300))
@example(text="\0")
@example(text="x = (" * 100)
def test_no_text_whatever_breaks_the_check(text: str) -> None:
    for source in (text, HEAD + text, HEAD + "    return " + text):
        problems = problems_of(source)
        assert problems or isinstance(ast.parse(source), ast.Module)


@settings(max_examples=200, deadline=None)
@given(raw=st.binary(max_size=300))
def test_no_bytes_whatever_break_the_check(raw: bytes) -> None:
    assert problems_of(raw)


@settings(max_examples=200, deadline=None, phases=PHASES)
@given(
    seed=SEEDS,
    edits=st.lists(st.tuples(SEEDS, st.sampled_from("()[]:=\n\t 'w.p@*,0é\\#{}")), max_size=4),
)
def test_damaged_program_is_judged_or_refused_but_never_breaks_the_check(
    seed: int, edits: list[tuple[int, str]]
) -> None:
    source = Grammar(seed).program()
    for place, character in edits:
        at = place % len(source)
        source = source[:at] + character + source[at + 1 :]

    problems = problems_of(source)

    assert all(1 <= problem.line <= source.count("\n") + 2 for problem in problems)
    assert isinstance(problems, tuple)


def test_program_that_is_not_damaged_is_accepted() -> None:
    assert isinstance(analyse_critic(Grammar(1).program(), "c", SIGNALS, PARAMETERS), CheckedCritic)
