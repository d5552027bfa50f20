"""What the arm says of itself."""

from __future__ import annotations

from typing import Final

from zetta.hw_drivers.deoxys.messages import JOINTS, RobotMode, RobotState
from zetta.hw_drivers.deoxys.parsing import (
    counted,
    finite,
    known,
    parsed,
)
from zetta.hw_drivers.deoxys.schema import ERROR_FLAGS, new
from zetta.runtime.errors import SpecMismatch


def state_bytes(state: RobotState) -> bytes:
    """Return a state as the robot side sends it.

    Raises:
        SpecMismatch: a wrong count, an unknown flag, or a number that is not finite.
    """
    _check_state(state)
    message = new("FrankaRobotStateMessage")
    message.O_T_EE.extend(state.O_T_EE)
    message.q.extend(state.q)
    message.dq.extend(state.dq)
    message.tau_ext_hat_filtered.extend(state.tau_ext)
    message.O_F_ext_hat_K.extend(state.force)
    for name in _CONTACTS:
        getattr(message, name).extend(getattr(state, name))
    message.current_errors.SetInParent()
    message.last_motion_errors.SetInParent()
    for flag in state.errors:
        setattr(message.current_errors, flag, True)
    for flag in state.last_motion_errors:
        setattr(message.last_motion_errors, flag, True)
    message.control_command_success_rate = state.success_rate
    message.robot_mode = state.mode
    message.time.toSec = state.time_s
    message.time.toMSec = round(state.time_s * 1000.0)
    message.frame = state.frame
    return bytes(message.SerializeToString(deterministic=True))


def read_state(raw: bytes) -> RobotState:
    """Undo `state_bytes`.

    Raises:
        SpecMismatch: no robot state, a wrong count, or a number that is not finite.
    """
    message = parsed("FrankaRobotStateMessage", raw)
    state = RobotState(
        tuple(message.O_T_EE),
        tuple(message.q),
        tuple(message.dq),
        known(RobotMode, message.robot_mode, "mode of the robot"),
        tuple(flag for flag in ERROR_FLAGS if getattr(message.current_errors, flag)),
        tuple(flag for flag in ERROR_FLAGS if getattr(message.last_motion_errors, flag)),
        tuple(message.tau_ext_hat_filtered),
        tuple(message.O_F_ext_hat_K),
        tuple(message.joint_contact),
        tuple(message.cartesian_contact),
        tuple(message.joint_collision),
        tuple(message.cartesian_collision),
        message.control_command_success_rate,
        message.time.toSec,
        message.frame,
    )
    _check_state(state)
    return state


_CONTACTS: Final = (
    "joint_contact",
    "cartesian_contact",
    "joint_collision",
    "cartesian_collision",
)
_FELT: Final = {
    "tau_ext": JOINTS,
    "force": 6,
    "joint_contact": JOINTS,
    "cartesian_contact": 6,
    "joint_collision": JOINTS,
    "cartesian_collision": 6,
}


def _check_state(state: RobotState) -> None:
    counted(state.O_T_EE, 16, "the pose of a robot state")
    counted(state.q, JOINTS, "the joint angles of a robot state")
    counted(state.dq, JOINTS, "the joint velocities of a robot state")
    for name, count in _FELT.items():
        values = getattr(state, name)
        if values:  # none at all is a release that does not tell
            counted(values, count, name)
    finite((state.success_rate, state.time_s), "a robot state")
    for flag in (*state.errors, *state.last_motion_errors):
        if flag not in ERROR_FLAGS:
            raise SpecMismatch(f"got the error flag {flag!r}, which the robot does not have")
