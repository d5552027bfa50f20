"""The registry of signals, its document, and the history."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zetta.runtime.core import SENSING_LEVELS, Window
from zetta.runtime.errors import ConfigError, SpecMismatch
from zetta.runtime.signals import (
    ARM,
    OTHER,
    ROLES,
    SIGNALS,
    SignalHistory,
    check_signals,
    names_up_to,
)
from zetta.runtime.signals_document import signals_table, with_table

DOCUMENT = Path(__file__).parents[2] / "docs" / "signals.md"


def as_window(history: SignalHistory) -> Window:
    return history


def history_of(values: list[float], span_s: float = 1.0) -> SignalHistory:
    history = SignalHistory(["a", "b"], 10.0, span_s)
    for value in values:
        history.push(np.array([value, 0.0]))
    return history


def test_every_signal_has_a_name_of_its_own_a_range_a_level_and_a_sentence() -> None:
    for name, spec in SIGNALS.items():
        assert spec.name == name
        assert spec.low < spec.high
        assert spec.level in SENSING_LEVELS
        assert spec.doc.endswith(".")
        assert spec.unit in ("m", "m/s", "rad", "rad/s", "s", "")


def test_levels_are_told_by_what_is_needed() -> None:
    assert SIGNALS["holding"].level == "proprio"
    assert SIGNALS["since_handback"].level == "proprio"
    assert SIGNALS["chunk_disagreement"].level == "policy"
    assert {SIGNALS[f"{role}_distance"].level for role in ROLES} == {"vision"}
    assert {SIGNALS[f"oracle_{role}_above"].level for role in ROLES} == {"oracle"}
    assert all(SIGNALS[OTHER + spec.name].level == "proprio" for spec in ARM)


def test_names_up_to_a_level_hold_nothing_above_it_and_no_second_arm_unless_there_is_one() -> None:
    for level in SENSING_LEVELS:
        allowed = SENSING_LEVELS[: SENSING_LEVELS.index(level) + 1]
        assert {SIGNALS[name].level for name in names_up_to(level)} == set(allowed)
    assert not any(name.startswith(OTHER) for name in names_up_to("oracle"))
    assert names_up_to("oracle", arms=2) == set(SIGNALS)


def test_an_unknown_signal_suggests_the_nearest() -> None:
    check_signals(["holding", "wander"])
    with pytest.raises(ConfigError, match="did you mean 'holding'"):
        check_signals(["wander", "holdin"])


def test_the_document_says_what_the_registry_says() -> None:
    document = DOCUMENT.read_text(encoding="utf-8")

    assert document == with_table(document, signals_table()), (
        "run python -m zetta.runtime.signals_document docs/signals.md"
    )
    assert all(f"`{name}`" in document for name in SIGNALS if not name.startswith(OTHER))


def test_a_document_without_marks_is_refused() -> None:
    with pytest.raises(ValueError, match="lacks the lines"):
        with_table("# Signals\n", signals_table())


# --------------------------------------------------------------------------- the history


@given(st.lists(st.sampled_from([0.0, 1.5, -2.0, float("nan")]), max_size=40), st.integers(1, 11))
def test_a_window_is_the_end_of_what_was_pushed_and_nan_before(
    values: list[float], ticks: int
) -> None:
    history = history_of(values)
    kept = ([float("nan")] * history.ticks + values)[-history.ticks :]
    run = 0
    for value in reversed(kept):
        if np.isnan(value):
            break
        run += 1

    assert history.ticks == 11
    np.testing.assert_array_equal(history.last("a", ticks), kept[-ticks:])
    assert history.valid_for("a") == run
    assert history.valid_for("b") == min(len(values), history.ticks)


def test_a_window_is_a_view_that_the_next_tick_overwrites() -> None:
    history = history_of([1.0, 2.0, 3.0])
    window = as_window(history).last("a", 11)

    assert window.base is not None
    for value in range(11):
        history.push(np.array([value, 0.0]))
    np.testing.assert_array_equal(history.last("a", 11), range(11))


def test_the_longest_window_of_a_critic_fits_with_the_tick_before_it() -> None:
    assert SignalHistory(["a"], 20.0).ticks == 101
    assert SignalHistory(["a"], 15.0, 0.5).ticks == 9


def test_a_cleared_history_is_as_new() -> None:
    history = history_of([1.0] * 17)
    history.clear()

    assert history.valid_for("a") == 0
    assert np.isnan(history.last("a", 11)).all()
    history.push(np.array([4.0, 5.0]))
    assert history.last("b", 1)[0] == 5.0


def test_wrong_windows_names_and_rates_are_refused() -> None:
    history = history_of([1.0])
    for ticks in (0, 12):
        with pytest.raises(ConfigError, match="11 are kept"):
            history.last("a", ticks)
    with pytest.raises(KeyError):
        history.last("c", 1)
    with pytest.raises(KeyError):
        history.valid_for("c")
    with pytest.raises(ConfigError, match="both are positive"):
        SignalHistory(["a"], 0.0)
    with pytest.raises(ConfigError, match="twice"):
        SignalHistory(["a", "a"], 20.0)


@pytest.mark.parametrize("count", [0, 5, 11, 29])
def test_a_restored_history_continues_bit_exactly(count: int) -> None:
    first = history_of([float(k) for k in range(count)])
    second = history_of([9.0, 9.0])
    second.restore(first.snapshot())

    for history in (first, second):
        history.push(np.array([0.25, np.nan]))
    for name in ("a", "b"):
        np.testing.assert_array_equal(first.last(name, 11), second.last(name, 11))
        assert first.valid_for(name) == second.valid_for(name)


def test_a_foreign_snapshot_is_refused() -> None:
    history = history_of([1.0])
    with pytest.raises(SpecMismatch, match="no history"):
        history.restore(b"nothing")
    with pytest.raises(SpecMismatch, match="same bundle and robot"):
        history.restore(SignalHistory(["a"], 10.0, 1.0).snapshot())
    with pytest.raises(SpecMismatch, match="same bundle and robot"):
        history.restore(SignalHistory(["a", "b"], 10.0, 2.0).snapshot())
    assert history.last("a", 1)[0] == 1.0
