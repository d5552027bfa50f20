"""One command as motion steps: what it means here, and which primitives do it."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from zetta.primitives import command_arms, motions
from zetta.primitives.catalogue import WAIT_MOST
from zetta.primitives.command_endings import Ending, ending_of, refused
from zetta.primitives.command_equipment import Equipment, Memory
from zetta.primitives.command_frames import axes_of, pointing, world_displacement
from zetta.primitives.command_things import (
    ThingCommand,
    errand_of,
    needs_free_hand,
    primitive_of,
)
from zetta.primitives.commands import (
    MOVE_MOST,
    POLICY_TICKS_MOST,
    TURN_MOST_DEG,
    TURNS,
    ArmCommand,
    BaseMove,
    BaseTurn,
    Command,
    Done,
    Gripper,
    Home,
    Move,
    Pick,
    Place,
    Point,
    Rotate,
    RunPolicy,
    RunSkill,
    Wait,
)
from zetta.primitives.motions import Steps, cm
from zetta.primitives.motions_frames import matrix_of
from zetta.primitives.roles import Errand
from zetta.runtime.core import Camera, Look
from zetta.runtime.errors import ConfigError, suggest

_OPEN, _SHUT = 0.97, 0.03
"""Shares of the widest opening from which on a gripper command means open, or closed."""
_SPREAD = 0.004
"""Fingers that open by more than this let go, metres."""


def arm_steps(
    equipment: Equipment, memory: Memory, command: ArmCommand, index: int
) -> Steps[Ending]:
    """Carry out what one arm is to do.

    Raises:
        ConfigError: the command cannot be carried out here; nothing has moved.
    """
    match command:
        case Move():
            return (yield from _move(equipment, memory, command, index))
        case Rotate():
            return (yield from _rotate(equipment, memory, command, index))
        case Point(direction):
            arm = yield from memory.started(index)
            goal = pointing(direction, arm.rotation, memory.ahead())
            return (yield from command_arms.turn_to(arm, goal))
        case Gripper(opening):
            return (yield from _grip(memory, opening, index))
        case Home():
            return (yield from _home(equipment, memory, index))
        case _:
            return (yield from _thing(equipment, memory, command, index))


def armless_steps(equipment: Equipment, memory: Memory, command: Command) -> Steps[Ending]:
    """Carry out what is no matter of one arm.

    Raises:
        ConfigError: the command cannot be carried out here; nothing has moved.
    """
    match command:
        case Wait(seconds):
            _within("wait", seconds, 0.0, WAIT_MOST, "s")
            arm = yield from memory.started(0)
            return ending_of((yield from motions.hold(arm, seconds)))
        case Done():
            return Ending(True, "reached", "said that the task is done")
        case RunPolicy(ticks, instruction):
            _within("policy", ticks, 1, POLICY_TICKS_MOST, "ticks")
            if equipment.policy is None:
                raise ConfigError("there is no policy here; use the other commands")
            return ending_of((yield from equipment.policy(ticks, instruction)))
        case RunSkill(name):
            if equipment.skills is None or name not in equipment.skill_names:
                known = suggest(name, equipment.skill_names) if equipment.skill_names else "none"
                raise ConfigError(f"there is no skill {name!r}; {known}")
            return ending_of((yield from equipment.skills(name)))
        case BaseMove() | BaseTurn():
            if memory.now.base is None:
                raise ConfigError("this robot stands still: it has no mobile base")
            raise ConfigError("the actions of this environment do not drive its base")
        case _:
            raise ConfigError("two arms are joined once, not within one another")


def _within(what: str, value: float, low: float, high: float, unit: str) -> None:
    if not low <= value <= high:  # also refuses NaN
        raise ConfigError(f"{what} got {value:g} {unit}; expected {low:g} to {high:g}")


# --------------------------------------------------------------------------- free motion


def _camera(equipment: Equipment, command: Move | Rotate) -> Camera | None:
    """Return the camera whose frame a command speaks of; None where it speaks of no camera."""
    if command.frame != "camera":
        return None
    if equipment.camera is None:
        raise ConfigError("there is no calibrated camera here; use the frame world or gripper")
    return equipment.camera(command.camera)


def _move(equipment: Equipment, memory: Memory, command: Move, index: int) -> Steps[Ending]:
    for axis, value in zip("xyz", command.displacement, strict=True):
        _within(f"move {axis}", 100.0 * value, -100.0 * MOVE_MOST, 100.0 * MOVE_MOST, "cm")
    arm = yield from memory.started(index)
    way = world_displacement(command, arm.rotation, _camera(equipment, command))
    box = equipment.workspace
    return (yield from command_arms.displace(arm, way, box, command.until_contact))


def _rotate(equipment: Equipment, memory: Memory, command: Rotate, index: int) -> Steps[Ending]:
    angle = math.degrees(command.angle)
    _within(f"rotate {command.turn}", round(angle, 9), -TURN_MOST_DEG, TURN_MOST_DEG, "degrees")
    arm = yield from memory.started(index)
    axes = axes_of(command.frame, arm.rotation, _camera(equipment, command))
    axis = axes[:, TURNS.index(command.turn)]
    return (yield from command_arms.rotate(arm, axis, command.angle))


def _home(equipment: Equipment, memory: Memory, index: int) -> Steps[Ending]:
    home = memory.limbs[index].home
    arm = yield from memory.started(index)
    box = equipment.workspace
    way = command_arms.height_over(arm.position, home.ee_pos, memory.heights, box)
    return (yield from command_arms.go_home(arm, home, matrix_of(home.ee_quat), way))


def _grip(memory: Memory, share: float, index: int) -> Steps[Ending]:
    """Open, close, or something between; the robot remembers what it does with what is held."""
    _within("gripper", share, 0.0, 1.0, "of the widest opening")
    robot = memory.robot(index)
    if share >= _OPEN:
        return ending_of((yield from robot.open()))
    if share <= _SHUT:
        # To close on nothing is what was asked for, too: the evidence says what is held.
        outcome = yield from robot.close()
        closed = outcome.completed or outcome.reason == "closed on nothing"
        return Ending(closed, "reached" if closed else "contact", outcome.reason)
    arm = yield from memory.started(index)
    before = arm.opening
    ending = yield from command_arms.set_gripper(arm, share)
    if arm.opening > before + _SPREAD:
        robot.forget_load()
    return ending


# --------------------------------------------------------------------------- things


def _thing(
    equipment: Equipment, memory: Memory, command: ThingCommand, index: int
) -> Steps[Ending]:
    limb = memory.limbs[index]
    errand, role = errand_of(command, equipment.errands, limb.thing)
    held = limb.watch.evidence
    if needs_free_hand(command) and held.grip == "held":
        what = "something" if limb.thing is None else f"the {limb.thing}"
        return refused(f"the hand seems to hold {what}: set it down or open the gripper first")
    robot = memory.robot(index, errand)
    outcome = yield from primitive_of(command, robot, role)
    ending = ending_of(replace(outcome, reason=_by_name(outcome.reason, errand)))
    if role == "object":
        limb.thing = errand.object
    if isinstance(command, Pick) and limb.watch.closing:
        yield from _see(memory, index)
    if isinstance(command, Place) and ending.completed and errand.object is not None:
        return replace(ending, detail=ending.detail + (yield from _where_it_lies(errand)))
    return ending


def _by_name(reason: str, errand: Errand) -> str:
    """Return a reason that speaks of things instead of roles."""
    for role, phrase in errand.phrases.items():
        reason = reason.replace(f"the {role}", f"the {phrase}")
    return reason


def _see(memory: Memory, index: int) -> Steps[None]:
    """Look where the object is, as evidence for what is held."""
    sense = yield Look(("object",))
    thing = sense.estimates.get("object")
    if thing is not None and thing.t == sense.proprio.t:
        memory.limbs[index].watch.see(thing, sense.proprio.arms[index].ee_pos)


def _where_it_lies(errand: Errand) -> Steps[str]:
    """Look where the object has come to lie; return it as the rest of a sentence."""
    sense = yield Look(("object",))
    thing, place = (sense.estimates.get(role) for role in ("object", "receptacle"))
    if thing is None or place is None or thing.t < sense.proprio.t:
        return f"; the {errand.object} is not seen now"
    aside = float(np.linalg.norm((thing.position - place.position)[:2]))
    return f"; the {errand.object} is seen {cm(aside)} beside the middle of the {errand.receptacle}"
