"""`zetta arms`: looking, stopping, clearing."""

from __future__ import annotations

import json
import math
import re
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.hw_drivers.arm_parts import kernel_for, served, told, until
from tests.hw_drivers.camera_parts import picture
from zetta.hw_drivers.arm import ArmFacts, ArmReading
from zetta.hw_drivers.arm_check import check_arm, units
from zetta.hw_drivers.arm_check_numbers import wrong_clock
from zetta.hw_drivers.arm_setup import read_setup
from zetta.hw_drivers.camera_stream import CameraPublisher
from zetta.hw_drivers.cameras import Frame
from zetta.hw_drivers.simple_side import SimpleSide
from zetta.runtime.cli import main as cli
from zetta.runtime.errors import InfraError

CAMERA = """
name = "bench"
[cameras.front]
source = "zmq:tcp://127.0.0.1:5799"
height = 24
width = 32
intrinsics = [[30, 0, 16], [0, 30, 12], [0, 0, 1]]
T_parent_cam = [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]
"""


def run(*argv: str) -> int:
    with pytest.raises(SystemExit) as ended:
        cli.main(list(argv))
    return int(ended.value.code or 0)


def test_check_looks_at_a_good_arm_and_moves_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    side = SimpleSide()
    with served(side, guard=kernel_for(side)) as running:
        assert run("arms", "check", running.url, "--json") == 0
        answer = json.loads(capsys.readouterr().out)
        assert answer["usable"]
        assert {f["state"] for f in answer["findings"]} <= {"good", "note"}
        assert run("arms", "check", running.url) == 0
        assert "joint limits" in capsys.readouterr().out
    assert told(side) == ["close"] or told(side) == []


def test_check_names_what_is_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("zetta.hw_drivers.camera_stream.FIRST_FRAME_S", 0.3)

    class Bare(SimpleSide):
        @property
        def facts(self) -> ArmFacts:
            bare = super().facts
            return replace(bare, joint_low=(), workspace_low=(), gripper_max=80.0)

        def read(self) -> ArmReading:
            raise InfraError("no power at the arm")

    setup = tmp_path / "arm.toml"
    setup.write_text(CAMERA)
    with served(Bare()) as running:
        assert run("arms", "check", running.url, "--setup", str(setup), "--json") == 1
    answer = json.loads(capsys.readouterr().out)
    wrong = {f["name"]: f["said"] for f in answer["findings"] if f["state"] == "wrong"}
    assert set(wrong) == {
        "joint limits", "workspace", "kernel there", "gripper", "state", "limits", "camera front"
    }  # fmt: skip
    assert "limits missing" in wrong["limits"]
    assert "no power at the arm" in wrong["state"]
    assert "gives no pictures" in wrong["camera front"]


def test_check_says_that_the_set_up_leads_elsewhere(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    side = SimpleSide("left")
    setup = tmp_path / "arm.toml"
    with served(side, guard=kernel_for(side)) as running:
        port = running.url.rpartition(":")[2]
        for url, code in (("tcp://127.0.0.1:5996", 1), (f"tcp://localhost:{port}", 0)):
            setup.write_text(f'name = "bench"\nurl = "{url}"\nrobot = "left"\nlimits = "simple"\n')
            assert run("arms", "check", running.url, "--setup", str(setup), "--json") == code
            found = json.loads(capsys.readouterr().out)["findings"]
            said = [f["said"] for f in found if f["state"] == "wrong"]
            elsewhere = f"looked at {running.url}, but the set-up drives {url}; put the same into"
            assert said == ([f"{elsewhere} both"] if code else [])
        setup.write_text(setup.read_text().replace("left", "right"))
        assert run("arms", "check", running.url, "--setup", str(setup)) == 1
        assert "this is the robot 'left', not 'right'" in capsys.readouterr().err


def test_wrong_units_are_seen_in_the_numbers() -> None:
    side = SimpleSide()
    good = side.read()
    assert units(good, side.facts)[0].state == "good"
    odd = replace(
        good,
        ee_pos=np.array([400.0, 0.0, 300.0]),
        joint_pos=np.rad2deg(np.full(6, math.pi)),
        ee_quat=np.array([1.0, 1.0, 0.0, 0.0]),
        gripper_opening=80.0,
    )
    said = units(odd, side.facts)[0].said
    assert all(unit in said for unit in ("metres are wanted", "radians are wanted", "length 1.41"))


def test_person_stops_and_clears_by_command(capsys: pytest.CaptureFixture[str]) -> None:
    side = SimpleSide()
    with served(side) as running:
        found = check_arm(running.url)
        assert {f.name: f.state for f in found}["mode"] == "good"
        assert run("arms", "estop", running.url, "--reason", "smoke") == 0
        assert told(side) == ["stop"]
        until(lambda: {f.name: f.state for f in check_arm(running.url)}["mode"] == "wrong", "said")
        assert run("arms", "clear", running.url, "--by", " ") == 1
        assert run("arms", "clear", running.url, "--by", "Ada", "--json") == 0
        answer = json.loads(capsys.readouterr().out.splitlines()[-1])
        assert "smoke" in answer["was"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"joint_pos": np.array([0.4, 0.0, 0.3, 0.0, 45.0, 0.0])}, "ry stands at 45.* degrees"),
        ({"joint_pos": np.array([0.4, 0.0, 0.3, 0.0, 3.6, 0.0])}, "ry stands at 3.6, beyond"),
        ({"joint_pos": np.zeros(5)}, "5 joints report"),
        ({"ee_pos": np.array([40.0, 0.0, 30.0])}, "the hand is at .* centimetres"),
        ({"ee_pos": np.array([400.0, 0.0, 300.0])}, "the hand is at .* millimetres"),
        ({"ee_pos": np.array([0.4, 0.0, 1.5])}, "in the arm's base frame$"),
        ({"gripper_opening": 8.0}, "open by 8 of 0.08.* centimetres"),
        ({"gripper_opening": 80.0}, "open by 80 .* millimetres"),
        ({"gripper_opening": 0.2}, "open by 0.2 of 0.08"),
        ({"ee_pos": np.full(3, np.nan)}, "the hand is at"),
        ({"joint_pos": np.full(6, np.nan)}, "x stands at nan"),
    ],
)
def test_other_units_are_guessed(change: dict[str, Any], said: str) -> None:
    side = SimpleSide()
    (found,) = units(replace(side.read(), **change), side.facts)
    assert found.state == "wrong"
    assert re.search(said, found.said)


def test_limits_in_degrees_and_a_hand_outside_are_said() -> None:
    side = SimpleSide()
    facts = replace(side.facts, joint_low=(-170.0,) * 6, joint_high=(170.0,) * 6)
    assert "limits reach 170" in units(side.read(), facts)[0].said
    out = units(replace(side.read(), ee_pos=np.array([0.4, 0.0, 0.75])), side.facts)
    assert [f.state for f in out] == ["good", "note"]
    assert "5.0 cm outside" in out[1].said


@pytest.mark.parametrize(
    ("passed", "t_passed", "age", "said"),
    [
        (1.0, 1.0, 0.005, "^$"),
        (1.0, 0.0, 0.005, "same reading"),
        (1.0, 1000.0, 0.005, "run at 1000.00"),
        (1.0, 1.0, -0.5, "500 ms from the future"),
        (0.0, 0.0, 0.005, "^$"),
    ],
)
def test_clocks_that_cannot_be_are_said(
    passed: float, t_passed: float, age: float, said: str
) -> None:
    assert re.search(said, wrong_clock(passed, t_passed, age, 0.001))


def test_driver_that_repeats_itself_and_a_frozen_camera_are_seen(tmp_path: Path) -> None:
    class Stuck(SimpleSide):
        def read(self) -> ArmReading:
            return replace(super().read(), t=0.0)

    publisher, over = CameraPublisher("tcp://127.0.0.1:*", "front"), threading.Event()
    image = picture()

    def show() -> None:
        while not over.wait(0.02):
            publisher.send(Frame(image, time.monotonic()))

    thread = threading.Thread(target=show)
    thread.start()
    try:
        with served(Stuck()) as running:
            setup = tmp_path / "arm.toml"
            place = publisher.endpoint.rpartition(":")[2]
            setup.write_text(CAMERA.replace("5799", place))
            found = {f.name: f for f in check_arm(running.url, read_setup(setup))}
    finally:
        over.set()
        thread.join()
        publisher.close()
    assert "again and again" in found["times"].said
    assert (found["times"].state, found["camera front"].state) == ("wrong", "note")
    assert "frozen" in found["camera front"].said
