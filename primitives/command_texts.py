"""Prints commands: the text reads back as the same command."""

from __future__ import annotations

import math
from typing import Final

from zetta.primitives.command_words import Quantity
from zetta.primitives.commands import (
    MOVE_MOST,
    POLICY_TICKS_MOST,
    TURN_MOST_DEG,
    BaseMove,
    BaseTurn,
    Both,
    Close,
    Command,
    Done,
    Frame,
    GoAbove,
    GoToGrasp,
    Gripper,
    Home,
    Move,
    Open,
    Pick,
    Place,
    Point,
    Push,
    Rotate,
    RunPolicy,
    RunSkill,
    TurnKnob,
    Wait,
)

WAIT_MOST: Final = 5.0
"""Longest wait in one command, seconds."""
BASE_MOVE_MOST: Final = 0.50
"""Longest way of the base in one command, metres."""
BASE_TURN_MOST_DEG: Final = 90.0
"""Largest turn of the base in one command, degrees."""
AXES: Final = ("x", "y", "z")
OPENINGS: Final = {"open": 1.0, "close": 0.0, "closed": 0.0, "half": 0.5}
"""Words for openings of the gripper; of two for one opening the first is printed."""

_CM: Final = ("cm",)
_DEG: Final = ("deg", "degrees", "degree")
SHIFT: Final = Quantity(_CM, -round(100.0 * MOVE_MOST, 2), round(100.0 * MOVE_MOST, 2), 2)
ANGLE: Final = Quantity(_DEG, -TURN_MOST_DEG, TURN_MOST_DEG, 1)
OPENING: Final = Quantity((), 0.0, 1.0, 2)
SECONDS: Final = Quantity(("s", "seconds", "second"), 0.0, WAIT_MOST, 2)
TICKS: Final = Quantity(("ticks", "tick"), 1.0, float(POLICY_TICKS_MOST), 0)
WAY: Final = Quantity(_CM, -round(100.0 * BASE_MOVE_MOST, 2), round(100.0 * BASE_MOVE_MOST, 2), 2)
BASE_ANGLE: Final = Quantity(_DEG, -BASE_TURN_MOST_DEG, BASE_TURN_MOST_DEG, 1)


def metres(centimetres: float) -> float:
    """Return rounded centimetres in metres; `centimetres_of` gives the same number back."""
    return round(centimetres, 2) / 100.0


def centimetres_of(length: float) -> float:
    """Return metres in centimetres, to a tenth of a millimetre.

    >>> all(centimetres_of(metres(n / 100.0)) == n / 100.0 for n in range(-5000, 5001))
    True
    """
    return round(100.0 * length, 2)


def radians(degrees: float) -> float:
    """Return rounded degrees in radians; `degrees_of` gives the same number back."""
    return math.radians(round(degrees, 1))


def degrees_of(angle: float) -> float:
    """Return radians in degrees, to a tenth.

    >>> all(degrees_of(radians(n / 10.0)) == n / 10.0 for n in range(-900, 901))
    True
    """
    return round(math.degrees(angle), 1)


def command_text(command: Command) -> str:
    """Return the line that reads back as `command`.

    Numbers are told to 0.01 cm, 0.1 degrees and 0.01 of the rest, so a command that lies between
    is printed as its neighbour.

    >>> command_text(Move((0.03, 0.0, -0.05), until_contact=True, arm="left"))
    'left move x 3 z -5 cm until contact'
    """
    match command:
        case Both(first, second):
            return f"both: {command_text(first)} | {command_text(second)}"
        case Wait(seconds):
            return f"wait {SECONDS.told(seconds)} s"
        case Done():
            return "done"
        case RunPolicy(ticks, instruction):
            told = instruction.replace('"', "'")
            return f"policy {ticks} ticks" + (f' "{told}"' if told else "")
        case RunSkill(name):
            return f"skill {name}"
        case BaseMove(axis, distance):
            return f"base move {axis} {WAY.told(centimetres_of(distance))} cm"
        case BaseTurn(angle):
            return f"base turn {BASE_ANGLE.told(degrees_of(angle))} deg"
        case _:
            text = _arm_text(command)
            return f"{command.arm} {text}" if command.arm else text


def _arm_text(
    command: Move | Rotate | Point | Gripper | Home | GoAbove | GoToGrasp | Pick | Place | Open
    | Close | TurnKnob | Push,
) -> str:  # fmt: skip
    match command:
        case Move(displacement, frame, camera, until_contact):
            contact = " until contact" if until_contact else ""
            return f"move {_shift(displacement)} cm{_frame(frame, camera)}{contact}"
        case Rotate(turn, angle, frame, camera):
            return f"rotate {turn} {ANGLE.told(degrees_of(angle))} deg{_frame(frame, camera)}"
        case Point(direction):
            return f"point {direction}"
        case Gripper(opening):
            return f"gripper {_opening(opening)}"
        case Home():
            return "home"
        case _:
            return _thing_text(command)


def _thing_text(
    command: GoAbove | GoToGrasp | Pick | Place | Open | Close | TurnKnob | Push,
) -> str:
    match command:
        case GoAbove(thing):
            return f"go above {thing}"
        case GoToGrasp(thing):
            return f"go to {thing} grasp"
        case Pick(thing):
            # One "up" is read over, as in "pick up the bowl".
            return f"pick up {thing}" if thing.split(" ")[0] == "up" else f"pick {thing}"
        case Place(thing, where):
            return f"place {where} {thing}"
        case Open(part):
            return f"open {part}"
        case Close(part):
            return f"close {part}"
        case TurnKnob(part, on):
            return f"turn {'on' if on else 'off'} {part}"
        case Push(thing, to):
            return f"push {thing} to {to}"


def _shift(displacement: tuple[float, float, float]) -> str:
    told = {
        axis: SHIFT.told(centimetres_of(length))
        for axis, length in zip(AXES, displacement, strict=True)
    }
    moved = [f"{axis} {text}" for axis, text in told.items() if text != "0"]
    return " ".join(moved) or "x 0"


def _frame(frame: Frame, camera: str) -> str:
    if frame == "world":
        return ""
    return f" in {frame} {camera}" if frame == "camera" and camera else f" in {frame}"


def _opening(opening: float) -> str:
    told = OPENING.told(opening)
    words = (word for word, value in OPENINGS.items() if OPENING.told(value) == told)
    return next(words, told)
