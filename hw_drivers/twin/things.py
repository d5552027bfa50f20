"""What stands on the table of the twin, and where a seed puts it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal

import numpy as np

from zetta.runtime.errors import ConfigError, InfraError


@dataclass(frozen=True, slots=True)
class Thing:
    """A plain coloured solid."""

    name: str
    """As instructions say it."""
    form: Literal["box", "cylinder"]
    size: tuple[float, float, float]
    """Full size along its own axes; of a cylinder diameter, diameter and height. Metres."""
    colour: tuple[float, float, float]
    """RGB in [0, 1]."""
    mass: float
    """Kilograms."""

    @property
    def room(self) -> float:
        """Radius of the circle that it needs on the table, metres."""
        half = self.size[0] / 2.0
        return half if self.form == "cylinder" else math.hypot(half, self.size[1] / 2.0)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a seed puts a thing: middle on the table in the world, metres, and yaw, radians."""

    x: float
    y: float
    yaw: float


THINGS: Final[Mapping[str, Thing]] = MappingProxyType(
    {
        thing.name: thing
        for thing in (
            Thing("red cube", "box", (0.045, 0.045, 0.045), (0.85, 0.08, 0.08), 0.06),
            Thing("green cube", "box", (0.045, 0.045, 0.045), (0.10, 0.62, 0.15), 0.06),
            Thing("blue can", "cylinder", (0.052, 0.052, 0.095), (0.10, 0.22, 0.85), 0.08),
            Thing("yellow plate", "cylinder", (0.140, 0.140, 0.016), (0.95, 0.80, 0.08), 0.25),
            Thing("purple plate", "cylinder", (0.110, 0.110, 0.016), (0.45, 0.15, 0.75), 0.20),
        )
    }
)
AREA_LOW: Final = (0.38, -0.27)
AREA_HIGH: Final = (0.66, 0.27)
"""Middles of things lie in it: the hand reaches them pointing down, and the cameras see them."""
CLEARANCE: Final = 0.05
"""Free space between two things: a finger and the palm's side fit in. Metres."""
_TRIES: Final = 2000


def places(seed: int) -> Mapping[str, Place]:
    """Return where every thing stands in the scene of a seed.

    Raises:
        ConfigError: the seed is negative.
        InfraError: it finds no room for everything.
    """
    if seed < 0:
        raise ConfigError(f"the seed of a scene is 0 or greater, got {seed}")
    rng = np.random.default_rng([0x7717, seed])
    for _ in range(_TRIES):
        drawn = {
            name: Place(
                float(rng.uniform(AREA_LOW[0], AREA_HIGH[0])),
                float(rng.uniform(AREA_LOW[1], AREA_HIGH[1])),
                float(rng.uniform(-math.pi / 4, math.pi / 4)) if thing.form == "box" else 0.0,
            )
            for name, thing in THINGS.items()
        }
        if _apart(drawn):
            return drawn
    raise InfraError(f"found no room for {len(THINGS)} things with seed {seed}; use another seed")


def _apart(drawn: Mapping[str, Place]) -> bool:
    names = list(drawn)
    return all(
        math.hypot(drawn[a].x - drawn[b].x, drawn[a].y - drawn[b].y)
        >= THINGS[a].room + THINGS[b].room + CLEARANCE
        for i, a in enumerate(names)
        for b in names[:i]
    )
