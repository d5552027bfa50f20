"""What commands do with things: which errand they are, and which primitive carries it out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from zetta.primitives.command_errands import (
    errand_for_look,
    errand_for_part,
    errand_for_pick,
    errand_for_place,
    errand_for_push,
)
from zetta.primitives.commands import (
    Close,
    GoAbove,
    GoToGrasp,
    Open,
    Pick,
    Place,
    Push,
    TurnKnob,
)
from zetta.primitives.robot import Robot
from zetta.primitives.roles import Errand, Phrase, Role
from zetta.runtime.core import Motion

ThingCommand: TypeAlias = GoAbove | GoToGrasp | Pick | Place | Open | Close | TurnKnob | Push
"""A command that names a thing, which has to be found first."""


def needs_free_hand(command: ThingCommand) -> bool:
    """Say whether a command opens or closes the gripper at its start."""
    return not isinstance(command, GoAbove | Place)


def errand_of(
    command: ThingCommand, known: Sequence[Errand], carried: Phrase | None
) -> tuple[Errand, Role]:
    """Return the errand that a command is, and the role of the thing that it names.

    Args:
        command: what shall be done.
        known: the errands of the instruction.
        carried: what was taken last; None where nobody knows.

    Raises:
        ConfigError: a noun phrase is not understood.
    """
    match command:
        case GoAbove(thing) | GoToGrasp(thing):
            return errand_for_look(thing, known)
        case Pick(thing):
            return errand_for_pick(thing, known), "object"
        case Place(thing, where):
            return errand_for_place(thing, where, carried, known), "receptacle"
        case Open(part):
            return errand_for_part(f"open the {part}", part, known), "part"
        case Close(part):
            return errand_for_part(f"close the {part}", part, known), "part"
        case TurnKnob(part, on):
            sentence = f"turn {'on' if on else 'off'} the {part}"
            return errand_for_part(sentence, part, known), "part"
        case Push(thing, to):
            return errand_for_push(thing, to, known), "object"


def primitive_of(command: ThingCommand, robot: Robot, role: Role) -> Motion:
    """Return the motion that carries a command out."""
    match command:
        case GoAbove():
            return robot.above(role)
        case GoToGrasp():
            return robot.descend(role)
        case Pick():
            return robot.grasp(role)
        case Place():
            return robot.place(role)
        case Open():
            return robot.pull(role)
        case Close():
            return robot.press(role)
        case TurnKnob():
            return robot.turn(role)
        case Push():
            return robot.push(role)
