"""`zetta run --arm`: the command that drives an arm."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path

import pytest

from tests.hw_drivers.arm_parts import served, told, until
from tests.hw_drivers.test_arms_cli import CAMERA
from zetta.hw_drivers.simple_side import SimpleSide
from zetta.primitives.agent.drive_log import read_turns
from zetta.runtime import registry
from zetta.runtime.cli import main as cli
from zetta.runtime.cli.assemble import Assembler
from zetta.runtime.core import Init, RunSpec, Simulator
from zetta.runtime.errors import ConfigError

SETUP = """
name = "bench"
url = "{url}"
robot = "{robot}"
limits = "simple"
max_state_age_s = 10.0
command_ttl_s = 0.9
[[tasks]]
instruction = "put the bowl on the plate"
max_steps = 10
"""


def run(*argv: str) -> int:
    with pytest.raises(SystemExit) as ended:
        cli.main(["run", *argv])
    return int(ended.value.code or 0)


def test_policy_drives_an_arm_by_its_setup(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    side = SimpleSide()
    file = tmp_path / "arm.toml"
    with served(side) as running:
        file.write_text(SETUP.format(url=running.url, robot="simple"))
        where = ("--arm", str(file), "--out", str(tmp_path / "run"), "--json")
        assert run(*where, "--policy", "random") == 0
        answer = json.loads(capsys.readouterr().out)
        # The newest of two that wait is carried out, so a stalled machine may leave one out.
        sent = told(side).count("send")
        assert 1 <= sent <= 10
        until(lambda: told(side)[-1] == "hold", "the program ended, the arm holds")
    (episode,) = answer["episodes"]
    assert (episode["ticks"], episode["reason"], episode["error"]) == (10, "truncated", None)
    assert episode["instruction"] == "put the bowl on the plate"
    assert not episode["success"]


def test_person_is_asked_whether_the_task_is_done(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "arm.toml"
    with served(SimpleSide()) as running:
        file.write_text(SETUP.format(url=running.url, robot="simple"))
        assert run("--arm", str(file), "--out", str(tmp_path / "run"), "--policy", "random") == 0
    said = capsys.readouterr().out
    assert "zetta critics judge" in said
    assert "the simulator" not in said


def test_agent_drives_an_arm_by_commands(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    side = SimpleSide()
    file, commands = tmp_path / "arm.toml", tmp_path / "commands.txt"
    commands.write_text("move z 3\npick bowl\ngripper close\n")
    with served(side) as running:
        file.write_text(SETUP.format(url=running.url, robot="simple"))
        given = (
            "--arm",
            str(file),
            "--agent",
            f"replay:{commands}",
            "--out",
            str(tmp_path / "run"),
        )
        with pytest.raises(SystemExit) as ended:
            cli.main(["drive", *given, "--json"])
        assert ended.value.code == 0
        answer = json.loads(capsys.readouterr().out)
        assert "send" in told(side)
        until(lambda: told(side)[-1] == "hold", "the program ended, the arm holds")
    (episode,) = answer["episodes"]
    assert episode["error"] is None
    assert episode["verified"] is None  # nothing here sees
    first, second, *_ = read_turns(Path(episode["log"]))
    assert first.results[0].moved is not None
    assert first.results[0].moved[2] > 0.015
    assert "not seen" in second.refusals[0]


def test_replay_tells_what_was_refused_and_what_the_kernel_made_of_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, commands, out = tmp_path / "arm.toml", tmp_path / "commands.txt", tmp_path / "run"
    commands.write_text("move z 3\npick bowl\n")
    # 30 cm in one tick: the kernel brings what the policy asks for within its limits
    wild = SETUP + "[action]\ntranslation_m = 0.2\nrotation_rad = 3.0\n"
    with served(SimpleSide()) as running:
        file.write_text(wild.format(url=running.url, robot="simple"))
        given = ("--arm", str(file), "--agent", f"replay:{commands}", "--out", str(out / "drive"))
        with pytest.raises(SystemExit):
            cli.main(["drive", *given])
        assert "'pick bowl'" in capsys.readouterr().err  # at once, without a look at the log
        given = ("--arm", str(file), "--policy", "random", "--out", str(out / "run"))
        assert run(*given) == 0
    log = out / "run" / "episodes" / "000"
    said = capsys.readouterr().out
    assert "of 10 actions by the safety kernel" in said
    assert f"; why: zetta replay {log}" in said
    with pytest.raises(SystemExit) as ended:
        cli.main(["replay", str(out / "drive")])
    assert ended.value.code == 0
    said = capsys.readouterr().out
    assert "move z 3 cm: ok" in said
    assert "nothing was carried out: 'pick bowl'" in said
    with pytest.raises(SystemExit):
        cli.main(["replay", str(out / "run"), "--json"])
    answer = json.loads(capsys.readouterr().out)
    said = " ".join(stretch["said"] or "" for stretch in answer["stretches"])
    assert "changed: " in said or "refused: " in said
    with pytest.raises(SystemExit) as ended:
        cli.main(["replay", str(out / "run"), "--strip", str(tmp_path / "strip.png")])
    assert ended.value.code == 1
    assert "--text tells it in words" in capsys.readouterr().err


def test_agentic_client_drives_an_arm_with_no_code(tmp_path: Path) -> None:
    mcp = pytest.importorskip("mcp", reason="needs pip install 'zetta[mcp]'")
    stdio = pytest.importorskip("mcp.client.stdio")
    side, file = SimpleSide(), tmp_path / "arm.toml"

    async def talk() -> str:
        arguments = ["-m", "zetta.runtime.cli.main", "mcp", "--arm", str(file)]
        arguments += ["--out", str(tmp_path / "run")]
        program = stdio.StdioServerParameters(
            command=sys.executable, args=arguments, env=dict(os.environ)
        )
        async with mcp.Client(program, read_timeout_seconds=90.0) as client:
            came = await client.call_tool("execute", {"commands": ["move z 3"], "pictures": False})
            return str(came.content[0].text)

    with served(side) as running:
        file.write_text(SETUP.format(url=running.url, robot="simple"))
        assert "move z 3 cm: ok" in asyncio.run(talk())
        assert "send" in told(side)


def test_arm_that_does_not_answer_is_named_before_its_cameras(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("zetta.hw_drivers.arm_source.HELLO_S", 0.3)
    monkeypatch.setattr("zetta.hw_drivers.camera_stream.FIRST_FRAME_S", 0.3)
    file = tmp_path / "arm.toml"
    url = "tcp://127.0.0.1:5996"
    file.write_text(SETUP.format(url=url, robot="") + CAMERA.replace('name = "bench"', ""))
    assert run("--arm", str(file), "--policy", "random", "--out", str(tmp_path / "run")) == 1
    said = capsys.readouterr().err
    assert f"no arm answers: {url} did not answer hello" in said
    assert "is zetta arms serve running there?" in said
    assert "camera" not in said


def test_wrong_robot_is_an_error_and_nothing_moves(tmp_path: Path) -> None:
    side = SimpleSide()
    file = tmp_path / "arm.toml"
    with served(side) as running:
        file.write_text(SETUP.format(url=running.url, robot="other"))
        where = ("--arm", str(file), "--out", str(tmp_path / "run"), "--json")
        assert run(*where, "--policy", "random") == 1
    assert "send" not in told(side)


def test_arm_wants_a_driver_one_episode_and_real_time(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "arm.toml"
    file.write_text(SETUP.format(url="tcp://127.0.0.1:5701", robot=""))
    for more, said in (
        ((), "say who drives"),
        (("--policy", "random", "--episodes", "2"), "one episode at a time"),
        (("--policy", "random", "--task", "0,1"), "one episode at a time"),
    ):
        assert run("--arm", str(file), *more) != 0
        assert said in capsys.readouterr().err
    spec = RunSpec(f"arm:{file}", "arm", 0, Init(0), policy="random")
    with pytest.raises(ConfigError, match="moves in real time"):
        Assembler().assemble(spec)


def test_setup_of_an_arm_lists_its_tasks(tmp_path: Path) -> None:
    file = tmp_path / "arm.toml"
    file.write_text(SETUP.format(url="tcp://127.0.0.1:5701", robot=""))
    source: Simulator = registry.simulator(f"arm:{file}")
    assert source.suites() == {"arm": 1}
    assert source.task("arm", 0).max_steps == 10
    with pytest.raises(ConfigError, match="has the tasks 0-0"):
        source.task("arm", 1)
    with pytest.raises(ConfigError, match="no suite"):
        source.task("bowls", 0)
    with pytest.raises(ConfigError, match="simulator truth"):
        source.expert(None)  # type: ignore[arg-type]
    file.write_text('name = "bench"')
    with pytest.raises(ConfigError, match="declares no url"):
        registry.simulator(f"arm:{file}")
