"""Commands said again in the recovery language, with things bound to the roles they play.

A recovery runs in other scenes than the one in which the commands were given, so a command has a
counterpart only if it says what to do and not what to do here: its thing must play a role of the
instruction, and its motion must be one that the recovery language has.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias, get_args

from zetta.primitives.catalogue import PRIMITIVES
from zetta.primitives.command_grammar import command_text
from zetta.primitives.command_things import ThingCommand, errand_of
from zetta.primitives.commands import (
    Close,
    Command,
    Done,
    GoAbove,
    GoToGrasp,
    Gripper,
    Move,
    Open,
    Pick,
    Place,
    Point,
    Push,
    Rotate,
    TurnKnob,
    Wait,
)
from zetta.primitives.roles import Phrase, Role, Roles, Verb
from zetta.runtime.errors import ConfigError

_PRIMITIVE_OF: Final[dict[type, str]] = {
    GoAbove: "above", GoToGrasp: "descend", Pick: "grasp", Place: "place", Open: "pull",
    Close: "press", TurnKnob: "turn", Push: "push",
}  # fmt: skip
VERBS_OF: Final[dict[str, tuple[Verb, ...]]] = {
    "pull": ("open", "pull"), "press": ("close", "press"), "turn": ("turn_on", "turn_off"),
}  # fmt: skip
"""What an instruction must ask for where a recovery works a part so."""

_Arguments: TypeAlias = tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Step:
    """One call of a primitive."""

    primitive: str
    role: Role | None = None
    numbers: _Arguments = ()

    @property
    def call(self) -> str:
        """Return the call in the recovery language.

        >>> Step("grasp", "object").call, Step("move_by", None, (0.03, 0.0, -0.05)).call
        ('robot.grasp("object")', 'robot.move_by(0.03, 0.0, -0.05)')
        """
        told = [f'"{self.role}"'] if self.role else []
        told += [repr(round(number, 4) + 0.0) for number in self.numbers]
        return f"robot.{self.primitive}({', '.join(told)})"


def steps_of(commands: Sequence[Command], roles: Roles, arm: str) -> tuple[Step, ...]:
    """Return commands in the recovery language; a `done` is left out.

    Args:
        commands: in their order.
        roles: what the instruction says.
        arm: name of the arm that recoveries move; empty where there is one.

    Raises:
        ConfigError: some have no counterpart; the message names each of them and says why.
    """
    steps: list[Step] = []
    troubles: list[str] = []
    carried: Phrase | None = None
    for command in commands:
        try:
            step = _step(command, roles, arm, carried)
        except ConfigError as error:
            troubles.append(f"{command_text(command)!r}: {error}")
            continue
        if step is not None:
            steps.append(step)
        if step is not None and step.primitive == "grasp":
            carried = roles.object
    if troubles:
        raise ConfigError(
            "not every command has a counterpart in a recovery; "
            + "; ".join(dict.fromkeys(troubles))
        )
    return tuple(steps)


def _step(command: Command, roles: Roles, arm: str, carried: Phrase | None) -> Step | None:
    if isinstance(command, Done):
        return None
    named = getattr(command, "arm", "")
    if named not in ("", arm):
        raise ConfigError(f"a recovery moves the arm {arm!r} alone")
    if isinstance(command, get_args(ThingCommand)):
        return _about(command, roles, carried)
    return _plain(command)


def _plain(command: Command) -> Step:
    """Return what needs no eyes."""
    match command:
        case Wait(seconds):
            return Step("hold", None, (seconds,))
        case Gripper(opening) if opening in (0.0, 1.0):
            return Step("open" if opening else "close")
        case Gripper():
            raise ConfigError("a recovery opens the gripper wide or closes it")
        case Point("down"):
            return Step("point_down")
        case Point():
            raise ConfigError("a recovery points the hand down and no other way")
        case Move(frame=frame) | Rotate(frame=frame) if frame != "world":
            raise ConfigError(f"a recovery moves along the axes of the world, not of the {frame}")
        case Move(displacement, until_contact=until_contact):
            return Step("until_contact" if until_contact else "move_by", None, displacement)
        case Rotate("yaw", angle):
            return Step("turn_by", None, (math.remainder(angle, math.tau),))
        case Rotate():
            raise ConfigError("a recovery turns the hand about the vertical and no other axis")
        case _:
            raise ConfigError("a recovery has no such primitive")


def _about(command: ThingCommand, roles: Roles, carried: Phrase | None) -> Step:
    """Return what is done with a thing that plays a role."""
    errand, role = errand_of(command, roles.steps, carried)
    primitive = _PRIMITIVE_OF[type(command)]
    phrase = errand.phrases.get(role)
    if phrase is None or roles.phrases.get(role) != phrase:
        mine = ", ".join(f"{role} {str(said)!r}" for role, said in roles.phrases.items())
        raise ConfigError(
            f"{str(phrase)!r} plays no such role in the instruction, which names {mine}"
        )
    if role not in PRIMITIVES[primitive].parameters[0].roles:
        raise ConfigError(f"a recovery cannot {primitive} the {role}")
    if isinstance(command, Push) and errand.receptacle != roles.receptacle:
        raise ConfigError(
            f"{str(errand.receptacle)!r} is not the receptacle of the instruction, towards which a "
            "recovery pushes"
        )
    if isinstance(command, Place) and (errand.placement == "in") != (roles.placement == "in"):
        raise ConfigError("the instruction says where the thing is to lie, and this is another way")
    wanted = VERBS_OF.get(primitive)
    if wanted and errand.verb not in roles.verbs_about([role]):
        raise ConfigError("the instruction asks for something else to be done with the part")
    return Step(primitive, role)
