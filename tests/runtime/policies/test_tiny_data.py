"""The training data on disk."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import tiny_blobs
from scipy.spatial.transform import Rotation

from zetta.runtime.errors import ConfigError
from zetta.runtime.policies.tiny.data import FIELDS, HORIZON, future, read_shard, write_shard


@pytest.fixture(scope="module")
def shard_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_blobs.write(tmp_path_factory.mktemp("data") / "blobs", frames=4)


def copy_of(folder: Path, to: Path) -> Path:
    shard = read_shard(folder)
    return write_shard(to, shard.header, shard.agent, shard.wrist, shard.samples)


def test_a_shard_reads_as_it_was_written(shard_folder: Path, tmp_path: Path) -> None:
    one, two = read_shard(shard_folder), read_shard(copy_of(shard_folder, tmp_path / "copy"))
    assert one.header == two.header
    assert np.array_equal(one.agent, two.agent)
    assert np.array_equal(one.wrist, two.wrist)
    for name in FIELDS:
        assert np.array_equal(
            getattr(one.samples, name), getattr(two.samples, name), equal_nan=name in ("px",)
        )


def test_writing_again_replaces_and_leaves_nothing_beside(
    shard_folder: Path, tmp_path: Path
) -> None:
    for _ in range(2):
        copy_of(shard_folder, tmp_path / "copy")
    assert [p.name for p in tmp_path.iterdir()] == ["copy"]


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("frame", 4, "frame of row 0 is 4; expected 0 to 3"),
        ("instruction", -1, "instruction of row 0 is -1"),
        ("path", np.nan, "path of row 0 is not finite"),
        ("focus", np.inf, "focus of row 0 is not finite"),
        ("weight", -1.0, "weight below 0"),
        ("px", np.nan, "marked visible"),
    ],
)
def test_a_wrong_label_is_named(
    shard_folder: Path, tmp_path: Path, field: str, value: float, words: str
) -> None:
    shard = read_shard(shard_folder)
    array = getattr(shard.samples, field).copy()
    array[0] = value
    samples = replace(shard.samples, **{field: array})
    with pytest.raises(ConfigError, match=words):
        write_shard(tmp_path / "bad", shard.header, shard.agent, shard.wrist, samples)
    assert not (tmp_path / "bad").exists()


def test_arrays_of_another_shape_or_type_are_refused(shard_folder: Path, tmp_path: Path) -> None:
    shard = read_shard(shard_folder)
    with pytest.raises(ConfigError, match="wrist frames"):
        write_shard(tmp_path / "a", shard.header, shard.agent, shard.wrist[:, :90], shard.samples)
    wide = replace(shard.samples, path=shard.samples.path.astype(np.float64))
    with pytest.raises(ConfigError, match=r"samples\.path is float64"):
        write_shard(tmp_path / "b", shard.header, shard.agent, shard.wrist, wide)


@pytest.mark.parametrize("name", ["frames_agent.npy", "frames_wrist.npy", "samples.npz"])
def test_a_damaged_file_is_named(shard_folder: Path, tmp_path: Path, name: str) -> None:
    folder = copy_of(shard_folder, tmp_path / "copy")
    (folder / name).write_bytes((folder / name).read_bytes()[:100])
    with pytest.raises(ConfigError, match=name):
        read_shard(folder)


def test_a_foreign_folder_and_a_foreign_format_are_told_apart(
    shard_folder: Path, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match="no data shard"):
        read_shard(tmp_path)
    folder = copy_of(shard_folder, tmp_path / "copy")
    header = json.loads((folder / "shard.json").read_text())
    (folder / "shard.json").write_text(json.dumps({**header, "format": 99}))
    with pytest.raises(ConfigError, match="format 99"):
        read_shard(folder)


def test_the_future_of_a_trajectory_leads_back_to_it() -> None:
    rng = np.random.default_rng(0)
    places = rng.normal(size=(31, 3))
    turns = Rotation.random(31, random_state=1)
    closed = rng.random(30) < 0.5
    t = 5
    labels = future(places, turns.as_quat(), closed, t)
    assert places[t] + labels.path == pytest.approx(places[t + 1 : t + 1 + HORIZON], abs=1e-5)
    led = Rotation.from_rotvec(labels.rot) * turns[t]
    assert (led * turns[t + 1 : t + 1 + HORIZON].inv()).magnitude() == pytest.approx(0, abs=1e-5)
    assert np.array_equal(labels.close, closed[t : t + HORIZON].astype(np.float32))
    assert labels.mask.all()


def test_what_lies_after_the_end_is_masked() -> None:
    quats = np.tile([0.0, 0.0, 0.0, 1.0], (11, 1))
    labels = future(np.zeros((11, 3)), quats, np.zeros(10), 4)
    assert labels.mask.tolist() == [1.0] * 6 + [0.0] * (HORIZON - 6)
