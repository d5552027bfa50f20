"""The semantic commands: what an agent may ask of the robot, as records and as text.

A command is one bounded motion. Text has centimetres and degrees, records have SI units; the text
of a command reads back as the same command.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

Frame: TypeAlias = Literal["world", "gripper", "camera"]
FRAMES: tuple[Frame, ...] = get_args(Frame)
Turn: TypeAlias = Literal["roll", "pitch", "yaw"]
"""About the x, y or z axis of the frame, through the grip site."""
TURNS: tuple[Turn, ...] = get_args(Turn)
Direction: TypeAlias = Literal[
    "down", "down15", "down30", "down45", "down60", "down75", "forward"
]  # fmt: skip
"""Where the hand points; a number is the tilt from straight down towards straight ahead, degrees.
"""
DIRECTIONS: tuple[Direction, ...] = get_args(Direction)
PlaceOn: TypeAlias = Literal["on", "in"]

MOVE_MOST = 0.20
"""Longest displacement along one axis in one command, metres; more is clipped and said."""
TURN_MOST_DEG = 90.0
"""Largest turn in one command, degrees; more is clipped and said."""
POLICY_TICKS_MOST = 200
"""Most ticks that one command may give to the policy."""


@dataclass(frozen=True, slots=True)
class Move:
    """Move the grip site by a displacement, keeping the orientation."""

    displacement: tuple[float, float, float]
    """Along the axes of `frame`, metres."""
    frame: Frame = "world"
    camera: str = ""
    """Name of the camera of the frame `camera`; empty for the first one."""
    until_contact: bool = False
    """Stop when something stops the hand."""
    arm: str = ""
    """Name of the arm; empty where there is one."""


@dataclass(frozen=True, slots=True)
class Rotate:
    """Turn the hand about an axis of `frame` through the grip site."""

    turn: Turn
    angle: float
    """Radians."""
    frame: Frame = "world"
    camera: str = ""
    arm: str = ""


@dataclass(frozen=True, slots=True)
class Point:
    """Turn the hand until it points in a preset direction."""

    direction: Direction
    arm: str = ""


@dataclass(frozen=True, slots=True)
class Gripper:
    """Set the gripper and wait until it stands still."""

    opening: float
    """Share of the widest opening, 0 to 1."""
    arm: str = ""


@dataclass(frozen=True, slots=True)
class Home:
    """Return to the pose that the arm had when the episode began."""

    arm: str = ""


@dataclass(frozen=True, slots=True)
class Wait:
    """Hold still."""

    seconds: float = 0.5


@dataclass(frozen=True, slots=True)
class Done:
    """Say that the task is done; whether it is, the evidence says."""


@dataclass(frozen=True, slots=True)
class GoAbove:
    """Go over a thing, a hand's breadth above its top."""

    thing: str
    """Noun phrase, with a relation where several things bear the name."""
    arm: str = ""


@dataclass(frozen=True, slots=True)
class GoToGrasp:
    """Come down onto a thing, lined up as for grasping it, the gripper open."""

    thing: str
    arm: str = ""


@dataclass(frozen=True, slots=True)
class Pick:
    """Find a thing, grasp it and lift it."""

    thing: str
    arm: str = ""


@dataclass(frozen=True, slots=True)
class Place:
    """Carry what is held to a thing, set it down, release and retreat."""

    thing: str
    where: PlaceOn = "on"
    arm: str = ""


@dataclass(frozen=True, slots=True)
class Open:
    """Pull a drawer or a door open by its handle."""

    part: str
    arm: str = ""


@dataclass(frozen=True, slots=True)
class Close:
    """Push a drawer or a door shut."""

    part: str
    arm: str = ""


@dataclass(frozen=True, slots=True)
class TurnKnob:
    """Twist a knob."""

    part: str
    on: bool = True
    arm: str = ""


@dataclass(frozen=True, slots=True)
class Push:
    """Push a thing along the ground to a place."""

    thing: str
    to: str
    arm: str = ""


@dataclass(frozen=True, slots=True)
class RunPolicy:
    """Let the vision-language-action policy drive for some ticks."""

    ticks: int
    instruction: str = ""
    """What it is told; empty for the task's own instruction."""


@dataclass(frozen=True, slots=True)
class RunSkill:
    """Run a recovery skill of the bundle."""

    name: str


@dataclass(frozen=True, slots=True)
class BaseMove:
    """Drive the mobile base along its own x (ahead) or y (left)."""

    axis: Literal["x", "y"]
    distance: float
    """Metres."""


@dataclass(frozen=True, slots=True)
class BaseTurn:
    """Turn the mobile base on the spot."""

    angle: float
    """Radians, counter-clockwise from above."""


ArmCommand: TypeAlias = (
    Move | Rotate | Point | Gripper | Home | GoAbove | GoToGrasp | Pick | Place | Open | Close
    | TurnKnob | Push
)  # fmt: skip
"""What one arm does; these alone may be joined by `both`."""


@dataclass(frozen=True, slots=True)
class Both:
    """Two arms at once; it ends when both have ended."""

    first: ArmCommand
    second: ArmCommand


Command: TypeAlias = (
    ArmCommand | Both | Wait | Done | RunPolicy | RunSkill | BaseMove | BaseTurn
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Parsed:
    """A line of text understood."""

    command: Command
    notices: tuple[str, ...] = ()
    """What was clipped or rounded, such as "x 35 cm was clipped to 20 cm"."""
