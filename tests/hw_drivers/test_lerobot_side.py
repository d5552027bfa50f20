"""A robot of LeRobot behind the arm server: its serial line may hang, and nothing here waits."""

from __future__ import annotations

import contextlib
import math
import threading
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pytest

from tests.hw_drivers.arm_parts import served, until
from tests.hw_drivers.chain_parts import write_five
from tests.hw_drivers.lerobot_parts import MOTORS, PICTURE, FakeSo101, install
from zetta.hw_drivers.arm import JointTarget, PoseTarget, RobotSide
from zetta.hw_drivers.kinematic_side import KinematicSide
from zetta.hw_drivers.lerobot_arm import LerobotSetup, make_robot
from zetta.hw_drivers.lerobot_rows import LerobotArm, LerobotRobot, Rows
from zetta.hw_drivers.lerobot_side import LerobotSide
from zetta.hw_drivers.zmq_arm import ZmqArm
from zetta.runtime import registry
from zetta.runtime.core import read_only
from zetta.runtime.errors import ConfigError, InfraError, SpecMismatch

ARM = LerobotArm("so101-1", read_hz=200.0, max_age_s=2.0, max_speed_deg_s=360.0)
GOAL = JointTarget(read_only([0.5, -0.4, 0.3, 0.2, -0.1]), 0.02)
Rig: TypeAlias = tuple[LerobotSide, FakeSo101]


@pytest.fixture
def rig() -> Iterator[Rig]:
    robot = FakeSo101(cameras=("front",))
    side = LerobotSide(robot, ARM, {"lerobot": "0"})
    _is_a_robot_side(side)
    _is_a_robot(robot)
    try:
        yield side, robot
    finally:
        robot.goes_on.set()
        side.close()


def _is_a_robot_side(side: RobotSide) -> None:
    """The type checker compares them where this is called."""


def _is_a_robot(robot: LerobotRobot) -> None:
    """The same."""


def test_a_joint_target_is_sent_once_and_reached_in_small_steps_in_degrees(rig: Rig) -> None:
    side, robot = rig
    assert side.facts.joints == MOTORS[:5]
    assert side.facts.accepts == ("joints",)
    assert side.facts.versions == {"lerobot": "0"}
    side.send(GOAL)
    until(lambda: bool(np.allclose(side.read().joint_pos, GOAL.joint_pos)), "the arm to arrive")
    assert robot.at["shoulder_pan.pos"] == pytest.approx(math.degrees(0.5))
    until(lambda: side.read().gripper_opening == pytest.approx(0.02), "the gripper")
    assert robot.at["gripper.pos"] == pytest.approx(25.0)
    assert side.read().mode == "moving"
    steps = np.diff([0.0] + [action["shoulder_pan.pos"] for action in robot.sent])
    assert np.abs(steps).max() <= 360.0 / 200.0 + 1e-6
    assert np.isnan(side.read().ee_pos).all()


def test_one_thread_owns_the_robot_and_nobody_calibrates(rig: Rig) -> None:
    side, robot = rig
    side.send(GOAL)
    until(lambda: bool(robot.sent), "a command")
    side.close()
    side.close()
    assert robot.calls == ["connect", "disconnect"]
    assert len(robot.threads) == 1
    assert threading.get_ident() not in robot.threads


def test_pictures_come_with_the_observation_and_old_ones_are_refused(rig: Rig) -> None:
    side, robot = rig
    frame = side.pictures["front"].latest(5.0)
    assert frame.image.tolist() == PICTURE.tolist()
    robot.picture = PICTURE[:2]
    until(lambda: _refuses(side, "front"), "the refusal of another shape")


def _refuses(side: LerobotSide, camera: str) -> bool:
    try:
        side.pictures[camera].latest(0.01)
    except InfraError as error:
        return "expected uint8 (4, 6, 3)" in str(error)
    return False


def test_a_line_that_hangs_delays_nobody_and_grows_old() -> None:
    robot = FakeSo101()
    side = LerobotSide(robot, LerobotArm(read_hz=200.0, max_age_s=0.05))
    try:
        robot.hangs.set()
        until(lambda: _says(side, "does its line hang"), "the reading grows old")
        before = time.monotonic()
        with pytest.raises(InfraError):
            side.send(GOAL)
        side.hold()
        side.stop()
        assert time.monotonic() - before < 1.0  # the line hangs for 20 s
        assert robot.sent == []
        robot.hangs.clear()
        robot.goes_on.set()
        until(lambda: not _says(side, ""), "the arm reports again")
        side.send(GOAL)  # it was stopped in the meantime
        assert side.read().mode == "stopped"
        assert robot.sent == []
    finally:
        robot.goes_on.set()
        side.close()


def _says(side: LerobotSide, said: str) -> bool:
    try:
        side.read()
    except InfraError as error:
        return said in str(error)
    return False


@pytest.mark.parametrize(
    "error", [ConnectionError("no status packet"), OSError("unplugged"), KeyError("id 3")]
)
def test_an_error_of_the_line_is_told_and_the_arm_is_tried_again(error: Exception) -> None:
    robot = FakeSo101()
    side = LerobotSide(robot, LerobotArm(read_hz=200.0, max_age_s=0.05))
    try:
        robot.error = error
        until(lambda: _says(side, f"{type(error).__name__}: "), "the reading grows old, and why")
        assert side.failed > 0
        robot.error = None
        until(lambda: not _says(side, ""), "the arm reports again")
    finally:
        side.close()


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("elbow_flex.pos", float("nan"), "not finite"),
        ("elbow_flex.pos", "12", "expected a number"),
        ("elbow_flex.pos", 2048.0, "another unit"),
        ("gripper.pos", 300.0, "expected 0"),
    ],
)
def test_numbers_that_are_none_of_an_arm_are_no_reading(key: str, value: Any, said: str) -> None:
    robot = FakeSo101()
    side = LerobotSide(robot, LerobotArm(read_hz=200.0, max_age_s=0.05))
    try:
        robot.at = {**robot.at, key: value}
        until(lambda: _says(side, said), "the refusal")
    finally:
        side.close()


def test_a_hold_keeps_what_was_sent_last_and_an_unmoved_arm_is_left_alone(rig: Rig) -> None:
    side, robot = rig
    side.hold()
    side.stop()
    side.clear()
    seen = side.read().t
    until(lambda: side.read().t > seen + 0.02, "some turns")
    assert robot.sent == []
    side.send(GOAL)
    until(lambda: len(robot.sent) > 3, "some steps")
    side.hold()
    seen = side.read().t
    until(lambda: side.read().t > seen + 0.02, "some turns")
    place = robot.sent[-1]
    until(lambda: side.read().t > seen + 0.1, "more turns")
    assert robot.sent[-1] == place
    assert side.read().mode == "holding"


def test_a_stop_is_where_the_arm_is_seen_and_lasts_until_it_is_cleared(rig: Rig) -> None:
    side, robot = rig
    side.send(GOAL)
    until(lambda: len(robot.sent) > 2, "some steps")
    side.stop()
    side.send(GOAL)
    side.hold()
    assert side.read().mode == "stopped"
    seen = side.read().t
    until(lambda: side.read().t > seen + 0.05, "some turns")
    place = robot.at["shoulder_pan.pos"]
    assert abs(place) < math.degrees(0.5)
    until(lambda: side.read().t > seen + 0.1, "more turns")
    assert robot.at["shoulder_pan.pos"] == pytest.approx(place)
    side.clear()
    side.send(GOAL)
    until(lambda: bool(np.allclose(side.read().joint_pos, GOAL.joint_pos)), "the arm to arrive")


def test_when_nobody_calls_any_more_the_arm_holds_by_itself() -> None:
    robot = FakeSo101()
    slow = LerobotArm(read_hz=200.0, max_age_s=2.0, max_speed_deg_s=10.0)
    side = LerobotSide(robot, slow)
    try:
        side.send(JointTarget(read_only([1.5] * 5), 0.0))  # would take nine seconds
        until(lambda: side._mode == "holding", "the arm to notice")
        count = len(robot.sent)
        until(lambda: len(robot.sent) > count + 3, "some turns")
        assert robot.sent[-1] == robot.sent[-2]
        assert robot.at["shoulder_pan.pos"] < math.degrees(1.5) / 2.0
    finally:
        side.close()


def test_what_lerobot_shortens_is_counted() -> None:
    robot = FakeSo101(limit=0.5)
    side = LerobotSide(robot, ARM)
    try:
        side.send(GOAL)
        until(lambda: side.clamped > 3, "the counts")
    finally:
        side.close()


def test_an_arm_that_was_not_calibrated_is_let_go_and_explained() -> None:
    robot = FakeSo101()
    robot.is_calibrated = False
    with pytest.raises(ConfigError, match="lerobot-calibrate"):
        LerobotSide(robot, ARM)
    until(lambda: robot.calls == ["connect", "disconnect"], "the robot is let go")


def test_an_arm_that_cannot_be_reached_says_so() -> None:
    class Away(FakeSo101):
        def connect(self, calibrate: bool = True) -> None:
            raise ConnectionError("could not open /dev/ttyACM0")

    with pytest.raises(InfraError, match=r"does not report: ConnectionError.*ttyACM0"):
        LerobotSide(Away(), ARM)


def test_an_arm_that_connects_for_ever_is_given_up() -> None:
    robot = FakeSo101()
    robot.hangs.set()
    try:
        with pytest.raises(InfraError, match=r"nothing came within 0\.1 s"):
            LerobotSide(robot, LerobotArm(connect_s=0.1))
    finally:
        robot.goes_on.set()


def test_a_robot_with_a_base_or_without_a_gripper_is_no_arm() -> None:
    robot = FakeSo101()
    robot.at["x.vel"] = 0.0
    with pytest.raises(ConfigError, match=r"also driven by x\.vel"):
        LerobotSide(robot, ARM)
    with pytest.raises(ConfigError, match=r"a gripper called 'jaw\.pos'"):
        LerobotSide(FakeSo101(), LerobotArm(gripper="jaw"))


def test_poses_need_kinematics(rig: Rig) -> None:
    side, robot = rig
    with pytest.raises(SpecMismatch, match="declare its kinematics"):
        side.send(PoseTarget(np.zeros(3), np.array((0.0, 0.0, 0.0, 1.0)), 0.0))
    assert robot.sent == []


def test_a_whole_link_of_ours_drives_it(rig: Rig) -> None:
    side, _ = rig
    with served(side) as running, contextlib.closing(ZmqArm(running.url)) as arm:
        arm.connect(10.0)

        def there() -> bool:
            arm.command(GOAL, ttl_s=1.0)
            return bool(np.allclose(arm.state(10.0).joint_pos, GOAL.joint_pos, atol=1e-3))

        until(there, "the arm to arrive")
        until(lambda: arm.state(10.0).mode == "holding", "silence is a hold")
        arm.stop("enough")
        until(lambda: side._mode == "stopped", "the stop")


@pytest.mark.parametrize("odd", [{"read_hz": 0.0}, {"max_age_s": 9.0}, {"max_step_deg": 90.0}])
def test_an_odd_arm_is_refused(odd: dict[str, float]) -> None:
    with pytest.raises(ConfigError):
        LerobotArm(**odd)  # type: ignore[arg-type]


# --------------------------------------------------------------------- made from a declaration

FILE = """
type = "so101_follower"
[config]
port = "/dev/ttyACM0"
id = "bench"
{more}
[arm]
robot = "so101-1"
read_hz = 200
"""
CAMERA = '[config.cameras.front]\ntype = "{type}"\ncolor_mode = "{colour}"'


def declared(folder: Path, text: str) -> str:
    file = folder / "arm.toml"
    file.write_text(text)
    return f"lerobot:{file}"


def test_a_declared_robot_is_made_with_careful_defaults(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = install(monkeypatch)
    camera = CAMERA.format(type="opencv", colour="rgb")
    side = registry.arm(declared(tmp_path, FILE.format(more=camera)))
    assert isinstance(side, LerobotSide)
    side.close()
    (config,) = made
    assert (config.port, config.id, config.use_degrees) == ("/dev/ttyACM0", "bench", True)
    assert config.max_relative_target == 10.0
    assert config.disable_torque_on_disconnect is False  # or the arm falls when the program ends
    assert side.facts.robot == "so101-1"


def test_a_declared_chain_lets_it_take_poses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("mujoco", reason="needs MuJoCo (pip install mujoco)")
    install(monkeypatch)
    write_five(tmp_path)
    chain = '[kinematics]\nmjcf = "five.xml"\nsite = "grip"\n'
    joints = 'joints = ["pan", "lift", "elbow", "wrist", "roll"]\n'
    side = registry.arm(declared(tmp_path, FILE.format(more="") + chain + joints))
    assert isinstance(side, KinematicSide)
    try:
        assert np.isfinite(side.read().ee_pos).all()
    finally:
        side.close()
    wrong = joints.replace('"pan", ', "")
    with pytest.raises(ConfigError, match="the chain has 4 joints"):
        registry.arm(declared(tmp_path, FILE.format(more="") + chain + wrong))


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("use_degrees = false", "use_degrees must be true"),
        ("max_relative_target = 0", "above 0 and up to 180"),
        ("max_relative_target = nan", "above 0 and up to 180"),
        ("max_relative_target = { elbow_flex = -1 }", "above 0 and up to 180"),
        ("cameras = 3", "a table of cameras"),
        ("speed = 3", "TypeError"),
        (CAMERA.format(type="opencvv", colour="rgb"), "did you mean 'opencv'"),
        (CAMERA.format(type="opencv", colour="bgr"), "must give rgb"),
    ],
)
def test_dangerous_or_odd_fields_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: str, said: str
) -> None:
    made = install(monkeypatch)
    with pytest.raises(ConfigError, match=said):
        registry.arm(declared(tmp_path, FILE.format(more=more)))
    assert made == []


def test_whole_numbers_and_limits_by_motor_reach_lerobot_as_floats(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = install(monkeypatch)
    more = "max_relative_target = { gripper = 20, elbow_flex = 5 }"
    registry.arm(declared(tmp_path, FILE.format(more=more))).close()  # type: ignore[attr-defined]
    limit = made[0].max_relative_target
    assert limit == {"gripper": 20.0, "elbow_flex": 5.0}
    assert all(type(value) is float for value in limit.values())


def test_degrees_must_be_vouched_for_where_lerobot_has_no_switch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(monkeypatch)
    text = 'type = "koch_follower"\n{degrees}\n[config]\nport = "x"\n'
    with pytest.raises(ConfigError, match="degrees = true"):
        registry.arm(declared(tmp_path, text.format(degrees="")))
    made = registry.arm(declared(tmp_path, text.format(degrees="degrees = true")))
    made.close()  # type: ignore[attr-defined]


def test_an_unknown_robot_is_suggested_and_a_package_may_bring_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(monkeypatch)
    text = 'type = "so101_folower"\npackage = "{package}"\n[config]\nport = "x"\n'
    with pytest.raises(ConfigError, match="did you mean 'so101_follower'"):
        registry.arm(declared(tmp_path, text.format(package="my_arms")))
    with pytest.raises(ConfigError, match="needs no_such_arms"):
        registry.arm(declared(tmp_path, text.format(package="no_such_arms")))


@pytest.mark.lerobot
@pytest.mark.parametrize("kind", ["so100_follower", "so101_follower"])
def test_lerobot_itself_takes_what_is_declared(tmp_path: Path, kind: str) -> None:
    pytest.importorskip("lerobot.robots", reason="needs LeRobot, in an environment of its own")
    pytest.importorskip("scservo_sdk", reason="needs pip install 'lerobot[feetech]'")
    fields = {"port": "/dev/null", "id": "bench", "calibration_dir": str(tmp_path)}
    robot: Any = make_robot(LerobotSetup(kind, fields))
    assert Rows(robot, LerobotArm()).joints == MOTORS[:5]
    assert robot.config.max_relative_target == 10.0
    assert robot.config.disable_torque_on_disconnect is False


def test_without_lerobot_the_error_says_what_to_install(tmp_path: Path) -> None:
    if find_spec("lerobot") is not None:
        pytest.skip("LeRobot is installed here")
    with pytest.raises(ConfigError, match="pip install 'lerobot"):
        registry.arm(declared(tmp_path, FILE.format(more="")))
