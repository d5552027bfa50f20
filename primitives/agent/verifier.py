"""Whether an instruction was carried out, judged from cameras, depth and the gripper alone.

It looks when the drive begins and when somebody says `done`. It never reads simulator truth, and it
does not believe the agent; where it cannot tell it says so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from zetta.primitives.agent.wording import said
from zetta.primitives.grasps import bottom_of, top_of
from zetta.primitives.motions import SURE, cm
from zetta.primitives.parts import SHORTEST_PULL, outward
from zetta.primitives.roles import Errand
from zetta.runtime.core import Array, Estimate, HeightGrid, Proprio

RELEASED: Final = 0.05
"""A grip site this far from a thing's middle does not hold it, beyond half its size, metres."""
_OPEN: Final = 0.9
"""A hand that is open to this share of its widest opening holds nothing."""
_LIFTED: Final = 0.03
_ASIDE: Final = 0.015
"""What a thing may lie beside the receptacle's outline, metres."""
_ABOVE: Final = 0.06
"""A thing whose underside is higher over the receptacle's top floats, or stands on something else,
metres."""
_BESIDE: Final = 0.20
"""A thing within this distance of a place is beside it, metres."""
_TWISTED: Final = 0.5
"""A knob that was worked has turned by so much, radians."""

_INSIDE: Final = 0.02
"""How far from the edge of a place heights are compared, metres."""
_GONE_INSIDE: Final = 0.005
"""The same where a thing stood, metres."""
_MOVED: Final = 0.05
"""A place that is seen so far from where it was has been moved, metres; under a load it is seen
less well."""
_CELLS: Final = 4
"""Fewer cells of a height grid say nothing."""
_NEW: Final = 0.02
"""Where something was put, cells are higher than before by so much, metres."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What a look for the things of one errand showed."""

    estimates: Mapping[str, Estimate]
    """By role; what is not sure is left out."""
    heights: HeightGrid | None = None


Locate: TypeAlias = Callable[[int], Seen]
"""Looks for the things of an errand, by its number."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What the evidence says of one errand."""

    fulfilled: bool | None
    """None where it cannot be told."""
    reason: str


@dataclass(frozen=True, slots=True)
class Verification:
    """What the evidence says of the whole instruction."""

    findings: tuple[Finding, ...] = ()
    """One for each errand, in order; none where the instruction is not understood."""

    @property
    def verified(self) -> bool | None:
        """Whether every errand is fulfilled; None where one cannot be told and none is denied."""
        said_so = [finding.fulfilled for finding in self.findings]
        if False in said_so:
            return False
        return True if said_so and None not in said_so else None

    @property
    def missing(self) -> tuple[str, ...]:
        """One sentence for each errand that is not fulfilled, beginning with its number."""
        return tuple(
            f"errand {number} is not done: {finding.reason}"
            for number, finding in enumerate(self.findings, 1)
            if finding.fulfilled is False
        )


class Verifier:
    """Compares what is seen in the end with what was seen in the beginning."""

    def __init__(self, errands: Sequence[Errand], locate: Locate, widest: float = 0.08) -> None:
        """Take what is to be done, what looks for its things, and the hand's widest opening."""
        self._errands, self._locate, self._widest = tuple(errands), locate, widest
        self._before: tuple[Seen, ...] = ()

    def begin(self) -> tuple[Seen, ...]:
        """Look where everything is before anything moves; return what was seen, by errand."""
        self._before = tuple(_sure(self._locate(k)) for k in range(len(self._errands)))
        return self._before

    def verify(self, proprio: Proprio) -> Verification:
        """Look again and judge each errand; an earlier one may be undone by a later one.

        Args:
            proprio: the present state of the arms.
        """
        after = [_sure(self._locate(k)) for k in range(len(self._errands))]
        return Verification(
            tuple(
                _judge(errand, before, now, _held_places(proprio, self._widest))
                for errand, before, now in zip(self._errands, self._before, after, strict=True)
            )
        )


def _sure(seen: Seen) -> Seen:
    sure = {role: one for role, one in seen.estimates.items() if one.confidence >= SURE}
    return Seen(sure, seen.heights)


def _judge(errand: Errand, before: Seen, now: Seen, grips: Sequence[Array]) -> Finding:
    was, found = before.estimates, now.estimates
    if errand.part is not None:
        return _worked(errand, was.get("part"), found.get("part"))
    if errand.object is None:
        return Finding(None, f"nobody knows how to see whether {errand.verb!r} was done")
    name, thing = said(errand.object), found.get("object")
    place = _standing(was.get("receptacle"), found.get("receptacle"))
    if thing is None:
        return _hidden(name, errand, was.get("object"), place, before.heights, now.heights)
    if errand.receptacle is None:
        return _picked(name, was.get("object"), thing)
    if place is None:
        return Finding(None, f"the {said(errand.receptacle)} is not seen")
    if errand.placement in ("on", "in") and _at_a_hand(thing, grips):
        return Finding(False, f"the {name} is still at the hand")
    return _placed(errand, name, thing, place)


def _standing(before: Estimate | None, now: Estimate | None) -> Estimate | None:
    """Return where a place is: as it was seen most surely, unless it was moved."""
    if before is None or now is None:
        return before or now
    moved = float(np.linalg.norm((now.position - before.position)[:2]))
    return now if moved > _MOVED or now.confidence > before.confidence else before


def _hidden(
    name: str,
    errand: Errand,
    was: Estimate | None,
    place: Estimate | None,
    before: HeightGrid | None,
    now: HeightGrid | None,
) -> Finding:
    """Judge a thing that is not seen by what depth shows: gone there, and something new here."""
    unseen = f"the {name} is not seen"
    asked = errand.receptacle
    if was is None or place is None or asked is None or errand.placement not in ("on", "in"):
        return Finding(None, unseen)
    if before is None or now is None or before.heights.shape != now.heights.shape:
        return Finding(None, unseen)
    gone = _height_change(was, before, now)
    if len(gone) < _CELLS or np.median(gone) > -float(was.extent[2]) / 2.0:
        return Finding(None, f"{unseen}, and whether it left its place cannot be told")
    where, new = f"{errand.placement} the {said(asked)}", _new_cells(was, place, before, now)
    if new < _CELLS:
        return Finding(None, f"{unseen}, and nothing new is seen {where}")
    return Finding(True, f"the {name} is gone from its place, and something as high is {where}")


def _height_change(thing: Estimate, before: HeightGrid, now: HeightGrid) -> Array:
    """Return by how much each known cell of a place has risen, metres. Shape (N,)."""
    change = (now.heights - before.heights)[_cells_of(thing, now, _GONE_INSIDE)]
    return np.asarray(change[np.isfinite(change)])


def _new_cells(thing: Estimate, place: Estimate, before: HeightGrid, now: HeightGrid) -> int:
    """Return how many cells of a place show a surface that a thing put there would show.

    What a wall of the place hid before may be new as well; a hand above it is too high.
    """
    cells = _cells_of(place, now, _INSIDE)
    was, is_now = before.heights[cells], now.heights[cells]
    above = is_now - bottom_of(place)
    fits = (above > _NEW) & (above < float(np.linalg.norm(thing.extent)) + _NEW)
    return int((fits & ~(is_now - was < _NEW)).sum())  # also where nothing was seen before


def _cells_of(thing: Estimate, grid: HeightGrid, margin: float) -> NDArray[np.bool_]:
    """Return which cells lie `margin` metres inside the outline of a thing. Shape (NX, NY)."""
    nx, ny = grid.heights.shape
    x = grid.origin[0] + (np.arange(nx)[:, None] + 0.5) * grid.cell - thing.position[0]
    y = grid.origin[1] + (np.arange(ny)[None, :] + 0.5) * grid.cell - thing.position[1]
    c, s = np.cos(thing.yaw), np.sin(thing.yaw)
    half = thing.extent[:2] / 2.0
    half = np.maximum(half - margin, half / 2.0)
    inside = (np.abs(c * x + s * y) < half[0]) & (np.abs(c * y - s * x) < half[1])
    return np.asarray(inside)


def _placed(errand: Errand, name: str, thing: Estimate, place: Estimate) -> Finding:
    assert errand.receptacle is not None
    where = said(errand.receptacle)
    aside = _beyond(thing, place)
    if errand.placement not in ("on", "in"):
        away = float(np.linalg.norm((thing.position - place.position)[:2]))
        return Finding(away < _BESIDE, f"the {name} is {cm(away)} from the {where}")
    if aside > _ASIDE:
        return Finding(False, f"the {name} lies {cm(aside)} beside the {where}")
    over = bottom_of(thing) - top_of(place)
    if over > _ABOVE:
        return Finding(False, f"the {name} is {cm(over)} over the {where}")
    if top_of(thing) < bottom_of(place):
        return Finding(False, f"the {name} is under the {where}")
    return Finding(True, f"the {name} is {errand.placement} the {where}")


def _beyond(thing: Estimate, place: Estimate) -> float:
    """Return how far the middle of a thing lies outside the outline of a place, metres."""
    offset = (thing.position - place.position)[:2]
    c, s = np.cos(place.yaw), np.sin(place.yaw)
    local = np.array([c * offset[0] + s * offset[1], -s * offset[0] + c * offset[1]])
    outside = np.maximum(np.abs(local) - place.extent[:2] / 2.0, 0.0)
    return float(np.linalg.norm(outside))


def _picked(name: str, before: Estimate | None, thing: Estimate) -> Finding:
    if before is None:
        return Finding(None, f"nobody saw where the {name} was")
    rise = bottom_of(thing) - bottom_of(before)
    return Finding(rise > _LIFTED, f"the {name} is {cm(rise)} higher than it was")


def _worked(errand: Errand, before: Estimate | None, now: Estimate | None) -> Finding:
    assert errand.part is not None
    name = said(errand.part)
    if before is None or now is None:
        return Finding(None, f"the {name} is not seen")
    if errand.verb in ("turn_on", "turn_off"):
        turn = abs(float(np.angle(np.exp(2j * (now.yaw - before.yaw))))) / 2.0
        return Finding(
            True if turn > _TWISTED else None, f"the {name} turned by {np.degrees(turn):.0f} deg"
        )
    moved = float((now.position - before.position) @ outward(before))
    if errand.verb in ("close", "press"):
        moved = -moved
    return Finding(moved > SHORTEST_PULL, f"the {name} moved {cm(moved)} the right way")


def _held_places(proprio: Proprio, widest: float) -> list[Array]:
    """Return where hands may hold something: the grip sites of those that are not wide open."""
    return [a.ee_pos for a in proprio.arms if a.gripper_opening < _OPEN * widest]


def _at_a_hand(thing: Estimate, grips: Sequence[Array]) -> bool:
    """Return whether a hand is where it would be while it holds the thing."""
    reach = float(thing.extent.max()) / 2.0 + RELEASED
    return any(float(np.linalg.norm(grip - thing.position)) < reach for grip in grips)
