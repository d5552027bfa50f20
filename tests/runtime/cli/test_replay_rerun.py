"""A recording for Rerun holds what the log holds; it is read back with Rerun's own reader."""

from __future__ import annotations

import builtins
import importlib.util
import json
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image as Pillow

from zetta.runtime.cli import main as cli
from zetta.runtime.cli import replay_rerun
from zetta.runtime.cli.replay import drawing
from zetta.runtime.core import Array
from zetta.runtime.episode_log import POSES, LoggedEpisode, read_episode
from zetta.runtime.picture_sizes import PictureSize, pictures_of

MISSING = importlib.util.find_spec("rerun") is None
needs_rerun = pytest.mark.skipif(MISSING, reason="the package rerun-sdk is not installed")
FAULT = "camera_frozen_at=12;slip_after=6;slip_spread=10"


def leave(*args: str) -> int:
    with pytest.raises(SystemExit) as left:
        cli.main(args)
    return int(left.value.code or 0)


@pytest.fixture(scope="module")
def episode(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an episode in which a skill took over."""
    folder = tmp_path_factory.mktemp("logged") / "run"
    args = ("--policy", "toy/reach-exact", "--bundle", "starter", "--init", "sampled")
    args += ("--seed", "2", "--sensing", "oracle", "--option", f"toy_faults={FAULT}")
    assert leave("run", "--sim", "toy", *args, "--out", str(folder)) == 0
    return folder / "episodes" / "000"


@pytest.fixture(scope="module")
def recording(episode: Path) -> dict[str, Any]:
    """Return the recording of that episode, by entity: a table of all its rows."""
    if MISSING:
        pytest.skip("the package rerun-sdk is not installed")
    target = episode.parent / "e.rrd"
    args = ("--rerun", str(target), "--size", "96", "--every", "10", "--camera", "front")
    assert leave("replay", str(episode), *args) == 0
    return read_back(target)


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def read_back(path: Path) -> dict[str, Any]:
    from rerun.chunk import RrdReader

    rows: dict[str, Any] = {}
    for chunk in RrdReader(path).stream().to_chunks():
        kept = rows.setdefault(chunk.entity_path, {})
        for name, column in chunk.to_record_batch().to_pydict().items():
            kept.setdefault(name, []).extend(column)
    return rows


def column(recording: dict[str, Any], entity: str, name: str) -> Array:
    """Return a component at every tick, in their order."""
    rows = recording[entity]
    order = np.argsort(rows["tick"])
    return np.array([rows[name][i] for i in order]).squeeze()


def scalars(recording: dict[str, Any], entity: str) -> Array:
    return column(recording, entity, "Scalars:scalars")


def test_signals_and_actions_are_those_of_the_log(episode: Path, recording: dict[str, Any]) -> None:
    record = read_episode(episode)
    ticks = record.ticks

    for i, name in enumerate(record.header.spec.action.names):
        assert np.array_equal(scalars(recording, f"/action/{name}"), [t.action[i] for t in ticks])
    names = {name for tick in ticks for name in tick.signals}
    said = 0
    for name in names:
        values = np.array([tick.signals[name] for tick in ticks])
        told = np.isfinite(values)
        if told.any():
            said += 1
            assert np.array_equal(scalars(recording, f"/signals/{name}"), values[told])
            assert np.array_equal(
                sorted(recording[f"/signals/{name}"]["tick"]), np.flatnonzero(told)
            )
        else:
            assert f"/signals/{name}" not in recording
    assert said > 10


def test_both_time_axes_are_the_robots(episode: Path, recording: dict[str, Any]) -> None:
    ticks = read_episode(episode).ticks
    rows = recording["/action/dx"]
    seconds = np.array(rows["time"], dtype="timedelta64[ns]").astype(np.int64) / 1e9

    assert rows["tick"] == [tick.index for tick in ticks]
    assert np.allclose(seconds, [tick.proprio.t for tick in ticks], atol=1e-9)


def test_the_hand_is_a_transform_in_the_world(episode: Path, recording: dict[str, Any]) -> None:
    ticks = read_episode(episode).ticks
    places = column(recording, "/robot/arm/ee", "Transform3D:translation")
    turns = column(recording, "/robot/arm/ee", "Transform3D:quaternion")

    assert np.allclose(places, [t.proprio.arms[0].ee_pos for t in ticks], atol=1e-6)  # float32
    assert np.allclose(turns, [t.proprio.arms[0].ee_quat for t in ticks], atol=1e-6)
    assert len(scalars(recording, "/robot/arm/opening")) == len(ticks)


def test_who_drove_and_what_critics_said_are_told(episode: Path, recording: dict[str, Any]) -> None:
    record = read_episode(episode)
    (recovery,) = record.header.result.recoveries
    begins, ends = recovery.tick, recovery.tick + recovery.ticks

    source = recording["/source"]
    assert list(zip(source["tick"], source["StateChange:state"], strict=True)) == [
        (0, ["policy"]),
        (begins, [f"skill:{recovery.skill}"]),
        (ends, ["policy"]),
    ]
    verdicts = recording["/verdicts"]
    assert begins in verdicts["tick"]
    assert any(recovery.reason in text[0] for text in verdicts["TextLog:text"])
    told = [text for text in recording["/intervention"]["TextLog:text"] if text]
    assert told == [[f"{recovery.skill}, asked by {recovery.critic}: {recovery.reason}; "
                     f"{recovery.ending}"]]  # fmt: skip
    assert ["success after 123 ticks"] in recording["/episode"]["TextLog:text"]


def test_pictures_are_drawn_at_their_ticks_and_at_the_size(
    episode: Path, recording: dict[str, Any]
) -> None:
    record: LoggedEpisode = read_episode(episode)
    assert record.poses is not None
    rows = recording["/cameras/front"]
    last = len(record.ticks)

    assert sorted(rows["tick"]) == sorted({*range(0, last + 1, 10), last})
    assert "/cameras/wrist" not in recording
    at = rows["tick"].index(30)
    with Pillow.open(BytesIO(bytes(rows["EncodedImage:blob"][at][0]))) as picture:
        told = np.asarray(picture)
    with drawing(record) as env:
        env.show(record.poses[30])  # type: ignore[attr-defined]
        (drawn,) = pictures_of(env, ("front",), PictureSize(96))
    assert told.shape == drawn.shape == (96, 128, 3)
    assert np.abs(told.astype(int) - drawn.astype(int)).mean() < 6.0


@needs_rerun
def test_a_log_without_states_becomes_a_recording_without_pictures(
    episode: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = tmp_path / "copy"
    copy.mkdir()
    for path in episode.iterdir():
        if path.name != POSES:
            (copy / path.name).write_bytes(path.read_bytes())
    assert leave("replay", str(copy), "--rerun", "c.rrd", "--json") == 0

    answer = json.loads(capsys.readouterr().out)
    assert answer["written"] == [str(tmp_path / "c.rrd")]
    entities = read_back(Path("c.rrd"))
    assert "/action/dx" in entities
    assert not any(entity.startswith("/cameras") for entity in entities)


@needs_rerun
def test_without_a_display_the_viewer_is_refused_before_anything_is_written(
    episode: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(replay_rerun.sys, "platform", "linux")

    assert leave("replay", str(episode), "--rerun", "e.rrd", "--view") == 1
    assert "rerun FILE.rrd" in capsys.readouterr().err
    assert list(Path().iterdir()) == []


@needs_rerun
def test_with_a_display_the_viewer_opens_the_file(
    episode: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DISPLAY", ":7")
    started: list[list[str]] = []
    monkeypatch.setattr(
        replay_rerun.subprocess, "Popen", lambda command, **how: started.append(command)
    )
    assert leave("replay", str(episode), "--rerun", "e.rrd", "--view", "--every", "60") == 0

    assert [command[1:] for command in started] == [["-m", "rerun", "e.rrd"]]


def test_without_the_package_one_sentence_says_how_to_get_it(
    episode: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(replay_rerun, "find_spec", lambda name: None)
    real = builtins.__import__

    def refuse(name: str, *args: Any, **more: Any) -> Any:
        assert not name.startswith("rerun")
        return real(name, *args, **more)

    monkeypatch.setattr(builtins, "__import__", refuse)
    assert leave("replay", str(episode), "--rerun", "e.rrd") == 1
    assert "pip install 'zetta[rerun]'" in capsys.readouterr().err


def test_the_viewer_needs_a_file(episode: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert leave("replay", str(episode), "--view", "--strip", "s.png") == 1
    assert "--view opens what --rerun FILE.rrd writes" in capsys.readouterr().err
