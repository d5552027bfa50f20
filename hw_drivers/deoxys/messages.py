"""What crosses the wire of deoxys, as plain records in SI units.

Nothing is converted here: a goal is what the robot side reads, and a pose is the 16 numbers that it
sends. `conventions.py` holds the conversions.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Final, TypeAlias

Vector: TypeAlias = tuple[float, ...]

JOINTS: Final = 7
TIME_FRACTION_FLOOR: Final = 0.1
"""The robot side raises smaller fractions to this without a word."""
COMMAND_TIMEOUT_S: Final = 0.2
"""What the published client writes into every command."""


class Controller(IntEnum):
    """Controllers of the robot side. `JOINT_VELOCITY` and `TORQUE` are names without a body."""

    NO_CONTROL = 0
    OSC_POSE = 1
    OSC_POSITION = 2
    JOINT_POSITION = 3
    JOINT_IMPEDANCE = 4
    JOINT_VELOCITY = 5
    TORQUE = 6
    OSC_YAW = 7
    CARTESIAN_VELOCITY = 8


class Interpolator(IntEnum):
    """How the robot side goes from one command to the next.

    Releases differ in 7 and 8: in older ones 7 is a zero velocity and there is no 8.
    """

    NO_OP = 0
    LINEAR_POSITION = 1
    LINEAR_POSE = 2
    MIN_JERK_POSE = 3
    SMOOTH_JOINT_POSITION = 4
    MIN_JERK_JOINT_POSITION = 5
    LINEAR_JOINT_POSITION = 6
    COSINE_CARTESIAN_VELOCITY = 7
    LINEAR_CARTESIAN_VELOCITY = 8


class RobotMode(IntEnum):
    """Modes of the arm itself."""

    OTHER = 0
    IDLE = 1
    MOVE = 2
    GUIDING = 3
    REFLEX = 4
    USER_STOPPED = 5
    RECOVERING = 6


# --------------------------------------------------------------------------- to the arm


@dataclass(frozen=True, slots=True)
class CartesianGoal:
    """Where the hand is to be, or by how much it is to move, in the frame of the arm's base."""

    values: Vector
    """`x y z` in metres, then an axis-angle in radians; a velocity in m/s and rad/s. Shape (6,)."""
    is_delta: bool = True


@dataclass(frozen=True, slots=True)
class JointGoal:
    """Where the joints are to be, or by how much they are to turn."""

    values: Vector
    """Radians. Shape (7,)."""
    is_delta: bool = False


@dataclass(frozen=True, slots=True)
class NoControl:
    """Nothing is controlled: what is sent between two controllers."""

    goal: CartesianGoal | None = None
    termination: bool = False


@dataclass(frozen=True, slots=True)
class Osc:
    """One message for the three operational-space controllers: pose, position, yaw."""

    goal: CartesianGoal
    translational_stiffness: Vector = (150.0, 150.0, 150.0)
    """N/m. Shape (3,)."""
    rotational_stiffness: Vector = (250.0, 250.0, 250.0)
    """Nm/rad. Shape (3,)."""
    residual_mass: Vector = (0.0, 0.0, 0.0, 0.0, 0.1, 0.5, 0.5)
    """Added to the arm's inertia; the values that ship with deoxys. Shape (7,) or (0,)."""
    termination: bool = False


@dataclass(frozen=True, slots=True)
class JointPosition:
    """Joint angles followed by the arm's own motion generator."""

    goal: JointGoal
    kp: float = 0.0
    kd: float = 0.0
    speed_factor: float = 0.1


@dataclass(frozen=True, slots=True)
class JointImpedance:
    """Joint angles held by springs and dampers."""

    goal: JointGoal
    kp: Vector = (100.0, 100.0, 100.0, 100.0, 75.0, 150.0, 50.0)
    """Nm/rad. Shape (7,)."""
    kd: Vector = (20.0, 20.0, 20.0, 20.0, 7.5, 15.0, 5.0)
    """Nms/rad. Shape (7,)."""


@dataclass(frozen=True, slots=True)
class CartesianVelocity:
    """A velocity of the hand."""

    goal: CartesianGoal
    kp: float = 0.0
    kd: float = 0.0
    speed_factor: float = 0.0


Motion: TypeAlias = NoControl | Osc | JointPosition | JointImpedance | CartesianVelocity


@dataclass(frozen=True, slots=True)
class Smoothing:
    """Exponential smoothing of what the robot side measures."""

    alpha_q: float = 0.9
    alpha_dq: float = 0.9
    alpha_eef: float = 1.0
    alpha_eef_vel: float = 1.0
    is_estimation: bool = False


@dataclass(frozen=True, slots=True)
class ArmCommand:
    """One command for the arm."""

    controller: Controller
    motion: Motion
    interpolator: Interpolator = Interpolator.NO_OP
    time_fraction: float = 0.3
    """Share of a policy tick after which the goal is reached, in [0.1, 1]."""
    timeout_s: float = COMMAND_TIMEOUT_S
    termination: bool = False
    """End the control; the arm then holds itself."""
    smoothing: Smoothing | None = None


# --------------------------------------------------------------------------- to the gripper


@dataclass(frozen=True, slots=True)
class Homing:
    """Find the end stops: the fingers open and close."""


@dataclass(frozen=True, slots=True)
class Move:
    """Bring the fingers to a width, without force."""

    width: float
    """Metres between the fingers."""
    speed: float = 0.1
    """m/s."""


@dataclass(frozen=True, slots=True)
class Stop:
    """Stop the fingers."""


@dataclass(frozen=True, slots=True)
class Grasp:
    """Close until something resists; the default values are those of the published client."""

    width: float = -0.01
    speed: float = 0.5
    force: float = 30.0
    """Newton."""
    epsilon_inner: float = 0.08
    epsilon_outer: float = 0.08


GripperCommand: TypeAlias = Homing | Move | Stop | Grasp


@dataclass(frozen=True, slots=True)
class GripperControl:
    """One message for the gripper: a command, or the end of its program."""

    command: GripperCommand | None
    termination: bool = False


# --------------------------------------------------------------------------- from the robot


@dataclass(frozen=True, slots=True)
class RobotState:
    """What the arm says of itself, 100 times a second."""

    O_T_EE: Vector
    """Pose of the hand in the base frame, column after column. Shape (16,)."""
    q: Vector
    """Joint angles, radians. Shape (7,)."""
    dq: Vector
    """Joint velocities, rad/s. Shape (7,)."""
    mode: RobotMode
    errors: tuple[str, ...] = ()
    """Flags that are up now, in the order of their numbers."""
    last_motion_errors: tuple[str, ...] = ()
    """Flags that ended the last motion."""
    tau_ext: Vector = ()
    """External torques, filtered, Nm. Shape (7,); this and the next five may be missing."""
    force: Vector = ()
    """External force and torque at the hand in the base frame, N and Nm. Shape (6,)."""
    joint_contact: Vector = ()
    cartesian_contact: Vector = ()
    joint_collision: Vector = ()
    cartesian_collision: Vector = ()
    success_rate: float = 0.0
    """Share of the 1 kHz commands that reached the arm in time."""
    time_s: float = 0.0
    """The arm's own clock."""
    frame: int = 0


@dataclass(frozen=True, slots=True)
class GripperState:
    """What the gripper says of itself, 40 times a second."""

    width: float
    """Metres between the fingers."""
    max_width: float
    is_grasped: bool = False
    temperature: int = 0
    """Degrees Celsius."""
    time_s: float = 0.0
