"""The twin behind the wire of deoxys: goals, modes and fingers of a Franka over the twin's physics.

What the wire asks is what the published programs do with it, as far as their sources tell. The end
effector of the wire is the twin's grip site. Forces, stiffnesses and interpolators are taken and
have no effect: the twin's motors have one stiffness. Nothing here is measured on a real arm.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final

import numpy as np

from zetta.hw_drivers.arm import ArmReading, ArmTarget, JointTarget, PoseTarget
from zetta.hw_drivers.deoxys.conventions import MAX_WIDTH_M, column_major
from zetta.hw_drivers.deoxys.messages import (
    ArmCommand,
    CartesianGoal,
    CartesianVelocity,
    Controller,
    Grasp,
    GripperCommand,
    GripperState,
    Homing,
    JointGoal,
    JointImpedance,
    JointPosition,
    Move,
    NoControl,
    Osc,
    RobotMode,
    RobotState,
    Stop,
)
from zetta.hw_drivers.frames import product, rotation
from zetta.hw_drivers.twin.passing import Passing
from zetta.hw_drivers.twin.world import TwinWorld
from zetta.runtime.core import Array, read_only

HOMING_SPEED: Final = 0.1
STILL_M_S: Final = 2e-3
"""Fingers that are slower stand."""


class TwinFranka:
    """A `FrankaBody` over a `TwinWorld`. One thread calls it, but for the three events."""

    def __init__(self, world: TwinWorld) -> None:
        """Begin where the world is, idle."""
        self.world = world
        self._passing = Passing()
        self._seen = world.reading(0.0)
        self._joint_vel: Array = np.zeros(7)
        self._target: ArmTarget | None = None
        self._velocity: Array | None = None
        self._fingers: GripperCommand = Move(self._seen.gripper_opening)
        self._opening = self._wide = self._seen.gripper_opening
        self._speed = HOMING_SPEED
        self._mode, self._errors = RobotMode.IDLE, tuple[str, ...]()
        self._last_errors: tuple[str, ...] = ()
        self._time, self._frame = 0.0, 0
        self.followed = 0
        """Commands for the arm that were followed."""
        self.ignored = 0
        """Commands that came while the arm could not move."""

    # ------------------------------------------------------------------------- events

    def reflex(self, flag: str = "cartesian_reflex") -> None:
        """Let the arm meet something: it stops, with this error."""
        self._errors = self._last_errors = (flag,)
        self._stand(RobotMode.REFLEX)

    def press_stop(self) -> None:
        """Press the stop button."""
        self._stand(RobotMode.USER_STOPPED)

    def recover(self) -> None:
        """Clear errors and the stop button, as a person does at the robot."""
        self._errors, self._mode = (), RobotMode.IDLE

    # ----------------------------------------------------------------------- the wire

    def command(self, command: ArmCommand) -> None:
        """Follow a command, if the arm is able to."""
        if self._mode not in (RobotMode.IDLE, RobotMode.MOVE):
            self.ignored += 1
            return
        going, self._velocity = self._velocity is not None, None
        seen = self.world.reading(0.0)
        match command.motion:
            case Osc(goal):
                self._target = _pose(seen, goal, command.controller, self._opening)
            case JointPosition(goal) | JointImpedance(goal):
                self._target = _joints(seen, goal, self._opening)
            case CartesianVelocity(goal):
                self._velocity = np.array(goal.values)
                if not going or self._target is None:
                    self._target = PoseTarget(seen.ee_pos, seen.ee_quat, self._opening)
            case NoControl():
                return
        self._mode = RobotMode.MOVE
        self.followed += 1
        self.world.target(self._target)

    def release(self) -> None:
        """Brake and stay: nothing is controlled any more."""
        self._target, self._velocity = None, None
        self.world.halt()
        if self._mode is RobotMode.MOVE:
            self._mode = RobotMode.IDLE

    def gripper(self, command: GripperCommand) -> None:
        """Begin to move the fingers; like the published program, take a stop for a homing."""
        self._fingers = command
        match command:
            case Move(width, speed) | Grasp(width, speed):
                self._wide, self._speed = float(np.clip(width, 0.0, MAX_WIDTH_M)), max(0.0, speed)
            case Homing() | Stop():
                self._wide, self._speed = MAX_WIDTH_M, HOMING_SPEED

    def advance(self, seconds: float) -> None:
        """Let the world go on."""
        self._time += seconds
        self._frame += 1
        passed = self._passing.owed(seconds)
        if passed == 0.0:
            return
        self._aim(passed)
        before = self._seen
        self.world.advance(passed)
        self._seen = self.world.reading(self._time)
        self._joint_vel = (self._seen.joint_pos - before.joint_pos) / passed

    def state(self) -> RobotState:
        """Return what the arm reports."""
        seen = self._seen
        return RobotState(
            column_major(seen.ee_pos.tolist(), seen.ee_quat.tolist()),
            tuple(seen.joint_pos.tolist()),
            tuple(self._joint_vel.tolist()),
            self._mode,
            self._errors,
            self._last_errors,
            success_rate=1.0,
            time_s=self._time,
            frame=self._frame,
        )

    def gripper_state(self) -> GripperState:
        """Return what the gripper reports.

        As libfranka documents it, something counts as grasped when the fingers of a grasp stand
        within its tolerances. The published ones also count fingers that closed on nothing.
        """
        seen, fingers = self._seen, self._fingers
        width = max(0.0, seen.gripper_opening)
        grasped = False
        if isinstance(fingers, Grasp) and self._opening == self._wide:
            stands = abs(seen.gripper_velocity) < STILL_M_S
            low, high = fingers.width - fingers.epsilon_inner, fingers.width + fingers.epsilon_outer
            grasped = stands and low < width < high
        return GripperState(width, MAX_WIDTH_M, grasped, 30, self._time)

    # ------------------------------------------------------------------------- inside

    def _stand(self, mode: RobotMode) -> None:
        self._mode, self._target, self._velocity = mode, None, None
        self.world.halt()

    def _aim(self, passed: float) -> None:
        """Move what is wanted on, and tell the world where it has changed."""
        changed = False
        if self._velocity is not None and isinstance(self._target, PoseTarget):
            way, turn = self._velocity[:3] * passed, self._velocity[3:] * passed
            pos, quat = self._target.ee_pos + way, product(rotation(turn), self._target.ee_quat)
            self._target, changed = replace(self._target, ee_pos=pos, ee_quat=quat), True
        if self._opening != self._wide:
            reach = self._speed * passed
            self._opening += min(reach, max(-reach, self._wide - self._opening))
            if math.isclose(self._opening, self._wide, abs_tol=1e-6):
                self._opening = self._wide
            changed = True
        if not changed:
            return
        # The fingers have motors of their own: they move also while the arm only stands.
        resting = JointTarget(self._seen.joint_pos, self._opening)
        target = resting if self._target is None else self._target
        self.world.target(replace(target, gripper_opening=self._opening))


def _pose(
    seen: ArmReading, goal: CartesianGoal, controller: Controller, opening: float
) -> PoseTarget:
    values = np.array(goal.values)
    turned = rotation(values[3:])
    if controller is Controller.OSC_POSITION:
        turned = seen.ee_quat  # it keeps the orientation
    elif controller is Controller.OSC_YAW:
        turned = product(rotation(np.array((0.0, 0.0, values[5]))), _upright(seen.ee_quat, goal))
    elif goal.is_delta:
        turned = product(turned, seen.ee_quat)
    place = seen.ee_pos + values[:3] if goal.is_delta else values[:3]
    return PoseTarget(read_only(place), read_only(turned), opening)


def _upright(quat: Array, goal: CartesianGoal) -> Array:
    """Return what a yaw turns: the present orientation, or the hand straight down."""
    return quat if goal.is_delta else np.array((1.0, 0.0, 0.0, 0.0))


def _joints(seen: ArmReading, goal: JointGoal, opening: float) -> JointTarget:
    values = np.array(goal.values)
    return JointTarget(read_only(seen.joint_pos + values if goal.is_delta else values), opening)
