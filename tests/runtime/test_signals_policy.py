"""What successive chunks tell about a policy."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scripted_parts import FRONT

from zetta.runtime.core import ActionChunk, Array, PolicySpec, read_only
from zetta.runtime.signals_policy import PolicySignals
from zetta.sims.toy import action_spec

H, TICK = 6, 0.05
RELATIVE = PolicySpec("relative", action_spec(), (FRONT,), 4, H)
ABSOLUTE = replace(RELATIVE, action=replace(action_spec(), kind="target_pose"))


def chunk(
    t: float, places: Array, closing: tuple[int, ...] = (), spread: float = 0.25
) -> ActionChunk:
    rows = np.zeros((H, 7))
    rows[:, :3] = places
    rows[:, 6] = [1.0 if k in closing else -1.0 for k in range(H)]
    return ActionChunk(read_only(rows), t, spread)


def line(start: int) -> Array:
    """Return places on one line through time, 1 cm a tick, from tick `start` on."""
    ticks = np.arange(start, start + H)[:, None]
    return ticks * np.array([0.01, 0.0, 0.0])


def test_plans_for_the_same_line_agree_whatever_their_ticks() -> None:
    signals = PolicySignals(ABSOLUTE, 0)
    assert math.isnan(signals.update(0.05, chunk(0.0, line(0)))[0])
    assert signals.update(0.25, chunk(4 * TICK, line(4)))[0] == pytest.approx(0.0, abs=1e-12)


def test_disagreement_is_the_distance_of_the_common_future_in_metres() -> None:
    signals = PolicySignals(ABSOLUTE, 0)
    signals.update(0.05, chunk(0.0, line(0)))
    aside = line(4) + np.array([0.0, 0.03, 0.04])
    assert signals.update(0.25, chunk(4 * TICK, aside))[0] == pytest.approx(0.05)


def test_displacements_are_added_up_and_scaled() -> None:
    signals = PolicySignals(RELATIVE, 0)
    steady = np.tile([0.2, 0.0, 0.0], (H, 1))  # 1 cm a tick
    signals.update(0.05, chunk(0.0, steady))
    still = signals.update(0.25, chunk(4 * TICK, np.zeros((H, 3))))

    # Two ticks are common: the plans are 1 cm and then 2 cm apart.
    assert still[0] == pytest.approx(math.sqrt((0.01**2 + 0.02**2) / 2))
    assert signals.update(0.45, chunk(8 * TICK, np.zeros((H, 3))))[0] == 0.0


def test_the_disagreement_stays_until_the_next_chunk_and_ends_with_a_motion() -> None:
    signals = PolicySignals(ABSOLUTE, 0)
    signals.update(0.05, chunk(0.0, line(0)))
    second = chunk(4 * TICK, line(5))
    assert [signals.update(t, second)[0] for t in (0.25, 0.3)] == pytest.approx([0.01, 0.01])

    assert all(math.isnan(signals.update(0.35, None)[i]) for i in (0, 1, 3))
    assert math.isnan(signals.update(0.45, chunk(0.4, line(8)))[0])


def test_plans_without_a_common_future_cannot_be_compared() -> None:
    signals = PolicySignals(ABSOLUTE, 0)
    signals.update(0.05, chunk(0.0, line(0)))
    assert math.isnan(signals.update(0.5, chunk(H * TICK, line(H)))[0])


def test_dispersion_and_age_are_those_of_the_pending_chunk() -> None:
    signals = PolicySignals(ABSOLUTE, 0)
    said = signals.update(0.15, chunk(0.05, line(1), spread=0.125))
    assert said[1] == 0.125
    assert said[3] == pytest.approx(0.1)


def test_flips_count_the_rows_that_were_driven_and_are_forgotten_after_two_seconds() -> None:
    signals = PolicySignals(ABSOLUTE, 0)
    flickering = chunk(0.0, line(0), closing=(1, 3))
    counts = [signals.update(k * TICK, flickering)[2] for k in range(1, 5)]
    assert counts == [0, 1, 2, 3]

    calm = chunk(4 * TICK, line(4), closing=tuple(range(H)))
    assert [signals.update(t, calm)[2] for t in (0.25, 2.1, 2.15, 2.2, 2.3)] == [3, 3, 2, 1, 0]


def test_a_plan_before_and_one_after_a_motion_make_no_flip() -> None:
    signals = PolicySignals(ABSOLUTE, 0)
    signals.update(0.05, chunk(0.0, line(0)))
    signals.update(0.1, None)
    assert signals.update(0.2, chunk(0.15, line(0), closing=tuple(range(H))))[2] == 0


def test_an_action_that_is_no_pose_has_no_disagreement_and_still_a_gripper() -> None:
    spec = replace(RELATIVE, action=replace(action_spec(), kind="joint_position"))
    signals = PolicySignals(spec, 0)
    signals.update(0.05, chunk(0.0, line(0)))
    said = signals.update(0.25, chunk(4 * TICK, line(4), closing=tuple(range(H))))
    assert math.isnan(said[0])
    assert said[2] == 1
