"""The dry run with the joints of an arm: reach, joint limits, stretch."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from panda_chain import HOME, panda, state_at
from test_dry_run import arm_commands, check, holds_what_it_promises

from zetta.primitives.commands import ArmCommand, GoAbove, Home, Move, Pick, Point, Rotate
from zetta.primitives.dry_run import DryWorld
from zetta.primitives.dry_run_reach import DryArm
from zetta.primitives.grasps import PANDA
from zetta.primitives.kinematics import Kinematics
from zetta.runtime.core import Estimate, Proprio
from zetta.runtime.workspace import Box

pytest.importorskip("mink", reason="needs mink: pip install 'zetta[drive]'")

BOX = Box((-0.4, -0.5, 0.005), (0.3, 0.5, 0.7))
WIDE = Box((-2.0, -2.0, -2.0), (2.0, 2.0, 2.0))
SOLVER = Kinematics(panda(), HOME)
AT_HOME = state_at(SOLVER.forward(HOME), HOME)
ARM = DryArm("panda", AT_HOME, BOX, SOLVER, PANDA)
WORLD = DryWorld((ARM,), text=str)
FREE = DryWorld((replace(ARM, workspace=WIDE),), text=str)
START = Proprio(0.0, (AT_HOME,))


def far(dx: float, dy: float = 0.0, dz: float = 0.0) -> Move:
    return Move((dx, dy, dz))


def test_a_move_in_the_middle_of_the_reach_is_fine() -> None:
    run = check(far(0.1, 0.1, -0.1), Rotate("yaw", 0.7), Home(), world=WORLD, start=START)
    assert run.passed
    assert run.notes == ()
    last = run.predictions[-1].poses[0]
    assert last is not None
    assert last.joints is not None


def test_a_move_beyond_the_reach_is_refused_with_how_far_it_goes() -> None:
    run = check(far(0.2), far(0.2), far(0.2), world=FREE, start=START)
    assert run.failure is not None
    assert run.failure.stop == "unreachable"
    shorter = run.failure.alternative
    assert isinstance(shorter, Move)
    assert 0.0 < shorter.displacement[0] < 0.2
    instead = [far(0.2)] * run.failure.index + [shorter]
    assert check(*instead, world=FREE, start=START).passed
    longer = replace(shorter, displacement=(shorter.displacement[0] + 0.03, 0.0, 0.0))
    assert not check(*instead[:-1], longer, world=FREE, start=START).passed


def test_an_arm_that_would_be_stretched_straight_is_refused() -> None:
    loose = replace(FREE, arms=(replace(FREE.arms[0], hand=replace(PANDA, reach=None)),))
    moves = [far(0.2), far(0.07, 0.0, 0.0)]
    assert check(*moves, world=loose, start=START).passed
    strict = check(*moves, far(0.05), far(0.05), world=FREE, start=START)
    assert strict.failure is not None
    assert strict.failure.stop == "unreachable"


def test_a_wrist_that_cannot_turn_further_is_refused_with_a_smaller_turn() -> None:
    turns = [Rotate("yaw", math.radians(90.0))] * 3
    run = check(*turns, world=FREE, start=START)
    assert run.failure is not None
    assert run.failure.stop == "unreachable"
    smaller = run.failure.alternative
    assert smaller is None or isinstance(smaller, Rotate)


def test_a_hand_that_cannot_point_so_is_offered_another_way_to_point() -> None:
    high = [far(0.0, 0.0, 0.2), far(0.2, 0.0, 0.1), far(0.1)]
    for index in range(len(high) + 1):
        run = check(*high[:index], Point("forward"), world=FREE, start=START)
        if run.failure is not None and run.failure.index == index:
            assert isinstance(run.failure.alternative, Point | None)


def test_a_thing_out_of_reach_is_refused_before_the_hand_sets_out() -> None:
    size = np.array([0.05, 0.05, 0.1])
    near = Estimate("mug", np.array([0.0, 0.1, 0.05]), size, 0.0, 0.9, 0.0, "vision")
    away = replace(near, position=np.array([0.5, 0.4, 0.05]))
    for command in (Pick("mug"), GoAbove("mug")):
        assert check(command, world=replace(FREE, where={"mug": near}.get), start=START).passed
        run = check(command, world=replace(FREE, where={"mug": away}.get), start=START)
        assert run.failure is not None
        assert run.failure.stop == "unreachable"


def test_a_model_that_disagrees_with_the_sensors_is_not_used() -> None:
    elsewhere = replace(ARM, kinematics=Kinematics(panda((5.0, 0.0, 0.0)), HOME))
    run = check(far(0.05), world=replace(WORLD, arms=(elsewhere,)), start=START)
    assert run.passed
    assert any("limits and workspace only" in note for note in run.notes)


@given(st.integers(0, 2**32 - 1), st.lists(arm_commands, min_size=1, max_size=3))
@settings(max_examples=40, deadline=None)
def test_on_a_panda_accepted_poses_are_inside_and_reached_and_alternatives_pass(
    seed: int, commands: list[ArmCommand]
) -> None:
    joints = HOME + np.random.default_rng(seed).normal(0.0, 0.25, len(HOME))
    joints = np.clip(joints, SOLVER.low, SOLVER.high)
    state = state_at(SOLVER.forward(joints), joints)
    assume(BOX.holds(state.ee_pos))
    holds_what_it_promises(commands, Proprio(0.0, (state,)), WORLD)
