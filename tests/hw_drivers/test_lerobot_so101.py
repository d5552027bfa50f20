"""LeRobot's own SO-101, on a serial line with servos that are not there: `pytest -m lerobot`."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import numpy as np
import pytest

from tests.hw_drivers.arm_parts import served, until
from tests.hw_drivers.feetech_bus import GOAL, MIDDLE, STEPS, FeetechBus, feetech_bus
from tests.hw_drivers.lerobot_parts import MOTORS
from zetta.hw_drivers.arm import JointTarget, RobotSide
from zetta.hw_drivers.zmq_arm import ZmqArm
from zetta.runtime import registry
from zetta.runtime.errors import ConfigError

pytestmark = pytest.mark.lerobot
pytest.importorskip("lerobot.robots", reason="needs pip install 'zetta[lerobot]'")
pytest.importorskip("scservo_sdk", reason="needs pip install 'zetta[lerobot]'")

FILE = """
type = "so101_follower"
[config]
port = "{port}"
id = "bench"
calibration_dir = "{folder}"
[arm]
robot = "so101-1"
max_age_s = 1.0
"""
TURN_RAD = 0.2


@pytest.fixture
def bus() -> Iterator[FeetechBus]:
    with feetech_bus() as made:
        yield made


def opened(bus: FeetechBus, folder: Path, low: int = 0) -> RobotSide:
    """Open the arm by its file, as `zetta arms serve` does."""
    each = {"drive_mode": 0, "homing_offset": 0, "range_min": low, "range_max": STEPS - 1}
    calibration = {name: {"id": i + 1, **each} for i, name in enumerate(MOTORS)}
    (folder / "bench.json").write_text(json.dumps(calibration))
    (folder / "so101.toml").write_text(FILE.format(port=bus.port, folder=folder))
    return cast(RobotSide, registry.arm(f"lerobot:{folder / 'so101.toml'}"))


def test_joints_go_where_they_are_told_in_radians(bus: FeetechBus, tmp_path: Path) -> None:
    side = opened(bus, tmp_path)
    goal = np.full(5, TURN_RAD)
    with contextlib.closing(side), served(side) as running:
        with contextlib.closing(ZmqArm(running.url)) as arm:
            arm.connect(20.0)

            def there() -> bool:
                arm.command(JointTarget(goal, 0.04), ttl_s=1.0)
                return bool(np.allclose(arm.state(10.0).joint_pos, goal, atol=0.01))

            until(there, "the arm to arrive")
            arm.stop("enough")
            until(lambda: arm.state(10.0).mode == "stopped", "the stop")
        steps = [int.from_bytes(s.memory[GOAL : GOAL + 2], "little") for s in bus.servos.values()]
    turned = TURN_RAD / (2.0 * np.pi) * (STEPS - 1)
    assert np.allclose(np.array(steps[:5]) - MIDDLE, turned, atol=8.0)
    assert abs(steps[5] / (STEPS - 1) - 0.5) < 0.01  # half open


def test_servos_that_fall_silent_are_told(bus: FeetechBus, tmp_path: Path) -> None:
    side = opened(bus, tmp_path)
    with (
        contextlib.closing(side),
        served(side) as running,
        contextlib.closing(ZmqArm(running.url)) as arm,
    ):
        arm.connect(20.0)
        bus.lost.set()
        until(lambda: arm.state(10.0).mode == "fault", "the fault")
        bus.lost.clear()
        until(lambda: arm.state(10.0).mode != "fault", "the servos again")


def test_an_arm_that_holds_another_calibration_is_refused(bus: FeetechBus, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="lerobot-calibrate"):
        opened(bus, tmp_path, low=100)
