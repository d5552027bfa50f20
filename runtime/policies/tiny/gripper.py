"""The gripper of the tiny policy: when a chunk closes it and when it opens it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from zetta.runtime.core import Array
from zetta.runtime.policies.tiny.inputs import Float32
from zetta.runtime.policies.tiny.manifest import Execution

OPEN: Final = -1.0
CLOSE: Final = 1.0


@dataclass(frozen=True, slots=True)
class GripperState:
    """What `Gripper` remembers."""

    closed: bool = False
    stalled: int = 0
    """Chunks in a row that found the hand where it was."""
    last: Array | None = None
    """Where the hand was. Shape (3,)."""


class Gripper:
    """When to close and to open, ahead of time and, after a stall, farther ahead.

    A hand that stands still above its object predicts for ever that it will close soon. Looking
    farther ahead in the chunk makes the prediction come true.
    """

    def __init__(self, execution: Execution, phases: tuple[str, ...]) -> None:
        self._execution, self._phases = execution, phases
        self.memory = GripperState()

    def commands(self, chances: Float32, ee_pos: Array, phase: int) -> Array:
        """Return -1 (open) or 1 (close) for each row of a chunk.

        Args:
            chances: of being commanded closed at each future tick. Shape (H,).
            ee_pos: position of the hand now. Shape (3,).
            phase: the phase the policy believes to be in.
        """
        execution, before = self._execution, self.memory
        still = before.last is not None and (
            float(np.linalg.norm(ee_pos - before.last)) < execution.stall_m
        )
        waiting = self._phases[phase] in execution.stall_phases and not before.closed
        stalled = before.stalled + 1 if still and waiting else 0
        lead = execution.gripper_lead + stalled * execution.stall_rows
        if before.closed:
            lead = execution.release_lead
        rows = np.minimum(np.arange(len(chances)) + lead, len(chances) - 1)
        closing = chances[rows] > 0.5
        closed = bool(closing[execution.replan_steps - 1])
        self.memory = GripperState(closed, stalled, np.array(ee_pos))
        return np.where(closing, CLOSE, OPEN)
