"""A Franka behind deoxys as the arm server takes it: poses in, readings out, nothing waits.

Targets are followed with the operational-space controller, as absolute goals that lie at most a
step from where the hand is: the controller is at its goal within a third of a tick, and a goal far
away ends in a reflex. The pose is that of the end effector that the arm itself is configured with.
"""

from __future__ import annotations

import math
import time
from typing import Final

import numpy as np

from zetta.hw_drivers.arm import ArmFacts, ArmMode, ArmReading, ArmTarget, PoseTarget
from zetta.hw_drivers.deoxys.conventions import Mode
from zetta.hw_drivers.deoxys.messages import (
    CartesianGoal,
    Controller,
    Grasp,
    GripperCommand,
    Move,
    Osc,
)
from zetta.hw_drivers.deoxys.reading import DeoxysReading
from zetta.hw_drivers.deoxys.session import DeoxysSession
from zetta.runtime.core import Array
from zetta.runtime.errors import SpecMismatch
from zetta.runtime.tracking import Quat, quat_of_rotvec, rotation_between, rotvec_of_quat

STEP_M: Final = 0.05
"""What a displacement of 1.0 means to deoxys; no goal lies further from the hand."""
STEP_RAD: Final = 0.25
CLOSED_M: Final = 0.005
"""An opening up to this is a grasp, with force; a wider one is a place for the fingers."""
NOTICED_M: Final = 0.001
"""A smaller change of the wanted opening is none."""
AGAIN_S: Final = 0.5
"""After a termination that has not stopped the arm. The program on the other side is started again
by its script; a termination sent all the time would end it again and again."""
_MODES: Final[dict[Mode, ArmMode]] = {
    "other": "fault",
    "idle": "idle",
    "moving": "moving",
    "guided": "stopped",
    "reflex": "stopped",
    "user_stopped": "stopped",
    "recovering": "fault",
}


class DeoxysSide:
    """A `RobotSide` of a connected session; its clock is `time.monotonic`."""

    def __init__(self, session: DeoxysSession, robot: str) -> None:
        """Choose the controller, which takes a second.

        Raises:
            Timeout: there is no fresh state.
            ConnectionLost: nobody listens.
        """
        self._session = session
        self._goal: PoseTarget | None = None
        self._opening = math.nan
        self._ended_at = -math.inf
        self._seen = self._before = session.state()
        session.use(Controller.OSC_POSE)
        self._facts = ArmFacts(
            robot=robot,
            model="Franka behind deoxys",
            joints=tuple(f"joint{n}" for n in range(1, 8)),
            joint_low=(),  # a Panda and an FR3 differ, and the wire does not say which it is
            joint_high=(),
            gripper_max=self._seen.gripper_max,
            versions={"wire": "deoxys"},
        )

    @property
    def facts(self) -> ArmFacts:
        """Return what the arm is."""
        return self._facts

    def read(self) -> ArmReading:
        """Return the latest reading.

        Raises:
            Timeout: the arm does not report.
        """
        seen = self._session.state()
        if seen.at > self._seen.at:  # it is looked at more often than it comes
            self._before = self._seen
        self._seen, before = seen, self._before
        passed = seen.at - before.at
        return ArmReading(
            seen.at,
            seen.joint_pos,
            seen.ee_pos,
            seen.ee_quat,
            seen.gripper_opening,
            (seen.gripper_opening - before.gripper_opening) / passed if passed > 0.0 else 0.0,
            "stopped" if seen.reason else _MODES[seen.mode],
            seen.reason,
        )

    def send(self, target: ArmTarget) -> None:
        """Go a step towards `target`.

        Raises:
            SpecMismatch: it is no pose.
            SafetyStop: the session keeps a stop or a reflex.
            InfraError: the arm does not report, or nobody listens.
        """
        if not isinstance(target, PoseTarget):
            raise SpecMismatch("deoxys is driven by pose targets here")
        self._goal = None
        self._session.move(_osc(*_step(self._session.state(), target)))
        self._fingers(target.gripper_opening)

    def hold(self) -> None:
        """Keep the place at which it was first told to; an arm that was never moved is left alone.

        Raises:
            InfraError: the arm does not report, or nobody listens; it ends its control after 1 s.
        """
        if self._session.stopped or self._session.silent:
            return  # nothing is controlled, and the arm holds itself
        if self._goal is None:
            seen = self._session.state()
            self._goal = PoseTarget(seen.ee_pos, seen.ee_quat, seen.gripper_opening)
        self._session.move(_osc(self._goal.ee_pos, _quat(self._goal.ee_quat)))

    def stop(self) -> None:
        """End the control, which is how this arm stops; called again, look whether it has.

        Raises:
            ConnectionLost: nobody listens; the arm ends its control by itself after 1 s.
        """
        self._goal = None
        waited = time.monotonic() - self._ended_at
        if waited == math.inf or (waited > AGAIN_S and self._seen.mode == "moving"):
            self._ended_at = time.monotonic()
            self._session.stop("stopped by the server of the arm")

    def clear(self) -> None:
        """Take targets again, after a person has looked.

        Raises:
            SafetyStop: the arm still reports what stopped it.
            InfraError: the arm does not report, or its program has not started again yet.
        """
        self._session.recovered_by("whoever cleared the stop at the server of the arm")
        self._session.use(Controller.OSC_POSE)
        self._ended_at, self._opening = -math.inf, math.nan

    def close(self) -> None:
        """End the control and free the sockets; calling it again does nothing."""
        self._session.close()

    def _fingers(self, opening: float) -> None:
        if abs(opening - self._opening) < NOTICED_M:
            return
        self._opening = opening
        command: GripperCommand = Grasp() if opening <= CLOSED_M else Move(opening)
        self._session.gripper(command)


def _step(seen: DeoxysReading, target: PoseTarget) -> tuple[Array, Quat]:
    way = target.ee_pos - seen.ee_pos
    now = _quat(seen.ee_quat)
    turn = np.array(rotation_between(now, _quat(target.ee_quat)))
    way *= min(1.0, STEP_M / max(float(np.linalg.norm(way)), 1e-12))
    turn *= min(1.0, STEP_RAD / max(float(np.linalg.norm(turn)), 1e-12))
    x, y, z = turn.tolist()
    ax, ay, az, aw = quat_of_rotvec((x, y, z))
    bx, by, bz, bw = now
    turned = (
        aw * bx + ax * bw + ay * bz - az * by,
        aw * by - ax * bz + ay * bw + az * bx,
        aw * bz + ax * by - ay * bx + az * bw,
        aw * bw - ax * bx - ay * by - az * bz,
    )
    return seen.ee_pos + way, turned


def _osc(position: Array, quat: Quat) -> Osc:
    values = (*position.tolist(), *rotvec_of_quat(quat))
    return Osc(CartesianGoal(values, is_delta=False))


def _quat(quat: Array) -> Quat:
    x, y, z, w = quat.tolist()
    return (x, y, z, w)
