"""A trace comes to what the critic said, and shows only what was asked."""

from __future__ import annotations

import pytest
from critic_grammar import Grammar
from critic_texts import PARAMETERS, compiled, critic_of, firing_when, history, problems_of
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from zetta.critics.critic import is_disarmed
from zetta.critics.tracing import trace
from zetta.runtime.errors import ConfigError, ScreenError

PHASES = (Phase.explicit, Phase.reuse, Phase.generate)


@settings(max_examples=150, deadline=None, phases=PHASES)
@given(seed=st.integers(0, 2**32 - 1))
def test_trace_comes_to_the_verdict_of_the_critic(seed: int) -> None:
    grammar = Grammar(seed)
    source, window = grammar.program(), grammar.window()
    if problems_of(source):
        return  # what is drawn may be too large
    before = window.snapshot()
    verdict = compiled(source).judge(window)

    found = trace(source, window, PARAMETERS)

    assert bool(found.unknown) == is_disarmed(verdict)
    assert (found.answer == 0) == (verdict.decision == "pass")
    if found.decided is not None and found.answer:
        assert verdict.reason in source.splitlines()[found.decided - 1]
    assert (found.decided is None) == bool(found.unknown)
    assert window.snapshot() == before


def test_trace_shows_values_in_the_order_in_which_they_were_asked() -> None:
    source = critic_of(
        "far = mean(w.object_distance, 0.1)\n"
        'if far > p.near:\n    return recover("far")\nreturn ok()'
    )
    found = trace(source, history(object_distance=[0.1, 0.2, 0.3]), PARAMETERS)

    assert [(seen.line, seen.text, seen.value) for seen in found.seen] == [
        (8, "mean(w.object_distance, 0.1)", pytest.approx(0.2)),
        (9, "far > p.near", True),
    ]
    assert (found.decided, found.answer, found.unknown) == (10, 1, "")


def test_what_stands_behind_a_false_condition_was_never_asked() -> None:
    source = critic_of(
        "if now(w.holding) > 0.5 and now(w.slip) > 0.01:\n"
        '    return recover("it slips")\nreturn ok()'
    )
    found = trace(source, history(holding=[0.0], slip=[0.5]), PARAMETERS)

    assert [seen.text for seen in found.seen if "slip" in seen.text] == [
        "now(w.holding) > 0.5 and now(w.slip) > 0.01"
    ]
    assert found.decided == 10


def test_parameters_other_than_the_defaults_decide() -> None:
    source = firing_when("now(w.object_distance) > p.near")
    window = history(object_distance=[0.1])

    assert trace(source, window, PARAMETERS).answer == 1
    assert trace(source, window, PARAMETERS, {"near": 0.2}).answer == 0


def test_an_unknown_value_is_named_and_nothing_is_decided() -> None:
    source = firing_when("now(w.object_distance) > 0.1")
    found = trace(source, history(holding=[1.0]), PARAMETERS)

    assert (found.unknown, found.decided, found.seen) == ("object_distance", None, ())


def test_what_is_no_critic_is_refused() -> None:
    with pytest.raises(ScreenError):
        trace(critic_of("import os"), history(holding=[1.0]))
    with pytest.raises((ScreenError, ConfigError)):
        trace('"""Nothing."""\nWINDOW_S = 1.0\n', history(holding=[1.0]))
