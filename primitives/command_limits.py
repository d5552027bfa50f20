"""The room in which commands may move the hands, and what keeps every action inside it."""

from __future__ import annotations

import math

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
        held_back: the arms that it held back since this was last cleared.
    """

    def __init__(self, box: Box | None, action: ActionSpec, control_hz: float) -> None:
        """Take the box, and the convention and the rate of the actions."""
        self._box, self._action, self._hz = box, action, control_hz
        self._t = math.nan
        self._places: Array | None = None
        self._steps: Array | None = None
        """Way of each grip site in the last tick, metres. Shape (arms, 3)."""
        self.held_back: set[int] = set()

    def feel(self, proprio: Proprio) -> None:
        """Note where the hands are, and so how fast they go."""
        if proprio.t == self._t:
            return
        places = np.array([arm.ee_pos for arm in proprio.arms])  # (arms, 3)
        ticks = (proprio.t - self._t) * self._hz
        went = self._places is not None and ticks > 0.0
        self._steps = (places - self._places) / max(1.0, ticks) if went else 0.0 * places
        self._places, self._t = places, proprio.t

    def bounded(self, row: Action) -> Action:
        """Return `row` with each arm's translation cut at the walls of the box.

        A hand coasts, so what it will go by itself counts as commanded already.
        """
        kinds = ("delta_pose", "target_pose")
        if self._box is None or self._places is None or self._action.kind not in kinds:
            return row
        assert self._steps is not None
        bounded = np.array(row, dtype=np.float64)
        for k, (place, step) in enumerate(zip(self._places, self._steps, strict=True)):
            own = slice(ARM_SIZE * k, ARM_SIZE * k + 3)
            cut = self._cut(bounded[own], place, _COAST * step, own)
            scale = 1.0 if self._action.kind == "target_pose" else self._action.scale[own.start]
            if float(np.abs(cut - bounded[own]).max()) * scale > _AT_WALL:
                self.held_back.add(k)
            bounded[own] = cut
        return bounded

    def _cut(self, numbers: Array, place: Array, coast: Array, own: slice) -> Array:
        assert self._box is not None
        if self._action.kind == "target_pose":
            return self._box.nearest(numbers)
        scale = np.array(self._action.scale[own])
        up = np.maximum(np.array(self._box.high) - place - np.maximum(coast, 0.0), 0.0) / scale
        down = np.maximum(place - np.array(self._box.low) - np.maximum(-coast, 0.0), 0.0) / scale
        return np.clip(numbers, -down, up)
