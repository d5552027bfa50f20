"""Under --json every command prints exactly one object on stdout, errors and wrong usage too."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from zetta.runtime.cli import main as cli
from zetta.runtime.cli.tree import Root, leaves

ROOT = Root({verb: cli.VERBS[verb] for verb in cli.present_verbs()})
LEAVES = dict(leaves(ROOT))
WITHOUT: dict[str, str] = {}
"""Commands that take no --json, and why; a server prints its hello object."""
SKILL = Path(__file__).parents[3] / "skills" / "library" / "regrasp"

QUICK = [
    ("--version", "version"),
    ("--show-completion bash", "completion"),
    ("run --sim toy --list", "suites"),
    ("run --sim toy --suite toy_pick --list", "suites"),
    ("drive --grammar", "grammar"),
    ("eval --sim toy --suites toy_pick --inits 0-1 --plan", "plan"),
    ("sims list", "sims"),
    ("arms list", "drivers"),
    ("critics list", "critics"),
    (f"critics check {SKILL}", "files"),
    ("critics docs", "text"),
    ("serve keygen --out keys", "server"),
    ("skills list", "skills"),
    ("skills show regrasp", "critic"),
    ("skills check regrasp", "skills"),
    ("skills test regrasp", "windows"),
    ("skills new my-skill --out packages", "path"),
    ("skills keygen", "key"),
    ("skills history", "changes"),
    ("skills diff regrasp reseat", "files"),
]
FAILING = [
    "run --sim nowhere",
    "run --sim toy --policy nobody",
    "eval --sim toy --suites nowhere",
    "replay nowhere",
    "serve",
    "drive --sim toy --agent nobody",
    "sims check nowhere",
    "sims install nowhere",
    "arms audit nowhere",
    "critics check nowhere.py",
    "critics replay nowhere",
    "critics calibrate nowhere",
    "skills show nowhere",
    "skills sign nowhere",
    "skills promote nowhere",
    "skills retire nowhere --why no",
    "skills diagnose nowhere",
    "skills distill nowhere --out new",
    "doctor policy nowhere",
    "bench nothing",
]


@pytest.fixture(autouse=True)
def at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give the user a home and a folder without anything in them."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


def answer(line: str, capfd: pytest.CaptureFixture[str]) -> tuple[int, dict[str, Any]]:
    """Run `zetta LINE --json`; return its exit code and the one object on its stdout."""
    with pytest.raises(SystemExit) as left:
        cli.main([*line.split(), "--json"])
    said = capfd.readouterr().out
    assert said.endswith("\n"), said
    assert said.count("\n") == 1, said
    found = json.loads(said)
    assert isinstance(found, dict)
    assert isinstance(left.value.code, int)
    return left.value.code, found


@pytest.mark.parametrize("path", [pytest.param(p, id=" ".join(p)) for p in LEAVES])
def test_every_command_takes_json_and_answers_wrong_usage_with_it(
    path: tuple[str, ...], capfd: pytest.CaptureFixture[str]
) -> None:
    options = {flag for p in LEAVES[path].params for flag in p.opts}
    if " ".join(path) in WITHOUT:
        assert "--json" not in options
        return
    assert "--json" in options
    code, found = answer(" ".join((*path, "--no-such-option")), capfd)
    assert code == 2
    assert set(found) == {"error"}
    assert found["error"]["kind"] == "UsageError"
    assert "--no-such-option" in found["error"]["message"]


@pytest.mark.parametrize(("line", "key"), QUICK)
def test_an_answer_is_one_object(line: str, key: str, capfd: pytest.CaptureFixture[str]) -> None:
    code, found = answer(line, capfd)

    assert code == 0
    assert key in found


@pytest.mark.parametrize("line", FAILING)
def test_an_error_is_one_object_of_its_kind(line: str, capfd: pytest.CaptureFixture[str]) -> None:
    code, found = answer(line, capfd)

    assert code == 1
    assert set(found) == {"error"}
    assert set(found["error"]) == {"kind", "message"}
    assert found["error"]["message"]


def test_an_arm_that_is_declared_wrong_is_wrong_usage(capfd: pytest.CaptureFixture[str]) -> None:
    code, found = answer("arms serve nowhere.toml", capfd)

    assert code == 2
    assert found["error"]["message"]


@pytest.mark.parametrize("line", ["fly", "--vesion"])
def test_an_unknown_verb_or_option_is_one_object(
    line: str, capfd: pytest.CaptureFixture[str]
) -> None:
    code, found = answer(line, capfd)

    assert code == 2
    assert found["error"]["kind"] == "UsageError"
    assert line in found["error"]["message"]


def test_help_is_for_people_even_with_json(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        cli.main(["run", "--help", "--json"])

    assert left.value.code == 0
    assert capfd.readouterr().out.startswith("Usage: zetta run")
