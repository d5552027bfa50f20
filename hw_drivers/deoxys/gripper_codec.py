"""Messages to and from the gripper."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from zetta.hw_drivers.deoxys.messages import (
    Grasp,
    GripperCommand,
    GripperControl,
    GripperState,
    Homing,
    Move,
    Stop,
)
from zetta.hw_drivers.deoxys.parsing import (
    counted,
    finite,
    parsed,
    unwrapped,
    wrap,
)
from zetta.hw_drivers.deoxys.schema import new
from zetta.runtime.errors import SpecMismatch

_FINGERS: Final[Mapping[type, str]] = {
    Homing: "FrankaGripperHomingMessage",
    Move: "FrankaGripperMoveMessage",
    Stop: "FrankaGripperStopMessage",
    Grasp: "FrankaGripperGraspMessage",
}


def gripper_bytes(control: GripperControl) -> bytes:
    """Return a gripper message as the robot side reads it.

    Raises:
        SpecMismatch: a number that is not finite, or nothing to do.
    """
    message = new("FrankaGripperControlMessage")
    message.termination = control.termination
    if control.command is not None:
        _check_fingers(control.command)
        inner = new(_FINGERS[type(control.command)])
        match control.command:
            case Homing():
                inner.homing = True
            case Stop():
                inner.stop = True
            case Move(width, speed):
                inner.width, inner.speed = width, speed
            case Grasp(width, speed, force, epsilon_inner, epsilon_outer):
                inner.width, inner.speed, inner.force = width, speed, force
                inner.epsilon_inner, inner.epsilon_outer = epsilon_inner, epsilon_outer
        wrap(message.control_msg, _FINGERS[type(control.command)], inner)
    elif not control.termination:
        raise SpecMismatch("got a gripper message that neither commands nor ends anything")
    return bytes(message.SerializeToString(deterministic=True))


def read_gripper(raw: bytes) -> GripperControl:
    """Undo `gripper_bytes`.

    Raises:
        SpecMismatch: no gripper message.
    """
    message = parsed("FrankaGripperControlMessage", raw)
    if not message.HasField("control_msg"):
        if not message.termination:
            raise SpecMismatch("got a gripper message that neither commands nor ends anything")
        return GripperControl(None, True)
    kind, inner = unwrapped(message.control_msg, {name: k for k, name in _FINGERS.items()})
    command: GripperCommand
    if kind is Move:
        command = Move(inner.width, inner.speed)
    elif kind is Grasp:
        gripped = (inner.width, inner.speed, inner.force, inner.epsilon_inner, inner.epsilon_outer)
        command = Grasp(*gripped)
    else:
        command = Homing() if kind is Homing else Stop()
    _check_fingers(command)
    return GripperControl(command, message.termination)


def _check_fingers(command: GripperCommand) -> None:
    match command:
        case Move(width, speed):
            counted((width, speed), 2, "a move of the fingers", low=0.0)
        case Grasp(width, speed, force, epsilon_inner, epsilon_outer):
            finite((width,), "a grasp")
            rest = (speed, force, epsilon_inner, epsilon_outer)
            counted(rest, 4, "a grasp", low=0.0)


def gripper_state_bytes(state: GripperState) -> bytes:
    """Return a gripper state as the robot side sends it.

    Raises:
        SpecMismatch: widths that no gripper has.
    """
    _check_gripper_state(state)
    message = new("FrankaGripperStateMessage")
    message.width, message.max_width = state.width, state.max_width
    message.is_grasped, message.temperature = state.is_grasped, state.temperature
    message.time.toSec = state.time_s
    message.time.toMSec = round(state.time_s * 1000.0)
    return bytes(message.SerializeToString(deterministic=True))


def read_gripper_state(raw: bytes) -> GripperState:
    """Undo `gripper_state_bytes`.

    Raises:
        SpecMismatch: no gripper state.
    """
    message = parsed("FrankaGripperStateMessage", raw)
    state = GripperState(
        message.width,
        message.max_width,
        message.is_grasped,
        message.temperature,
        message.time.toSec,
    )
    _check_gripper_state(state)
    return state


def _check_gripper_state(state: GripperState) -> None:
    finite((state.width, state.max_width, state.time_s), "a gripper state")
    # A closed gripper may report a width of a little less than nothing.
    if not (0.0 < state.max_width < 1.0 and -0.01 <= state.width < 1.0):
        raise SpecMismatch(
            f"got a gripper {state.width:g} m open of {state.max_width:g} m; was it homed?"
        )
