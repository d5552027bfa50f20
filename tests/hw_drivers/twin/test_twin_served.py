from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from twin_parts import NEEDS, ServedTwin, hand_at, served

from zetta.hw_drivers.arm_setup import read_setup
from zetta.hw_drivers.camera_stream import StreamedCamera
from zetta.hw_drivers.cameras import Frame
from zetta.hw_drivers.twin.door import Door, TwinDoor
from zetta.hw_drivers.twin.faults import Fault, Faults
from zetta.hw_drivers.twin.scene import EYES
from zetta.hw_drivers.twin.setups import twin_setup
from zetta.hw_drivers.twin.side import TwinSide
from zetta.hw_drivers.twin.things import THINGS
from zetta.hw_drivers.twin.world import TwinWorld
from zetta.hw_drivers.zmq_arm import ZmqArm, clear_stop
from zetta.runtime.core import Array
from zetta.runtime.errors import ConfigError, InfraError, SpecMismatch
from zetta.runtime.transport import Dealer

pytestmark = NEEDS
PATIENCE_S = 30.0
SOON_S = 5.0
"""Pictures that are so old count as new on a busy machine."""


def until(fact: Callable[[], bool], said: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not fact():
        assert time.monotonic() < deadline, f"never happened: {said}"
        time.sleep(0.005)


@pytest.fixture(scope="module")
def twin() -> Iterator[ServedTwin]:
    with served() as one:
        yield one


@pytest.fixture(scope="module")
def cameras(twin: ServedTwin) -> Iterator[dict[str, StreamedCamera]]:
    opened = {
        name: StreamedCamera(
            camera.source.removeprefix("zmq:"), name, camera.height, camera.width, within_s=30.0
        )
        for name, camera in twin.setup.cameras.items()
    }
    yield opened
    for camera in opened.values():
        camera.close()


def newer(camera: StreamedCamera, than: float) -> Frame:
    """Return a picture of after `than`."""
    until(lambda: camera.latest(60.0).t > than, "a newer picture")
    return camera.latest(60.0)


def pixel(twin: ServedTwin, name: str, point: Array) -> tuple[int, int, float]:
    """Return row, column and depth at which a camera sees a point while the arm is at home."""
    from zetta.hw_drivers.frames import Pose

    home = Pose(np.array(twin.setup.home_pos), np.array(twin.setup.home_quat)).transform()
    camera = twin.setup.cameras[name].camera(name, home)
    local = camera.T_world_cam[:3, :3].T @ (point - camera.T_world_cam[:3, 3])
    column, row, _ = camera.intrinsics @ local / local[2]
    return int(row), int(column), float(local[2])


@pytest.mark.parametrize("name", EYES)
def test_things_are_seen_where_calibration_and_truth_say(
    twin: ServedTwin, cameras: dict[str, StreamedCamera], name: str
) -> None:
    twin.door.scene(0)
    frame = newer(cameras[name], time.monotonic())
    assert frame.depth is not None
    for thing, pose in twin.door.truth().items():
        top = pose.pos + np.array([0.0, 0.0, THINGS[thing].size[2] / 2.0])
        row, column, depth = pixel(twin, name, top)
        colour = frame.image[row, column] / 255.0
        hue = int(np.argmax(THINGS[thing].colour))
        assert int(np.argmax(colour)) == hue, (thing, colour)
        assert frame.depth[row, column] == pytest.approx(depth, abs=4e-3), thing


def test_the_arm_is_driven_over_its_link_and_the_cameras_see_it(
    twin: ServedTwin, cameras: dict[str, StreamedCamera]
) -> None:
    twin.door.scene(0)
    before = newer(cameras["wrist"], time.monotonic()).image
    arm = ZmqArm(twin.url, robot="twin")
    facts = arm.connect()
    assert facts.accepts == ("pose", "joints")
    goal = np.array([0.48, 0.15, 0.25])

    def there() -> bool:
        arm.command(hand_at(goal, 0.04))
        return float(np.linalg.norm(arm.state(2.0).ee_pos - goal)) < 2e-3

    until(there, "the arm reaches its target")
    assert (newer(cameras["wrist"], time.monotonic()).image != before).any()
    arm.close()


def test_a_reflex_is_told_and_a_person_clears_it(twin: ServedTwin) -> None:
    arm = ZmqArm(twin.url)
    arm.connect()
    twin.door.fault("reflex", True, "it felt a hand")
    until(lambda: arm.state(2.0).mode == "stopped", "the reflex is told")
    assert arm.state(2.0).reason == "it felt a hand"
    arm.close()
    assert clear_stop(twin.url, "Ada") == "it felt a hand"
    again = ZmqArm(twin.url)
    again.connect()
    until(lambda: again.state(2.0).mode == "holding", "it is cleared")
    again.close()


def test_a_lost_camera_grows_old_and_a_frozen_one_repeats_itself(
    twin: ServedTwin, cameras: dict[str, StreamedCamera]
) -> None:
    wrist, front = cameras["wrist"], cameras["agentview"]
    twin.door.fault("camera_lost", True, "wrist")
    assert twin.door.report().faults == {"camera_lost wrist": "wrist"}
    newer(front, time.monotonic() + 0.3)
    silent_since = wrist.latest(60.0).t
    newer(front, time.monotonic() + 0.3)
    assert wrist.latest(60.0).t == silent_since
    twin.door.fault("camera_lost", False, "wrist")
    newer(wrist, time.monotonic())

    twin.door.fault("camera_frozen", True, "agentview")
    last = newer(front, time.monotonic() + 0.3).image
    twin.door.scene(5)
    assert (newer(front, time.monotonic() + 0.3).image == last).all()
    twin.door.fault("camera_frozen", False, "agentview")
    until(lambda: (front.latest(60.0).image != last).any(), "the camera looks again")
    assert twin.door.report().faults == {}


def test_stuck_fingers_are_ordered_through_the_door(twin: ServedTwin) -> None:
    twin.door.fault("stuck_gripper")
    assert twin.door.report().faults == {"stuck_gripper": ""}
    twin.door.fault("stuck_gripper", False)
    assert set(twin.door.faults()) >= {"stuck_gripper", "reflex", "camera_lost", "camera_frozen"}


@pytest.mark.parametrize(
    ("do", "given", "error", "said"),
    [
        ("scene", {"seed": -3}, ConfigError, "0 or greater"),
        ("scene", {"seed": "seven"}, SpecMismatch, "whole number"),
        ("fault", {"name": "reflexx", "on": True, "value": ""}, ConfigError, "reflex"),
        ("fault", {"name": "camera_lost", "on": True, "value": "rear"}, ConfigError, "rear"),
        ("fault", {"name": "stuck_gripper", "on": True, "value": "x"}, ConfigError, "no value"),
        ("fault", {"name": "reflex", "on": "yes", "value": ""}, SpecMismatch, "on or off"),
        ("dance", {}, SpecMismatch, "dance"),
    ],
)
def test_who_asks_badly_at_the_door_is_told_why(
    twin: ServedTwin, do: str, given: dict[str, object], error: type[Exception], said: str
) -> None:
    dealer = Dealer(twin.twin.door.endpoint)
    with pytest.raises(error, match=said):
        dealer.call(do, given, 10.0)
    dealer.close()


def test_the_door_is_on_loopback_alone(twin: ServedTwin) -> None:
    with pytest.raises(ConfigError, match="loopback"):
        Door("tcp://0.0.0.0:5709", twin.twin.side, Faults())


def test_faults_have_names_of_their_own() -> None:
    told: list[tuple[bool, str]] = []
    faults = Faults(
        [Fault("late", "Commands come late.", lambda on, value: told.append((on, value)), "s")]
    )
    faults.set("late", True, "0.2")
    assert (told, faults.on) == ([(True, "0.2")], {"late": "0.2"})
    with pytest.raises(ConfigError, match="already"):
        faults.add(Fault("late", "Again.", lambda on, value: None))


def test_the_written_setup_is_read_as_it_was_meant(twin: ServedTwin, tmp_path: Path) -> None:
    file = tmp_path / "twin.toml"
    setup = twin.twin.setup(file)
    assert read_setup(file) == setup
    assert setup.tasks[0].instruction == "pick up the red cube"
    assert twin_setup("tcp://127.0.0.1:5701", 'a "b" \\ c', path=file) == read_setup(file)


def test_cameras_that_are_killed_hurt_nobody(
    twin: ServedTwin, cameras: dict[str, StreamedCamera]
) -> None:
    """Last in this file: the cameras do not come back."""
    arm = ZmqArm(twin.url)
    arm.connect()
    os.kill(twin.twin.pictures.pid, signal.SIGSTOP)
    before = arm.state(2.0).t
    until(lambda: arm.state(2.0).t > before + 0.3, "states go on beside frozen cameras")
    os.kill(twin.twin.pictures.pid, signal.SIGKILL)
    until(lambda: not twin.twin.pictures.alive, "the cameras are gone")
    before = arm.state(2.0).t
    until(lambda: arm.state(2.0).t > before + 0.3, "states go on without cameras")
    with pytest.raises(InfraError, match="wrist"):
        cameras["wrist"].latest(0.001)
    arm.close()


PARENT = """
import json, sys
from zetta.hw_drivers.twin.pictures import Pictures
pictures = Pictures({"wrist": "tcp://127.0.0.1:*"})
print(json.dumps(pictures.pid), flush=True)
sys.stdin.read()
"""


def test_cameras_end_with_the_process_that_started_them() -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    child = int(json.loads(parent.stdout.readline()))
    parent.kill()
    parent.communicate()

    def gone() -> bool:
        # Whoever adopts it may take its time to bury it.
        try:
            return Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
        except FileNotFoundError:
            return True

    until(gone, "the cameras end")


def test_a_door_that_nobody_answers_says_so() -> None:
    door = TwinDoor("tcp://127.0.0.1:1")
    with pytest.raises(InfraError):
        door._dealer.call("truth", {}, 0.2)
    door.close()


def test_a_served_world_stamps_readings_by_the_clock_it_was_given() -> None:
    side = TwinSide(TwinWorld(), lambda: 12.5)
    assert side.read().t == 12.5
