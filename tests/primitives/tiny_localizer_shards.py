"""Small made-up shards in the layout of `zetta.sims.libero.sightings`."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from zetta.primitives.localize.tiny.geometry import BOTTOM, PICTURE, STRIDE, TOP
from zetta.primitives.localize.tiny.vocabulary import MOST_PARTS

HEIGHT = BOTTOM - TOP
CAMERA_HEIGHT = 1.0
FOCAL = 309.0
BOX = (slice(60, 76), slice(40, 60))
"""Coarse pixels that show the one thing."""


def intrinsics() -> np.ndarray:
    return np.array([[FOCAL, 0, PICTURE / 2], [0, FOCAL, PICTURE / 2], [0, 0, 1.0]])


def looking_down() -> np.ndarray:
    """Return the pose of a camera one metre above the ground whose picture's right is world y."""
    pose = np.eye(4)
    pose[:3, :3] = np.array([[0, 1, 0], [1, 0, 0], [0, 0, -1.0]])
    pose[:3, 3] = [0, 0, CAMERA_HEIGHT]
    return pose


def write_shard(folder: Path, count: int = 4, name: str = "milk", seed: int = 0) -> Path:
    """Write pictures of one box, lying on the ground below a camera that looks straight down."""
    rng = np.random.default_rng(seed)
    folder.mkdir(parents=True)
    pictures = rng.integers(0, 80, (count, HEIGHT, PICTURE, 3)).astype(np.uint8)
    instances = np.full((count, HEIGHT // STRIDE, PICTURE // STRIDE), -1, np.int8)
    instances[:, BOX[0], BOX[1]] = 0
    depth = np.full((count, HEIGHT, PICTURE), 10_000, np.uint16)
    rows, columns = (slice(s.start * STRIDE, s.stop * STRIDE) for s in BOX)
    pictures[:, rows, columns] = [200, 40, 40]
    boxes = np.zeros((count, 10, 7), np.float32)
    boxes[:, 0] = [0.1, -0.1, 0.02, 0.04, 0.08, 0.04, 0.3]
    things = np.full((count, 10), -1, np.int16)
    things[:, 0] = 0
    cameras = np.tile(np.concatenate([intrinsics().ravel(), looking_down().ravel()]), (count, 1))
    arrays = {
        "pictures": pictures,
        "depth": depth,
        "instances": instances,
        "cameras": cameras,
        "things": things,
        "boxes": boxes,
        "parts": np.full((count, 10, MOST_PARTS, 3), np.nan, np.float32),
    }
    for key, array in arrays.items():
        np.save(folder / f"{key}.npy", array)
    head = {
        "format": "sightings-1",
        "suite": "made_up",
        "task": 0,
        "render_profile": "fast",
        "mujoco": "3.17.0",
        "kind": "scattered",
        "rows": [TOP, BOTTOM],
        "stride": STRIDE,
        "depth_unit": 1e-4,
        "names": [name],
        "parts": {},
        "goals": [name],
        "finished": count,
        "wanted": count,
    }
    (folder / "shard.json").write_text(json.dumps(head))
    return folder
