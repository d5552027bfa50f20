"""What the twin's arm may be asked to do, and when that is done: simulator truth, for measuring."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from zetta.hw_drivers.frames import Pose
from zetta.hw_drivers.twin.things import THINGS
from zetta.hw_drivers.twin.world import TwinWorld

MAX_STEPS: Final = 400
LIFTED_M: Final = 0.02
"""A thing hangs in the hand when its underside is higher."""
RESTS_M: Final = 0.012
"""On a plate it may stand so much higher or lower than it would by its shape."""
STILL: Final = 0.05
"""Metres a second."""


@dataclass(frozen=True, slots=True)
class TwinTask:
    """One errand at the table."""

    instruction: str
    thing: str
    on: str = ""
    """The plate that it shall stand on; empty where it is only picked up."""

    def holds(self, world: TwinWorld) -> bool:
        """Say whether it is done: simulator truth."""
        places = world.truth()
        thing = places[self.thing]
        half = THINGS[self.thing].size[2] / 2.0
        if not self.on:
            lifted = thing.pos[2] - half > LIFTED_M
            return bool(lifted and world.touches_hand(self.thing))
        plate, shape = places[self.on], THINGS[self.on]
        beside = math.hypot(*(thing.pos - plate.pos)[:2])
        height = thing.pos[2] - plate.pos[2] - shape.size[2] / 2.0
        return bool(
            beside < shape.size[0] / 2.0
            and abs(height - _standing(self.thing, thing)) < RESTS_M
            and not world.touches_hand(self.thing)
            and world.speed_of(self.thing) < STILL
        )


def _standing(name: str, pose: Pose) -> float:
    """Return how high the middle of a thing is over what it rests on, as it lies."""
    x, y, z, w = pose.quat
    up = np.array([2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)])
    size = THINGS[name].size
    if THINGS[name].form == "box":
        return float(np.abs(up) @ np.array(size)) / 2.0
    return 0.5 * float(abs(up[2]) * size[2] + math.hypot(up[0], up[1]) * size[0])


_TAKEN: Final = ("red cube", "green cube", "blue can")
_PLATES: Final = ("yellow plate", "purple plate")
TASKS: Final[tuple[TwinTask, ...]] = (
    *(TwinTask(f"pick up the {thing}", thing) for thing in _TAKEN),
    *(
        TwinTask(f"put the {thing} on the {plate}", thing, plate)
        for thing in _TAKEN
        for plate in _PLATES
    ),
)
