"""What a finder says about a picture: named things and where they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from zetta.runtime.core import Array, Observation, Sensing


@dataclass(frozen=True, slots=True)
class Sighting:
    """One instance of a named thing."""

    name: str
    """Canonical noun phrase in lower case, such as "black bowl" or "handle of top drawer"."""
    position: Array
    """Centre of the thing's box, world frame, metres. Shape (3,)."""
    extent: Array
    """Full size along its own axes, metres; the third axis is the world's z. Shape (3,)."""
    yaw: float
    """Rotation of the extent's first axis about world z, radians."""
    confidence: float
    """How likely it is that this is what the name says, in [0, 1]."""

    @property
    def top(self) -> float:
        """Height of its highest point, world z, metres."""
        return float(self.position[2] + self.extent[2] / 2.0)

    @property
    def bottom(self) -> float:
        """Height of its lowest point, world z, metres."""
        return float(self.position[2] - self.extent[2] / 2.0)


class Finder(Protocol):
    """Finds named things in what was sensed; it knows nothing about roles or relations."""

    level: Sensing

    def find(self, observation: Observation, names: Sequence[str]) -> tuple[Sighting, ...]:
        """Return every instance of each name that is seen; a name without one is simply absent.

        Names that a finder does not know are absent too: another finder may know them.
        """
        ...
