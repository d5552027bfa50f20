"""`zetta skills prune` as a user meets it, on the toy with a camera that looks beside."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from zetta.runtime.cli import main as cli

ASKED = [
    "skills", "prune", "regrasp+turn-knob", "--sim", "toy", "--suite", "toy_pick", "--sensing",
    "oracle", "--option", "toy_faults=camera_shift_y=0.026", "--option", "recovery_share=0.7",
    "--margin", "0.2", "--scenes", "24", "--out", "out",
]  # fmt: skip


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)


def answer(capfd: pytest.CaptureFixture[str], *args: str, code: int = 0) -> dict[str, Any]:
    """Run `zetta … --json` and return its object."""
    capfd.readouterr()
    with pytest.raises(SystemExit) as left:
        cli.main([*args, "--json"])
    assert (left.value.code or 0) == code
    found: dict[str, Any] = json.loads(capfd.readouterr().out)
    return found


def test_the_skill_that_does_nothing_goes_and_the_one_that_mends_stays(
    capfd: pytest.CaptureFixture[str],
) -> None:
    found = answer(capfd, *ASKED, "--seed", "words")

    verdicts = {each["without"]["skill"]: each for each in found["skills"]}
    assert verdicts["regrasp"]["decision"] == "KEEP"
    assert verdicts["regrasp"]["without"]["counts"]["harms"] > 3
    assert verdicts["turn-knob"]["decision"] == "SIMPLIFY"
    assert found["goes"] == "turn-knob"
    assert found["rollouts"] < 3 * 24  # runs of a skill that did nothing are its bundle's
    assert json.loads(Path("out/prune.json").read_text())["skills"] == found["skills"]

    before = sorted(Path("out/rollouts").iterdir())
    again = answer(capfd, *ASKED)  # the scenes are those of the folder, and nothing is run
    assert again["skills"] == found["skills"]
    assert sorted(Path("out/rollouts").iterdir()) == before


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (["--suite", "toy_pock"], "toy_pick"),
        (["--scenes", "0"], "--scenes"),
        (["--margin", "1.5"], "--margin"),
    ],
)
def test_bad_input_gets_a_sentence(
    capfd: pytest.CaptureFixture[str], changed: list[str], said: str
) -> None:
    assert said in answer(capfd, *ASKED, *changed, code=1)["error"]["message"]


def test_nothing_to_leave_out_is_said(capfd: pytest.CaptureFixture[str]) -> None:
    args = ["none" if each == "regrasp+turn-knob" else each for each in ASKED]
    assert "no skill that could be left out" in answer(capfd, *args, code=1)["error"]["message"]
