"""What speaks for something being held: the opening of the fingers, a lift, and sight.

No single reading decides. The opening counts against what the empty hand shows when it is closed,
with a margin to become `held` and a smaller one, for several ticks, to stop being so.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass

import numpy as np

from zetta.primitives.command_results import GraspEvidence, Grip
from zetta.primitives.grasps import HandGeometry
from zetta.primitives.motions_gripper import LOST, LOST_TICKS, STILL, THIN
from zetta.primitives.rates import TUNED_HZ, per_tick_at, ticks_at
from zetta.runtime.core import ArmState, Array, Estimate

_STILL_TICKS = 2
_BEGIN_TICKS = 8
"""Ticks of 20 Hz within which fingers that are told to close begin to."""
_ON = 0.002
"""Fingers that move by more than this after they stood still have not closed yet, metres."""
_LIFTED = 0.02
"""A hand that has risen this far since it closed has lifted what it holds, metres."""
_RAISED = 0.008
"""One that loses a thing after rising by this has lost it in the lift, metres."""
_WIDE = 0.95
"""Fingers that stay this wide, as a share of the widest opening, did not close on anything."""
_AT_HAND = 0.04
"""A thing is at the hand when the grip site is this near to its box, metres."""
_SAME_OPENING = 0.001
"""Two closings that end this near to each other, metres, end alike."""


@dataclass(frozen=True, slots=True)
class Margins:
    """How far above the empty hand the fingers stay when something is between them."""

    enter: float = 0.001
    """Something is held from here on, metres above the floor."""
    leave: float = 0.0003
    """It is lost below this, metres above the floor."""
    ticks: int = LOST_TICKS
    """It is lost only after so many ticks of 20 Hz in a row."""


class GraspWatch:
    """Follows the gripper of one arm through an episode and says what it holds.

    Attributes:
        floor: what the empty hand shows when it is closed, metres; learnt.
    """

    def __init__(
        self, hand: HandGeometry, margins: Margins | None = None, control_hz: float = TUNED_HZ
    ) -> None:
        """Take the gripper's geometry, and how often it is felt."""
        self._hand, self._margins, self._hz = hand, margins or Margins(), control_hz
        self._slow = per_tick_at(control_hz, STILL)
        self.floor = hand.empty
        self._emptied: deque[float] = deque(maxlen=5)
        self._doubted: float | None = None
        """Opening of a grip that sight has contradicted once."""
        self._opening = self._wide = hand.opening
        self._closing = False
        self._begin_anew()

    def _begin_anew(self) -> None:
        self._still = self._low = self._ticks = 0
        self._settled = self._held = False
        self._closed_at = self._since = self._settled_at = math.nan
        self._lifted: bool | None = None
        self._seen: bool | None = None

    # ------------------------------------------------------------------ what is noticed

    def feel(self, state: ArmState, closing: bool, t: float) -> None:
        """Note what the arm's own sensors report at a tick at time `t`."""
        opening = state.gripper_opening
        if not (closing and self._closing):
            self._begin_anew()
            self._wide = opening
        self._closing, before, self._opening = closing, self._opening, opening
        if not closing:
            return
        self._ticks += 1
        self._still = self._still + 1 if abs(opening - before) < self._slow else 0
        if self._settled and not self._held and abs(opening - self._settled_at) > _ON:
            self._settled = False  # the fingers began to move late, or go on
        moved = opening < self._wide - _ON or self._ticks >= ticks_at(self._hz, _BEGIN_TICKS)
        if not self._settled and moved and self._still >= ticks_at(self._hz, _STILL_TICKS):
            self._settle(state, t)
        if self._held:
            self._follow(float(state.ee_pos[2]))

    def see(self, thing: Estimate, position: Array) -> None:
        """Note where the thing that should be held was seen, and where the grip site was then.

        What was seen before the fingers had closed says nothing.
        """
        if not self._settled or thing.t < self._since:
            return
        c, s = math.cos(thing.yaw), math.sin(thing.yaw)
        x, y, z = position - thing.position
        own = np.abs([c * x + s * y, c * y - s * x, z])
        outside = np.maximum(own - thing.extent / 2.0, 0.0)
        self._seen = float(np.linalg.norm(outside)) < _AT_HAND
        if self._held and not self._seen:
            self._doubt()

    def _settle(self, state: ArmState, t: float) -> None:
        self._settled, self._since, self._settled_at = True, t, state.gripper_opening
        self._closed_at = float(state.ee_pos[2])
        opening, hand = state.gripper_opening, self._hand
        self._held = self.floor + self._margins.enter < opening < _WIDE * hand.opening
        if not self._held and opening <= hand.empty:
            self._learn(opening)

    def _follow(self, height: float) -> None:
        """Follow what is held: lost only when clearly below, for several ticks."""
        risen = height - self._closed_at
        least = self.floor + self._margins.leave
        if self._settled_at > THIN:
            least = max(least, LOST * self._settled_at)
        self._low = self._low + 1 if self._opening < least else 0
        if self._low >= ticks_at(self._hz, self._margins.ticks):
            self._held, self._seen = False, None
            self._lifted = False if risen > _RAISED else self._lifted
        elif self._low == 0 and risen > _LIFTED:
            self._lifted = True

    def _learn(self, opening: float) -> None:
        """Learn from a closing on nothing; the widest of the last ones counts."""
        self._emptied.append(opening)
        self.floor = max(self._emptied)

    def _doubt(self) -> None:
        """Take an opening that sight has contradicted twice for that of the empty hand."""
        if self._doubted is not None and abs(self._doubted - self._opening) < _SAME_OPENING:
            self._learn(self._opening)
        self._doubted = self._opening

    # ------------------------------------------------------------------ what it says

    @property
    def closing(self) -> bool:
        """Whether the gripper is commanded to close."""
        return self._closing

    @property
    def evidence(self) -> GraspEvidence:
        """What is held, by all that is known."""
        return GraspEvidence(self._grip(), self._opening, self.floor, self._lifted, self._seen)

    def _grip(self) -> Grip:
        if not self._closing:
            return "open"
        if self._held:
            return "unsure" if self._seen is False or self._lifted is False else "held"
        above = self._opening - self.floor
        wide = self._opening >= _WIDE * self._hand.opening
        # Between the margins it may be a thin thing.
        unclear = self._lifted is None and above >= self._margins.leave
        return "unsure" if unclear or wide or self._seen is True or not self._settled else "empty"
