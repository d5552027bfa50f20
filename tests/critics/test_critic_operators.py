"""Operators against hand-made values, a temporal logic library and plain Python."""

from __future__ import annotations

import math
import warnings
from itertools import pairwise

import numpy as np
import pytest
from critic_texts import HZ, compiled, firing_when, history, problems_of
from hypothesis import given, settings
from hypothesis import strategies as st

from zetta.critics import operators
from zetta.critics.operators import OPERATORS, ticks_in

X = (0.05, 0.03, 0.018, 0.015, 0.012, 0.011, 0.03, 0.05)
"""Reference trace of past-time signal temporal logic; its robustness is below, from rtamt."""
HISTORICALLY_0_2 = (-0.03, -0.03, -0.03, -0.01, 0.002, 0.005, -0.01, -0.03)
ONCE_0_2 = (-0.03, -0.01, 0.002, 0.005, 0.008, 0.009, 0.009, 0.009)


def verdicts(condition: str, **series: list[float]) -> list[bool | None]:
    """Return what a critic says at each tick of a trace; None where it is disarmed."""
    critic = compiled(firing_when(condition))
    ticks = len(next(iter(series.values())))
    said: list[bool | None] = []
    for end in range(1, ticks + 1):
        verdict = critic.judge(history(HZ, **{k: v[:end] for k, v in series.items()}))
        fired = verdict.decision == "recover"
        said.append(None if verdict.reason.startswith("disarmed") else fired)
    return said


def test_reference_trace_gives_the_reference_signs() -> None:
    held = verdicts("held(w.slip <= 0.02, 0.1)", slip=list(X))
    once = verdicts("once(w.slip <= 0.02, 0.1)", slip=list(X))

    assert held == [None, None, *(value > 0 for value in HISTORICALLY_0_2[2:])]
    assert once == [None, None, *(value > 0 for value in ONCE_0_2[2:])]
    assert {True, False} <= set(held)
    assert True in once


def robustness(formula: str, **series: list[float]) -> list[float]:
    """Return the robustness of a past-time formula at each tick, from rtamt."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the library's own parser
        import rtamt

        specification = rtamt.StlDiscreteTimeOnlineSpecification()
        for name in series:
            specification.declare_var(name, "float")
        specification.declare_var("out", "float")
        specification.spec = f"out = {formula}"
        specification.parse()
        ticks = len(next(iter(series.values())))
        return [
            float(specification.update(t, [(name, values[t]) for name, values in series.items()]))
            for t in range(ticks)
        ]


TRACE = st.lists(st.integers(-4, 4), min_size=14, max_size=24)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("held(w.slip > 0.5, {s})", "historically[0:{k}](slip > 0.5)"),
        ("once(w.slip > 0.5, {s})", "once[0:{k}](slip > 0.5)"),
        (
            "since(w.slip > 0.5, w.lift > 0.5, {s})",
            "(slip > 0.5) since[0:{k}] (lift > 0.5)",
        ),
        (
            "held(w.slip > 0.5 or not w.lift > 1.5, {s})",
            "historically[0:{k}]((slip > 0.5) or not(lift > 1.5))",
        ),
        (
            "once(w.slip > 0.5 and w.lift <= 1.5, {s})",
            "once[0:{k}]((slip > 0.5) and (lift <= 1.5))",
        ),
    ],
)
@settings(max_examples=25, deadline=None)
@given(slip=TRACE, lift=TRACE, k=st.integers(1, 6))
def test_past_time_operators_agree_with_rtamt(
    ours: str, theirs: str, slip: list[int], lift: list[int], k: int
) -> None:
    ticks = min(len(slip), len(lift))
    x, y = [float(v) for v in slip[:ticks]], [float(v) for v in lift[:ticks]]

    said = verdicts(ours.format(s=k / HZ), slip=x, lift=y)
    values = robustness(theirs.format(k=k), slip=x, lift=y)

    # Thresholds lie between whole numbers, so no robustness is zero.
    assert said[k:] == [value > 0 for value in values[k:]]
    assert all(value is None for value in said[:k])


NUMBERS = st.lists(st.floats(-100, 100), min_size=2, max_size=50)
FLAGS = st.lists(st.booleans(), min_size=2, max_size=50)


@given(x=NUMBERS)
def test_numbers_of_a_window_are_those_of_plain_python(x: list[float]) -> None:
    view = np.array(x)
    steps = [b - a for a, b in pairwise(x)]

    assert operators.mean(view) == pytest.approx(math.fsum(x) / len(x), abs=1e-9)
    assert operators.minimum(view) == min(x)
    assert operators.maximum(view) == max(x)
    assert operators.spread(view) == max(x) - min(x)
    assert operators.ago(view) == x[0]
    assert operators.delta(view) == x[-1] - x[0]
    assert operators.rate(view, 0.5) == (x[-1] - x[0]) / 0.5
    assert operators.path_length(view) == pytest.approx(math.fsum(map(abs, steps)), abs=1e-9)
    for level in (x[0], 0.0):
        sides = [value >= level for value in x]
        crossed = any(a != b for a, b in pairwise(sides))
        assert operators.crossed(view, level) == crossed


@given(flags=FLAGS)
def test_conditions_of_a_window_are_those_of_plain_python(flags: list[bool]) -> None:
    view = np.array(flags)

    assert operators.held(view) == all(flags)
    assert operators.once(view) == any(flags)
    assert operators.count(view) == sum(flags)
    assert operators.share(view) == sum(flags) / len(flags)
    assert operators.rose(view) == any(b and not a for a, b in pairwise(flags))


@given(a=FLAGS, b=FLAGS)
def test_since_is_that_of_its_definition(a: list[bool], b: list[bool]) -> None:
    ticks = min(len(a), len(b))
    a, b = a[:ticks], b[:ticks]
    expected = any(b[i] and all(a[i + 1 :]) for i in range(ticks))

    assert operators.since(np.array(a), np.array(b)) == expected


def test_hysteresis_is_since_of_two_levels() -> None:
    slip = [0.0] * 10 + [0.3, 0.6, 0.9, 0.6, 0.3, 0.6, 0.1, 0.3, 0.6]
    condition = "since(w.slip > 0.2, w.slip > 0.8, 0.5)"

    fired = [k for k, said in enumerate(verdicts(condition, slip=slip)) if said]

    assert fired == [12, 13, 14, 15]


@pytest.mark.parametrize("name", [name for name, op in OPERATORS.items() if op.least_ticks > 1])
def test_operator_of_changes_looks_at_least_one_tick_back(name: str) -> None:
    call = {
        "delta": "delta(w.slip, 0) == 2", "rate": "rate(w.slip, 0) == 40",
        "path_length": "path_length(w.slip, 0) == 2", "crossed": "crossed(w.slip, 2, 0)",
        "rose": "rose(w.slip > 2, 0)",
    }[name]  # fmt: skip

    assert verdicts(call, slip=[1.0, 3.0]) == [None, True]


@pytest.mark.parametrize(
    ("seconds", "hz", "ticks"),
    [(0.0, 20.0, 1), (0.05, 20.0, 2), (0.1, 20.0, 3), (0.12, 20.0, 3), (0.13, 20.0, 4),
     (5.0, 20.0, 101), (1.0, 12.5, 14), (0.3, 10.0, 4)],
)  # fmt: skip
def test_window_reaches_to_the_nearest_tick(seconds: float, hz: float, ticks: int) -> None:
    assert ticks_in(seconds, hz) == ticks


def test_every_operator_explains_itself_and_has_a_function() -> None:
    for operator in OPERATORS.values():
        assert operator.meaning
        assert operator.formula
        functions = operators.WINDOW_FUNCTIONS if operator.windowed else operators.SERIES_FUNCTIONS
        assert operator.name == "now" or operator.name in functions
    assert problems_of(firing_when("now(w.slip) > 0")) == ()
