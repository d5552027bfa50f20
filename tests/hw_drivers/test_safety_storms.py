"""Whatever is asked, what is sent keeps every limit: by finite differences of the record."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safe_runs import (
    DOWN,
    HAND,
    PANDA,
    TOLERANCE,
    FollowingArm,
    assert_safe,
    excesses,
    pieces,
    pose,
    run,
    sent,
    with_keep_out,
)
from storms import Storm

from zetta.hw_drivers.arm_limits import KeepOut
from zetta.hw_drivers.audit import AuditLog, verify
from zetta.hw_drivers.decisions import Command
from zetta.hw_drivers.safety import SafetyKernel
from zetta.runtime.workspace import Box

MEMORY = 40
"""Ticks within which a driver has lost the speed that a faster one left behind."""


def assert_weathered(storm: Storm) -> None:
    assert_safe(storm.decisions, storm.limits)
    assert_recorded(storm)
    assert_slow_enough(storm)


def assert_recorded(storm: Storm) -> None:
    """Every decision is in the record, with what was asked and why it was changed."""
    entries = [entry for entry in storm.entries if entry.event == "decision"]
    decisions = [decision for decision in storm.decisions if decision is not None]
    assert len(entries) == len(decisions)
    for entry, decision in zip(entries, decisions, strict=True):
        assert entry.sent is decision.sent
        assert entry.verdict == decision.verdict
        if decision.verdict == "as asked":
            assert entry.asked is not None
            assert np.array_equal(sent(decision), entry.asked.values)
        else:
            assert entry.reasons == decision.reasons
            assert all(decision.reasons)
            assert decision.reasons
        assert not any("internal error" in reason for reason in entry.reasons)


def assert_slow_enough(storm: Storm) -> None:
    """Nobody is faster than a driver who was there lately may be."""
    rows = [
        (decision, max(storm.factors[max(0, i - MEMORY) : i + 1]))
        for i, decision in enumerate(storm.decisions)
    ]
    tick = storm.limits.timing.tick
    fastest = storm.limits.translation.velocity[0]
    for (before, _), (after, factor) in pairwise(rows):
        if before is None or after is None or before.sent is None or after.sent is None:
            continue
        step = float(np.linalg.norm(sent(after)[:3] - sent(before)[:3]))
        assert step <= factor * fastest * tick * (1.0 + TOLERANCE)


@pytest.mark.parametrize("seed", range(4))
def test_five_thousand_hostile_commands_leave_no_limit(seed: int) -> None:
    storm = Storm(seed, PANDA if seed % 2 else with_keep_out())
    storm.run(1250)
    assert_weathered(storm)
    verdicts = {decision.verdict for decision in storm.decisions if decision is not None}
    assert verdicts == {"as asked", "changed", "held", "refused", "stopped"}


@pytest.mark.parametrize("seed", range(30, 34))
def test_a_kernel_that_overshoots_leaves_no_limit_either(seed: int) -> None:
    storm = Storm(seed, with_keep_out(), after_kernel=True)
    storm.run(400)
    assert_weathered(storm)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", range(100, 120))
def test_a_hundred_thousand_hostile_commands_leave_no_limit(seed: int) -> None:
    storm = Storm(seed, PANDA if seed % 2 else with_keep_out(), after_kernel=seed % 4 == 3)
    storm.run(5000)
    assert_weathered(storm)


NUMBER = st.floats(-0.12, 0.12) | st.floats() | st.sampled_from([0.0, 5e-324, -5e-324, 1e308])
STEP = st.lists(NUMBER, min_size=6, max_size=6) | st.lists(NUMBER, max_size=8) | st.none()


@given(
    st.lists(st.tuples(STEP, st.sampled_from(["policy", "agent:a", "person", "?"])), max_size=30)
)
@settings(max_examples=60)
def test_no_short_sequence_of_any_numbers_leaves_a_limit(
    steps: list[tuple[list[float] | None, str]],
) -> None:
    def ask(tick: int, last: np.ndarray) -> tuple[Command | None, str]:
        step, driver = steps[tick]
        if step is None:
            return None, driver
        values = np.array(step)
        if values.shape == last.shape:
            with np.errstate(over="ignore", invalid="ignore"):
                values = last + values
        return Command("target_pose", values), driver

    kernel = SafetyKernel(with_keep_out())
    decisions = run(kernel, FollowingArm(np.array([*HAND, *DOWN])), ask, len(steps))
    assert_safe(decisions, with_keep_out())


@pytest.mark.parametrize("reach", [0.004, 0.02, 0.055])
def test_a_second_kernel_at_the_other_end_changes_nothing(reach: float) -> None:
    rng = np.random.default_rng(5)
    near_end = SafetyKernel(with_keep_out())
    far_end = SafetyKernel(with_keep_out(), after_kernel=True)
    arm, last = FollowingArm(np.array([*HAND, *DOWN])), np.array([*HAND, *DOWN])
    for tick in range(150):
        now, reading = 0.05 * tick, arm.reading(0.05 * tick)
        driver = "policy" if tick % 40 < 20 else "agent:a"
        wanted = last + rng.uniform(-reach, reach, 6)
        first = near_end.admit(Command("target_pose", wanted), reading, now, driver)
        second = far_end.admit(first.sent, reading, now, "person")
        last = sent(first)
        assert np.array_equal(sent(second), last)
        assert second.verdict == "as asked"
        arm.take(second)


@pytest.mark.parametrize("hz", [5.0, 100.0])
def test_limits_are_kept_at_other_rates_as_well(hz: float) -> None:
    limits = with_keep_out()
    storm = Storm(3, replace(limits, timing=replace(limits.timing, tick=1.0 / hz)))
    storm.run(400)
    assert_safe(storm.decisions, storm.limits)


@pytest.mark.parametrize("seed", range(20, 26))
def test_a_second_without_commands_always_leads_to_rest(seed: int) -> None:
    storm = Storm(seed, with_keep_out())
    storm.run(150)
    for _ in range(20):
        storm.now += 0.05
        reading = storm.arm.reading(storm.now)
        storm.decisions.append(storm.kernel.admit(None, reading, storm.now, "policy"))
        storm.arm.take(storm.decisions[-1])
    assert storm.kernel.rests
    assert_safe(storm.decisions, storm.limits)


def test_equal_calls_get_equal_answers() -> None:
    one, other = Storm(12), Storm(12)
    one.run(200)
    other.run(200)
    for a, b in zip(one.decisions, other.decisions, strict=True):
        assert repr(a) == repr(b)


def test_what_is_decided_is_what_the_audit_log_holds(tmp_path: Path) -> None:
    log = AuditLog(tmp_path, max_bytes=20_000)
    storm = Storm(11)
    storm.kernel = SafetyKernel(PANDA, audit=log)
    storm.run(300)
    log.close()
    lines = [
        json.loads(line)
        for path in sorted(tmp_path.glob("audit-*.jsonl"))
        for line in path.read_text().splitlines()
    ]
    decided = [line for line in lines if line["event"] == "decision"]
    decisions = [decision for decision in storm.decisions if decision is not None]
    assert verify(tmp_path).lines == len(lines)
    for line, decision in zip(decided, decisions, strict=True):
        assert line["verdict"] == decision.verdict
        assert line["reasons"] == list(decision.reasons)
        if decision.sent is not None:
            assert line["sent"]["values"] == sent(decision).tolist()


@pytest.mark.parametrize("axis", range(3))
@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_full_speed_at_a_wall_ends_at_the_wall_and_at_rest(axis: int, sign: float) -> None:
    box = PANDA.workspace

    def ask(tick: int, last: np.ndarray) -> tuple[Command | None, str]:
        del tick
        target = last.copy()
        target[axis] += 0.09 * sign
        return Command("target_pose", target), "person"

    kernel = SafetyKernel(PANDA)
    decisions = run(kernel, FollowingArm(np.array([*HAND, *DOWN])), ask, 120)
    assert_safe(decisions)
    wall = (box.high if sign > 0 else box.low)[axis]
    assert sent(decisions[-1])[axis] == pytest.approx(wall, abs=1e-6)
    assert kernel.rests
    # It was in a hurry before: the speed of this driver was really used.
    used = excesses(decisions)["speed"] / PANDA.drivers["person"]
    assert 0.7 <= used <= 1.0 + TOLERANCE


def test_a_way_through_a_keep_out_box_ends_before_it() -> None:
    limits = with_keep_out()
    post = limits.keep_out[-1].box
    start = np.array([0.53, -0.15, 0.3])

    def ask(tick: int, last: np.ndarray) -> tuple[Command | None, str]:
        del tick
        beyond = last[1] + 0.09
        if post.low[1] < beyond < post.high[1]:
            beyond = last[1] + 0.02
        return pose((last[0], beyond, last[2])), "person"

    kernel = SafetyKernel(limits)
    decisions = run(kernel, FollowingArm(np.array([*start, *DOWN])), ask, 100)
    assert_safe(decisions, limits)
    assert 0.0 < post.low[1] - sent(decisions[-1])[1] < 0.03


def test_a_thin_keep_out_box_is_not_jumped_over() -> None:
    """End points on both sides are free; only the way between them is not."""
    sheet = KeepOut("sheet", Box((0.2, 0.0500, 0.0), (0.8, 0.0501, 0.7)))
    limits = replace(PANDA, keep_out=(sheet,))
    kernel = SafetyKernel(limits)
    decisions = run(
        kernel,
        FollowingArm(np.array([*HAND, *DOWN])),
        lambda tick, last: (pose((last[0], last[1] + 0.016, last[2])), "policy"),
        60,
    )
    assert_safe(decisions, limits)
    assert sent(decisions[-1])[1] < 0.05


def test_the_checks_would_notice() -> None:
    """The finite differences of a sequence that breaks each limit are found to break it."""
    kernel = SafetyKernel(PANDA)
    calm = run(
        kernel, FollowingArm(np.array([*HAND, *DOWN])), lambda tick, last: (pose(), "policy"), 12
    )
    assert len(pieces(calm)) == 1
    jumped = [
        replace(d, sent=Command("target_pose", sent(d) + (0.2 if i == 6 else 0.0)))
        for i, d in enumerate(calm)
    ]
    worst = excesses(jumped)
    assert min(worst["speed"], worst["acceleration"], worst["jerk"], worst["spin"]) > 1.0
    outside = [
        replace(d, sent=Command("target_pose", sent(d) + (0.4 if i else 0.0)))
        for i, d in enumerate(calm)
    ]
    assert excesses(outside)["walls"] > 0.1
