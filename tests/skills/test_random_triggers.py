"""Interventions at random: copied between two ticks."""

from __future__ import annotations

import pytest

from zetta.runtime.errors import SpecMismatch
from zetta.runtime.signals import SignalHistory
from zetta.runtime.snapshots import restore, saved
from zetta.skills.random_triggers import RandomMonitor, Trigger

PAST = [(Trigger(0.1, "regrasp"), Trigger(0.5, "reseat"))]


@pytest.mark.parametrize("at", [0, 9, 11, 30, 55])
def test_a_restored_monitor_asks_as_the_one_that_went_on(at: int) -> None:
    window = SignalHistory((), 20.0)
    went_on, restored = (RandomMonitor(PAST, 100, [k]) for k in (0, 1))
    for _ in range(at):
        went_on.judge(window, "policy")
    restore(restored, "monitor", saved(went_on, "monitor"))
    said = [went_on.judge(window, "policy") for _ in range(at, 90)]
    assert [restored.judge(window, "policy") for _ in range(at, 90)] == said
    assert any(said) == (at < 70)


def test_the_state_of_another_draw_is_refused() -> None:
    state = saved(RandomMonitor(PAST, 100, [0]), "monitor")
    with pytest.raises(SpecMismatch, match="another random draw"):
        restore(RandomMonitor([(Trigger(0.2, "regrasp"),)], 100, [0]), "monitor", state)
