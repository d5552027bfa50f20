"""How far the episode is and who has driven it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from zetta.runtime.signals_gripper import NAN

POLICY: Final = "policy"
"""The source of what the policy does; every other source is a motion."""


@dataclass(slots=True)
class EpisodeMemory:
    """What is remembered from tick to tick."""

    start: float = NAN
    """Time of tick 0."""
    before: float = NAN
    """Time of the last tick."""
    driving: str = POLICY
    by_motions: int = 0
    handed_back: float = NAN
    interventions: int = 0


class EpisodeSignals:
    """Computes the signals `EPISODE` of the registry, in that order.

    `driving` names who gave the last action: a change is seen one tick after it was ruled.
    """

    def __init__(self) -> None:
        self.budget = 1
        """Ticks that the episode may take."""
        self.memory = EpisodeMemory()

    def begin(self) -> None:
        """Forget the last episode."""
        self.memory = EpisodeMemory()

    def update(self, index: int, t: float, driving: str) -> tuple[float, ...]:
        """Return the signals of this tick."""
        m = self.memory
        if index == 0 or m.start != m.start:
            m.start = m.before = t
        if driving != m.driving:
            if driving == POLICY:
                m.handed_back = m.before
            else:
                m.interventions += 1
            m.driving = driving
        if driving != POLICY:
            m.by_motions += 1
        m.before = t
        return (
            t - m.start, index / self.budget, m.by_motions / self.budget, t - m.handed_back,
            1.0 if driving == POLICY else 0.0, float(m.interventions),
        )  # fmt: skip
