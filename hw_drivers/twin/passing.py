"""Time that passes in any amounts, for physics that goes in steps."""

from __future__ import annotations

from typing import Final

from zetta.hw_drivers.twin.scene import TIMESTEP_S

MOST_AT_ONCE_S: Final = 0.1
"""Whoever stood still loses the time beyond this: the arm never jumps ahead."""


class Passing:
    """Keeps what is less than a step for the next time."""

    def __init__(self) -> None:
        self._left = 0.0

    def owed(self, seconds: float) -> float:
        """Return the whole steps that are due after `seconds` more, as seconds."""
        self._left += min(max(0.0, seconds), MOST_AT_ONCE_S)
        steps = int(self._left / TIMESTEP_S + 1e-6)
        self._left -= steps * TIMESTEP_S
        return steps * TIMESTEP_S
