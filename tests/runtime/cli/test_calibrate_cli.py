"""`zetta critics calibrate` and `replay` on logs of the toy."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from zetta.runtime.cli.assemble import Assembler
from zetta.runtime.cli.main import main
from zetta.runtime.core import Init, RunSpec, Sampled
from zetta.skills.bundles import load_bundle

BRISK = '''"""The hand moves fast for a while."""

WINDOW_S = 1.0
SKILL = "brisk"


def check(w, p):
    if held(w.ee_speed > p.speed, 0.15):
        return recover("the hand moves fast")
    return ok()
'''
NUMBERS = """[speed]
default = 0.2
low = 0.1
high = 1.5
unit = "m/s"
doc = "A hand that is faster than this is fast."
stricter = "up"
"""
RECOVERY = '''"""Wait."""


def precondition(w, p):
    return now(w.policy_drives) > 0.5


def recover(robot, w, p):
    yield from robot.hold(0.1)


def reentry(w, p):
    return now(w.policy_drives) > -1.0
'''
PAGE = """---
name: brisk
version: 1.0.0
description: The hand moves fast; wait a moment.
applies: always
roles: []
max_ticks: 20
provenance:
  author: a test
  made_by: hand
  date: 2026-01-01
---
"""
EPISODES = 24


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))


@pytest.fixture(scope="module")
def skill(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("skills") / "brisk"
    (folder / "replay").mkdir(parents=True)
    files = {"critic.py": BRISK, "recovery.py": RECOVERY, "params.toml": NUMBERS, "SKILL.md": PAGE}
    for name, text in files.items():
        (folder / name).write_text(text)
    (folder / "evidence.json").write_text('{"records": []}\n')
    return folder


def shadow(skill: Path, **changes: object) -> RunSpec:
    spec = RunSpec(
        "toy",
        "toy_pick",
        0,
        Sampled(),
        policy="toy/reach-exact",
        bundle=str(skill),
        options={"shadow": "yes"},
    )
    return replace(spec, **changes)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def logs(skill: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("logs")
    assembler = Assembler()
    for seed in range(EPISODES):
        assembler.assemble(shadow(skill, seed=seed), folder / f"{seed:03d}").episode.run()
    assembler.close()
    return folder


def typed(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, object]]:
    capsys.readouterr()
    with pytest.raises(SystemExit) as ended:
        main([*words, "--json"])
    assert isinstance(ended.value.code, int)
    return ended.value.code, json.loads(capsys.readouterr().out)


def asked(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, object]]:
    return typed(capsys, "critics", *words)


def test_a_critic_that_fires_in_every_success_is_made_stricter_until_it_leaves_most_alone(
    skill: Path, logs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, answer = asked(
        capsys, "calibrate", str(logs), "--bundle", str(skill), "--alpha", "0.2",
        "--out", str(tmp_path / "calibration"),
    )  # fmt: skip
    assert code == 0
    record = answer["calibration"]
    assert isinstance(record, dict)
    assert record["fitted"] == record["calibrated"] == EPISODES // 2
    assert record["levels"]["brisk"] > 0
    assert record["parameters"]["brisk"]["speed"] > 0.2
    found = answer["detection"]
    assert isinstance(found, dict)
    assert found["critics"]["successes"] == EPISODES // 2
    assert found["critics"]["false_alarms"] <= 0.2 * EPISODES // 2
    assert set(found) == {"critics", "fixed tick", "shuffled"}


def test_a_calibration_changes_what_is_deployed_and_refuses_another_bundle(
    skill: Path, logs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "calibration"
    asked(
        capsys, "calibrate", str(logs), "--bundle", str(skill), "--alpha", "0.2", "--out", str(out)
    )
    file = out / "calibration.json"
    assembler = Assembler()
    loose = assembler.assemble(shadow(skill, seed=100)).episode.run()
    options = {"shadow": "yes", "calibration": str(file)}
    strict = assembler.assemble(shadow(skill, seed=100, options=options)).episode.run()
    assert loose.recoveries
    assert not strict.recoveries
    code, answer = typed(
        capsys, "run", "--sim", "toy", "--bundle", "regrasp", "--calibration", str(file)
    )
    assert code == 1
    error = answer["error"]
    assert isinstance(error, dict)
    assert "calibrate again" in error["message"]


def test_too_few_successes_switch_the_critics_off(
    skill: Path, logs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, answer = asked(
        capsys, "calibrate", str(logs), "--bundle", str(skill), "--alpha", "0.01",
        "--out", str(tmp_path / "calibration"),
    )  # fmt: skip
    record = answer["calibration"]
    assert isinstance(record, dict)
    assert record["levels"] == {"brisk": None}


def test_scenes_of_evaluations_and_interventions_are_refused(
    skill: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assembler = Assembler()
    assembler.assemble(shadow(skill, layout=Init(0)), tmp_path / "init" / "0").episode.run()
    assembler.assemble(shadow(skill, options={}), tmp_path / "live" / "0").episode.run()
    for folder, words in (("init", "which evaluations"), ("live", "holds interventions")):
        code, answer = asked(capsys, "calibrate", str(tmp_path / folder), "--bundle", str(skill))
        assert code == 1
        error = answer["error"]
        assert isinstance(error, dict)
        assert words in error["message"]
    code, answer = asked(capsys, "calibrate", str(tmp_path / "nothing"))
    assert code == 1


def test_replayed_verdicts_are_those_of_the_logs_and_a_forged_one_is_found(
    skill: Path, logs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, answer = asked(capsys, "replay", str(logs), "--bundle", str(skill))
    assert (code, answer["differing"]) == (0, 0)
    episodes = answer["episodes"]
    assert isinstance(episodes, list)
    assert len(episodes) == EPISODES
    assert all(each["same_bundle"] and each["verdicts"] > 0 for each in episodes)

    # The same hash over another critic: what was logged is no longer what is said.
    header = json.loads((logs / "000" / "episode.json").read_text())
    strict = tmp_path / "brisk"
    strict.mkdir()
    for path in skill.iterdir():
        if path.is_file():
            text = path.read_text().replace("default = 0.2", "default = 1")
            (strict / path.name).write_text(text)
    (strict / "replay").mkdir()
    header["run"]["bundle_digest"] = load_bundle(str(strict)).digest
    forged = tmp_path / "forged" / "000"
    forged.mkdir(parents=True)
    for path in (logs / "000").iterdir():
        (forged / path.name).write_bytes(path.read_bytes())
    (forged / "episode.json").write_text(json.dumps(header))
    code, answer = asked(capsys, "replay", str(forged), "--bundle", str(strict))
    assert (code, answer["differing"]) == (1, 1)


def test_recorded_interventions_are_those_of_the_control_random(
    skill: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bundle = tmp_path / "bundle"
    shutil.copytree(skill, bundle / "brisk")
    live = shadow(bundle, options={"recovery_share": "0.5"})
    assembler = Assembler()
    acted = [
        assembler.assemble(replace(live, seed=seed), tmp_path / f"{seed}").episode.run()
        for seed in range(2)
    ]
    logs = [str(tmp_path / f"{seed}") for seed in range(2)]
    out = str(bundle / "triggers.json")
    code, answer = asked(capsys, "triggers", *logs, "--out", out)

    assert code == 0
    assert answer["interventions"] == sum(len(result.recoveries) for result in acted) > 0
    at_random = replace(live, bundle=f"random:{bundle}", seed=7)
    drawn = assembler.assemble(at_random, tmp_path / "random").episode.run().recoveries
    assembler.close()
    assert {recovery.critic for recovery in drawn} == {"random"}
    first = {result.recoveries[0].tick for result in acted if result.recoveries}
    assert drawn[0].tick in first


def test_interventions_of_a_shadow_run_are_refused(
    logs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, answer = asked(capsys, "triggers", str(logs), "--out", str(tmp_path / "triggers.json"))

    assert code == 1
    assert "shadow run" in str(answer["error"])
