"""A bundle taken to an arm: it watches first, and acts with thresholds that were made there."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hw_drivers.arm_parts import Served, served, told
from tests.runtime.cli.test_calibrate_cli import BRISK, NUMBERS, PAGE, RECOVERY
from zetta.hw_drivers.simple_side import SimpleSide
from zetta.runtime.cli import main as cli
from zetta.runtime.cli.home import key_path
from zetta.skills.package import sign
from zetta.skills.signatures import make_key, read_key

SETUP = """
name = "{name}"
url = "{url}"
limits = "simple"
max_state_age_s = 10.0
command_ttl_s = 0.9
[[tasks]]
instruction = "put the bowl on the plate"
max_steps = 12
"""
EPISODES = 8
SEES = BRISK.replace("w.ee_speed > p.speed", "w.oracle_object_age > p.speed")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return tmp_path / "data" / "zetta" / "calibrations"


@pytest.fixture
def running() -> Iterator[Served]:
    with served(SimpleSide()) as each:
        yield each


def packaged(folder: Path, critic: str, page: str = PAGE) -> Path:
    (folder / "replay").mkdir(parents=True)
    files = {"critic.py": critic, "recovery.py": RECOVERY, "params.toml": NUMBERS, "SKILL.md": page}
    for name, text in files.items():
        (folder / name).write_text(text)
    (folder / "evidence.json").write_text('{"records": []}\n')
    return folder


@pytest.fixture
def unsigned(tmp_path: Path) -> Path:
    return packaged(tmp_path / "brisk", BRISK)


@pytest.fixture
def skill(unsigned: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    make_key(key_path())
    sign(unsigned, read_key(key_path()))
    return unsigned


def arm(tmp_path: Path, running: Served, name: str = "bench") -> Path:
    file = tmp_path / f"{name}.toml"
    file.write_text(SETUP.format(url=running.url, name=name))
    return file


def typed(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, dict[str, object]]:
    capsys.readouterr()
    with pytest.raises(SystemExit) as ended:
        cli.main([*map(str, words), "--json"])
    return int(ended.value.code or 0), json.loads(capsys.readouterr().out)


def message(answer: dict[str, object]) -> str:
    error = answer["error"]
    assert isinstance(error, dict)
    return str(error["message"])


def test_critics_of_another_place_refuse_to_act_on_an_arm_and_name_the_command(
    tmp_path: Path, running: Served, skill: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ("run", "--arm", arm(tmp_path, running), "--policy", "random", "--bundle", skill)
    code, answer = typed(capsys, *given)
    assert code == 1
    assert "--shadow" in message(answer)
    assert f"zetta critics calibrate RUNS --bundle {skill}" in message(answer)
    code, answer = typed(capsys, *given, "--option", "uncalibrated=yes")
    assert code == 1
    assert "for simulators" in message(answer)
    assert "send" not in told(running.side)


def test_skills_that_nobody_signed_watch_on_an_arm_and_drive_only_when_told(
    tmp_path: Path,
    running: Served,
    unsigned: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    given = ("run", "--arm", arm(tmp_path, running), "--policy", "random", "--bundle", unsigned)
    drive = ("drive", *given[1:3], "--agent", "scripted", *given[5:])
    for words in (given, drive):
        code, answer = typed(capsys, *words)
        assert code == 1
        assert "holds unsigned skill 'brisk'" in message(answer)
        assert "zetta skills sign FOLDER" in message(answer)
    assert "send" not in told(running.side)
    code, answer = typed(capsys, *given, "--option", "unsigned=yes")  # what is refused now is next
    assert "zetta critics calibrate RUNS" in message(answer)
    assert typed(capsys, *given, "--shadow", "--out", tmp_path / "shadow")[0] == 0


def test_shadow_runs_that_a_person_judges_let_the_critics_act_on_that_arm_alone(
    tmp_path: Path,
    running: Served,
    skill: Path,
    home: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = arm(tmp_path, running)
    given = ("run", "--arm", file, "--policy", "random", "--bundle", skill)
    logs: list[str] = []
    for k in range(EPISODES):
        out = tmp_path / "runs" / f"{k}"
        code, answer = typed(capsys, *given, "--shadow", "--policy-seed", k, "--out", out)
        assert code == 0, answer
        (episode,) = answer["episodes"]  # type: ignore[misc]
        assert (code, episode["error"], episode["interventions"]) == (0, None, 0)
        logs.append(episode["log"])
    code, answer = typed(capsys, "critics", "judge", *logs, "--success", "--by", "Ada")
    assert code == 0
    code, answer = typed(
        capsys, "critics", "calibrate", tmp_path / "runs", "--bundle", skill, "--alpha", "0.2",
        "--out", tmp_path / "calibration",
    )  # fmt: skip
    assert code == 0
    record = answer["calibration"]
    assert isinstance(record, dict)
    assert record["calibrated"] == EPISODES // 2
    assert record["embodiment"] == {
        "name": "bench",
        "arm": "simple, 80 mm, limits simple",
        "control_hz": 20.0,
    }
    kept = Path(str(answer["kept"]))
    assert kept.is_relative_to(home)
    assert kept.parent.name == "bench_simple-80-mm-limits-simple_20hz"

    code, answer = typed(capsys, *given, "--out", tmp_path / "live")
    assert code == 0
    options = answer["options"]
    assert isinstance(options, dict)
    assert options["calibration"] == str(kept)

    other = arm(tmp_path, running, "libero")  # a name makes no home of an arm
    code, answer = typed(capsys, "run", "--arm", other, *given[3:])
    assert code == 1
    assert "--shadow" in message(answer)
    code, answer = typed(capsys, "run", "--arm", other, *given[3:], "--calibration", kept)
    assert code == 1
    assert "never carried over" in message(answer)
    toy = ("run", "--sim", "toy", "--policy", "random", "--bundle", skill)
    code, answer = typed(capsys, *toy, "--calibration", kept)
    assert code == 1
    assert "never carried over" in message(answer)


def test_a_skill_above_what_an_arm_senses_is_refused_with_the_reason(
    tmp_path: Path, running: Served, capsys: pytest.CaptureFixture[str]
) -> None:
    file = arm(tmp_path, running)
    truthful = packaged(tmp_path / "truthful" / "brisk", SEES, PAGE.replace("[]", "[object]"))
    for bundle, sensing, reason in (
        (truthful, "oracle", "tells no simulator truth"),
        (truthful, "vision", "this run stops at 'vision'"),
        ("regrasp", "vision", "no camera with depth"),
    ):
        code, answer = typed(
            capsys, "run", "--arm", file, "--policy", "random", "--bundle", bundle,
            "--sensing", sensing, "--shadow", "--out", tmp_path / sensing,
        )  # fmt: skip
        assert code == 1
        assert reason in message(answer)
    assert "send" not in told(running.side)


def test_nobody_judges_without_a_name_or_an_episode(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, answer = typed(capsys, "critics", "judge", tmp_path, "--failure", "--by", " ")
    assert (code, message(answer)) == (1, "say who saw it: --by NAME")
    code, answer = typed(capsys, "critics", "judge", tmp_path, "--failure", "--by", "Ada")
    assert code == 1
    assert "no logged episode" in message(answer)
