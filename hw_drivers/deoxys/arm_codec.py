"""Commands for the arm: one ZMQ frame is one serialized message, without a topic."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from zetta.hw_drivers.deoxys.messages import (
    JOINTS,
    TIME_FRACTION_FLOOR,
    ArmCommand,
    CartesianGoal,
    CartesianVelocity,
    Controller,
    Interpolator,
    JointGoal,
    JointImpedance,
    JointPosition,
    Motion,
    NoControl,
    Osc,
    Smoothing,
)
from zetta.hw_drivers.deoxys.parsing import (
    counted,
    finite,
    known,
    parsed,
    unwrapped,
    wrap,
)
from zetta.hw_drivers.deoxys.schema import new
from zetta.runtime.errors import SpecMismatch

_MOTIONS: Final[Mapping[type, str]] = {
    NoControl: "FrankaDummyControllerMessage",
    Osc: "FrankaOSCPoseControllerMessage",
    JointPosition: "FrankaJointPositionControllerMessage",
    JointImpedance: "FrankaJointImpedanceControllerMessage",
    CartesianVelocity: "FrankaCartesianVelocityControllerMessage",
}
_CARRIED: Final[Mapping[Controller, type]] = {
    Controller.NO_CONTROL: NoControl,
    Controller.OSC_POSE: Osc,
    Controller.OSC_POSITION: Osc,
    Controller.OSC_YAW: Osc,
    Controller.JOINT_POSITION: JointPosition,
    Controller.JOINT_IMPEDANCE: JointImpedance,
    Controller.CARTESIAN_VELOCITY: CartesianVelocity,
}
"""What each controller is sent; the two that are missing are placeholders on the robot side."""
_SMOOTHING: Final = "ExponentialSmoothingConfig"
_EXPONENTIAL: Final = 1


def command_bytes(command: ArmCommand) -> bytes:
    """Return a command as the robot side reads it.

    Raises:
        SpecMismatch: a wrong count, a number that is not finite, a controller without a body, or a
            time fraction that the robot side would change.
    """
    _check_command(command)
    message = new("FrankaControlMessage")
    message.termination = command.termination
    message.controller_type = command.controller
    message.traj_interpolator_type = command.interpolator
    message.traj_interpolator_time_fraction = command.time_fraction
    wrap(message.control_msg, _MOTIONS[type(command.motion)], _motion_message(command.motion))
    message.timeout = command.timeout_s
    if command.smoothing is not None:
        given = command.smoothing
        inner = new(_SMOOTHING)
        inner.alpha_q, inner.alpha_dq = given.alpha_q, given.alpha_dq
        inner.alpha_eef, inner.alpha_eef_vel = given.alpha_eef, given.alpha_eef_vel
        message.state_estimator_msg.is_estimation = given.is_estimation
        message.state_estimator_msg.estimator_type = _EXPONENTIAL
        wrap(message.state_estimator_msg.config, _SMOOTHING, inner)
    return bytes(message.SerializeToString(deterministic=True))


def read_command(raw: bytes) -> ArmCommand:
    """Undo `command_bytes`; what the robot side does with every frame.

    Raises:
        SpecMismatch: no command, or one that contradicts itself.
    """
    message = parsed("FrankaControlMessage", raw)
    controller = known(Controller, message.controller_type, "controller")
    carried = _CARRIED.get(controller)
    if carried is None:
        raise SpecMismatch(f"{controller.name} is a name without a body on the robot side")
    inner = unwrapped(message.control_msg, {_MOTIONS[carried]: carried})
    command = ArmCommand(
        controller,
        _motion(carried, inner[1]),
        known(Interpolator, message.traj_interpolator_type, "interpolator"),
        # The robot side does not refuse a smaller fraction; it takes the floor.
        max(message.traj_interpolator_time_fraction, TIME_FRACTION_FLOOR),
        message.timeout,
        message.termination,
        _smoothing(message),
    )
    _check_command(command)
    return command


def _check_command(command: ArmCommand) -> None:
    wanted = _CARRIED.get(command.controller)
    if wanted is None:
        raise SpecMismatch(
            f"{command.controller.name} is a name without a body on the robot side; use "
            "JOINT_IMPEDANCE or CARTESIAN_VELOCITY"
        )
    if not isinstance(command.motion, wanted):
        raise SpecMismatch(
            f"{command.controller.name} is sent a {wanted.__name__}, got a "
            f"{type(command.motion).__name__}"
        )
    finite([command.time_fraction, command.timeout_s], "a command")
    if not TIME_FRACTION_FLOOR <= command.time_fraction <= 1.0:
        raise SpecMismatch(
            f"got the time fraction {command.time_fraction:g}, expected {TIME_FRACTION_FLOOR:g} to "
            "1; the robot side raises smaller ones without saying so"
        )
    if not 0.0 < command.timeout_s <= 1.0:
        raise SpecMismatch(f"got a timeout of {command.timeout_s:g} s, expected 0 to 1 s")
    if command.smoothing is not None:
        given = command.smoothing
        alphas = (given.alpha_q, given.alpha_dq, given.alpha_eef, given.alpha_eef_vel)
        finite(alphas, "a smoothing")
    _check_motion(command.motion)


def _check_motion(motion: Motion) -> None:
    match motion:
        case NoControl(goal):
            if goal is not None:
                counted(goal.values, 6, "a Cartesian goal")
        case Osc(goal, translational, rotational, residual):
            counted(goal.values, 6, "a Cartesian goal")
            counted(translational, 3, "a translational stiffness", low=0.0)
            counted(rotational, 3, "a rotational stiffness", low=0.0)
            if residual:
                counted(residual, JOINTS, "a residual mass")
        case CartesianVelocity(goal, kp, kd, speed):
            counted(goal.values, 6, "a Cartesian goal")
            counted((kp, kd, speed), 3, "gains", low=0.0)
        case JointPosition(goal, kp, kd, speed):
            counted(goal.values, JOINTS, "a joint goal")
            counted((kp, kd, speed), 3, "gains", low=0.0)
        case JointImpedance(goal, stiff, damp):
            counted(goal.values, JOINTS, "a joint goal")
            counted(stiff, JOINTS, "joint stiffnesses", low=0.0)
            counted(damp, JOINTS, "joint dampings", low=0.0)


def _motion_message(motion: Motion) -> Any:
    message = new(_MOTIONS[type(motion)])
    match motion:
        case NoControl(goal, termination):
            if goal is not None:
                _fill_goal(message.goal, goal)
            message.termination = termination
        case Osc(goal, translational, rotational, residual, termination):
            _fill_goal(message.goal, goal)
            message.translational_stiffness.extend(translational)
            message.rotational_stiffness.extend(rotational)
            message.termination = termination
            message.config.SetInParent()  # the published client always sends it, even when empty
            message.config.residual_mass_vec.extend(residual)
        case JointPosition(goal, kp, kd, speed) | CartesianVelocity(goal, kp, kd, speed):
            _fill_goal(message.goal, goal)
            message.kp_gains, message.kd_gains, message.speed_factor = kp, kd, speed
        case JointImpedance(goal, stiff, damp):
            _fill_goal(message.goal, goal)
            message.kp.extend(stiff)
            message.kd.extend(damp)
    return message


def _motion(kind: type, message: Any) -> Motion:
    if kind is NoControl:
        goal = _cartesian(message.goal) if message.HasField("goal") else None
        return NoControl(goal, message.termination)
    if not message.HasField("goal"):
        raise SpecMismatch(f"got a {kind.__name__} without a goal")
    if kind is Osc:
        return Osc(
            _cartesian(message.goal),
            tuple(message.translational_stiffness),
            tuple(message.rotational_stiffness),
            tuple(message.config.residual_mass_vec),
            message.termination,
        )
    if kind is JointImpedance:
        return JointImpedance(_joints(message.goal), tuple(message.kp), tuple(message.kd))
    gains = (message.kp_gains, message.kd_gains, message.speed_factor)
    if kind is JointPosition:
        return JointPosition(_joints(message.goal), *gains)
    return CartesianVelocity(_cartesian(message.goal), *gains)


def _fill_goal(message: Any, goal: CartesianGoal | JointGoal) -> None:
    message.SetInParent()  # a goal of zeros is a goal
    message.is_delta = goal.is_delta
    names = _CARTESIAN if isinstance(goal, CartesianGoal) else _JOINT
    for name, value in zip(names, goal.values, strict=True):
        setattr(message, name, value)


_CARTESIAN: Final = ("x", "y", "z", "ax", "ay", "az")
_JOINT: Final = tuple(f"q{n}" for n in range(1, JOINTS + 1))


def _cartesian(message: Any) -> CartesianGoal:
    return CartesianGoal(tuple(getattr(message, n) for n in _CARTESIAN), message.is_delta)


def _joints(message: Any) -> JointGoal:
    return JointGoal(tuple(getattr(message, n) for n in _JOINT), message.is_delta)


def _smoothing(message: Any) -> Smoothing | None:
    estimator = message.state_estimator_msg
    if not message.HasField("state_estimator_msg") or estimator.estimator_type != _EXPONENTIAL:
        return None
    _, inner = unwrapped(estimator.config, {_SMOOTHING: Smoothing})
    alphas = (inner.alpha_q, inner.alpha_dq, inner.alpha_eef, inner.alpha_eef_vel)
    return Smoothing(*alphas, estimator.is_estimation)
