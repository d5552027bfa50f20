"""The room in which commands may move the hands, and what keeps every action inside it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from zetta.runtime.core import Action, ActionSpec, Array, Proprio
from zetta.runtime.tracking import ARM_SIZE

_COAST = 0.7
"""How far a hand goes on by itself after its last command, in units of its way in one tick."""
_AT_WALL = 1e-3
"""An action that is shortened by less than this, metres, was not held back."""


@dataclass(frozen=True, slots=True)
class Box:
    """Where grip sites may be. World frame, metres."""

    low: tuple[float, float, float]
    high: tuple[float, float, float]

    def holds(self, point: Array) -> bool:
        """Say whether a point, shape (3,), lies inside."""
        return bool(np.all(point >= self.low) and np.all(point <= self.high))

    def nearest(self, point: Array) -> Array:
        """Return the point of the box that is nearest to `point`. Shape (3,)."""
        return np.clip(point, self.low, self.high)

    def share_inside(self, start: Array, way: Array) -> float:
        """Return which share of a straight way from a point inside stays inside.

        >>> box = Box((0.0, 0.0, 0.0), (1.0, 1.0, 1.0))
        >>> box.share_inside(np.array([0.5, 0.5, 0.5]), np.array([0.0, 0.0, -2.0]))
        0.25
        """
        room = np.where(way > 0.0, np.array(self.high) - start, start - np.array(self.low))
        length = np.maximum(np.abs(way), 1e-12)
        return float(np.clip(np.min(np.maximum(room, 0.0) / length), 0.0, 1.0))

    def __str__(self) -> str:
        sides = zip("xyz", self.low, self.high, strict=True)
        return ", ".join(f"{axis} {100 * low:.0f} to {100 * high:.0f}" for axis, low, high in sides)


class Boundary:
    """Shortens actions that would bring a grip site out of a box; no box lets all pass.

    Attributes:
        held_back: the arms that it held back since the last `begin`.
    """

    def __init__(self, box: Box | None, action: ActionSpec) -> None:
        """Take the box and the convention of the actions."""
        self._box, self._action = box, action
        self._before: Array | None = None
        self.held_back: set[int] = set()

    def bounded(self, row: Action, proprio: Proprio) -> Action:
        """Return `row` with each arm's translation cut at the walls of the box.

        A hand coasts, so what it will go by itself counts as commanded already.
        """
        if self._box is None or self._action.kind not in ("delta_pose", "target_pose"):
            return row
        places = np.array([arm.ee_pos for arm in proprio.arms])  # (arms, 3)
        coasting = 0.0 * places if self._before is None else _COAST * (places - self._before)
        self._before = places
        bounded = np.array(row, dtype=np.float64)
        for k, (place, coast) in enumerate(zip(places, coasting, strict=True)):
            own = slice(ARM_SIZE * k, ARM_SIZE * k + 3)
            cut = self._cut(bounded[own], place, coast, own)
            scale = 1.0 if self._action.kind == "target_pose" else self._action.scale[own.start]
            if float(np.abs(cut - bounded[own]).max()) * scale > _AT_WALL:
                self.held_back.add(k)
            bounded[own] = cut
        return bounded

    def begin(self) -> None:
        """Forget how fast the hands were, for others may have moved them, and who was held back."""
        self._before = None
        self.held_back.clear()

    def _cut(self, numbers: Array, place: Array, coast: Array, own: slice) -> Array:
        assert self._box is not None
        if self._action.kind == "target_pose":
            return self._box.nearest(numbers)
        scale = np.array(self._action.scale[own])
        up = np.maximum(np.array(self._box.high) - place - np.maximum(coast, 0.0), 0.0) / scale
        down = np.maximum(place - np.array(self._box.low) - np.maximum(-coast, 0.0), 0.0) / scale
        return np.clip(numbers, -down, up)
