"""The codec of deoxys: round trips, and bytes of which nothing but a sentence comes."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.hw_drivers.wire_bytes import double, doubles, inside, number, tag, varint, wrapped
from zetta.hw_drivers.deoxys import arm_codec, gripper_codec, state_codec
from zetta.hw_drivers.deoxys.messages import (
    ArmCommand,
    CartesianGoal,
    CartesianVelocity,
    Controller,
    Grasp,
    GripperControl,
    GripperState,
    Homing,
    Interpolator,
    JointGoal,
    JointImpedance,
    JointPosition,
    Motion,
    Move,
    NoControl,
    Osc,
    RobotMode,
    RobotState,
    Smoothing,
    Stop,
    Vector,
)
from zetta.hw_drivers.deoxys.parsing import MAX_BYTES
from zetta.hw_drivers.deoxys.schema import ERROR_FLAGS
from zetta.runtime.errors import SpecMismatch

finite = st.floats(allow_nan=False, allow_infinity=False)
positive = st.floats(0.0, 1e6)
READERS: tuple[Callable[[bytes], object], ...] = (
    arm_codec.read_command,
    gripper_codec.read_gripper,
    state_codec.read_state,
    gripper_codec.read_gripper_state,
)


def refusal(read: Callable[[bytes], object], raw: bytes) -> str | None:
    try:
        read(raw)
    except SpecMismatch as error:
        return str(error)
    return None


def row(count: int, values: st.SearchStrategy[float] = finite) -> st.SearchStrategy[Vector]:
    return st.tuples(*[values] * count)


cartesian = st.builds(CartesianGoal, row(6), st.booleans())
joints = st.builds(JointGoal, row(7), st.booleans())
osc = st.builds(
    Osc, cartesian, row(3, positive), row(3, positive), row(7) | st.just(()), st.booleans()
)
impedance = st.builds(JointImpedance, joints, row(7, positive), row(7, positive))
MOTIONS: dict[Controller, st.SearchStrategy[Motion]] = {
    Controller.NO_CONTROL: st.builds(NoControl, st.none() | cartesian, st.booleans()),
    Controller.OSC_POSE: osc,
    Controller.OSC_POSITION: osc,
    Controller.OSC_YAW: osc,
    Controller.JOINT_POSITION: st.builds(JointPosition, joints, positive, positive, positive),
    Controller.JOINT_IMPEDANCE: impedance,
    Controller.CARTESIAN_VELOCITY: st.builds(
        CartesianVelocity, cartesian, positive, positive, positive
    ),
}
commands = st.sampled_from(sorted(MOTIONS)).flatmap(
    lambda controller: st.builds(
        ArmCommand,
        st.just(controller),
        MOTIONS[controller],
        st.sampled_from(Interpolator),
        st.floats(0.1, 1.0),
        st.floats(0.01, 1.0),
        st.booleans(),
        st.none() | st.builds(Smoothing, finite, finite, finite, finite, st.booleans()),
    )
)
flags = st.sets(st.sampled_from(ERROR_FLAGS)).map(
    lambda chosen: tuple(flag for flag in ERROR_FLAGS if flag in chosen)
)
states = st.builds(
    RobotState,
    row(16),
    row(7),
    row(7),
    st.sampled_from(RobotMode),
    flags,
    flags,
    row(7) | st.just(()),
    row(6) | st.just(()),
    row(7) | st.just(()),
    row(6) | st.just(()),
    row(7) | st.just(()),
    row(6) | st.just(()),
    finite,
    st.floats(0.0, 1e6),
    st.integers(0, 2**63),
)
fingers = (
    st.just(Homing())
    | st.just(Stop())
    | st.builds(Move, positive, positive)
    | st.builds(Grasp, finite, positive, positive, positive, positive)
)
A_COMMAND = ArmCommand(
    Controller.OSC_POSE, Osc(CartesianGoal((0.1,) * 6)), Interpolator.LINEAR_POSE
)
A_STATE = RobotState(tuple(float(n) for n in range(16)), (0.5,) * 7, (0.5,) * 7, RobotMode.MOVE)


@given(commands)
def test_every_arm_command_arrives_as_it_was_sent(command: ArmCommand) -> None:
    assert arm_codec.read_command(arm_codec.command_bytes(command)) == command


@given(fingers, st.booleans())
def test_every_gripper_command_arrives_as_it_was_sent(command: Move, termination: bool) -> None:
    control = GripperControl(command, termination)
    assert gripper_codec.read_gripper(gripper_codec.gripper_bytes(control)) == control


@given(states)
def test_every_robot_state_arrives_as_it_was_sent(state: RobotState) -> None:
    assert state_codec.read_state(state_codec.state_bytes(state)) == state


@given(
    st.builds(
        GripperState,
        st.floats(-0.01, 0.5),
        st.floats(0.01, 0.5),
        st.booleans(),
        st.integers(0, 2**32 - 1),
        st.floats(0.0, 1e6),
    )
)
def test_every_gripper_state_arrives_as_it_was_sent(state: GripperState) -> None:
    assert gripper_codec.read_gripper_state(gripper_codec.gripper_state_bytes(state)) == state


@pytest.mark.parametrize("read", READERS)
@given(raw=st.binary(max_size=200))
@example(raw=b"")
@example(raw=bytes(MAX_BYTES + 1))
@example(raw=b"\xff" * 11)
@example(raw=tag(5, 2) + varint(2**40) + b"x")
@example(raw=tag(5, 2) + varint(2**63 - 1))
@example(raw=tag(0, 0))
@example(raw=tag(5, 3) * 500)
def test_hostile_bytes_are_read_or_refused_in_one_sentence(
    read: Callable[[bytes], object], raw: bytes
) -> None:
    said = refusal(read, raw)
    assert said is None or (said and "\n" not in said)


@pytest.mark.parametrize("cut", range(0, 287, 7))
def test_a_truncated_command_is_refused_or_is_another_valid_one(cut: int) -> None:
    raw = arm_codec.command_bytes(A_COMMAND)[:cut]
    try:
        read = arm_codec.read_command(raw)
    except SpecMismatch:
        return
    # Only whole trailing fields may be missing.
    assert (read.controller, read.motion) == (A_COMMAND.controller, A_COMMAND.motion)


@given(st.data())
def test_flipped_bits_of_a_state_never_crash_the_reader(data: st.DataObject) -> None:
    raw = bytearray(state_codec.state_bytes(A_STATE))
    for place in data.draw(st.lists(st.integers(0, len(raw) - 1), min_size=1, max_size=8)):
        raw[place] ^= data.draw(st.integers(1, 255))
    try:
        state = state_codec.read_state(bytes(raw))
    except SpecMismatch:
        return
    assert all(math.isfinite(v) for v in (*state.O_T_EE, *state.q, *state.dq))


def osc_command(url: str, inner: bytes, controller: int = 1) -> bytes:
    any_bytes = inside(1, url.encode()) + inside(2, inner)
    return number(2, controller) + double(4, 0.3) + inside(5, any_bytes) + double(6, 0.2)


ZERO_GOAL = inside(1, number(1, 1))
SOFT = doubles(2, [1.0] * 3) + doubles(3, [1.0] * 3)
OSC_URL = "type.googleapis.com/FrankaOSCPoseControllerMessage"


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (osc_command("type.googleapis.com/Other", ZERO_GOAL + SOFT), "type.googleapis.com/Other"),
        (osc_command("FrankaOSCPoseControllerMessage", ZERO_GOAL + SOFT), "expected type."),
        (osc_command("", b""), "inside a command"),
        (osc_command("type.googleapis.com/" + "x" * 10_000, b""), "inside a command"),
        (osc_command(OSC_URL, b"\xff\xff"), "no FrankaOSCPoseControllerMessage"),
        (osc_command(OSC_URL, SOFT), "without a goal"),
        (osc_command(OSC_URL, ZERO_GOAL), "got 0 numbers for a translational stiffness"),
        (osc_command(OSC_URL, ZERO_GOAL + SOFT + doubles(2, [1.0])), "got 4 numbers"),
        (osc_command(OSC_URL, inside(1, double(2, math.nan)) + SOFT), "not finite"),
        (osc_command(OSC_URL, inside(1, double(2, math.inf)) + SOFT), "not finite"),
        (osc_command(OSC_URL, ZERO_GOAL + doubles(2, [-1.0] * 3) + SOFT), "got 6 numbers"),
        (osc_command(OSC_URL, ZERO_GOAL + SOFT, controller=4), "JointImpedance"),
        (osc_command(OSC_URL, ZERO_GOAL + SOFT, controller=5), "JOINT_VELOCITY"),
        (osc_command(OSC_URL, ZERO_GOAL + SOFT, controller=6), "TORQUE"),
        (osc_command(OSC_URL, ZERO_GOAL + SOFT, controller=99), "controller 99"),
        (number(2, 1), "got ''"),
    ],
)
def test_a_command_that_contradicts_itself_is_refused_with_the_reason(
    raw: bytes, said: str
) -> None:
    with pytest.raises(SpecMismatch, match=said) as caught:
        arm_codec.read_command(raw)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (doubles(1, [0.0] * 15) + doubles(24, [0.0] * 7) + doubles(26, [0.0] * 7), "got 15"),
        (doubles(1, [0.0] * 16) + doubles(24, [0.0] * 6) + doubles(26, [0.0] * 7), "got 6"),
        (doubles(1, [math.nan] * 16) + doubles(24, [0.0] * 7) + doubles(26, [0.0] * 7), "finite"),
        (state_codec.state_bytes(A_STATE) + number(45, 77), "mode of the robot 77"),
        (state_codec.state_bytes(A_STATE) + doubles(34, [1.0]), "got 1 numbers for force"),
    ],
)
def test_a_state_of_another_arm_is_refused_with_the_reason(raw: bytes, said: str) -> None:
    with pytest.raises(SpecMismatch, match=said):
        state_codec.read_state(raw)


def test_a_gripper_that_was_never_homed_is_said_to_be() -> None:
    with pytest.raises(SpecMismatch, match="was it homed"):
        gripper_codec.read_gripper_state(number(4, 30))


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (replace(A_COMMAND, time_fraction=0.05), "raises smaller ones"),
        (replace(A_COMMAND, time_fraction=math.nan), "not finite"),
        (replace(A_COMMAND, timeout_s=0.0), "timeout"),
        (replace(A_COMMAND, controller=Controller.TORQUE), "name without a body"),
        (replace(A_COMMAND, controller=Controller.JOINT_POSITION), "JointPosition"),
        (replace(A_COMMAND, motion=Osc(CartesianGoal((0.0,) * 5))), "got 5 numbers"),
        (replace(A_COMMAND, motion=Osc(CartesianGoal((math.inf,) * 6))), "not finite"),
        (replace(A_COMMAND, motion=Osc(CartesianGoal((0.0,) * 6), (-1.0,) * 3)), "below 0"),
    ],
)
def test_what_the_robot_side_would_change_or_misread_is_never_sent(
    command: ArmCommand, said: str
) -> None:
    with pytest.raises(SpecMismatch, match=said):
        arm_codec.command_bytes(command)


def test_a_time_fraction_below_the_floor_is_read_as_the_floor() -> None:
    raw = osc_command(OSC_URL, ZERO_GOAL + SOFT).replace(double(4, 0.3), double(4, 0.01))
    assert arm_codec.read_command(raw).time_fraction == 0.1


def test_an_unknown_gripper_command_is_refused() -> None:
    with pytest.raises(SpecMismatch, match="Grasp"):
        gripper_codec.read_gripper(wrapped(2, "FrankaGripperSqueezeMessage", b""))
    with pytest.raises(SpecMismatch, match="neither"):
        gripper_codec.read_gripper(number(9, 1))
