"""The room in which commands may move the hands, and what keeps every action inside it."""

from __future__ import annotations

import numpy as np

from zetta.runtime.core import Action, ActionSpec, Array, Proprio
from zetta.runtime.tracking import ARM_SIZE
from zetta.runtime.workspace import Box

_COAST = 0.7
"""How far a hand goes on by itself after its last command, in units of its way in one tick."""
_AT_WALL = 1e-3
"""An action that is shortened by less than this, metres, was not held back."""


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
