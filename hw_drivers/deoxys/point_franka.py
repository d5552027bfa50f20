"""A Franka arm without mass or links: its hand is a point that goes where it is told, at a speed.

Enough to try a session: goals, gripper, a thing between the fingers, a reflex, a stop button. It
has no kinematics; joint commands move the joints and leave the hand where it is.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from zetta.hw_drivers.deoxys.conventions import MAX_WIDTH_M, column_major
from zetta.hw_drivers.deoxys.messages import (
    ArmCommand,
    CartesianVelocity,
    Grasp,
    GripperCommand,
    GripperState,
    Homing,
    JointImpedance,
    JointPosition,
    Move,
    Osc,
    RobotMode,
    RobotState,
    Stop,
)
from zetta.runtime.core import Array
from zetta.runtime.tracking import Quat, Vec, quat_of_rotvec, rotation_between

SPEED: Final = 0.5
"""m/s of the hand, and rad/s of its rotation and of the joints."""
REST_Q: Final = (0.0, -0.785, 0.0, -2.356, 0.0, 1.571, 0.785)


class PointFranka:
    """A `FrankaBody` of a few numbers; not to be shared by threads, except for the four events."""

    def __init__(self, thing_m: float = 0.0) -> None:
        """Stand still, open.

        Args:
            thing_m: width of what lies between the fingers; 0 for nothing.
        """
        self.thing_m = thing_m
        self.position: Array = np.array([0.4, 0.0, 0.4])
        self.quat: Quat = (1.0, 0.0, 0.0, 0.0)
        self.q: Array = np.array(REST_Q)
        self.width = MAX_WIDTH_M
        self.commands: list[ArmCommand] = []
        """What was followed."""
        self.fingers: list[GripperCommand] = []
        """What the gripper was told."""
        self._goal, self._goal_quat, self._goal_q = self.position, self.quat, self.q
        self._velocity: Array = np.zeros(3)
        self._goal_width, self._finger_speed = self.width, 0.0
        self._grasped = False
        self._mode = RobotMode.IDLE
        self._time, self._frame = 0.0, 0
        self._errors: tuple[str, ...] = ()

    def reflex(self, flag: str = "cartesian_reflex") -> None:
        """Let the arm meet something: it stops, with this error."""
        self._errors, self._mode = (flag,), RobotMode.REFLEX

    def press_stop(self) -> None:
        """Press the stop button."""
        self._mode = RobotMode.USER_STOPPED

    def recover(self) -> None:
        """Clear errors and the stop button, as a person does at the robot."""
        self._errors, self._mode = (), RobotMode.IDLE

    def command(self, command: ArmCommand) -> None:
        """Follow a command, if the arm is able to."""
        self.commands.append(command)
        if self._errors or self._mode in (RobotMode.REFLEX, RobotMode.USER_STOPPED):
            return
        self._mode = RobotMode.MOVE
        self._velocity = np.zeros(3)
        match command.motion:
            case Osc(goal):
                values = np.array(goal.values)
                turned = quat_of_rotvec(_vec(values[3:]))
                self._goal = self.position + values[:3] if goal.is_delta else values[:3]
                self._goal_quat = _times(turned, self.quat) if goal.is_delta else turned
            case CartesianVelocity(goal):
                self._velocity = np.array(goal.values[:3])
            case JointImpedance(goal) | JointPosition(goal):
                values = np.array(goal.values)
                self._goal_q = self.q + values if goal.is_delta else values

    def release(self) -> None:
        """Keep the present place."""
        self._goal, self._goal_quat, self._goal_q = self.position, self.quat, self.q
        self._velocity = np.zeros(3)
        if self._mode is RobotMode.MOVE:
            self._mode = RobotMode.IDLE

    def gripper(self, command: GripperCommand) -> None:
        """Begin to move the fingers; like the published program, take a stop for a homing."""
        self.fingers.append(command)
        match command:
            case Move(width, speed):
                self._goal_width, self._finger_speed = min(width, MAX_WIDTH_M), speed
            case Grasp(width, speed):
                self._goal_width, self._finger_speed = max(width, 0.0), speed
                return
            case Homing() | Stop():
                self._goal_width, self._finger_speed = MAX_WIDTH_M, 0.1
        self._grasped = False

    def advance(self, seconds: float) -> None:
        """Go on towards the goals."""
        self._time += seconds
        self._frame += 1
        if self._mode is RobotMode.MOVE:
            reach = SPEED * seconds
            self._goal = self._goal + self._velocity * seconds
            self.position = self.position + _shortened(self._goal - self.position, reach)
            turn = _shortened(np.array(rotation_between(self.quat, self._goal_quat)), reach)
            self.quat = _times(quat_of_rotvec(_vec(turn)), self.quat)
            self.q = self.q + _shortened(self._goal_q - self.q, reach)
        reach = self._finger_speed * seconds
        self.width += max(-reach, min(reach, self._goal_width - self.width))
        if self.thing_m and self._goal_width < self.thing_m and self.width <= self.thing_m:
            self.width = self.thing_m
            self._grasped = isinstance(self.fingers[-1], Grasp)

    def state(self) -> RobotState:
        """Return what the arm reports."""
        return RobotState(
            column_major(self.position.tolist(), self.quat),
            tuple(self.q.tolist()),
            (0.0,) * 7,
            self._mode,
            self._errors,
            success_rate=1.0,
            time_s=self._time,
            frame=self._frame,
        )

    def gripper_state(self) -> GripperState:
        """Return what the gripper reports."""
        return GripperState(self.width, MAX_WIDTH_M, self._grasped, 30, self._time)


def _shortened(way: Array, reach: float) -> Array:
    length = float(np.linalg.norm(way))
    return way if length <= reach else way * (reach / length)


def _vec(values: Array) -> Vec:
    x, y, z = values.tolist()
    return (x, y, z)


def _times(a: Quat, b: Quat) -> Quat:
    """Return the rotation `b`, then `a` (xyzw), normalised."""
    ax, ay, az, aw = a
    bx, by, bz, bw = b
    product = np.array(
        [
            aw * bx + ax * bw + ay * bz - az * by,
            aw * by - ax * bz + ay * bw + az * bx,
            aw * bz + ax * by - ay * bx + az * bw,
            aw * bw - ax * bx - ay * by - az * bz,
        ]
    )
    x, y, z, w = (product / np.linalg.norm(product)).tolist()
    return (x, y, z, w)
