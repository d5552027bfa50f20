"""Replay windows: their file, and what it takes to meet one."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from zetta.critics.critic import Critic, compile_critic
from zetta.runtime.core import read_only
from zetta.runtime.errors import ConfigError, ScreenError
from zetta.skills.replay import (
    Expectation,
    ReplayWindow,
    meet,
    read_window,
    replay,
    window_text,
)
from zetta.skills.replay_cut import cut

CRITIC = '''"""The hand lies low."""
WINDOW_S = 1.0
SKILL = "probe"
def check(w, p):
    if held(w.lift < 0.0, 0.1):
        return recover("it lies low")
    return ok()
'''
PATH = Path("probe/replay/case.json")


def critic() -> Critic:
    return compile_critic(CRITIC, "critic.py", "probe", 20.0)


def window(expect: Expectation, values: list[float], tick: int | None = None) -> ReplayWindow:
    return ReplayWindow("case", 20.0, expect, tick, "by hand", {"lift": read_only(values)})


def met(expect: Expectation, values: list[float], tick: int | None = None) -> bool:
    case = window(expect, values, tick)
    return meet(case, replay(case, critic(), lambda _: True)).passed


LOW, HIGH, UNKNOWN = -1.0, 1.0, float("nan")


def test_fires_is_met_by_a_verdict_and_by_nothing_less() -> None:
    assert met("fires", [HIGH, LOW, LOW, LOW])
    assert not met("fires", [HIGH, LOW, LOW, HIGH])
    assert not met("fires", [UNKNOWN] * 4)


def test_a_tick_says_when_it_first_fires() -> None:
    assert met("fires", [HIGH, LOW, LOW, LOW, LOW], tick=3)
    assert not met("fires", [HIGH, LOW, LOW, LOW, LOW], tick=4)


def test_silent_is_not_met_by_a_critic_that_never_judged() -> None:
    assert met("silent", [HIGH] * 4)
    assert not met("silent", [UNKNOWN] * 4)
    assert not met("silent", [LOW] * 4)


def test_disarmed_is_about_one_tick_the_last_one_unless_named() -> None:
    assert met("disarmed", [HIGH, HIGH, HIGH, UNKNOWN])
    assert not met("disarmed", [UNKNOWN, HIGH, HIGH, HIGH])
    assert met("disarmed", [UNKNOWN, HIGH, HIGH, HIGH], tick=0)
    assert not met("disarmed", [LOW, LOW, LOW, UNKNOWN])


def test_a_skill_that_may_not_start_does_not_fire() -> None:
    case = window("silent", [LOW] * 5)
    outcome = meet(case, replay(case, critic(), lambda _: False))

    assert outcome.passed


def test_a_window_without_a_signal_that_is_read_is_an_error_and_no_silence() -> None:
    case = ReplayWindow("case", 20.0, "silent", None, "", {"slip": read_only([0.0, 0.0])})

    with pytest.raises(ScreenError, match="lacks lift"):
        replay(case, critic(), lambda _: True)
    with pytest.raises(ScreenError, match="lacks holding"):
        replay(window("silent", [HIGH]), critic(), lambda _: True, ["holding"])


def test_a_window_survives_being_written_and_read() -> None:
    signals = {
        "lift": read_only([0.123456, UNKNOWN, 0.25]),
        "holding": read_only([1.0, 1.0, 1.0]),
        "slip": read_only([UNKNOWN] * 3),
    }
    case = ReplayWindow("case", 20.0, "fires", 2, "a log", signals)
    text = window_text(case)
    read = read_window(text, PATH)

    assert json.loads(text)["signals"]["holding"] == 1
    assert (read.name, read.control_hz, read.expect, read.tick, read.source) == (
        "case", 20.0, "fires", 2, "a log",
    )  # fmt: skip
    for name, values in signals.items():
        np.testing.assert_allclose(read.signals[name], values, atol=5e-5)


def test_constant_signals_alone_keep_their_length() -> None:
    case = window("silent", [HIGH] * 7)

    assert read_window(window_text(case), PATH).ticks == 7


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("{", 1, "no JSON"),
        ("[]", 1, "one JSON object"),
        ('{"control_hz": 20,\n"expect": "fires"}', 1, "'signals' is missing"),
        ('{"control_hz": 0,\n"expect": "fires", "signals": {"lift": [1]}}', 1, "1 to 1000"),
        ('{"control_hz": 20,\n"expect": "fire", "signals": {"lift": [1]}}', 2, "'fires'"),
        ('{"control_hz": 20,\n"expekt": 1, "signals": {"lift": [1]}}', 2, "'expect'"),
        ('{"control_hz": 20, "expect": "fires",\n"signals": {"lifd": [1]}}', 2, "'lift'"),
        ('{"control_hz": 20, "expect": "fires",\n"signals": {}}', 2, "no JSON object"),
        ('{"control_hz": 20, "expect": "fires",\n"signals": {"lift": 1}}', 2, "as a list"),
        ('{"control_hz": 20, "expect": "fires",\n"signals": {"lift": []}}', 2, "0 values"),
        ('{"control_hz": 20, "expect": "fires",\n"signals": {"lift": [true]}}', 2, "finite"),
        ('{"control_hz": 20, "expect": "fires",\n"signals": {"lift": ["1"]}}', 2, "finite"),
        ('{"control_hz": 20, "expect": "fires",\n"signals": {"lift": [NaN]}}', 1, "NaN stands"),
        ('{"control_hz": 20, "expect": "fires",\n"signals": {"lift": [1e99]}}', 2, "finite"),
        (
            '{"control_hz": 20, "expect": "fires", "signals": {"slip": [1, 2],\n"lift": [1]}}',
            2, "lift has 1 values",
        ),
        (
            '{"control_hz": 20, "expect": "fires",\n"tick": 1, "signals": {"lift": [1]}}',
            2, "ticks 0 to 0",
        ),
        (
            '{"control_hz": 20, "expect": "silent",\n"tick": 0, "signals": {"lift": [1]}}',
            2, "names no tick",
        ),
        ('{"control_hz": 20, "expect": "fires", "signals": {"lift": [%s1]}}' % ("1," * 2000), 1,
         "2001 ticks"),
        ("[" * 100_000, 1, "no JSON"),
    ],
)  # fmt: skip
def test_a_bad_window_names_its_line(text: str, line: int, reason: str) -> None:
    with pytest.raises(ScreenError) as refused:
        read_window(text, PATH)

    assert str(refused.value).startswith(f"{PATH}:{line}: ")
    assert reason in str(refused.value)


def test_a_part_of_a_record_becomes_a_window() -> None:
    record = {"lift": read_only(np.arange(10.0))}
    part = cut("part", record, 20.0, "fires", "a log", (3, 6))

    assert part.signals["lift"].tolist() == [3.0, 4.0, 5.0]
    with pytest.raises(ConfigError, match="ticks 0 to 9"):
        cut("part", record, 20.0, "fires", "a log", (3, 11))
