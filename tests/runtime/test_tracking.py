"""Conversions between action conventions, against scipy and in closed loop."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from zetta.runtime.core import ActionSpec, ArmState, Array, Init, Proprio, Scene
from zetta.runtime.errors import SpecMismatch
from zetta.runtime.tracking import (
    GAIN,
    converter,
    quat_of_rotvec,
    rotation_between,
    rotvec_of_quat,
)
from zetta.sims.toy import ToySimulator

DELTA = ActionSpec(
    "delta_pose",
    ("dx", "dy", "dz", "rx", "ry", "rz", "gripper"),
    (-1.0,) * 7,
    (1.0,) * 7,
    (0.05, 0.05, 0.05, 0.5, 0.5, 0.5, 1.0),
)
TARGET = ActionSpec(
    "target_pose",
    ("x", "y", "z", "ax", "ay", "az", "gripper"),
    (-np.inf,) * 7,
    (np.inf,) * 7,
    (1.0,) * 7,
)
angles = st.floats(-3.0, 3.0, allow_subnormal=False)
rotvecs = st.tuples(angles, angles, angles).filter(lambda v: np.linalg.norm(v) < 3.1)
places = st.tuples(*(st.floats(-1.0, 1.0),) * 3)
unit = st.floats(-1.0, 1.0)


def proprio(*arms: tuple[tuple[float, ...], tuple[float, ...]]) -> Proprio:
    """Return arms at places with the orientations of axis-angle vectors."""
    return Proprio(
        0.0,
        tuple(
            ArmState(np.array(p), Rotation.from_rotvec(r).as_quat(), np.zeros(7), 0.04)
            for p, r in arms
        ),
    )


def both(spec: ActionSpec) -> ActionSpec:
    """Return the convention of two arms."""
    names = tuple(f"{arm}_{name}" for arm in ("left", "right") for name in spec.names)
    return replace(spec, names=names, low=spec.low * 2, high=spec.high * 2, scale=spec.scale * 2)


@given(rotvecs)
def test_quaternions_agree_with_scipy(rotvec: tuple[float, float, float]) -> None:
    quat = quat_of_rotvec(rotvec)

    expected = Rotation.from_rotvec(rotvec).as_quat()
    assert min(np.abs(quat - expected).max(), np.abs(quat + expected).max()) < 1e-12
    assert rotvec_of_quat(quat) == pytest.approx(rotvec, abs=1e-9)


@given(rotvecs, rotvecs)
def test_rotation_between_turns_the_one_into_the_other(
    start: tuple[float, float, float], end: tuple[float, float, float]
) -> None:
    q_start, q_end = quat_of_rotvec(start), quat_of_rotvec(end)
    turn = Rotation.from_rotvec(rotation_between(q_start, q_end))

    reached = turn * Rotation.from_rotvec(start)
    assert (reached.inv() * Rotation.from_rotvec(end)).magnitude() < 1e-7
    assert turn.magnitude() <= np.pi + 1e-9


@given(rotvecs, rotvecs)
def test_both_signs_of_a_quaternion_are_one_rotation(
    start: tuple[float, float, float], end: tuple[float, float, float]
) -> None:
    q_start, q_end = quat_of_rotvec(start), quat_of_rotvec(end)
    x, y, z, w = q_start

    turn = np.array(rotation_between(q_start, q_end))
    other = np.array(rotation_between((-x, -y, -z, -w), q_end))
    # At half a turn both directions are right.
    assert np.allclose(turn, other, atol=1e-7) or np.linalg.norm(turn) > 3.1


@given(places, rotvecs, places, rotvecs, unit)
def test_tracking_follows_the_formula_and_stays_in_range(
    at: tuple[float, ...],
    turned: tuple[float, float, float],
    target: tuple[float, ...],
    target_turn: tuple[float, float, float],
    gripper: float,
) -> None:
    row = np.array([*target, *target_turn, gripper])
    action = converter(TARGET, DELTA)(row, proprio((at, turned)))

    way = GAIN * (np.array(target) - at) / 0.05
    between = Rotation.from_rotvec(target_turn) * Rotation.from_rotvec(turned).inv()
    for part, wished in ((action[:3], way), (action[3:6], GAIN * between.as_rotvec() / 0.5)):
        assert np.abs(part).max() <= 1.0 + 1e-12
        if np.linalg.norm(between.as_rotvec()) < 3.1:
            assert part == pytest.approx(wished / max(1.0, np.abs(wished).max()), abs=1e-6)
    assert action[6] == gripper


def test_a_way_that_is_too_long_keeps_its_direction() -> None:
    row = np.array([1.0, 0.5, -0.25, 0.0, 0.0, 0.0, 1.0])
    action = converter(TARGET, DELTA)(row, proprio(((0.0,) * 3, (0.0,) * 3)))

    assert action.tolist() == pytest.approx([1.0, 0.5, -0.25, 0.0, 0.0, 0.0, 1.0])


def test_each_arm_of_two_tracks_its_own_target() -> None:
    here = ((0.1, 0.2, 0.3), (0.0, 0.0, 0.0))
    there = ((0.4, 0.5, 0.6), (0.0, 0.0, 1.0))
    row = np.array([0.11, 0.2, 0.3, 0, 0, 0, -1, 0.4, 0.5, 0.6, 0, 0, 1.1, 1])
    action = converter(both(TARGET), both(DELTA))(row, proprio(here, there))

    assert action == pytest.approx([0.3, 0, 0, 0, 0, 0, -1, 0, 0, 0, 0, 0, 0.3, 1])


def test_two_arms_cannot_be_tracked_on_a_robot_with_one() -> None:
    convert = converter(both(TARGET), both(DELTA))
    with pytest.raises(SpecMismatch, match="drives 2 arms and the robot reports 1"):
        convert(np.zeros(14), proprio(((0.0,) * 3, (0.0,) * 3)))


def test_equal_conventions_pass_through_untouched() -> None:
    row = np.arange(7) / 10

    assert converter(DELTA, replace(DELTA, names=tuple("abcdefg")))(row, proprio()) is row


@given(st.lists(unit, min_size=7, max_size=7))
def test_displacements_are_rescaled_and_the_gripper_sign_turned(numbers: list[float]) -> None:
    policy = replace(
        DELTA,
        scale=(0.02,) * 3 + (0.1,) * 3 + (1.0,),
        gripper_open=1.0,
        gripper_close=0.0,
    )
    row = np.array([*numbers[:6], abs(numbers[6])])
    action = converter(policy, DELTA)(row, proprio())

    assert action[:3] * 0.05 == pytest.approx(row[:3] * 0.02)
    assert action[3:6] * 0.5 == pytest.approx(row[3:6] * 0.1)
    assert action[6] == pytest.approx(1.0 - 2.0 * row[6])


def test_a_displacement_beyond_the_range_is_shortened_along_its_direction() -> None:
    policy = replace(DELTA, scale=(0.1,) * 3 + (0.5,) * 3 + (1.0,))
    action = converter(policy, DELTA)(np.array([1.0, -0.5, 0, 0.2, 0, 0, -1]), proprio())

    assert action.tolist() == pytest.approx([1.0, -0.5, 0, 0.2, 0, 0, -1])


@pytest.mark.parametrize(
    ("policy", "env"),
    [
        (replace(DELTA, kind="joint_position"), DELTA),
        (replace(DELTA, kind="waypoint"), DELTA),
        (DELTA, TARGET),
        (replace(DELTA, frame="tool"), DELTA),
        (both(DELTA), DELTA),
        (replace(DELTA, names=("dy", "dx", "dz", "rx", "ry", "rz", "gripper")), DELTA),
        (replace(TARGET, gripper_open=1.0), DELTA),
    ],
)
def test_conventions_without_a_conversion_are_refused(policy: ActionSpec, env: ActionSpec) -> None:
    with pytest.raises(SpecMismatch):
        converter(policy, env)


def test_tracking_reaches_a_fixed_target_in_closed_loop() -> None:
    simulator = ToySimulator()
    env = simulator.make("toy_pick", 0)
    step = env.reset(Scene(simulator.task("toy_pick", 0), Init(0)))
    start = step.proprio.arms[0]
    target: Array = start.ee_pos + np.array([0.06, -0.04, -0.05])
    row = np.array([*target, *Rotation.from_quat(start.ee_quat).as_rotvec(), -1.0])
    convert = converter(TARGET, env.spec.action)

    for _ in range(25):
        step = env.step(convert(row, step.proprio))
    assert np.linalg.norm(step.proprio.arms[0].ee_pos - target) < 1e-3


MOBILE = replace(
    DELTA,
    names=(*DELTA.names, "base_vx", "base_mode"),
    low=(-1.5,) * 9,
    high=(1.5,) * 9,
    scale=(*DELTA.scale, 1.0, 1.0),
    rest=(0.0, -1.0),
)


def on_wheels(yaw: float) -> Proprio:
    return replace(proprio(((0.0,) * 3, (0.0,) * 3)), base=np.array([1.0, 2.0, yaw]))


def test_a_policy_of_the_arm_alone_leaves_a_base_at_rest() -> None:
    row = np.linspace(-0.5, 0.5, 7)
    converted = converter(DELTA, MOBILE)(row, on_wheels(0.3))
    np.testing.assert_array_equal(converted, [*row, 0.0, -1.0])
    tracked = converter(TARGET, MOBILE)(np.zeros(7), on_wheels(0.0))
    np.testing.assert_allclose(tracked, [0.0] * 7 + [0.0, -1.0], atol=1e-12)


def test_columns_of_a_base_pass_through_whatever_the_arm_is_converted_to() -> None:
    coarse = replace(MOBILE, scale=(0.10,) * 3 + MOBILE.scale[3:])
    row = np.array([0.1, 0.2, 0.3, 0.0, 0.0, 0.0, 1.0, 0.7, 1.0])
    converted = converter(coarse, MOBILE)(row, on_wheels(0.0))
    np.testing.assert_allclose(converted, [0.2, 0.4, 0.6, 0.0, 0.0, 0.0, 1.0, 0.7, 1.0])


@given(st.floats(-3.1, 3.1), st.tuples(*(unit,) * 9))
def test_rows_in_the_frame_of_a_base_are_turned_into_the_world(
    yaw: float, numbers: tuple[float, ...]
) -> None:
    row = np.array(numbers)
    converted = converter(replace(MOBILE, frame="base"), MOBILE)(row, on_wheels(yaw))
    turn = Rotation.from_euler("z", yaw)
    np.testing.assert_allclose(converted[:3], turn.apply(row[:3]), atol=1e-12)
    np.testing.assert_allclose(converted[3:6], turn.apply(row[3:6]), atol=1e-12)
    np.testing.assert_array_equal(converted[6:], row[6:])


def test_a_frame_of_a_base_needs_a_base() -> None:
    convert = converter(replace(MOBILE, frame="base"), MOBILE)
    with pytest.raises(SpecMismatch, match="mobile base, and this robot has none"):
        convert(np.zeros(9), proprio(((0.0,) * 3, (0.0,) * 3)))
