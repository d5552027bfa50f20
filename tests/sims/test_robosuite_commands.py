"""What a user types, on robosuite: two arms by commands, a skill of LIBERO, a campaign."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from apart_sims import installed

from zetta.runtime.embodiment import Embodiment
from zetta.skills.bundles import load_bundle
from zetta.skills.calibrated import CalibrationRecord, write_calibration

pytestmark = [pytest.mark.sims, pytest.mark.slow, pytest.mark.timeout(1200)]
ROOT = Path(__file__).parents[2]
SKILL = ROOT / "results/campaigns/tiny-lan/000/package/keeps-away-regrasp"
POLICY = "robosuite/reach-clumsy"
STACK = ["--sim", "robosuite", "--suite", "robosuite_one_arm"]


def told(*words: str) -> dict[str, Any]:
    """Run a command in a process of its own, which draws; return its answer."""
    installed("robosuite")
    child = subprocess.run(
        [sys.executable, "-m", "zetta.runtime.cli.main", *words, "--json"],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    assert child.returncode == 0, child.stderr[-4000:]
    answer: dict[str, Any] = json.loads(child.stdout)
    return answer


def test_two_arms_are_driven_by_commands_one_after_the_other_and_both_at_once(
    tmp_path: Path,
) -> None:
    lines = tmp_path / "lines.txt"
    lines.write_text(
        "right move z -5\nboth: left move z 5 | right gripper close\n"
        "both: right home | left home\ndone\n"
    )
    answer = told(
        "drive", "--sim", "robosuite", "--suite", "robosuite_two_arm", "--task", "TwoArmLift",
        "--agent", f"replay:{lines}", "--localizer", "geometry", "--out", str(tmp_path / "run"),
    )  # fmt: skip
    (episode,) = answer["episodes"]
    assert episode["error"] is None
    turns = (tmp_path / "run" / "episodes" / "000" / "drive.jsonl").read_text().splitlines()
    results = [result for turn in turns for result in json.loads(turn)["results"]]
    assert len(results) == 3
    assert all(result["completed"] for result in results)
    moved = results[0]["moved"]
    assert moved[2] == pytest.approx(-0.05, abs=0.01)
    assert "left" in results[1]["detail"]
    assert "right" in results[1]["detail"]


def test_a_skill_of_libero_recovers_a_missed_grasp(tmp_path: Path) -> None:
    record = CalibrationRecord(
        bundle=str(SKILL), digest=load_bundle(str(SKILL)).digest, policy=POLICY, policy_digest="",
        alpha=0.1, sure_alpha=0.2, fitted=12, calibrated=11, levels={"keeps-away-regrasp": 0},
        parameters={}, embodiment=Embodiment("robosuite", "panda", 20.0), localizer="geometry",
    )  # fmt: skip
    write_calibration(tmp_path / "calibration.json", record)
    answer = told(
        "run", *STACK, "--task", "Stack", "--init", "sampled", "--seed", "60", "--policy", POLICY,
        "--policy-seed", "0", "--bundle", str(SKILL), "--recovery-share", "0.5", "--no-video",
        "--calibration", str(tmp_path / "calibration.json"), "--out", str(tmp_path / "run"),
    )  # fmt: skip
    (episode,) = answer["episodes"]
    assert episode["success"]
    assert episode["interventions"] == 1
    assert episode["sources"]["skill:keeps-away-regrasp"] > 0


def test_a_campaign_runs_on_robosuite(tmp_path: Path) -> None:
    answer = told(
        "evolve", *STACK, "--tasks", "Stack", "--policy", POLICY, "--sensing", "oracle",
        "--development", "6", "--search", "6", "--budget", "16", "--seed", "7",
        "--option", "step_budget=150", "--out", str(tmp_path / "campaign"),
    )  # fmt: skip
    assert answer["generations"] or answer["stopped"]
    assert (tmp_path / "campaign" / "000" / "development.json").exists()
    assert Path(answer["report"]).exists()
