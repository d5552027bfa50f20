"""Every message of deoxys, byte for byte, against bytes made by hand from the published numbers."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from tests.hw_drivers.wire_bytes import double, doubles, inside, number, wrapped
from zetta.hw_drivers.deoxys import arm_codec, gripper_codec, state_codec
from zetta.hw_drivers.deoxys.messages import (
    ArmCommand,
    CartesianGoal,
    CartesianVelocity,
    Controller,
    Grasp,
    GripperCommand,
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
)

HAND = (0.05, -0.025, 0.0, 0.1, -0.2, 0.3)
JOINTS = (0.1, -0.785, 0.2, -2.356, 0.3, 1.571, 0.785)
GOAL = b"".join(double(n, v) for n, v in enumerate(HAND, 2))
JOINT_GOAL = b"".join(double(n, v) for n, v in enumerate(JOINTS, 2))
DELTA = number(1, 1)


@dataclass(frozen=True)
class Case:
    controller: Controller
    number: int
    motion: Motion
    name: str
    inner: bytes


OSC = Osc(CartesianGoal(HAND), (1.0, 2.0, 3.0), (4.0, 5.0, 6.0), (0.5,) * 7)
OSC_BYTES = (
    inside(1, DELTA + GOAL)
    + doubles(2, [1.0, 2.0, 3.0])
    + doubles(3, [4.0, 5.0, 6.0])
    + inside(5, doubles(1, [0.5] * 7))
)
GAINS = double(2, 10.0) + double(3, 20.0) + double(4, 0.1)
CASES = (
    Case(Controller.NO_CONTROL, 0, NoControl(), "FrankaDummyControllerMessage", b""),
    Case(
        Controller.NO_CONTROL,
        0,
        NoControl(CartesianGoal((0.0,) * 6, False), True),
        "FrankaDummyControllerMessage",
        inside(1, b"") + number(2, 1),
    ),
    Case(Controller.OSC_POSE, 1, OSC, "FrankaOSCPoseControllerMessage", OSC_BYTES),
    Case(Controller.OSC_POSITION, 2, OSC, "FrankaOSCPoseControllerMessage", OSC_BYTES),
    Case(Controller.OSC_YAW, 7, OSC, "FrankaOSCPoseControllerMessage", OSC_BYTES),
    Case(
        Controller.OSC_POSE,
        1,
        Osc(CartesianGoal(HAND, False), (1.0,) * 3, (2.0,) * 3, (), True),
        "FrankaOSCPoseControllerMessage",
        inside(1, GOAL)
        + doubles(2, [1.0] * 3)
        + doubles(3, [2.0] * 3)
        + number(4, 1)
        # the configuration is there although it is empty
        + inside(5, b""),
    ),
    Case(
        Controller.JOINT_POSITION,
        3,
        JointPosition(JointGoal(JOINTS), 10.0, 20.0, 0.1),
        "FrankaJointPositionControllerMessage",
        inside(1, JOINT_GOAL) + GAINS,
    ),
    Case(
        Controller.JOINT_IMPEDANCE,
        4,
        JointImpedance(JointGoal(JOINTS, True), (100.0,) * 7, (20.0,) * 7),
        "FrankaJointImpedanceControllerMessage",
        inside(1, DELTA + JOINT_GOAL) + doubles(2, [100.0] * 7) + doubles(3, [20.0] * 7),
    ),
    Case(
        Controller.CARTESIAN_VELOCITY,
        8,
        CartesianVelocity(CartesianGoal(HAND), 10.0, 20.0, 0.1),
        "FrankaCartesianVelocityControllerMessage",
        inside(1, DELTA + GOAL) + GAINS,
    ),
)


@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c.controller.name}-{len(c.inner)}")
@pytest.mark.parametrize("termination", [False, True])
def test_an_arm_command_has_exactly_the_bytes_of_the_field_table(
    case: Case, termination: bool
) -> None:
    smoothing = Smoothing(0.9, 0.8, 0.7, 0.6, True)
    command = ArmCommand(
        case.controller,
        case.motion,
        Interpolator.MIN_JERK_POSE,
        0.3,
        termination=termination,
        smoothing=smoothing,
    )
    alphas = double(1, 0.9) + double(2, 0.8) + double(3, 0.7) + double(4, 0.6)
    estimator = number(1, 1) + number(2, 1) + wrapped(5, "ExponentialSmoothingConfig", alphas)
    expected = (
        number(1, termination)
        + number(2, case.number)
        + number(3, 3)
        + double(4, 0.3)
        + wrapped(5, case.name, case.inner)
        + double(6, 0.2)
        + inside(7, estimator)
    )
    assert arm_codec.command_bytes(command) == expected
    assert arm_codec.read_command(expected) == command


@pytest.mark.parametrize("interpolator", list(Interpolator))
def test_interpolators_have_their_published_numbers(interpolator: Interpolator) -> None:
    names = [
        "NO_OP",
        "LINEAR_POSITION",
        "LINEAR_POSE",
        "MIN_JERK_POSE",
        "SMOOTH_JOINT_POSITION",
        "MIN_JERK_JOINT_POSITION",
        "LINEAR_JOINT_POSITION",
        "COSINE_CARTESIAN_VELOCITY",
        "LINEAR_CARTESIAN_VELOCITY",
    ]
    assert interpolator == names.index(interpolator.name)


@pytest.mark.parametrize(
    ("command", "name", "inner"),
    [
        (Homing(), "FrankaGripperHomingMessage", number(1, 1)),
        (Move(0.04, 0.1), "FrankaGripperMoveMessage", double(1, 0.04) + double(2, 0.1)),
        (Stop(), "FrankaGripperStopMessage", number(1, 1)),
        (
            Grasp(),
            "FrankaGripperGraspMessage",
            double(1, -0.01) + double(2, 0.5) + double(3, 30.0) + double(4, 0.08) + double(5, 0.08),
        ),
    ],
)
def test_a_gripper_command_has_exactly_the_bytes_of_the_field_table(
    command: GripperCommand, name: str, inner: bytes
) -> None:
    expected = wrapped(2, name, inner)
    assert gripper_codec.gripper_bytes(GripperControl(command)) == expected
    assert gripper_codec.read_gripper(expected) == GripperControl(command)


def test_the_end_of_the_gripper_program_is_two_bytes() -> None:
    assert gripper_codec.gripper_bytes(GripperControl(None, True)) == number(1, 1) == b"\x08\x01"
    assert gripper_codec.read_gripper(b"\x08\x01") == GripperControl(None, True)


def test_a_robot_state_has_exactly_the_bytes_of_the_field_table() -> None:
    pose, seven, six = [float(n) for n in range(16)], [0.5] * 7, [0.25] * 6
    state = RobotState(
        tuple(pose),
        JOINTS,
        tuple(seven),
        RobotMode.REFLEX,
        ("joint_reflex", "cartesian_reflex"),
        ("joint_move_in_wrong_direction",),
        tuple(seven),
        tuple(six),
        tuple(seven),
        tuple(six),
        tuple(seven),
        tuple(six),
        0.75,
        12.5,
        300,
    )
    expected = (
        doubles(1, pose)
        + doubles(24, list(JOINTS))
        + doubles(26, seven)
        + doubles(29, seven)
        + doubles(30, six)
        + doubles(31, seven)
        + doubles(32, six)
        + doubles(33, seven)
        + doubles(34, six)
        + inside(42, number(7, 1) + number(8, 1))
        + inside(43, number(37, 1))
        + double(44, 0.75)
        + number(45, 4)
        + inside(46, double(1, 12.5) + number(2, 12500))
        + number(48, 300)
    )
    assert state_codec.state_bytes(state) == expected
    assert state_codec.read_state(expected) == state


def test_fields_of_a_robot_state_that_nobody_reads_are_no_obstacle() -> None:
    pose, seven = [float(n) for n in range(16)], [0.5] * 7
    raw = (
        doubles(1, pose) + doubles(3, pose) + double(7, 0.73) + doubles(16, [0.1, 1.0])
        + doubles(24, seven) + doubles(25, seven) + doubles(26, seven)
        + doubles(41, seven) + number(45, 2) + doubles(47, [0.0] * 144) + number(48, 9)
    )  # fmt: skip
    state = state_codec.read_state(raw)
    assert (state.mode, state.frame, state.q) == (RobotMode.MOVE, 9, tuple(seven))


def test_a_gripper_state_has_exactly_the_bytes_of_the_field_table() -> None:
    state = GripperState(0.04, 0.08, True, 31, 2.5)
    expected = (
        double(1, 0.04)
        + double(2, 0.08)
        + number(3, 1)
        + number(4, 31)
        + inside(5, double(1, 2.5) + number(2, 2500))
    )
    assert gripper_codec.gripper_state_bytes(state) == expected
    assert gripper_codec.read_gripper_state(expected) == state


def test_unpacked_repeated_numbers_are_read_like_packed_ones() -> None:
    each = b"".join(bytes([0x09]) + double(1, float(n + 1))[1:] for n in range(16))
    seven = [0.5] * 7
    raw = each + doubles(24, seven) + doubles(26, seven)
    assert tuple(float(n + 1) for n in range(16)) == state_codec.read_state(raw).O_T_EE
