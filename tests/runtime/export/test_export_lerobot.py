"""A LeRobot export read back with pyarrow says what the logs say, tick by tick."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from tests.runtime.export.export_runs import (
    SKILL_AT,
    SKILL_TICKS,
    drawn_again,
    logs,
    pictures_of,
    psnr,
)
from zetta.runtime.cli import main as cli
from zetta.runtime.episode_log import LoggedEpisode
from zetta.runtime.export import lerobot_layout
from zetta.runtime.export.statistics import BINS

CLOSE_DB = 29.0
"""A decoded picture is at least so near to what was drawn. Small pictures of bright things lose
most by the halved resolution of colours, which leaves the toy 31 dB at any quality."""
MOVED_DB = 36.0
"""Pictures of two ticks that are less alike than this show that something moved."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[LoggedEpisode]]:
    """Export three episodes."""
    folder = tmp_path_factory.mktemp("export")
    episodes = logs(folder / "run")
    export(folder / "run", folder / "out")
    return folder / "out", episodes


def export(run: Path, out: Path, *more: str) -> None:
    with pytest.raises(SystemExit) as left:
        cli.main(["export", str(run), "--lerobot", str(out), *more])
    assert left.value.code == 0


def table(root: Path) -> Any:
    return pq.read_table(root / "data/chunk-000/file-000.parquet")


def info(root: Path) -> Any:
    return json.loads((root / "meta/info.json").read_text(encoding="utf-8"))


def told(root: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.read_table(root / "meta/episodes").to_pylist()
    return rows


def test_every_tick_of_the_logs_is_one_frame(made: tuple[Path, list[LoggedEpisode]]) -> None:
    root, episodes = made
    frames = table(root)
    lengths = [len(e.ticks) for e in episodes]
    assert len(set(lengths)) == 3
    assert info(root)["total_frames"] == frames.num_rows == sum(lengths)
    assert [row["length"] for row in told(root)] == lengths
    assert frames.column("index").to_pylist() == list(range(sum(lengths)))
    assert frames.column("episode_index").to_pylist() == [
        k for k, n in enumerate(lengths) for _ in range(n)
    ]
    for row in told(root):
        part = frames.slice(row["dataset_from_index"], row["length"])
        assert set(part.column("episode_index").to_pylist()) == {row["episode_index"]}
        assert row["dataset_to_index"] == row["dataset_from_index"] + row["length"]


def test_actions_states_and_times_are_those_of_the_logs(
    made: tuple[Path, list[LoggedEpisode]],
) -> None:
    root, episodes = made
    frames = table(root)
    ticks = [tick for episode in episodes for tick in episode.ticks]
    actions = np.array(frames.column("action").to_pylist(), np.float32)
    assert np.array_equal(actions, np.stack([t.action for t in ticks]).astype(np.float32))
    names = info(root)["features"]["observation.state"]["names"]
    state = np.array(frames.column("observation.state").to_pylist(), np.float32)
    assert state.shape[1] == len(names) == len(set(names))
    hands = np.stack([t.proprio.arms[0].ee_pos for t in ticks]).astype(np.float32)
    assert np.array_equal(state[:, [names.index(f"ee_{axis}") for axis in "xyz"]], hands)
    assert frames.column("time").to_pylist() == [t.proprio.t for t in ticks]
    assert frames.column("tick").to_pylist() == [t.index for t in ticks]
    numbers = np.array(frames.column("frame_index").to_pylist())
    assert np.array_equal(
        np.array(frames.column("timestamp").to_pylist(), np.float32),
        (numbers / 20.0).astype(np.float32),
    )


def test_who_drove_and_the_mask_are_those_of_the_logs(
    made: tuple[Path, list[LoggedEpisode]],
) -> None:
    root, episodes = made
    frames = table(root)
    ticks = [tick for episode in episodes for tick in episode.ticks]
    sources = [t.source for t in ticks]
    assert frames.column("source").to_pylist() == sources
    mask = frames.column("intervention").to_pylist()
    assert mask == [s == "skill:lift" for s in sources]
    assert sum(mask) == 3 * SKILL_TICKS
    assert mask[SKILL_AT - 1 : SKILL_AT + SKILL_TICKS + 1] == [False, *[True] * SKILL_TICKS, False]
    facts = json.loads((root / "zetta.json").read_text(encoding="utf-8"))
    assert [facts["sources"][i] for i in frames.column("source_index").to_pylist()] == sources
    skills = [
        facts["skills"][i] if i >= 0 else "" for i in frames.column("skill_index").to_pylist()
    ]
    assert skills == [s.removeprefix("skill:") if s != "policy" else "" for s in sources]
    verdicts = [facts["verdicts"][i] for i in frames.column("verdict_index").to_pylist()]
    assert verdicts == [t.verdicts[0].decision if t.verdicts else "pass" for t in ticks]
    assert verdicts.count("recover") == 3
    assert {facts["sensing"][i] for i in frames.column("sensing_index").to_pylist()} == {"vision"}
    ends = np.cumsum([len(e.ticks) for e in episodes]) - 1
    assert np.flatnonzero(frames.column("next.done").to_pylist()).tolist() == ends.tolist()
    assert not any(frames.column("next.success").to_pylist())


def test_nothing_but_state_and_pictures_reaches_a_policy(
    made: tuple[Path, list[LoggedEpisode]],
) -> None:
    root, _ = made
    features = info(root)["features"]
    seen = {name for name in features if name.startswith(("observation", "action"))}
    assert seen == {"observation.state", "action", "observation.images.front",
                    "observation.images.wrist"}  # fmt: skip
    assert "truth" not in json.dumps(features)


def test_picture_i_of_a_video_is_tick_i_drawn_again(
    made: tuple[Path, list[LoggedEpisode]],
) -> None:
    root, episodes = made
    for camera in ("front", "wrist"):
        path = root / f"videos/observation.images.{camera}/chunk-000/file-000.mp4"
        decoded = pictures_of(path)
        assert len(decoded) == info(root)["total_frames"]
        for row, episode in zip(told(root), episodes, strict=True):
            key = f"videos/observation.images.{camera}"
            first = round(row[f"{key}/from_timestamp"] * 20.0)
            assert round(row[f"{key}/to_timestamp"] * 20.0) == first + row["length"]
            pictures = drawn_again(episode, camera)
            near = [psnr(a, b) for a, b in zip(decoded[first:], pictures, strict=False)]
            assert len(near) == row["length"]
            assert min(near) > CLOSE_DB
            # The control: the scene moves, and the next tick's picture is farther away.
            apart = [psnr(a, b) for a, b in itertools.pairwise(pictures)]
            moved = [i for i, near_next in enumerate(apart) if near_next < MOVED_DB]
            assert len(moved) >= 5
            assert all(psnr(decoded[first + i], pictures[i + 1]) < near[i] for i in moved)


def test_statistics_are_those_of_numpy(made: tuple[Path, list[LoggedEpisode]]) -> None:
    root, episodes = made
    stats = json.loads((root / "meta/stats.json").read_text(encoding="utf-8"))
    frames = table(root)
    for name in ("action", "observation.state", "timestamp", "intervention", "tick"):
        values = np.array(frames.column(name).to_pylist(), np.float64).reshape(frames.num_rows, -1)
        for statistic in ("min", "max", "mean", "std"):
            expected = getattr(values, statistic)(axis=0)
            assert np.allclose(stats[name][statistic], expected, atol=1e-9), (name, statistic)
        assert stats[name]["count"] == [frames.num_rows]
        width = np.ptp(values, axis=0) / BINS + 1e-12
        for quantile, share in (("q01", 0.01), ("q50", 0.5), ("q99", 0.99)):
            exact = np.quantile(values, share, axis=0, method="inverted_cdf")
            assert np.all(np.abs(np.array(stats[name][quantile]) - exact) <= width)
    pictures = np.concatenate([drawn_again(e, "front") for e in episodes]).reshape(-1, 3) / 255.0
    mean = np.array(stats["observation.images.front"]["mean"])
    assert mean.shape == (3, 1, 1)
    assert np.allclose(mean.ravel(), pictures.mean(axis=0), atol=1e-9)
    spread = np.array(stats["observation.images.front"]["std"]).ravel()
    assert np.allclose(spread, pictures.std(axis=0), atol=1e-9)
    mine = [row["stats/action/mean"] for row in told(root)]
    assert np.allclose(
        mine[1], np.stack([t.action for t in episodes[1].ticks]).mean(axis=0), atol=1e-6
    )


def test_tasks_are_a_table_that_pandas_reads_by_instruction(
    made: tuple[Path, list[LoggedEpisode]],
) -> None:
    root, episodes = made
    tasks = pd.read_parquet(root / "meta/tasks.parquet")
    assert list(tasks.columns) == ["task_index"]
    assert tasks.iloc[0].name == episodes[0].header.instruction


def test_files_that_are_full_are_followed_by_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    episodes = logs(tmp_path / "run")
    monkeypatch.setattr(lerobot_layout, "DATA_BYTES", 1)
    monkeypatch.setattr(lerobot_layout, "VIDEO_BYTES", 1)
    monkeypatch.setattr(lerobot_layout, "FILES", 2)
    export(tmp_path / "run", tmp_path / "out", "--camera", "wrist")
    for k, (row, episode) in enumerate(zip(told(tmp_path / "out"), episodes, strict=True)):
        place = f"chunk-{k // 2:03d}/file-{k % 2:03d}"
        key = "videos/observation.images.wrist"
        assert (row["data/chunk_index"], row["data/file_index"]) == divmod(k, 2)
        assert (row[f"{key}/chunk_index"], row[f"{key}/file_index"]) == divmod(k, 2)
        assert row[f"{key}/from_timestamp"] == 0.0
        frames = pq.read_table(tmp_path / f"out/data/{place}.parquet")
        assert frames.num_rows == len(episode.ticks)
        assert len(pictures_of(tmp_path / f"out/{key}/{place}.mp4")) == len(episode.ticks)
