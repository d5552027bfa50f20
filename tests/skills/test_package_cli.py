"""`zetta skills` as a user meets it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from zetta.runtime.cli import main as cli
from zetta.skills.template import write_template


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let keys go to a folder of the test, and start in an empty folder."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    return tmp_path


def leave(*args: str) -> int:
    """Run `zetta skills` and return its exit code."""
    with pytest.raises(SystemExit) as left:
        cli.main(["skills", *args])
    return int(left.value.code or 0)


def answer(capsys: pytest.CaptureFixture[str], *args: str, code: int = 0) -> dict[str, Any]:
    """Run `zetta skills … --json` and return its object."""
    capsys.readouterr()
    assert leave(*args, "--json") == code
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_from_a_name_to_a_signed_skill(capsys: pytest.CaptureFixture[str], home: Path) -> None:
    made = answer(capsys, "new", "careful-hand")
    assert made["path"] == "skills/careful-hand"
    assert answer(capsys, "check", made["path"])["skills"][0]["ok"]
    assert answer(capsys, "test", made["path"])["passed"]

    key = answer(capsys, "keygen")
    signed = answer(capsys, "sign", made["path"])
    shown = answer(capsys, "show", "careful-hand", "--skills", "skills")

    assert key["path"] == str(home / "config" / "zetta" / "signing-key.pem")
    assert signed["signed"] == shown["signed"] == f"signed by {key['key']}"
    assert signed["hash"] == shown["hash"]
    assert leave("keygen") == 1
    assert "--force" in capsys.readouterr().err


def test_a_skill_is_shown_with_its_verbs(capsys: pytest.CaptureFixture[str]) -> None:
    page = write_template("own-skill", Path("skills")) / "SKILL.md"
    assert answer(capsys, "show", "skills/own-skill")["verbs"] == []
    text = page.read_text(encoding="utf-8")
    page.write_text(text.replace("max_ticks", "verbs: [open, pull]\nmax_ticks"), encoding="utf-8")

    assert answer(capsys, "show", "skills/own-skill")["verbs"] == ["open", "pull"]
    leave("show", "skills/own-skill")
    assert "open, pull" in capsys.readouterr().out


def test_the_list_holds_the_library_and_own_folders_only_when_named(
    capsys: pytest.CaptureFixture[str],
) -> None:
    write_template("own-skill", Path("skills"))
    names = [skill["name"] for skill in answer(capsys, "list")["skills"]]
    more = answer(capsys, "list", "--skills", "skills")["skills"]

    assert "regrasp" in names
    assert "own-skill" not in names
    (own,) = (skill for skill in more if skill["name"] == "own-skill")
    assert own == {
        "name": "own-skill", "path": str(Path("skills/own-skill").resolve()), "version": "0.1.0",
        "level": "proprio", "roles": [], "made_by": "hand", "author": "your name",
        "signed": "unsigned", "hash": own["hash"], "error": None,
    }  # fmt: skip


def test_a_broken_package_is_listed_as_broken(capsys: pytest.CaptureFixture[str]) -> None:
    package = write_template("own-skill", Path("skills"))
    (package / "critic.py").write_text("import os\n", encoding="utf-8")
    skills = answer(capsys, "list", "--skills", "skills")["skills"]
    (own,) = (skill for skill in skills if skill["name"] == "own-skill")

    assert own["signed"] == "BROKEN"
    assert "critic.py:1: " in own["error"]
    assert leave("list", "--skills", "skills") == 0
    assert "own-skill cannot be used" in capsys.readouterr().err


def test_check_prints_a_line_for_each_problem_and_fails(
    capsys: pytest.CaptureFixture[str],
) -> None:
    package = write_template("own-skill", Path("skills"))
    (package / "critic.py").write_text('"""No."""\nimport os\n', encoding="utf-8")
    (package / "params.toml").write_text("[rise]\n", encoding="utf-8")

    assert leave("check", "./skills/own-skill") == 1
    lines = capsys.readouterr().out.splitlines()
    assert [Path(line.split(":")[0]).name for line in lines] == ["params.toml"]
    (package / "params.toml").write_text("", encoding="utf-8")
    found = answer(capsys, "check", "./skills/own-skill", "regrasp", code=1)["skills"]
    assert [(skill["name"], skill["ok"]) for skill in found] == [
        ("own-skill", False), ("regrasp", True),
    ]  # fmt: skip
    assert any("critic.py:2: " in problem for problem in found[0]["problems"])
    assert any("recovery.py:" in problem for problem in found[0]["problems"])


def test_a_window_that_is_not_met_fails_the_test(capsys: pytest.CaptureFixture[str]) -> None:
    package = write_template("own-skill", Path("skills"))
    silent = package / "replay" / "silent.json"
    silent.write_text(
        (package / "replay" / "fires.json").read_text().replace('"fires"', '"silent"')
    )

    found = answer(capsys, "test", "./skills/own-skill", code=1)
    assert not found["passed"]
    assert [(w["window"], w["passed"]) for w in found["windows"]] == [
        ("fires", True), ("silent", False),
    ]  # fmt: skip


def test_a_package_without_windows_is_not_tested_and_fails(
    capsys: pytest.CaptureFixture[str],
) -> None:
    package = write_template("own-skill", Path("skills"))
    for window in (package / "replay").iterdir():
        window.unlink()

    assert leave("test", "./skills/own-skill") == 1
    assert "there is no window in replay/ with the expectation 'fires'" in capsys.readouterr().out


def test_the_library_passes(capsys: pytest.CaptureFixture[str]) -> None:
    assert leave("check") == 0
    found = answer(capsys, "test", "regrasp")

    assert found["passed"]
    assert {w["expect"] for w in found["windows"]} == {"fires", "silent", "disarmed"}


def test_show_prints_programs_numbers_and_hash(capsys: pytest.CaptureFixture[str]) -> None:
    assert leave("show", "regrasp") == 0
    shown = capsys.readouterr().out

    assert "def check(w, p):" in shown
    assert "def recover(robot, w, p):" in shown
    assert "sensing level" in shown
    assert "0.04" in shown
    assert answer(capsys, "show", "regrasp")["parameters"]["near"]["unit"] == "m"


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("show", "regrap"), "did you mean 'regrasp'?"),
        (("show", "./regrasp"), "does not exist"),
        (("list", "--skills", "nowhere"), "does not exist"),
        (("new", "Not A Name"), "lower-case words"),
        (("sign", "regrasp"), "zetta skills keygen"),
    ],
)
def test_what_does_not_exist_is_said_in_one_line(
    args: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert leave(*args) == 1
    told = capsys.readouterr().err.strip().splitlines()
    assert len(told) == 1
    assert said in told[0]


def test_two_skills_of_one_name_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    write_template("regrasp", Path("mine"))

    assert leave("list", "--skills", "mine") == 1
    assert "two skills are named 'regrasp'" in capsys.readouterr().err


def test_a_logged_episode_becomes_a_window(capsys: pytest.CaptureFixture[str]) -> None:
    write_template("own-skill", Path("skills"))
    with pytest.raises(SystemExit):
        cli.main(["run", "--sim", "toy", "--bundle", "skills", "--out", "run"])
    cut = ["cut", "./skills/own-skill", "run/episodes/000", "--expect", "silent", "--ticks"]
    made = answer(capsys, *cut, "5-40")
    found = answer(capsys, "test", "./skills/own-skill")["windows"]

    assert made["window"] == "silent-000-5-40"
    assert ("silent-000-5-40", True) in [(w["window"], w["passed"]) for w in found]
    assert leave(*cut, "5-40") == 1
    assert "exists already" in capsys.readouterr().err
    assert leave(*cut, "5-4000") == 1
    assert "the record has the ticks 0 to" in capsys.readouterr().err
    assert leave(*cut, "all") == 1
    assert "such as 60-120" in capsys.readouterr().err
