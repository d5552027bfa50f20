"""What deoxys means by a pose, a displacement, a gripper and an error."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from zetta.hw_drivers.deoxys.conventions import (
    column_major,
    delta_goal,
    gripper_of,
    joint_goal,
    mode_of,
    pose_of,
    stop_reason,
)
from zetta.hw_drivers.deoxys.messages import Grasp, Move, RobotMode
from zetta.hw_drivers.deoxys.schema import ERROR_FLAGS
from zetta.runtime.errors import SpecMismatch

unit = st.floats(-1.0, 1.0)
quats = st.tuples(unit, unit, unit, unit).filter(lambda q: math.hypot(*q) > 0.1)


@given(quats, st.tuples(unit, unit, unit))
def test_a_pose_agrees_with_scipy_column_after_column(
    quat: tuple[float, ...], position: tuple[float, ...]
) -> None:
    rotation = Rotation.from_quat(quat)
    matrix = np.eye(4)
    matrix[:3, :3], matrix[:3, 3] = rotation.as_matrix(), position
    flat = [float(matrix[r, c]) for c in range(4) for r in range(4)]
    read_position, read_quat = pose_of(flat)
    assert np.array_equal(read_position, position)
    assert (Rotation.from_quat(read_quat).inv() * rotation).magnitude() < 1e-9
    assert np.allclose(column_major(position, quat), flat, atol=1e-12)


def test_half_turns_about_each_axis_keep_their_axis() -> None:
    for axis in range(3):
        quat = np.eye(4)[axis]
        assert np.allclose(np.abs(pose_of(column_major((0, 0, 0), quat))[1]), quat)


@pytest.mark.parametrize(
    "numbers",
    [
        [0.0] * 16,
        [float(n) for n in range(16)],
        np.array([[1, 0, 0, 0.3], [0, 1, 0, 0], [0, 0, 1, 0.5], [0, 0, 0, 1]]).ravel().tolist(),
        [-1.0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1],
        [math.nan] * 16,
        [1.0] * 15,
    ],
    ids=["zeros", "counting", "row after row", "mirrored", "not finite", "fifteen"],
)
def test_numbers_that_are_no_pose_are_refused(numbers: list[float]) -> None:
    with pytest.raises(SpecMismatch):
        pose_of(numbers)


def test_a_displacement_of_one_is_five_centimetres_and_one_radian() -> None:
    assert delta_goal((1, -1, 0.5, 1, 0, -0.5)).values == (0.05, -0.05, 0.025, 1.0, 0.0, -0.5)
    assert delta_goal([0.0] * 6).is_delta


@pytest.mark.parametrize("row", [(0.0,) * 5, (0.0,) * 7, (1.01,) + (0.0,) * 5, (math.nan,) * 6])
def test_a_short_long_large_or_infinite_displacement_is_refused_not_padded(
    row: tuple[float, ...],
) -> None:
    with pytest.raises(SpecMismatch, match="expected 6 numbers"):
        delta_goal(row)


def test_joint_goals_are_seven_finite_angles() -> None:
    assert joint_goal([0.5] * 7).values == (0.5,) * 7
    with pytest.raises(SpecMismatch, match="7 finite"):
        joint_goal([0.5] * 6)


def test_negative_gripper_values_open_and_zero_closes() -> None:
    assert gripper_of(-1.0) == Move(0.08, 0.1)
    assert gripper_of(-0.25) == Move(0.02, 0.1)
    assert gripper_of(0.0) == gripper_of(1.0) == Grasp(-0.01, 0.5, 30.0, 0.08, 0.08)
    with pytest.raises(SpecMismatch):
        gripper_of(1.5)


def test_every_mode_has_a_word_and_every_flag_a_sentence() -> None:
    assert [mode_of(mode) for mode in RobotMode] == [
        "other", "idle", "moving", "guided", "reflex", "user_stopped", "recovering",
    ]  # fmt: skip
    assert len(ERROR_FLAGS) == 37
    for flag in ERROR_FLAGS:
        assert flag.replace("_", " ") in stop_reason(RobotMode.OTHER, (flag,))
    assert stop_reason(RobotMode.MOVE, ()) == ""
    assert "stop button" in stop_reason(RobotMode.USER_STOPPED, ())
