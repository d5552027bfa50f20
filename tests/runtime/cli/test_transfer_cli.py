"""`zetta skills transfer` as a user meets it, on the toy with a camera that looks beside."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from zetta.runtime.cli import main as cli

FAULT = ["--option", "toy_faults=camera_shift_y=0.026", "--option", "recovery_share=0.7"]
ASKED = ["skills", "transfer", "regrasp", "--sim", "toy", "--sensing", "oracle", *FAULT]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)


def answer(capfd: pytest.CaptureFixture[str], *args: str, code: int = 0) -> dict[str, Any]:
    """Run `zetta … --json` and return its object."""
    capfd.readouterr()
    with pytest.raises(SystemExit) as left:
        cli.main([*args, "--json"])
    assert left.value.code == code
    found: dict[str, Any] = json.loads(capfd.readouterr().out)
    return found


def refused(capfd: pytest.CaptureFixture[str], *args: str) -> str:
    sentence: str = answer(capfd, *args, code=1)["error"]["message"]
    return sentence


def test_a_skill_for_grasps_that_miss_transfers_to_other_suites(
    capfd: pytest.CaptureFixture[str],
) -> None:
    to = ["--to", "toy_swap:1", "--to", "toy_slip:0", "--scenes", "12", "--out", "out"]
    found = answer(capfd, *ASKED, *to, "--key", "words")

    assert [cell["decision"] for cell in found["cells"]] == ["TRANSFERS", "TRANSFERS"]
    for cell in found["cells"]:
        counts = cell["counts"]
        assert counts["pairs"] == 12
        assert counts["wins"] > counts["harms"]
        assert counts["unattributed"] == counts["errors"] == 0
        assert cell["p"] <= cell["p_adjusted"]
    assert found["sensing"] == "oracle"
    assert found["calibrated"]["note"]
    assert len(list(Path("out/calibration/logs").iterdir())) == 20
    kept = json.loads(Path("out/transfer.json").read_text())
    assert kept["cells"] == found["cells"]
    again = answer(capfd, *ASKED, *to, "--resume")  # the key is that of the folder
    assert again["cells"] == found["cells"]
    assert "other words for its scenes" in refused(
        capfd, *ASKED, *to, "--resume", "--key", "other words"
    )
    assert "another evaluation" in refused(
        capfd, *ASKED, "--to", "toy_swap:2", "--scenes", "12", "--out", "out", "--resume"
    )


def test_tasks_without_its_roles_are_left_out(capfd: pytest.CaptureFixture[str]) -> None:
    told = refused(
        capfd, "skills", "transfer", "open-drawer", "--sim", "toy", "--to", "toy_pick:0-1",
        "--sensing", "oracle",
    )  # fmt: skip
    assert "belongs into none of these 2 tasks" in told
    assert "binds no part" in told
    assert not Path("runs").exists()


def test_bad_requests_are_one_sentence(capfd: pytest.CaptureFixture[str]) -> None:
    assert "no suite 'toy_slp'; did you mean 'toy_slip'" in refused(
        capfd, *ASKED, "--to", "toy_slp:0"
    )
    assert "SUITE:TASKS" in refused(capfd, *ASKED, "--to", "toy_slip:")
    assert "twice" in refused(capfd, *ASKED, "--to", "toy_slip:0", "--to", "toy_slip:0-1")
    assert "holds regrasp already" in refused(
        capfd, *ASKED, "--to", "toy_slip:0", "--bundle", "starter"
    )
    assert "--scenes is 1 or more" in refused(capfd, *ASKED, "--to", "toy_slip:0", "--scenes", "0")
    assert "name its folder with --out" in refused(capfd, *ASKED, "--to", "toy_slip:0", "--resume")
    assert "--sensing vision" in refused(
        capfd, "skills", "transfer", "regrasp", "--sim", "toy", "--to", "toy_slip:0",
        "--sensing", "proprio",
    )  # fmt: skip
    assert not Path("runs").exists()
