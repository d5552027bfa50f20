"""The monitor: latch, refractory time, arming, and critics that fail."""

from __future__ import annotations

import time

import numpy as np
import pytest

from zetta.critics.monitor import CLEAR_TICKS, CriticMonitor
from zetta.runtime.core import Array, Verdict, Window
from zetta.runtime.errors import SpecMismatch


class Past:
    """A window of one signal, `x`, at 20 Hz."""

    control_hz = 20.0

    def __init__(self) -> None:
        self.values: list[float] = []

    def last(self, name: str, ticks: int) -> Array:
        return np.array(self.values[-ticks:])

    def valid_for(self, name: str) -> int:
        return len(self.values)


class Above:
    """Wants the skill `help` while x is above 1."""

    name, skill, refractory_s = "above", "help", 0.2

    def __init__(self, decision: str = "recover") -> None:
        self.decision = decision

    def armed(self, window: Window) -> bool:
        return float(window.last("x", 1)[0]) >= 0.0

    def judge(self, window: Window) -> Verdict:
        if float(window.last("x", 1)[0]) > 1.0:
            return Verdict(self.decision, "x is high", self.name, self.skill)  # type: ignore[arg-type]
        return Verdict("pass")


def spoken(monitor: CriticMonitor, past: Past, values: list[float], driving: str) -> list[int]:
    """Feed `values`; return at which of them something was said."""
    said = []
    for i, value in enumerate(values):
        past.values.append(value)
        if monitor.judge(past, driving):
            said.append(i)
    return said


def begun(critic: object, limit_s: float | None = None) -> tuple[CriticMonitor, Past]:
    monitor = CriticMonitor([critic], limit_s)  # type: ignore[list-item]
    monitor.begin()
    return monitor, Past()


def test_a_condition_is_reported_at_every_tick_until_its_skill_drives() -> None:
    monitor, past = begun(Above())
    assert spoken(monitor, past, [0, 2, 2, 2], "policy") == [1, 2, 3]
    assert spoken(monitor, past, [2, 2], "skill:help") == []


def test_another_skill_that_drives_does_not_silence_a_critic() -> None:
    monitor, past = begun(Above())
    assert spoken(monitor, past, [2, 2], "skill:other") == [0, 1]


def test_after_its_skill_a_critic_stays_latched_until_the_condition_has_cleared() -> None:
    monitor, past = begun(Above())
    spoken(monitor, past, [2], "skill:help")
    assert spoken(monitor, past, [2.0] * 40, "policy") == []
    assert spoken(monitor, past, [0.0] * (CLEAR_TICKS - 1) + [2.0], "policy") == []
    assert spoken(monitor, past, [0.0] * CLEAR_TICKS + [2.0], "policy") == [CLEAR_TICKS]


def test_within_the_refractory_time_a_cleared_condition_is_not_reported() -> None:
    monitor, past = begun(Above())
    spoken(monitor, past, [2], "skill:help")
    # 0.2 s at 20 Hz: four ticks after the last one that the skill drove.
    assert spoken(monitor, past, [0, 0, 0, 2, 2], "policy") == [4]


def test_a_critic_that_is_not_armed_says_nothing() -> None:
    class Unarmed(Above):
        def armed(self, window: Window) -> bool:
            return False

    monitor, past = begun(Unarmed())
    assert spoken(monitor, past, [2, 2], "policy") == []


def test_an_abort_is_not_held_back_by_latch_or_refractory_time() -> None:
    monitor, past = begun(Above("abort"))
    spoken(monitor, past, [2], "skill:help")
    assert spoken(monitor, past, [2], "policy") == [0]


def test_an_abort_is_heard_while_its_own_skill_drives() -> None:
    monitor, past = begun(Above("abort"))
    assert spoken(monitor, past, [2, 0, 2], "skill:help") == [0, 2]


@pytest.mark.parametrize("error", [ZeroDivisionError("by zero"), KeyError("x"), ValueError("no")])
def test_a_critic_that_raises_is_switched_off_for_the_episode_and_recorded_once(
    error: Exception,
) -> None:
    class Broken(Above):
        def judge(self, window: Window) -> Verdict:
            raise error

    monitor = CriticMonitor([Broken(), Above()])
    monitor.begin()
    past = Past()
    past.values.append(2.0)
    first = monitor.judge(past, "policy")
    assert [v.decision for v in first] == ["pass", "recover"]
    assert "switched off" in first[0].reason
    assert type(error).__name__ in first[0].reason
    assert [v.decision for v in monitor.judge(past, "policy")] == ["recover"]
    monitor.begin()
    assert [v.decision for v in monitor.judge(past, "policy")] == ["pass", "recover"]


def test_a_critic_that_takes_too_long_is_switched_off_where_a_limit_is_set() -> None:
    class Slow(Above):
        def judge(self, window: Window) -> Verdict:
            time.sleep(0.02)
            return Verdict("recover", "late", self.name, self.skill)

    monitor, past = begun(Slow(), limit_s=0.005)
    past.values.append(0.0)
    (verdict,) = monitor.judge(past, "policy")
    assert verdict.decision == "pass"
    assert "of 5.0 ms" in verdict.reason
    assert monitor.judge(past, "policy") == ()


def test_the_same_windows_and_drivers_give_the_same_verdicts_again() -> None:
    rng = np.random.default_rng(5)
    values = rng.uniform(-1.0, 2.0, 300).tolist()
    drivers = ["skill:help" if v < -0.7 else "policy" for v in values]
    runs = []
    for _ in range(2):
        monitor, past = begun(Above())
        said = []
        for value, driving in zip(values, drivers, strict=True):
            past.values.append(value)
            said.append(monitor.judge(past, driving))
        runs.append(said)
    assert runs[0] == runs[1]
    assert 0 < sum(bool(v) for v in runs[0]) < sum(v > 1.0 for v in values)


@pytest.mark.parametrize("at", [0, 1, 37, 38, 39, 150])
def test_a_restored_monitor_gives_the_verdicts_of_the_one_that_went_on(at: int) -> None:
    values = np.random.default_rng(7).uniform(-1.0, 2.0, 300).tolist()
    drivers = ["skill:help" if 30 <= k % 60 < 38 else "policy" for k in range(300)]
    went_on, past = begun(Above())
    for value, driving in zip(values[:at], drivers[:at], strict=True):
        past.values.append(value)
        went_on.judge(past, driving)
    restored = CriticMonitor([Above()])
    restored.restore(went_on.state())
    said = []
    for value, driving in zip(values[at:], drivers[at:], strict=True):
        past.values.append(value)
        said.append(went_on.judge(past, driving))
        assert restored.judge(past, driving) == said[-1]
    assert restored.state() == went_on.state()
    assert any(said)


def test_a_state_keeps_what_was_switched_off_and_does_not_change_afterwards() -> None:
    class Broken(Above):
        def judge(self, window: Window) -> Verdict:
            raise ValueError("no")

    monitor, past = begun(Broken())
    before = monitor.state()
    past.values.append(2.0)
    monitor.judge(past, "policy")
    assert before.memories[0].off == ""
    assert "ValueError" in monitor.state().memories[0].off
    restored = CriticMonitor([Broken()])
    restored.restore(monitor.state())
    assert restored.judge(past, "policy") == ()
    restored.restore(before)
    assert len(restored.judge(past, "policy")) == 1


def test_the_state_of_other_critics_is_refused() -> None:
    monitor, _ = begun(Above())
    with pytest.raises(SpecMismatch, match="same bundle"):
        CriticMonitor([]).restore(monitor.state())
