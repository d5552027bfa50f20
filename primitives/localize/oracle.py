"""A finder that reads simulator truth: for diagnosis, for labels, and to price perception."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from zetta.primitives.localize.sightings import Sighting
from zetta.runtime.core import Landmark, Observation, Sensing


class OracleFinder:
    """Says what the simulator knows, with confidence 1.

    The landmarks are those of the present moment, whatever the observation shows.
    """

    level: Sensing = "oracle"

    def __init__(self, landmarks: Callable[[], Sequence[Landmark]]) -> None:
        """Take the source of truth, such as the method `landmarks` of an environment."""
        self._landmarks = landmarks

    def find(self, observation: Observation, names: Sequence[str]) -> tuple[Sighting, ...]:
        """Return every landmark that goes by one of `names`, under the name that was asked."""
        known = self._landmarks()
        return tuple(
            Sighting(name, mark.position, mark.extent, mark.yaw, 1.0)
            for name in dict.fromkeys(names)
            for mark in known
            if name == mark.name or name in mark.aliases
        )
