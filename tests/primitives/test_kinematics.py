"""Inverse kinematics: what it finds is true, what it does not find is far."""

from __future__ import annotations

import builtins
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from panda_chain import HOME, panda

from zetta.primitives.grasps import PANDA
from zetta.primitives.kinematics import TURN_WITHIN, WITHIN, Kinematics
from zetta.primitives.motions_frames import angle_between, turned
from zetta.runtime.core import Array
from zetta.runtime.errors import ConfigError

pytest.importorskip("mink", reason="needs mink: pip install 'zetta[drive]'")

ARM = panda()
SOLVER = Kinematics(ARM, HOME)

joints_of_a_panda = st.integers(0, 2**32 - 1).map(
    lambda seed: np.random.default_rng(seed).uniform(ARM.low, ARM.high)
)


def test_the_home_pose_is_over_the_table_and_points_down() -> None:
    position, rotation = SOLVER.forward(HOME)
    assert position == pytest.approx([-0.15, 0.0, 0.25], abs=0.03)
    assert rotation[:, 2] == pytest.approx([0.0, 0.0, -1.0], abs=0.07)
    assert abs(rotation[1, 1]) == pytest.approx(1.0, abs=0.02)


def test_the_chain_agrees_with_the_one_that_motions_keep_from_stretching() -> None:
    from panda_chain import state_at

    assert PANDA.reach is not None
    for seed in range(20):
        joints = np.random.default_rng(seed).uniform(ARM.low, ARM.high)
        reach = PANDA.reach(state_at(SOLVER.forward(joints), joints))
        assert reach.shoulder == pytest.approx([-0.6, 0.0, 0.333], abs=1e-3)


@given(joints_of_a_panda)
@settings(max_examples=60, deadline=None)
def test_a_solution_is_within_the_limits_and_leads_where_it_says(joints: Array) -> None:
    position, rotation = SOLVER.forward(joints)
    found = SOLVER.solve(position, rotation, HOME)
    assert (found.joints >= ARM.low).all()
    assert (found.joints <= ARM.high).all()
    there, turn = SOLVER.forward(found.joints)
    assert float(np.linalg.norm(there - position)) == pytest.approx(found.position_error, abs=1e-9)
    assert angle_between(turn, rotation) == pytest.approx(found.turn_error, abs=1e-6)
    assert found.reached == (found.position_error <= WITHIN and found.turn_error <= TURN_WITHIN)


@given(joints_of_a_panda, st.integers(0, 2**32 - 1))
@settings(max_examples=40, deadline=None)
def test_a_pose_near_the_present_one_is_always_reached(joints: Array, seed: int) -> None:
    step = np.random.default_rng(seed).normal(0.0, 0.02, len(joints))
    position, rotation = SOLVER.forward(np.clip(joints + step, ARM.low, ARM.high))
    assert SOLVER.solve(position, rotation, joints).reached


def test_a_pose_out_of_reach_is_not_reached_and_the_nearest_is_told() -> None:
    position, rotation = SOLVER.forward(HOME)
    found = SOLVER.solve(position + np.array([0.8, 0.0, 0.0]), rotation, HOME)
    assert not found.reached
    assert 0.2 < found.position_error < 0.6
    far = SOLVER.solve(np.array([50.0, 0.0, 0.0]), rotation, HOME)
    assert not far.reached
    assert not SOLVER.solve(np.full(3, math.nan), rotation, HOME).reached


def test_equal_questions_have_equal_answers_whatever_was_asked_between() -> None:
    position, rotation = SOLVER.forward(HOME)
    goal = position + np.array([0.1, 0.2, -0.1])
    first = SOLVER.solve(goal, rotation, HOME)
    other = turned(rotation, np.array([1.0, 0.0, 0.0]), 2.0)
    SOLVER.solve(position + 0.5, other, HOME)
    again = SOLVER.solve(goal, rotation, HOME)
    assert again.joints.tolist() == first.joints.tolist()


def test_the_base_is_where_the_model_says() -> None:
    here, _ = SOLVER.forward(HOME)
    there, _ = Kinematics(panda((1.0, 2.0, 0.5)), HOME).forward(HOME)
    assert there - here == pytest.approx([1.6, 2.0, 0.5])


def test_a_broken_model_is_refused() -> None:
    with pytest.raises(ConfigError, match="does not compile"):
        Kinematics(replace(ARM, mjcf="<mujoco><nonsense/></mujoco>"))
    with pytest.raises(ConfigError, match="has 7 joints, 6 are named"):
        Kinematics(replace(ARM, joints=ARM.joints[:6]))


def test_without_the_extra_the_sentence_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(
        name: str,
        globals: Mapping[str, object] | None = None,
        locals: Mapping[str, object] | None = None,
        fromlist: Sequence[str] = (),
        level: int = 0,
    ) -> object:
        if name == "mink":
            raise ImportError("No module named 'mink'", name="mink")
        return real(name, globals, locals, fromlist, level)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ConfigError, match=r"mink is not installed; pip install 'zetta\[drive\]'"):
        Kinematics(ARM)
