"""Files of labelled pictures: plain arrays that a trainer maps into memory, and one JSON head.

A shard is written row by row and says how many rows are finished, so that a killed job continues.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from zetta.runtime.core import Array, Image
from zetta.runtime.errors import ConfigError

ROWS: Final = (40, 232)
"""Rows of the picture that are kept: above is wall, below is the table's edge."""
PICTURE: Final = 256
STRIDE: Final = 2
"""Instances are kept for every other pixel, the odd ones."""
DEPTH_UNIT: Final = 1e-4
"""Metres in one step of the stored depth."""
MOST_THINGS: Final = 10
MOST_PARTS: Final = 7
BOX: Final = 7
"""Numbers of a box: centre, extent, yaw."""
HEAD: Final = "shard.json"
FORMAT: Final = "sightings-1"


@dataclass(frozen=True, slots=True)
class Head:
    """What a shard holds."""

    suite: str
    task: int
    render_profile: str
    mujoco: str
    kind: str
    """`scattered` for training, `shipped` for the benchmark's own layouts."""
    names: tuple[str, ...]
    """Names of things; rows refer to them by index."""
    parts: dict[str, tuple[str, ...]]
    """Names of the parts and places of a thing, in the order of the part columns."""
    goals: tuple[str, ...] = ()
    """Names of the things that the goal is about."""
    finished: int = 0
    wanted: int = 0


@dataclass(frozen=True, slots=True)
class Row:
    """One labelled picture."""

    picture: Image
    depth: npt.NDArray[np.float32]
    instances: npt.NDArray[np.int8]
    """Index of the thing at every pixel, -1 for none. Shape of the whole picture."""
    camera: Array
    """Intrinsics and T_world_cam, flattened. Shape (25,)."""
    things: npt.NDArray[np.int16]
    """Index of each thing's name. Shape (M,)."""
    boxes: Array
    """Shape (M, BOX)."""
    parts: Array
    """Centres of parts; NaN where a thing has no such part. Shape (M, MOST_PARTS, 3)."""


class ShardWriter:
    """Writes the rows of one shard."""

    def __init__(self, folder: Path, head: Head) -> None:
        self.folder = folder
        self._head = head
        folder.mkdir(parents=True, exist_ok=True)
        height = ROWS[1] - ROWS[0]
        n, half = head.wanted, (height // STRIDE, PICTURE // STRIDE)
        shapes: dict[str, tuple[type[np.generic], tuple[int, ...]]] = {
            "pictures": (np.uint8, (n, height, PICTURE, 3)),
            "depth": (np.uint16, (n, height, PICTURE)),
            "instances": (np.int8, (n, *half)),
            "cameras": (np.float64, (n, 25)),
            "things": (np.int16, (n, MOST_THINGS)),
            "boxes": (np.float32, (n, MOST_THINGS, BOX)),
            "parts": (np.float32, (n, MOST_THINGS, MOST_PARTS, 3)),
        }
        self._arrays = {
            name: _open(folder / f"{name}.npy", dtype, shape)
            for name, (dtype, shape) in shapes.items()
        }

    def write(self, index: int, row: Row) -> None:
        """Store row `index`."""
        arrays, (top, bottom) = self._arrays, ROWS
        arrays["pictures"][index] = row.picture[top:bottom]
        steps = np.clip(np.rint(row.depth[top:bottom] / DEPTH_UNIT), 0, 65535)
        arrays["depth"][index] = steps
        every = slice(STRIDE - 1, None, STRIDE)
        arrays["instances"][index] = row.instances[top:bottom][every, every]
        arrays["cameras"][index] = row.camera
        count = len(row.things)
        arrays["things"][index] = -1
        arrays["things"][index, :count] = row.things
        arrays["boxes"][index, :count] = row.boxes
        arrays["parts"][index] = np.nan
        arrays["parts"][index, :count] = row.parts

    def finish(self, count: int) -> None:
        """Note that the first `count` rows are on disk."""
        for array in self._arrays.values():
            array.flush()
        write_head(self.folder, self._head, count)


def write_head(folder: Path, head: Head, finished: int) -> None:
    """Write what a shard holds, atomically."""
    entries = {
        "format": FORMAT,
        "suite": head.suite,
        "task": head.task,
        "render_profile": head.render_profile,
        "mujoco": head.mujoco,
        "kind": head.kind,
        "rows": list(ROWS),
        "stride": STRIDE,
        "depth_unit": DEPTH_UNIT,
        "names": list(head.names),
        "parts": {name: list(parts) for name, parts in head.parts.items()},
        "goals": list(head.goals),
        "finished": finished,
        "wanted": head.wanted,
    }
    temporary = folder / f"{HEAD}.part"
    temporary.write_text(json.dumps(entries, indent=1) + "\n", encoding="utf-8")
    temporary.replace(folder / HEAD)


def finished_rows(folder: Path, wanted: int) -> int:
    """Return how many rows of a shard are finished.

    Raises:
        ConfigError: the shard was begun for another number of rows.
    """
    path = folder / HEAD
    if not path.exists():
        return 0
    head = json.loads(path.read_text(encoding="utf-8"))
    if head["wanted"] != wanted or head["format"] != FORMAT:
        raise ConfigError(
            f"{folder} was begun for {head['wanted']} pictures in format {head['format']!r}, not "
            f"{wanted} in {FORMAT!r}; choose another folder or remove it"
        )
    return int(head["finished"])


def _open(path: Path, dtype: type[np.generic], shape: tuple[int, ...]) -> Any:
    if path.exists():
        return np.lib.format.open_memmap(path, mode="r+")
    return np.lib.format.open_memmap(path, mode="w+", dtype=dtype, shape=shape)
