"""`zetta arms serve` as a process: what it prints, how it ends; and `zetta arms list`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.hw_drivers.arm_parts import PATIENCE_S, pose, served, until
from tests.hw_drivers.test_arms_cli import run
from zetta.hw_drivers.arm_check import check_arm
from zetta.hw_drivers.arm_setup import read_setup
from zetta.hw_drivers.audit import verify
from zetta.hw_drivers.simple_side import SimpleSide
from zetta.hw_drivers.twin.door import TwinDoor
from zetta.hw_drivers.zmq_arm import ZmqArm

ROBOT = 'robot = "left"\ndriver = "simple"\nlimits = "simple"\nport = 0\nlatch = "latch.json"\n'


@contextmanager
def daemon(*argv: str) -> Iterator[tuple[subprocess.Popen[str], dict[str, Any]]]:
    """Run `zetta arms serve` until the block ends; give the process and what it said of itself."""
    command = [sys.executable, "-m", "zetta.runtime.cli.main", "arms", "serve", *argv, "--json"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=dict(os.environ)
    )
    assert process.stdout is not None
    try:
        yield process, json.loads(process.stdout.readline())
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate(timeout=PATIENCE_S)


def test_daemon_ends_well_when_it_is_told_to_and_a_stop_outlives_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "robot.toml"
    path.write_text(ROBOT)
    with daemon(str(path)) as (process, said):
        assert (said["robot"], said["driver"], said["limits"]) == ("left", "simple", "simple")
        assert run("arms", "check", said["command"], "--robot", "left") == 0
        assert run("arms", "estop", said["command"], "--reason", "smoke") == 0
        process.send_signal(signal.SIGTERM)
        _, told = process.communicate(timeout=PATIENCE_S)
        assert (process.returncode, "the arm holds" in told) == (0, True)
    with daemon(str(path)) as (process, said):
        capsys.readouterr()
        assert run("arms", "check", said["command"]) == 1
        assert "smoke" in capsys.readouterr().out
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 0


def test_exit_code_tells_whether_another_start_may_help(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "robot.toml"
    path.write_text('robot = "left"\ndriver = "nothing"\nlimits = "panda"\n')
    assert run("arms", "serve", str(path), "--json") == 2
    assert json.loads(capsys.readouterr().out)["error"]["kind"] == "ConfigError"
    path.write_text('robot = "left"\ndriver = "deoxys:127.0.0.1,127.0.0.1"\n')
    assert run("arms", "serve", str(path)) == 2
    assert "no arm is served without" in capsys.readouterr().err
    assert run("arms", "serve") == 2
    with served(SimpleSide()) as running:  # whoever has the port may end
        port = running.url.rpartition(":")[2]
        path.write_text(f'robot = "left"\ndriver = "simple"\nlimits = "simple"\nport = {port}\n')
        capsys.readouterr()
        assert run("arms", "serve", str(path)) == 1
        said = capsys.readouterr().err
        assert f"cannot listen at tcp://127.0.0.1:{port}" in said
        assert "is another server there?" in said


def test_list_tells_drivers_limits_and_who_answers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("zetta.runtime.cli.arms_list.ANSWER_S", 0.3)
    with served(SimpleSide("left")) as running:
        (tmp_path / "a.toml").write_text(f'name = "a"\nurl = "{running.url}"\nrobot = "right"\n')
        (tmp_path / "b.toml").write_text('name = "b"\n')
        (tmp_path / "c.toml").write_text("odd")
        argv = ["arms", "list", running.url, "tcp://127.0.0.1:5999"]
        assert run(*argv, "--setup-dir", str(tmp_path), "--json") == 0
        answer = json.loads(capsys.readouterr().out)
        assert run(*argv) == 0
        assert "left (simple)" in capsys.readouterr().out
    assert {"simple", "deoxys:", "python:"} <= {d["name"] for d in answer["drivers"]}
    assert "panda" in answer["limits"]
    said = {arm["arm"]: (arm["answers"], arm["said"]) for arm in answer["arms"]}
    assert said[running.url] == (True, None)
    assert "did not answer" in said["tcp://127.0.0.1:5999"][1]
    assert "'left'" in said["a.toml"][1]
    assert said["b.toml"] == (False, "declares no url")
    assert "cannot read" in said["c.toml"][1]
    assert run("arms", "list", "--setup-dir", str(tmp_path / "none")) == 1


def test_daemon_keeps_limits_and_an_audit_log(tmp_path: Path) -> None:
    path = tmp_path / "robot.toml"
    path.write_text(ROBOT + 'audit = "audit"\n')
    with daemon(str(path)) as (process, said):
        assert said["limits"] == "simple"
        arm = ZmqArm(said["command"])
        arm.connect()
        far = pose(x=0.45)
        until(lambda: arm.command(far, 1.0) or arm.counts()["changed"] > 1, "slowed down")  # type: ignore[func-returns-value]
        arm.close()
        process.terminate()
        process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 0
    assert verify(tmp_path / "audit").lines > 0


def test_target_waits_for_a_person(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "robot.toml"
    path.write_text(ROBOT + "needs_approval = true\nwatchdog_s = 1.0\n")
    with daemon(str(path)) as (_, said):
        url = said["command"]
        assert run("arms", "approve", url, "--by", "Ada", "--yes") == 1
        assert "nothing waits" in capsys.readouterr().err
        arm = ZmqArm(url)
        arm.connect()
        until(lambda: arm.command(pose(x=0.41), 1.0) or arm.waiting() != "", "waiting")  # type: ignore[func-returns-value]
        assert run("arms", "approve", url, "--by", "Ada", "--json") == 1
        message = json.loads(capsys.readouterr().out)["error"]["message"]
        token = arm.waiting()
        assert f"--token {token}" in message
        assert run("arms", "approve", url, "--by", "Ada", "--token", "another") == 1
        capsys.readouterr()
        assert run("arms", "approve", url, "--by", "Ada", "--token", token, "--json") == 0
        assert json.loads(capsys.readouterr().out)["approved"] == token
        until(lambda: arm.command(pose(x=0.41), 1.0) or arm.counts()["sent"] > 0, "sent")  # type: ignore[func-returns-value]
        arm.close()


def test_twin_is_served_with_its_set_up(tmp_path: Path) -> None:
    pytest.importorskip("mujoco", reason="needs MuJoCo (pip install 'zetta[drive]')")
    setup, path = tmp_path / "twin.toml", tmp_path / "robot.toml"
    path.write_text(
        'robot = "left"\ndriver = "twin:"\nlimits = "panda"\nport = 0\naudit = "audit"\n'
        '[options]\nseed = 3\nfaults = "stuck_gripper"\n'
    )
    with daemon(str(path), "--write-setup", str(setup)) as (process, said):
        declared = read_setup(setup)
        assert (declared.url, declared.limits) == (said["command"], "panda")
        assert set(declared.cameras) == set(said["cameras"])
        door = TwinDoor(said["door"])
        assert (list(door.report().faults), door.report().seed) == (["stuck_gripper"], 3)
        door.close()
        found = {f.name: f for f in check_arm(said["command"], declared, "left")}
        assert found["kernel there"].state == found["limits"].state == "good"
        process.terminate()
        process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 0
    assert verify(tmp_path / "audit").lines >= 0


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["--twin", "pandor"], "did you mean 'panda'?"),
        (["--twin", "panda", "--port", "65530"], "the eight after it"),
        (["--twin", "panda", "--write-setup", "/"], "exists already"),
        (["nothing.toml", "--twin", "panda"], "say what to serve"),
    ],
)
def test_twin_that_is_none_is_refused(
    argv: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("mujoco", reason="needs MuJoCo (pip install 'zetta[drive]')")
    assert run("arms", "serve", *argv) == 2
    assert said in capsys.readouterr().err
