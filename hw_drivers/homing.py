"""The slow straight way home."""

from __future__ import annotations

from typing import Final

import numpy as np

from zetta.hw_drivers.arm import ArmReading, ArmTarget, JointTarget, PoseTarget
from zetta.hw_drivers.frames import product, rotation, rotation_vector
from zetta.runtime.core import Array

SPEED: Final = 0.08
"""Metres a second."""
TURN_SPEED: Final = 0.4
"""Radians a second, of the hand or of the joint that turns most."""
ARRIVED_M, ARRIVED_RAD = 3e-3, 2e-2


def between(start: ArmReading, goal: ArmTarget, share: float) -> ArmTarget:
    """Return the target on the straight way from `start` to `goal`; 1 is the goal."""
    if isinstance(goal, JointTarget):
        way = goal.joint_pos - start.joint_pos
        return JointTarget(start.joint_pos + share * way, goal.gripper_opening)
    turn = turn_between(start, goal)
    return PoseTarget(
        start.ee_pos + share * (goal.ee_pos - start.ee_pos),
        product(rotation(share * turn), start.ee_quat),
        goal.gripper_opening,
    )


def duration(start: ArmReading, goal: ArmTarget) -> float:
    """Return how long a homing takes, seconds."""
    if isinstance(goal, JointTarget):
        return float(np.abs(goal.joint_pos - start.joint_pos).max()) / TURN_SPEED
    turn = float(np.linalg.norm(turn_between(start, goal)))
    return max(float(np.linalg.norm(goal.ee_pos - start.ee_pos)) / SPEED, turn / TURN_SPEED)


def arrived(reading: ArmReading, goal: ArmTarget) -> bool:
    """Say whether an arm is where it was sent."""
    if isinstance(goal, JointTarget):
        return bool(np.abs(goal.joint_pos - reading.joint_pos).max() < ARRIVED_RAD)
    apart = float(np.linalg.norm(goal.ee_pos - reading.ee_pos))
    return apart < ARRIVED_M and float(np.linalg.norm(turn_between(reading, goal))) < ARRIVED_RAD


def turn_between(start: ArmReading, goal: PoseTarget) -> Array:
    """Return the axis-angle vector from the hand of `start` to that of `goal`. Shape (3,)."""
    return rotation_vector(product(goal.ee_quat, start.ee_quat * np.array([-1.0, -1.0, -1.0, 1.0])))
