"""What `zetta arms serve` is told in a file, and what it serves then."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.hw_drivers.test_deoxys_session import TICK_S
from zetta.hw_drivers.arm_guard import KernelGuard
from zetta.hw_drivers.arm_limits import load_limits
from zetta.hw_drivers.arm_serving import GuardSettings
from zetta.hw_drivers.deoxys.point_franka import PointFranka
from zetta.hw_drivers.deoxys.robot_side import DeoxysRobotSide
from zetta.hw_drivers.robot_file import (
    RobotFile,
    declared,
    open_side,
    read_robot_file,
)
from zetta.hw_drivers.simple_side import SimpleSide
from zetta.runtime.errors import ConfigError

MY_ARM = """
from zetta.hw_drivers.simple_side import SimpleSide

def make(name):
    made = SimpleSide()
    made.name = name
    return made
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "robot.toml"
    path.write_text(text)
    return path


def test_relative_paths_begin_at_the_folder_of_the_file(tmp_path: Path) -> None:
    text = (
        'robot = "left"\ndriver = "python:./my_arm.py:make"\nlimits = "cell.toml"\n'
        'keys = "server.key"\naudit = "audit"\nlatch = "latch.json"\n'
    )
    robot = read_robot_file(written(tmp_path, text))
    assert robot.driver == f"python:{tmp_path / 'my_arm.py'}:make"
    assert robot.limits == str(tmp_path / "cell.toml")
    assert robot.settings().latch == tmp_path / "latch.json"
    assert (robot.keys, robot.audit) == (str(tmp_path / "server.key"), str(tmp_path / "audit"))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('robot = "a"\ndriver = "simple"', "limits is missing"),
        ('robot = "a"\ndriver = "simple"\nlimits = ""', "limits is missing"),
        ('robot = "a"\ndriver = "deoxys:1.1.1.1,2.2.2.2"', "limits is missing"),
        ('driver = "simple"\nlimits = "simple"', "incomplete: robot missing"),
        ('robot = ""\ndriver = "simple"\nlimits = "simple"', "name of this robot"),
        ('robot = "a"\ndriver = "simple"\nlimits = "simple"\nport = 70000', "65535"),
        ('robot = "a"\ndriver = "simple"\nlimits = "simple"\nport = 5555', "5555"),
        ('robot = "a"\ndriver = "simple"\nlimits = "simple"\nhost = "0.0.0.0"', "keygen"),
        ('robot = "a"\ndriver = "simple"\nlimits = "simple"\nwatchdog_s = 9.0', "watchdog"),
        ('robot = "a"\ndriver = "simple"\nlimits = "simple"\nno_limits = true', "no_limits"),
        ('robot = "a"\ndriver = "simple"\nlimits = "simple"\n[options]\nx = 1', "takes no options"),
        ('robot = "a"\ndriver = "python:m:f"\nlimits = "panda"\n[options]\nx = "1,2"', "'x'"),
        ("robot = ", "cannot read"),
    ],
)
def test_what_is_wrong_in_the_file_is_said_with_its_name(
    tmp_path: Path, text: str, said: str
) -> None:
    path = written(tmp_path, text)
    with pytest.raises(ConfigError, match=said) as refused:
        read_robot_file(path)
    assert str(path) in str(refused.value)


def test_side_has_the_declared_name_and_limits_that_fit(tmp_path: Path) -> None:
    (tmp_path / "my_arm.py").write_text(MY_ARM)
    text = (
        'robot = "left"\ndriver = "python:./my_arm.py:make"\nlimits = "panda"\n'
        "[options]\nhz = 100\nslow = true\n"
    )
    robot = read_robot_file(written(tmp_path, text))
    assert robot.name().endswith(":make@hz=100,slow=1")
    with pytest.raises(ConfigError, match=r"of 7 joints, the arm has 6"):
        open_side(robot, load_limits("panda"))
    side = open_side(robot, load_limits("simple"))
    assert side.facts.robot == "left"
    side.hold()
    side.stop()
    assert side.read().mode == "stopped"
    side.clear()
    assert side.read().mode == "holding"
    side.close()


def test_limits_tell_what_the_driver_does_not_know() -> None:
    limits = load_limits("panda")
    names = tuple(f"joint{n}" for n in range(1, 8))
    bare = replace(
        SimpleSide().facts,
        joints=names,
        joint_low=(),
        joint_high=(),
        workspace_low=(),
        workspace_high=(),
    )
    facts = declared(bare, "left", limits)
    assert facts.joint_low == tuple(limits.joint_low)
    assert facts.workspace_low == limits.workspace.low
    assert facts.gripper_max == min(bare.gripper_max, limits.gripper.opening)
    low, high = (-4.0,) * 7, (4.0,) * 7
    assert declared(replace(bare, joint_low=low, joint_high=high), "left", limits).joint_low == low
    with pytest.raises(ConfigError, match="farther than the driver allows"):
        declared(replace(bare, joint_low=(-1.0,) * 7, joint_high=(1.0,) * 7), "left", limits)


@pytest.mark.parametrize("scheme", ["lekiwi:", "lerobot:"])
def test_driver_that_is_a_file_stands_beside_the_robot_file(tmp_path: Path, scheme: str) -> None:
    text = f'robot = "so"\ndriver = "{scheme}so.toml"\nlimits = "cell.toml"\n'
    assert read_robot_file(written(tmp_path, text)).driver == f"{scheme}{tmp_path / 'so.toml'}"


def test_driver_that_makes_no_robot_side_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("zetta.runtime.registry.arm", lambda name, beside: object())
    with pytest.raises(ConfigError, match="without facts, read"):
        open_side(RobotFile("a", "odd", "panda"), load_limits("panda"))


@pytest.mark.parametrize(
    ("driver", "said"),
    [
        ("simpel", "did you mean 'simple'"),
        ("twin", "did you mean 'twin:'"),
        ("nothing", "known: deoxys:, .*, simple, twin:"),
    ],
)
def test_unknown_driver_is_told_of_those_that_come_with_zetta(driver: str, said: str) -> None:
    with pytest.raises(ConfigError, match=f"unknown arm '{driver}'; {said}"):
        open_side(RobotFile("left", driver, "simple"), load_limits("simple"))


def test_what_the_kernel_is_told_stands_in_the_file(tmp_path: Path) -> None:
    text = (
        'robot = "a"\ndriver = "simple"\nlimits = "simple"\naudit = "log"\naudit_all = true\n'
        "needs_approval = true\nafter_kernel = true\ntick_s = 0.1\n"
    )
    guard = read_robot_file(written(tmp_path, text)).guard()
    assert guard == GuardSettings(tmp_path / "log", True, True, True, 0.1)
    assert RobotFile("a", "simple", "simple").guard() == GuardSettings()


def test_franka_behind_deoxys_is_declared_by_a_file(tmp_path: Path) -> None:
    """Its wire knows no joint limits and no workspace: the limits tell them."""
    robot, free = DeoxysRobotSide(PointFranka(), tick_s=TICK_S), DeoxysRobotSide(PointFranka())
    ends = (free.state_endpoint, robot.state_endpoint)
    ends += (free.gripper_state_endpoint, robot.gripper_state_endpoint)
    ports = ":".join(endpoint.rpartition(":")[2] for endpoint in ends)
    free.close()
    robot.follow(ends[0], ends[2])
    robot.start()
    text = (
        'robot = "left"\ndriver = "deoxys:127.0.0.1,127.0.0.1"\nlimits = "panda"\n'
        f'[options]\nports = "{ports}"\nconnect_s = 20\n'
    )
    try:
        limits = load_limits("panda")
        side = open_side(read_robot_file(written(tmp_path, text)), limits)
        try:
            assert side.facts.robot == "left"
            assert side.facts.joint_low == tuple(limits.joint_low)
            assert KernelGuard(limits, side.facts).limits == limits.arm
        finally:
            side.close()
    finally:
        robot.close()
