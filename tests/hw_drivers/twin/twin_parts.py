"""The twin served in a thread, and small orders, for its tests."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec

import numpy as np
import pytest

from zetta.hw_drivers.arm import PoseTarget
from zetta.hw_drivers.arm_setup import ArmSetup
from zetta.hw_drivers.frames import rotation_vector
from zetta.hw_drivers.twin.door import TwinDoor
from zetta.hw_drivers.twin.serve import Twin, TwinSettings
from zetta.hw_drivers.twin.world import TwinWorld
from zetta.runtime.core import Array

NEEDS = pytest.mark.skipif(
    find_spec("robosuite") is None or find_spec("mujoco") is None,
    reason="the shape of the Panda is missing; install it with: pip install 'zetta[twin]'",
)
DOWN = np.array([1.0, 0.0, 0.0, 0.0])


def hand_at(pos: Array | tuple[float, ...], opening: float = 0.08, yaw: float = 0.0) -> PoseTarget:
    """Return a target with the hand pointing down."""
    quat = np.array([np.cos(yaw / 2.0), np.sin(yaw / 2.0), 0.0, 0.0])
    return PoseTarget(np.asarray(pos, dtype=np.float64), quat, opening)


def take_and_lift(world: TwinWorld, thing: str, height: float) -> Array:
    """Close the fingers about a thing and lift it; return where its middle then is."""
    pose = world.truth()[thing]
    yaw = float(rotation_vector(pose.quat)[2])
    yaw -= np.pi / 2.0 * round(yaw / (np.pi / 2.0))
    for above, opening, seconds in (
        (0.10, 0.08, 1.2),
        (0.0, 0.08, 0.8),
        (0.0, 0.0, 0.8),
        (height, 0.0, 0.8),
    ):
        world.target(hand_at(pose.pos + np.array([0.0, 0.0, above]), opening, yaw))
        world.advance(seconds)
    return world.truth()[thing].pos


@dataclass
class ServedTwin:
    """A twin that is served in a thread of its own."""

    twin: Twin
    door: TwinDoor
    setup: ArmSetup

    @property
    def url(self) -> str:
        return self.setup.url


@contextmanager
def served(cameras: bool = True) -> Iterator[ServedTwin]:
    """Serve a twin on free ports; the thread that builds it serves it, as it must be."""
    settings = TwinSettings(
        command_port=0,
        state_port=0,
        stop_port=0,
        camera_port=0,
        door_port=0,
        picture_hz=12.0 if cameras else 0.0,
    )
    ended, ready, made = threading.Event(), threading.Event(), []

    def work() -> None:
        try:
            made.append(Twin(settings))
        finally:
            ready.set()
        made[0].serve(ended.is_set)
        made[0].close()

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    assert ready.wait(90.0)
    assert made
    door = TwinDoor(made[0].door.endpoint)
    try:
        yield ServedTwin(made[0], door, made[0].setup())
    finally:
        door.close()
        ended.set()
        thread.join()
