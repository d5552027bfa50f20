"""Where the hand will be after a command about a thing, as far as an estimate tells."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TypeAlias

import numpy as np

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
from zetta.primitives.dry_run_reach import Blocked, DryArm, Pose, at, present
from zetta.primitives.grasps import Manner, candidates, top_of
from zetta.primitives.motions import SURE, cm
from zetta.primitives.motions_carrying import HOVER, LIFT
from zetta.primitives.motions_frames import downward
from zetta.runtime.core import Array, Estimate

ThingCommand: TypeAlias = GoAbove | GoToGrasp | Pick | Place | Open | Close | TurnKnob | Push
Finder: TypeAlias = Callable[[str], Estimate | None]
"""Where the thing of a phrase is, or None when it was not seen."""

ABOVE = 0.08
"""Height over a thing's top to which `go above` goes, metres."""
_PARTS_OUTSIDE = 0.05
"""Handles and knobs are taken from the side: they may be outside the workspace by this, metres."""
_LOW = 0.02
"""Least height over a place at which a hand lets go, metres."""
_RIM = 0.06
"""How far beside its middle a thing may be held, metres."""
_GRASPS = 8
"""Ways to take hold of a thing of which one must be reached."""


def moves_things(command: ThingCommand) -> bool:
    """Say whether a command may bring things to light that are not seen before it."""
    return not isinstance(command, GoAbove | GoToGrasp)


def after_thing(
    command: ThingCommand, arm: DryArm, before: Pose | None, where: Finder | None
) -> Pose | Blocked | None:
    """Return where the hand will be; None when that cannot be known, or why it is refused.

    Args:
        command: what was asked.
        arm: whose hand.
        before: where the hand will be when the command begins; None where that is not known.
        where: tells where things are; None when nobody looked.
    """
    if where is None:
        return None
    phrases = [command.part] if isinstance(command, Open | Close | TurnKnob) else [_thing(command)]
    if isinstance(command, Push):
        phrases.append(command.to)
    found: list[Estimate] = []
    for phrase in phrases:
        seen = where(phrase)
        if seen is None or seen.confidence < SURE:
            return Blocked("not found", f"speaks of the {phrase}, which is not seen")
        found.append(seen)
    start = present(arm, arm.home) if before is None else before
    if isinstance(command, Open | Close | TurnKnob | Push):
        return _on_parts(arm, phrases, found)
    thing, down = found[0], downward(start.rotation)
    match command:
        case GoAbove():
            return _named(phrases[0], at(arm, start, _over(thing, ABOVE), down))
        case Place():
            return _named(phrases[0], _placing(arm, start, thing, down))
        case _:
            lift = LIFT if isinstance(command, Pick) else 0.0
            return _named(phrases[0], _grasped(arm, start, thing, lift))


def _placing(arm: DryArm, start: Pose, place: Estimate, down: Array) -> Pose | Blocked:
    """Return the pose over a place, or nearer to home: a thing held by its rim reaches further."""
    home = present(arm, arm.home).position
    way = (home - place.position) * np.array([1.0, 1.0, 0.0])
    nearer = way / max(float(np.linalg.norm(way)), 1e-9)
    first: Blocked | None = None
    for height in (HOVER, _LOW):
        for back in (0.0, _RIM):
            found = at(arm, start, _over(place, height) + back * nearer, down)
            if isinstance(found, Pose):
                return found
            first = first or found
    assert first is not None
    return first


def _thing(command: GoAbove | GoToGrasp | Pick | Place | Push) -> str:
    return command.thing


def _over(thing: Estimate, height: float) -> Array:
    return np.array([*thing.position[:2], top_of(thing) + height])


def _named(phrase: str, found: Pose | Blocked) -> Pose | Blocked:
    """Say of what it was that the hand cannot get there."""
    if isinstance(found, Blocked):
        return replace(found, why=f"{found.why} (the {phrase} is too far)")
    return found


def _grasped(arm: DryArm, start: Pose, thing: Estimate, lift: float) -> Pose | Blocked:
    """Return the pose after the first grasp of a thing that is reached."""
    first: Blocked | None = None
    for point, yaw in _grasps(arm, thing):
        found = at(arm, start, point, downward(start.rotation, yaw))
        if isinstance(found, Pose):
            found = at(arm, found, point + np.array([0.0, 0.0, lift]), found.rotation)
        if isinstance(found, Pose):
            return found
        first = first or found
    return first or Blocked("unreachable", "finds no way to take hold of it from above")


def _grasps(arm: DryArm, thing: Estimate) -> Iterator[tuple[Array, float]]:
    """Yield points and yaws of grasps that differ in manner."""
    tried: set[Manner] = set()
    for grasp in candidates(thing, arm.hand):
        if grasp.manner not in tried:
            tried.add(grasp.manner)
            yield grasp.point, grasp.yaw
        if len(tried) == _GRASPS:
            return


def _on_parts(arm: DryArm, phrases: list[str], found: list[Estimate]) -> Blocked | None:
    """Refuse what is out of the workspace; how the hand takes hold of a part is not foreseen."""
    if arm.workspace is None:
        return None
    for phrase, part in zip(phrases, found, strict=True):
        outside = float(np.abs(arm.workspace.excess(part.position)).max())
        if outside > _PARTS_OUTSIDE:
            return Blocked("limit", f"needs the {phrase}, {cm(outside)} outside the workspace")
    return None
