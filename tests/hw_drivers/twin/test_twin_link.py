"""The served twin's link goes wrong through its door; its promises hold there too."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

import numpy as np
import pytest

pytest.importorskip("mujoco", reason="needs MuJoCo (pip install 'zetta[libero]')")
pytest.importorskip("robosuite", reason="needs robosuite (pip install 'zetta[libero]')")

from tests.hw_drivers.arm_parts import until
from zetta.hw_drivers.arm import PoseTarget
from zetta.hw_drivers.twin.door import TwinDoor
from zetta.hw_drivers.twin.serve import Twin, TwinSettings
from zetta.hw_drivers.twin.world import HOME_POS, HOME_QUAT
from zetta.hw_drivers.zmq_arm import ZmqArm
from zetta.runtime.errors import ConnectionLost, Timeout

ANY = dict.fromkeys(("command_port", "state_port", "stop_port", "camera_port", "door_port"), 0)


@pytest.fixture(scope="module")
def served() -> Iterator[Twin]:
    made: list[Twin] = []
    up, over = threading.Event(), threading.Event()

    def run() -> None:
        twin = Twin(TwinSettings(picture_hz=0.0, **ANY))
        made.append(twin)
        up.set()
        try:
            twin.serve(over.is_set)
        finally:
            twin.close()

    thread = threading.Thread(target=run)
    thread.start()
    assert up.wait(30.0)
    yield made[0]
    over.set()
    thread.join()


@pytest.fixture
def twin(served: Twin) -> Iterator[tuple[Twin, TwinDoor, ZmqArm]]:
    with (
        contextlib.closing(TwinDoor(served.door.endpoint)) as door,
        contextlib.closing(ZmqArm(served.server.endpoints.command)) as arm,
    ):
        door.scene(0)
        arm.connect(20.0)
        yield served, door, arm


def reach(arm: ZmqArm, y: float) -> None:
    goal = PoseTarget(np.array((HOME_POS[0], y, HOME_POS[2])), np.array(HOME_QUAT), 0.08)

    def there() -> bool:
        try:
            arm.command(goal, ttl_s=0.3)
            return abs(float(arm.state(1.0).ee_pos[1]) - y) < 5e-3
        except ConnectionLost:
            arm.connect(20.0)
        except Timeout:
            pass
        return False

    until(there, f"the hand at y = {y}")


def test_the_arm_gets_there_over_a_bad_link_and_stands_over_a_dead_one(
    twin: tuple[Twin, TwinDoor, ZmqArm],
) -> None:
    served, door, arm = twin
    assert {"link_loss", "link_corrupt", "clock_drift"} <= set(door.faults())
    door.fault("link_loss", True, "0.2")
    door.fault("link_jitter", True, "0.04")
    door.fault("link_corrupt", True, "0.1")
    reach(arm, 0.08)
    door.fault("link_loss", True, "1")  # the door itself has a line of its own
    until(lambda: served.side.mode == "holding", "the watchdog")
    assert "link_loss" in door.report().faults
    for name in ("link_loss", "link_jitter", "link_corrupt"):
        door.fault(name, False)
    reach(arm, -0.05)
    assert door.report().faults == {}


def test_a_jump_of_its_clock_loses_time_and_not_the_arm(
    twin: tuple[Twin, TwinDoor, ZmqArm],
) -> None:
    served, door, arm = twin
    reach(arm, 0.05)
    door.fault("clock_jump", True, "3")
    until(lambda: served.side.lost_s > 2.0, "the physics does not jump ahead")
    reach(arm, 0.0)
