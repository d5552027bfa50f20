"""The room in which commands may move the hands, and what keeps every action inside it."""

from __future__ import annotations

import math

import numpy as np

from zetta.runtime.core import Action, ActionSpec, Array, Proprio
from zetta.runtime.tracking import ARM_SIZE
from zetta.runtime.workspace import Box

_COAST = 0.7
"""How far a hand goes on by itself after its last command, in units of its way in one tick."""
_TURN_MOST = 0.3
"""Largest turn that is commanded in one tick, radians."""
_THROWN = 0.008
"""A hand that goes this far in a tick where it was not sent stops turning, metres."""
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
        self._sent: Action | None = None
        self._inside: set[int] = set()
        """Arms that have been inside the box."""
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
        """Return `row` with each arm's translation cut at the walls, and its turn slowed down.

        A hand coasts, so what it will go by itself counts as commanded already. A turn that carries
        the hand through a wall, as one does against the end of a joint, is given up.
        """
        kinds = ("delta_pose", "target_pose")
        if self._places is None or self._steps is None or self._action.kind not in kinds:
            return row
        bounded = np.array(row, dtype=np.float64)
        for k, (place, step) in enumerate(zip(self._places, self._steps, strict=True)):
            own = slice(ARM_SIZE * k, ARM_SIZE * k + 3)
            turn = slice(own.stop, own.stop + 3)
            cut = self._cut(bounded[own], k, place, _COAST * step)
            scale = 1.0 if self._action.kind == "target_pose" else self._action.scale[own.start]
            if float(np.abs(cut - bounded[own]).max()) * scale > _AT_WALL:
                self.held_back.add(k)
            bounded[own] = cut
            if self._action.kind == "delta_pose":
                bounded[turn] *= self._share_of_turn(bounded[turn], turn, k)
        self._sent = bounded
        return bounded

    def _cut(self, numbers: Array, arm: int, place: Array, coast: Array) -> Array:
        if self._box is None:
            return numbers
        if self._action.kind == "target_pose":
            return self._box.nearest(numbers)
        up, down = np.array(self._box.high) - place, place - np.array(self._box.low)
        if self._box.holds(place):
            self._inside.add(arm)
        elif arm not in self._inside:
            # One that began outside is not pushed in.
            up, down = np.maximum(up, 0.0), np.maximum(down, 0.0)
        own = slice(ARM_SIZE * arm, ARM_SIZE * arm + 3)
        scale, most = np.array(self._action.scale[own]), np.array(self._action.high[own])
        up, down = up - np.maximum(coast, 0.0), down - np.maximum(-coast, 0.0)
        return np.clip(np.clip(numbers, -down / scale, up / scale), -most, most)

    def _share_of_turn(self, numbers: Array, turn: slice, arm: int) -> float:
        """Return by how much a rotation is shortened, so that it does not throw the hand.

        A controller that turns the hand against the end of a joint moves it where nobody sent it.
        """
        assert self._places is not None
        assert self._steps is not None
        place, step = self._places[arm], self._steps[arm]
        if self._box is not None and not self._box.holds(place + _COAST * step):
            return 0.0
        astray = step
        if self._sent is not None:
            sent = self._sent[turn.start - 3 : turn.start]
            along = sent / max(float(np.linalg.norm(sent)), 1e-9)
            astray = step - max(0.0, float(step @ along)) * along
        free = float(np.clip((_THROWN - np.linalg.norm(astray)) / (0.6 * _THROWN), 0.0, 1.0))
        angle = float(np.linalg.norm(numbers * np.array(self._action.scale[turn])))
        return free * min(1.0, _TURN_MOST / max(angle, 1e-9))
