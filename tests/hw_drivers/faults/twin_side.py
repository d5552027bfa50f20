"""The twin of a Panda as the side that is tried: `ZETTA_TEST_SIDE=python:THIS FILE:make`."""

from __future__ import annotations

from zetta.hw_drivers.twin.side import TwinSide
from zetta.hw_drivers.twin.world import TwinWorld


def make() -> TwinSide:
    return TwinSide(TwinWorld(0))
