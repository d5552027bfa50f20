"""Where the things of the task are: from cameras, or from simulator truth as labels.

What was seen stays where it was seen until it is seen again: between looks, and when a hand hides
what it holds, the position is the last one and its age grows. Distances follow the hand.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from zetta.runtime.core import Estimate
from zetta.runtime.signals import ROLES
from zetta.runtime.signals_gripper import NAN

_UNSEEN = (NAN,) * 10


@dataclass(slots=True)
class SightMemory:
    """What is remembered from tick to tick."""

    latest: dict[str, list[float]] = field(default_factory=dict)
    """By role: x y z, vertical size, confidence, time of the last sighting."""
    first: dict[str, list[float]] = field(default_factory=dict)
    """By role: x y z of the first sighting."""


class SightSignals:
    """Computes the signals `VISION` (or `TRUTH`) of the registry, in that order."""

    def __init__(self) -> None:
        self.memory = SightMemory()

    def begin(self) -> None:
        """Forget the last episode."""
        self.memory = SightMemory()

    def see(self, estimates: Mapping[str, Estimate]) -> None:
        """Take what a look found; a role that it did not find stays where it was."""
        m = self.memory
        for role in ROLES:
            estimate = estimates.get(role)
            if estimate is None:
                continue
            place = estimate.position.tolist()
            m.latest[role] = [*place, float(estimate.extent[2]), estimate.confidence, estimate.t]
            m.first.setdefault(role, place)

    def update(self, t: float, ee_pos: tuple[float, float, float]) -> list[float]:
        """Return the signals of this tick; `ee_pos` is the hand's place now."""
        m = self.memory
        hx, hy, hz = ee_pos
        values: list[float] = []
        for role in ROLES:
            known = m.latest.get(role)
            if known is None:
                values += _UNSEEN
                continue
            x, y, z, height, confidence, seen = known
            offset = math.hypot(hx - x, hy - y)
            values += (
                x, y, z, height, math.hypot(offset, hz - z), offset, hz - (z + height / 2.0),
                confidence, t - seen, math.dist(m.first[role], (x, y, z)),
            )  # fmt: skip
        values.append(self._apart())
        return values

    def _apart(self) -> float:
        one, other = self.memory.latest.get("object"), self.memory.latest.get("receptacle")
        if one is None or other is None:
            return NAN
        return math.hypot(one[0] - other[0], one[1] - other[1])
