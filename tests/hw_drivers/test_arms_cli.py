"""`zetta arms`: looking, stopping, clearing."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.hw_drivers.arm_parts import kernel_for, served, told, until
from zetta.hw_drivers.arm import ArmFacts, ArmReading
from zetta.hw_drivers.arm_check import check_arm, units
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
