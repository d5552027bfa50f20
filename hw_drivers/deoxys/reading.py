"""What a session says of the arm."""

from __future__ import annotations

from dataclasses import dataclass

from zetta.hw_drivers.deoxys.conventions import Mode
from zetta.runtime.core import Array


@dataclass(frozen=True, slots=True)
class DeoxysReading:
    """What the arm reported last."""

    ee_pos: Array
    """Base frame, metres. Shape (3,)."""
    ee_quat: Array
    """Base frame, xyzw. Shape (4,)."""
    joint_pos: Array
    """Radians. Shape (7,)."""
    joint_vel: Array
    """Radians a second. Shape (7,)."""
    gripper_opening: float
    """Metres between the fingers."""
    gripper_max: float
    holding: bool
    """The gripper says that it grasped something."""
    mode: Mode
    reason: str
    """Why the session is stopped; empty while it can be driven."""
    at: float
    """Monotonic seconds, ours, at which the arm's state arrived."""
    age_s: float
    rate_hz: float
    """Measured; 100 is usual."""
    success_rate: float
    """Share of the 1 kHz commands that reached the arm in time."""
