"""What the arm feels, on the toy."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from signal_runs import CLOSE, OPEN, column, command, expert_rows, felt, world

from zetta.runtime.core import ArmState, Proprio, read_only
from zetta.runtime.signals import ARM, OTHER
from zetta.runtime.signals_arm import ArmSignals
from zetta.runtime.signals_source import Signals
from zetta.sims.toy import action_spec
from zetta.sims.toy_faults import ToyFaults

TICK = 0.05


def test_closing_on_nothing_is_told_and_is_no_hold() -> None:
    env, scene = world()
    rows = felt(Signals(env.spec, max_level="proprio"), env, scene, [command(grip=CLOSE)] * 40)

    nothing = column(rows, "closed_on_nothing")
    assert nothing[-1] == 1.0
    assert column(rows, "closed_for")[int(nothing.argmax())] >= 0.4 - 1e-9
    assert not column(rows, "holding").any()
    assert column(rows, "gripper_closing").any()
    assert np.diff(nothing).min() >= 0.0


def test_what_the_expert_carries_is_held_once_from_grasp_to_release() -> None:
    env, scene = world()
    commands, steps = expert_rows(env, scene)
    rows = felt(Signals(env.spec, max_level="proprio"), env, scene, commands)

    changes = np.diff(column(rows, "holding"))
    assert (changes > 0).sum() == 1
    assert not column(rows, "closed_on_nothing").any()
    assert column(rows, "lift").max() > 0.05
    truth = [step.truth.objects["red_cube"][2] for step in steps if step.truth]
    lifted = np.array(truth) > 0.46
    assert lifted.sum() > 5
    assert column(rows[1:], "holding")[lifted].all()


def test_a_slip_shows_in_the_fall_of_the_opening_and_ends_the_hold() -> None:
    env, scene = world(faults=ToyFaults(slip_at=28))
    commands, _ = expert_rows(env, scene)
    undisturbed, _ = expert_rows(*world())
    rows = felt(Signals(env.spec, max_level="proprio"), env, scene, undisturbed)

    holding, slip = column(rows, "holding"), column(rows, "slip")
    began = int(holding.argmax())
    fell = next(k for k in range(began, len(rows)) if slip[k] > 0.005)
    assert 28 <= fell <= 31
    assert holding[fell + 8] == 0.0
    assert column(rows, "closed_on_nothing")[fell:].any()
    assert len(commands) > len(undisturbed)


def test_a_stuck_gripper_holds_nothing_and_does_not_close() -> None:
    env, scene = world(faults=ToyFaults(gripper_stuck_at=0))
    rows = felt(Signals(env.spec, max_level="proprio"), env, scene, [command(grip=CLOSE)] * 40)

    assert rows[-1]["closed_for"] == pytest.approx(2.0)
    for name in ("holding", "closed_on_nothing", "gripper_closing"):
        assert not column(rows, name).any()


@pytest.mark.parametrize("move", [(0.0, 0.0, -1.0), (1.0, 0.0, 0.0), (0.0, 1.0, 0.0)])
def test_an_arm_that_pushes_against_table_or_wall_is_stalled(move: tuple[float, ...]) -> None:
    env, scene = world()
    pushing = command((move[0], move[1], move[2]))
    rows = felt(Signals(env.spec, max_level="proprio"), env, scene, [pushing] * 60)

    stalled = column(rows, "stalled_for")
    assert not stalled[:5].any()
    assert stalled[-1] > 1.0
    assert stalled[-1] - stalled[-2] == pytest.approx(TICK)
    released = felt(
        Signals(env.spec, max_level="proprio"), env, scene, [pushing] * 60 + [command()]
    )
    assert released[-1]["stalled_for"] == 0.0


def test_going_to_and_fro_wanders_and_going_straight_does_not() -> None:
    env, scene = world()
    signals = Signals(env.spec, max_level="proprio")
    fro = [command((0.3 * (-1) ** (k // 3), 0.0, 0.0)) for k in range(60)]
    straight = [command((0.0, 0.15, 0.0))] * 30

    assert felt(signals, env, scene, fro)[-1]["wander"] > 3.0
    assert column(felt(signals, env, scene, straight), "wander")[5:] == pytest.approx(1.0)


def test_way_and_displacement_forget_what_is_older_than_a_second() -> None:
    env, scene = world()
    rows = felt(
        Signals(env.spec, max_level="proprio"), env, scene,
        [command((0.0, 0.2, 0.0))] * 10 + [command()] * 40,
    )  # fmt: skip

    assert column(rows, "path_1s").max() == pytest.approx(0.1, rel=0.05)
    assert rows[-1]["path_1s"] == pytest.approx(0.0, abs=1e-6)
    assert rows[-1]["displacement_1s"] == pytest.approx(0.0, abs=1e-6)


def test_speeds_and_commands_are_per_second_and_unknown_before_the_first() -> None:
    env, scene = world()
    rows = felt(
        Signals(env.spec, max_level="proprio"), env, scene,
        [command((0.0, 0.0, -0.2), turn=(0.0, 0.0, 0.1))] * 15,
    )  # fmt: skip

    changes = ("ee_speed", "ee_speed_z", "ee_turn_speed", "gripper_speed", "joint_speed")
    commands = ("command_speed", "command_turn", "command_gripper", "command_residual")
    assert all(math.isnan(rows[0][name]) for name in changes + commands)
    last = rows[-1]
    assert last["ee_speed_z"] == pytest.approx(-0.2, rel=1e-3)
    assert last["ee_speed"] == pytest.approx(0.2, rel=1e-3)
    assert last["command_speed"] == pytest.approx(0.2)
    assert last["command_residual"] == pytest.approx(0.0, abs=1e-3)
    assert last["ee_turn_speed"] == pytest.approx(last["command_turn"], rel=1e-6)
    assert last["command_turn"] == pytest.approx(1.0)
    assert last["joint_speed"] > 0.1
    assert last["command_gripper"] == 0.0
    assert last["open_for"] == pytest.approx(15 * TICK)
    assert all(math.isfinite(value) for name, value in last.items() if name != "since_handback")


def test_tilt_is_the_angle_from_straight_down() -> None:
    env, scene = world()
    signals = Signals(env.spec, max_level="proprio")

    turned = felt(signals, env, scene, [command(turn=(0.0, 0.0, 0.5))] * 2)
    assert column(turned, "hand_tilt") == pytest.approx(0.0, abs=1e-6)
    leaning = felt(signals, env, scene, [command(turn=(0.3, 0.0, 0.0))] * 2)
    assert column(leaning, "hand_tilt") == pytest.approx([0.0, 0.15, 0.3], abs=1e-6)


def test_the_other_arm_is_felt_under_its_prefix_and_the_bound_one_without() -> None:
    env, scene = world("toy_two_arm")
    rows = [np.concatenate([command((0.0, 0.0, -0.2)), command(grip=CLOSE)])] * 40
    left = felt(Signals(env.spec, max_level="proprio", arm=0), env, scene, rows)
    right = felt(Signals(env.spec, max_level="proprio", arm=1), env, scene, rows)

    assert left[5]["ee_speed_z"] < -0.1
    assert right[5]["ee_speed_z"] == 0.0
    assert right[-1]["closed_on_nothing"] == 1.0
    for spec in ARM:
        assert column(left, spec.name) == pytest.approx(
            column(right, OTHER + spec.name), nan_ok=True
        )
        assert column(right, spec.name) == pytest.approx(
            column(left, OTHER + spec.name), nan_ok=True
        )


def state(place: tuple[float, float, float]) -> ArmState:
    return ArmState(read_only(place), read_only([1.0, 0.0, 0.0, 0.0]), read_only([]), 0.08)


def test_a_target_pose_asks_for_the_way_from_where_the_hand_was() -> None:
    spec = replace(action_spec(), kind="target_pose")
    signals = ArmSignals(spec, 0, 20.0)
    names = [each.name for each in ARM]
    signals.update(0.0, state((0.0, 0.0, 1.0)), None)
    row = [0.03, 0.0, 1.04, math.pi, 0.0, 0.0, 1.0]
    said = dict(zip(names, signals.update(0.05, state((0.03, 0.0, 1.0)), row), strict=True))

    assert said["command_speed"] == pytest.approx(0.05 / TICK)
    assert said["command_residual"] == pytest.approx(0.04 / TICK)
    assert said["command_turn"] == pytest.approx(0.0, abs=1e-9)
    assert said["command_gripper"] == 1.0
    assert math.isnan(said["joint_speed"])


def test_commands_that_are_no_poses_are_unknown_and_never_a_stall() -> None:
    names = ("a", "b", "gripper")
    spec = replace(
        action_spec(), kind="joint_position", names=names, low=(-1.0,) * 3, high=(1.0,) * 3,
        scale=(1.0,) * 3, gripper_open=1.0, gripper_close=0.0,
    )  # fmt: skip
    signals = ArmSignals(spec, 0, 20.0)
    for k in range(30):
        row = [0.5, 0.5, 0.2] if k else None
        values = signals.update(k * TICK, state((0.0, 0.0, 1.0)), row)
    said = dict(zip([each.name for each in ARM], values, strict=True))

    assert math.isnan(said["command_speed"])
    assert math.isnan(said["command_residual"])
    assert said["stalled_for"] == 0.0
    assert said["command_gripper"] == 1.0


def test_a_clock_that_stands_still_gives_no_infinite_speed() -> None:
    env, scene = world()
    signals = Signals(env.spec, max_level="proprio")
    signals.begin(scene)
    for k in range(3):
        proprio = Proprio(0.0, (state((0.01 * k, 0.0, 1.0)),))
        said = signals.update(k, proprio, command(grip=OPEN), None, "policy")
    assert said["ee_speed"] == pytest.approx(0.01 / TICK)
