"""Labelled pictures as `zetta.sims.libero.sightings` writes them, mapped into memory."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from zetta.primitives.localize.tiny.geometry import BOTTOM, STRIDE, TOP, Float32
from zetta.primitives.localize.tiny.vocabulary import MOST_PARTS, PARTS, THINGS
from zetta.runtime.core import Camera, Image, read_only
from zetta.runtime.errors import ConfigError

FORMAT: Final = "sightings-1"
HEAD: Final = "shard.json"


@dataclass(frozen=True, slots=True)
class Shard:
    """The finished rows of one shard: N pictures with up to M things."""

    folder: Path
    suite: str
    task: int
    render_profile: str
    mujoco: str
    kind: str
    key: str
    """Digest of the labels."""
    goals: tuple[str, ...]
    """Names of the things that the task is about."""
    names: tuple[str, ...]
    """Names of things as the labels give them."""
    part_names: dict[str, tuple[str, ...]]
    depth_unit: float
    pictures: npt.NDArray[np.uint8]
    """Shape (N, 192, 256, 3)."""
    depth: npt.NDArray[np.uint16]
    """Shape (N, 192, 256), in `depth_unit`."""
    instances: npt.NDArray[np.int8]
    """Index of the thing at every coarse pixel, -1 for none. Shape (N, 96, 128)."""
    cameras: npt.NDArray[np.float64]
    """Intrinsics and pose. Shape (N, 25)."""
    labels: npt.NDArray[np.int64]
    """Index into `names`, -1 for none. Shape (N, M)."""
    things: npt.NDArray[np.int64]
    """Index into `THINGS`; -1 for none and for names that are not known. Shape (N, M)."""
    boxes: Float32
    """Centre, extent, yaw. Shape (N, M, 7)."""
    parts: Float32
    """Centres of parts in the order of `PARTS`; NaN for none. Shape (N, M, MOST_PARTS, 3)."""

    def __len__(self) -> int:
        return len(self.things)

    def camera(self, row: int) -> Camera:
        """Return the calibration of one picture."""
        numbers = self.cameras[row]
        return Camera(
            "agentview",
            read_only(numbers[:9].reshape(3, 3)),
            read_only(numbers[9:].reshape(4, 4)),
        )

    def whole(self, row: int) -> tuple[Image, Float32]:
        """Return picture and depth (metres) padded to the size that the camera gave."""
        width = self.pictures.shape[2]
        picture = np.zeros((width, width, 3), np.uint8)
        depth = np.full((width, width), 1.0, np.float32)
        picture[TOP:BOTTOM] = self.pictures[row]
        depth[TOP:BOTTOM] = self.depth[row] * np.float32(self.depth_unit)
        return picture, depth


def read_shard(folder: Path) -> Shard:
    """Map a shard into memory.

    Raises:
        ConfigError: it is missing, damaged or of another layout.
    """
    try:
        head = json.loads((folder / HEAD).read_text(encoding="utf-8"))
        count = int(head["finished"])
        arrays = {
            name: np.load(folder / f"{name}.npy", mmap_mode="r", allow_pickle=False)[:count]
            for name in ("pictures", "depth", "instances", "cameras", "things", "boxes", "parts")
        }
    except (OSError, ValueError, KeyError) as error:
        raise ConfigError(
            f"{folder} holds no labelled pictures ({error}); draw them with "
            "python -m zetta.sims.libero.sightings"
        ) from error
    layout = (head["format"], tuple(head["rows"]), head["stride"])
    if layout != (FORMAT, (TOP, BOTTOM), STRIDE):
        raise ConfigError(
            f"{folder} is laid out as {layout}, expected {(FORMAT, (TOP, BOTTOM), STRIDE)}; draw "
            "it again"
        )
    labels = np.array(arrays["things"], np.int64)
    names = tuple(head["names"])
    part_names = {name: tuple(parts) for name, parts in head["parts"].items()}
    known = np.array([*(THINGS.index(n) if n in THINGS else -1 for n in names), -1])
    boxes = np.array(arrays["boxes"], np.float32)
    return Shard(
        folder=folder,
        suite=head["suite"],
        task=int(head["task"]),
        render_profile=head["render_profile"],
        mujoco=head["mujoco"],
        kind=head["kind"],
        key=hashlib.sha256(boxes.tobytes() + labels.tobytes()).hexdigest()[:16],
        goals=tuple(head["goals"]),
        names=names,
        part_names=part_names,
        depth_unit=float(head["depth_unit"]),
        pictures=arrays["pictures"],
        depth=arrays["depth"],
        instances=arrays["instances"],
        cameras=np.array(arrays["cameras"]),
        labels=labels,
        things=known[labels],
        boxes=boxes,
        parts=_ordered(np.array(arrays["parts"], np.float32), labels, names, part_names),
    )


def _ordered(
    parts: Float32,
    labels: npt.NDArray[np.int64],
    names: Sequence[str],
    part_names: dict[str, tuple[str, ...]],
) -> Float32:
    """Bring the columns of parts into the order of the vocabulary."""
    ordered = np.full((*labels.shape, MOST_PARTS, 3), np.nan, np.float32)
    for index, name in enumerate(names):
        mine = labels == index
        theirs = part_names.get(name, ())
        for column, part in enumerate(PARTS.get(name, ())):
            if part in theirs:
                ordered[mine, column] = parts[mine, theirs.index(part)]
    return ordered


def shards_in(folder: Path) -> list[Path]:
    """Return the shards of a folder in a fixed order.

    Raises:
        ConfigError: there is none.
    """
    found = sorted(path.parent for path in folder.glob(f"*/{HEAD}"))
    if not found:
        raise ConfigError(f"{folder} holds no shards; draw them with zetta.sims.libero.sightings")
    return found
