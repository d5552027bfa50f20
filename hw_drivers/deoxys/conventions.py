"""Conversions at the border: what deoxys means by a pose, a displacement, a gripper, an error.

A pose is 16 numbers, column after column; ours is a position and a quaternion xyzw. A displacement
of 1.0 means 0.05 m or 1 rad, as in the controller settings that ship with deoxys. Gripper values
below 0 open (and say how far), all others, 0 included, close.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, Literal, TypeAlias

import numpy as np

from zetta.hw_drivers.deoxys.messages import (
    CartesianGoal,
    Controller,
    Grasp,
    GripperCommand,
    Interpolator,
    JointGoal,
    Move,
    RobotMode,
    Vector,
)
from zetta.runtime.core import Array, read_only
from zetta.runtime.errors import SpecMismatch

TRANSLATION_SCALE_M: Final = 0.05
ROTATION_SCALE_RAD: Final = 1.0
MAX_WIDTH_M: Final = 0.08
MOVE_SPEED: Final = 0.1
"""m/s at which the published client opens."""
ORTHONORMAL_WITHIN: Final = 1e-3
"""Sensed rotations are rounded; more than this is another layout of the 16 numbers."""

Mode: TypeAlias = Literal[
    "other", "idle", "moving", "guided", "reflex", "user_stopped", "recovering"
]
_MODES: Final[dict[RobotMode, Mode]] = {
    RobotMode.OTHER: "other",
    RobotMode.IDLE: "idle",
    RobotMode.MOVE: "moving",
    RobotMode.GUIDING: "guided",
    RobotMode.REFLEX: "reflex",
    RobotMode.USER_STOPPED: "user_stopped",
    RobotMode.RECOVERING: "recovering",
}
INTERPOLATORS: Final[dict[Controller, Interpolator]] = {
    Controller.NO_CONTROL: Interpolator.NO_OP,
    Controller.OSC_POSE: Interpolator.LINEAR_POSE,
    Controller.OSC_POSITION: Interpolator.LINEAR_POSITION,
    Controller.OSC_YAW: Interpolator.LINEAR_POSE,
    Controller.JOINT_POSITION: Interpolator.SMOOTH_JOINT_POSITION,
    Controller.JOINT_IMPEDANCE: Interpolator.LINEAR_JOINT_POSITION,
    Controller.CARTESIAN_VELOCITY: Interpolator.LINEAR_CARTESIAN_VELOCITY,
}
"""What the robot side interpolates with, by controller; the two placeholders have none."""
_ADVICE: Final = (
    ("reflex", "the arm met a force that it did not expect"),
    ("discontinuity", "two commands were too far apart"),
    ("position_limits", "the goal lies outside the arm's range"),
    ("velocity", "the motion was too fast"),
    ("self_collision", "the arm came too near to itself"),
    ("communication_constraints", "commands reached the 1 kHz loop too late"),
)


# --------------------------------------------------------------------------- pose


def pose_of(O_T_EE: Sequence[float]) -> tuple[Array, Array]:
    """Return position (3,) in metres and quaternion xyzw (4,) of a column-major pose (16,).

    >>> position, quat = pose_of([1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0.3, 0.0, 0.5, 1])
    >>> position.tolist(), quat.tolist()
    ([0.3, 0.0, 0.5], [0.0, 0.0, 0.0, 1.0])

    Raises:
        SpecMismatch: the numbers are no rigid pose, which row-major numbers are not either.
    """
    if len(O_T_EE) != 16:
        raise SpecMismatch(f"got {len(O_T_EE)} numbers for a pose, expected 16")
    matrix = np.array(O_T_EE, np.float64).reshape(4, 4).T  # columns come one after another
    rotation = matrix[:3, :3]
    rigid = (
        bool(np.isfinite(matrix).all())
        and np.allclose(matrix[3], (0.0, 0.0, 0.0, 1.0), atol=ORTHONORMAL_WITHIN)
        and np.allclose(rotation @ rotation.T, np.eye(3), atol=ORTHONORMAL_WITHIN)
        and float(np.linalg.det(rotation)) > 0.0
    )
    if not rigid:
        raise SpecMismatch(
            "got 16 numbers that are no pose; expected a rigid transformation, column by column, "
            "with 0 0 0 1 as its last row (has the arm sent its first state?)"
        )
    return read_only(matrix[:3, 3]), read_only(_quat(rotation))


def column_major(position: Sequence[float], quat: Sequence[float]) -> Vector:
    """Undo `pose_of`: 16 numbers, column after column."""
    x, y, z, w = np.asarray(quat, np.float64) / np.linalg.norm(quat)
    matrix = np.eye(4)
    matrix[:3, :3] = (
        (1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)),
        (2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)),
        (2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)),
    )
    matrix[:3, 3] = position
    return tuple(matrix.T.ravel().tolist())


def _quat(rotation: Array) -> Array:
    """Return the quaternion xyzw, w not negative, from the largest of its four squares."""
    m = rotation
    squares = np.array(  # 4x^2, 4y^2, 4z^2, 4w^2
        [
            1 + m[0, 0] - m[1, 1] - m[2, 2],
            1 - m[0, 0] + m[1, 1] - m[2, 2],
            1 - m[0, 0] - m[1, 1] + m[2, 2],
            1 + m[0, 0] + m[1, 1] + m[2, 2],
        ]
    )
    products = np.array(  # row i: 4 times the i-th component times all four
        [
            [squares[0], m[1, 0] + m[0, 1], m[2, 0] + m[0, 2], m[2, 1] - m[1, 2]],
            [m[1, 0] + m[0, 1], squares[1], m[2, 1] + m[1, 2], m[0, 2] - m[2, 0]],
            [m[2, 0] + m[0, 2], m[2, 1] + m[1, 2], squares[2], m[1, 0] - m[0, 1]],
            [m[2, 1] - m[1, 2], m[0, 2] - m[2, 0], m[1, 0] - m[0, 1], squares[3]],
        ]
    )
    quat: Array = products[int(np.argmax(squares))]
    quat = quat / np.linalg.norm(quat)
    return -quat if quat[3] < 0.0 else quat


# --------------------------------------------------------------------------- commands


def delta_goal(
    row: Sequence[float],
    translation_m: float = TRANSLATION_SCALE_M,
    rotation_rad: float = ROTATION_SCALE_RAD,
) -> CartesianGoal:
    """Return the displacement that a row `dx dy dz rx ry rz` in [-1, 1] means. Shape (6,).

    >>> delta_goal([1.0, 0.0, -1.0, 0.0, 0.0, 0.5]).values
    (0.05, 0.0, -0.05, 0.0, 0.0, 0.5)

    Raises:
        SpecMismatch: another length, or a value outside [-1, 1]; nothing is padded or clipped.
    """
    if len(row) != 6 or not all(math.isfinite(v) and abs(v) <= 1.0 for v in row):
        raise SpecMismatch(
            f"got the displacement {list(row)!r:.120}, expected 6 numbers in [-1, 1], of which 1 "
            f"means {translation_m:g} m or {rotation_rad:g} rad"
        )
    scales = (translation_m,) * 3 + (rotation_rad,) * 3
    return CartesianGoal(tuple(float(v) * s for v, s in zip(row, scales, strict=True)))


def joint_goal(q: Sequence[float]) -> JointGoal:
    """Return the goal of seven joint angles in radians.

    Raises:
        SpecMismatch: another length, or a number that is not finite.
    """
    if len(q) != 7 or not all(math.isfinite(v) for v in q):
        raise SpecMismatch(f"got {list(q)!r:.120} as joint angles, expected 7 finite numbers")
    return JointGoal(tuple(float(v) for v in q))


def gripper_of(value: float, max_width: float = MAX_WIDTH_M) -> GripperCommand:
    """Return what the published client sends for a gripper value in [-1, 1].

    Below 0 it opens to that share of `max_width`; everything else closes, so 0 is no rest. The sign
    is LIBERO's: -1 opens, +1 closes.

    >>> gripper_of(-0.5).width, type(gripper_of(0.0)).__name__
    (0.04, 'Grasp')

    Raises:
        SpecMismatch: a value outside [-1, 1].
    """
    if not -1.0 <= value <= 1.0:
        raise SpecMismatch(f"got the gripper value {value:g}, expected -1 (open) to 1 (closed)")
    return Move(max_width * -value, MOVE_SPEED) if value < 0.0 else Grasp()


# --------------------------------------------------------------------------- states


def mode_of(mode: RobotMode) -> Mode:
    """Return the arm's mode in our words."""
    return _MODES[mode]


def stop_reason(mode: RobotMode, errors: Sequence[str]) -> str:
    """Say why the arm cannot be driven now; empty when it can.

    >>> stop_reason(RobotMode.REFLEX, ("joint_reflex",))
    'reflex: joint reflex (the arm met a force that it did not expect)'
    """
    if mode not in (RobotMode.REFLEX, RobotMode.USER_STOPPED, RobotMode.GUIDING) and not errors:
        return ""
    said = "; ".join(_explained(flag) for flag in errors)
    named = _MODES[mode].replace("_", " ")
    if mode is RobotMode.USER_STOPPED:
        named += " (the stop button, or the brakes are closed)"
    return f"{named}: {said}" if said else named


def _explained(flag: str) -> str:
    advice = next((text for part, text in _ADVICE if part in flag), "")
    return flag.replace("_", " ") + (f" ({advice})" if advice else "")
