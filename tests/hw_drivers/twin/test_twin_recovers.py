"""A skill that a gate promoted in LIBERO, on the twin: refused, then calibrated, then of use."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from twin_parts import NEEDS

from zetta.hw_drivers.twin.setups import CONTROL_HZ, NAME
from zetta.hw_drivers.twin.side import MODEL
from zetta.hw_drivers.twin.world import GRIPPER_MAX
from zetta.runtime.embodiment import Embodiment
from zetta.skills.bundles import load_bundle
from zetta.skills.calibrated import CalibrationRecord, write_calibration

pytestmark = NEEDS
ROOT = Path(__file__).parents[3]
SKILL = ROOT / "results/campaigns/tiny-lan/000/package/keeps-away-regrasp"
POLICY = "twin/reach-clumsy"
MISSES = "0"
"""A policy seed whose grasp goes beside the thing."""


def run(home: Path, *more: str) -> tuple[int, dict[str, object]]:
    """Run an episode in a process of its own, which draws; return its answer."""
    words = [
        "run", "--sim", "twin", "--suite", "twin_place", "--task", "0", "--init", "sampled",
        "--seed", "200", "--policy", POLICY, "--policy-seed", MISSES, "--no-video",
        "--bundle", str(SKILL), "--recovery-share", "0.5", *more, "--json",
    ]  # fmt: skip
    child = subprocess.run(
        [sys.executable, "-m", "zetta.runtime.cli.main", *words],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        check=False,
        env={**os.environ, "XDG_DATA_HOME": str(home)},
    )
    answer: dict[str, object] = json.loads(child.stdout)
    return child.returncode, answer


@pytest.mark.timeout(400)
def test_a_skill_of_libero_watches_the_twin_until_it_is_calibrated_and_then_recovers_a_miss(
    tmp_path: Path,
) -> None:
    code, answer = run(tmp_path)
    error = answer["error"]
    assert code == 1
    assert isinstance(error, dict)
    assert "zetta critics calibrate RUNS" in error["message"]

    bundle = load_bundle(str(SKILL))
    arm = f"{MODEL}, {1000.0 * GRIPPER_MAX:g} mm"
    record = CalibrationRecord(
        bundle=str(SKILL), digest=bundle.digest, policy=POLICY, policy_digest="", alpha=0.1,
        sure_alpha=0.2, fitted=12, calibrated=12, levels={"keeps-away-regrasp": 0},
        parameters={}, embodiment=Embodiment(NAME, arm, CONTROL_HZ), localizer="geometry",
    )  # fmt: skip
    write_calibration(tmp_path / "calibration.json", record)
    code, answer = run(tmp_path, "--calibration", str(tmp_path / "calibration.json"))
    assert code == 0
    (episode,) = answer["episodes"]  # type: ignore[misc]
    assert episode["success"]
    assert episode["interventions"] == 1
    assert episode["sources"]["skill:keeps-away-regrasp"] > 0
