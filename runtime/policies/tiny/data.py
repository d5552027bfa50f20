"""The on-disk format of training data: a shard is a folder of frames, samples and a header.

    frames_agent.npy  uint8 (N, 96, 128, 3)   what `inputs.shrink_agent` returns
    frames_wrist.npy  uint8 (N, 96, 96, 3)    what `inputs.shrink_wrist` returns
    samples.npz       one array for each field of `Samples`, S rows
    shard.json        `ShardHeader`

Several samples may share a frame: a scene in which every object is labelled with the instruction
that names it costs one picture. numpy only, so simulators can write what trainers read.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.spatial.transform import Rotation

from zetta.runtime.archives import UNREADABLE
from zetta.runtime.core import Image
from zetta.runtime.errors import ConfigError
from zetta.runtime.policies.tiny.inputs import AGENT_SHAPE, PROPRIO, TOP, WRIST_SHAPE, Float32

FORMAT: Final = 1
HORIZON: Final = 16
"""Future ticks that a sample labels (H)."""
ROLES: Final = ("focus", "dest")
"""Where to go now (the grasp point, the handle), and where the held thing belongs."""

Int32 = npt.NDArray[np.int32]
Int8 = npt.NDArray[np.int8]
UInt8 = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class ShardHeader:
    """What holds for a whole shard."""

    instructions: tuple[str, ...]
    phases: tuple[str, ...]
    render_profile: str
    control_hz: float
    source: str
    """What made the data: suite, task, kind of episodes, seeds."""
    key: str = ""
    """Content key of the recipe; equal keys mean equal data."""
    cameras: tuple[str, ...] = ("agentview", "wrist")
    crop: int = TOP
    horizon: int = HORIZON
    format: int = FORMAT


@dataclass(frozen=True, slots=True)
class Sample:
    """One labelled (frame, instruction) pair, for writers; `Samples.of` stacks them."""

    frame: int
    instruction: int
    proprio: Float32
    path: Float32
    rot: Float32
    close: Float32
    mask: Float32
    focus: Float32
    dest: Float32
    px: Float32
    visible: UInt8
    phase: int
    weight: float
    episode: int


@dataclass(frozen=True, slots=True)
class Samples:
    """Labels of S (frame, instruction) pairs, in struct-of-arrays form."""

    frame: Int32
    """Row of the frame arrays. Shape (S,)."""
    instruction: Int32
    """Index into the header's instructions. Shape (S,)."""
    proprio: Float32
    """`inputs.proprio_vector`. Shape (S, 11)."""
    path: Float32
    """`ee_pos[t+1..t+H] - ee_pos[t]`, world, metres. Shape (S, H, 3)."""
    rot: Float32
    """Rotation vector of `R[t+k] R[t]^T`, world, radians. Shape (S, H, 3)."""
    close: Float32
    """1 where the gripper was commanded to close in tick t+k-1, else 0. Shape (S, H)."""
    mask: Float32
    """Validity of each row of path, rot and close. Shape (S, H)."""
    focus: Float32
    """Point of interest relative to `ee_pos`, world axes, metres; NaN for none. Shape (S, 3)."""
    dest: Float32
    """Destination of the held thing, in the same way. Shape (S, 3)."""
    px: Float32
    """Both points (column, row) in pixels of the network's pictures, pixel i covering i to i+1.
    Axes: sample, camera (agentview, wrist), role (focus, dest), (u, v). Shape (S, 2, 2, 2)."""
    visible: UInt8
    """1 where `px` lies in the picture and may be learnt from. Shape (S, 2, 2)."""
    phase: Int8
    """Index into the header's phases; -1 for unknown. Shape (S,)."""
    weight: Float32
    """Relative importance, at least 0. Shape (S,)."""
    episode: Int32
    """Episode within the shard, for splitting. Shape (S,)."""

    def __len__(self) -> int:
        return len(self.frame)

    @classmethod
    def of(cls, rows: Sequence[Sample]) -> Samples:
        """Stack rows.

        Raises:
            ConfigError: there are none.
        """
        if not rows:
            raise ConfigError("a shard needs at least one sample, and none was given")
        return cls(
            **{
                name: np.asarray([getattr(row, name) for row in rows], dtype=dtype)
                for name, (dtype, _) in FIELDS.items()
            }
        )


FIELDS: Final[dict[str, tuple[type[np.generic], tuple[int, ...]]]] = {
    "frame": (np.int32, ()),
    "instruction": (np.int32, ()),
    "proprio": (np.float32, (PROPRIO,)),
    "path": (np.float32, (HORIZON, 3)),
    "rot": (np.float32, (HORIZON, 3)),
    "close": (np.float32, (HORIZON,)),
    "mask": (np.float32, (HORIZON,)),
    "focus": (np.float32, (3,)),
    "dest": (np.float32, (3,)),
    "px": (np.float32, (2, 2, 2)),
    "visible": (np.uint8, (2, 2)),
    "phase": (np.int8, ()),
    "weight": (np.float32, ()),
    "episode": (np.int32, ()),
}
"""Type and shape after the first axis of every field of `Samples`."""

MAY_BE_NAN: Final = frozenset({"focus", "dest", "px"})


@dataclass(frozen=True, slots=True)
class Shard:
    """A shard as read: frames stay on disk until a batch touches them."""

    folder: Path
    header: ShardHeader
    agent: Image
    """Shape (N, 96, 128, 3)."""
    wrist: Image
    """Shape (N, 96, 96, 3)."""
    samples: Samples


@dataclass(frozen=True, slots=True)
class Future:
    """The action labels of one moment of a trajectory."""

    path: Float32
    rot: Float32
    close: Float32
    mask: Float32


def future(ee_pos: npt.ArrayLike, ee_quat: npt.ArrayLike, closed: npt.ArrayLike, t: int) -> Future:
    """Label tick `t` of a trajectory; ticks after its end repeat the last pose, masked.

    Args:
        ee_pos: positions before each action and after the last one. Shape (T + 1, 3).
        ee_quat: orientations, xyzw. Shape (T + 1, 4).
        closed: whether the action of each tick commanded the gripper to close. Shape (T,).
        t: the tick, from 0 to T - 1.
    """
    positions, quats = np.asarray(ee_pos, np.float64), np.asarray(ee_quat, np.float64)
    commands = np.asarray(closed, np.float64)
    ticks = np.arange(t + 1, t + 1 + HORIZON)
    inside = ticks < len(positions)
    rows = np.minimum(ticks, len(positions) - 1)
    turn = Rotation.from_quat(quats[rows]) * Rotation.from_quat(quats[t]).inv()
    return Future(
        path=(positions[rows] - positions[t]).astype(np.float32),
        rot=turn.as_rotvec().astype(np.float32),
        close=commands[np.minimum(ticks - 1, len(commands) - 1)].astype(np.float32),
        mask=inside.astype(np.float32),
    )


def write_shard(
    folder: Path,
    header: ShardHeader,
    agent: Image | Sequence[Image],
    wrist: Image | Sequence[Image],
    samples: Samples,
) -> Path:
    """Write a shard, whole or not at all; a shard that is already there is replaced.

    Args:
        folder: the shard's folder.
        header: what holds for all of it.
        agent: scene pictures. Shape (N, 96, 128, 3).
        wrist: wrist pictures. Shape (N, 96, 96, 3).
        samples: the labels.

    Raises:
        ConfigError: something has another shape, type or range than the format says.
    """
    agents, wrists = np.asarray(agent), np.asarray(wrist)
    check_shard(str(folder), header, agents, wrists, samples)
    part = folder.with_name(f".{folder.name}.{os.getpid()}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    np.save(part / "frames_agent.npy", agents)
    np.save(part / "frames_wrist.npy", wrists)
    np.savez(part / "samples.npz", **{f.name: getattr(samples, f.name) for f in fields(samples)})
    (part / "shard.json").write_text(json.dumps(asdict(header), indent=1) + "\n")
    shutil.rmtree(folder, ignore_errors=True)
    part.rename(folder)
    return folder


def read_shard(folder: Path) -> Shard:
    """Open a shard; frames are mapped, not read.

    Raises:
        ConfigError: the folder holds no shard, or one that is damaged or of another format.
    """
    header = _read_header(folder)
    agent = _read_array(folder / "frames_agent.npy")
    wrist = _read_array(folder / "frames_wrist.npy")
    samples = _read_samples(folder / "samples.npz")
    check_shard(str(folder), header, agent, wrist, samples)
    return Shard(folder, header, agent, wrist, samples)


def check_shard(
    name: str, header: ShardHeader, agent: Image, wrist: Image, samples: Samples
) -> None:
    """Check everything that can be wrong with a shard.

    Raises:
        ConfigError: the first thing that is.
    """
    for what, frames, size in (("agent", agent, AGENT_SHAPE), ("wrist", wrist, WRIST_SHAPE)):
        if frames.dtype != np.uint8 or frames.shape != (len(agent), *size, 3):
            raise ConfigError(
                f"{name}: the {what} frames are {frames.dtype} of shape {frames.shape}; "
                f"expected uint8 of shape ({len(agent)}, {size[0]}, {size[1]}, 3)"
            )
    for field, (dtype, tail) in FIELDS.items():
        _check_field(name, field, getattr(samples, field), (len(samples), *tail), dtype)
    _check_index(name, "frame", samples.frame, 0, len(agent))
    _check_index(name, "instruction", samples.instruction, 0, len(header.instructions))
    _check_index(name, "phase", samples.phase, -1, len(header.phases))
    if (samples.weight < 0).any():
        raise ConfigError(f"{name}: a sample has a weight below 0")
    if np.isnan(samples.px[samples.visible.astype(bool)]).any():
        raise ConfigError(f"{name}: a point is marked visible and its pixel is NaN")


def _check_field(
    name: str,
    field: str,
    array: npt.NDArray[np.generic],
    shape: tuple[int, ...],
    dtype: type[np.generic],
) -> None:
    if array.dtype != dtype or array.shape != shape:
        raise ConfigError(
            f"{name}: samples.{field} is {array.dtype} of shape {array.shape}; expected "
            f"{np.dtype(dtype)} of shape {shape}"
        )
    if np.issubdtype(dtype, np.floating):
        bad = np.isinf(array) if field in MAY_BE_NAN else ~np.isfinite(array)
        if bad.any():
            row = int(np.argwhere(bad)[0][0])
            raise ConfigError(f"{name}: samples.{field} of row {row} is not finite")


def _check_index(
    name: str, field: str, values: npt.NDArray[np.signedinteger], low: int, high: int
) -> None:
    wrong = (values < low) | (values >= high)
    if wrong.any():
        raise ConfigError(
            f"{name}: samples.{field} of row {int(np.argmax(wrong))} is "
            f"{int(values[wrong][0])}; expected {low} to {high - 1}"
        )


def _read_header(folder: Path) -> ShardHeader:
    try:
        raw = json.loads((folder / "shard.json").read_text())
    except FileNotFoundError:
        raise ConfigError(
            f"{folder} is no data shard: it has no shard.json; make data with `zetta train tiny`"
        ) from None
    except (OSError, ValueError) as error:
        raise ConfigError(f"{folder}/shard.json cannot be read: {error}") from error
    found = raw.get("format") if isinstance(raw, dict) else None
    if found != FORMAT:
        raise ConfigError(f"{folder} has shard format {found}; this version reads {FORMAT}")
    try:
        header = ShardHeader(
            instructions=tuple(map(str, raw["instructions"])),
            phases=tuple(map(str, raw["phases"])),
            render_profile=str(raw["render_profile"]),
            control_hz=float(raw["control_hz"]),
            source=str(raw["source"]),
            key=str(raw["key"]),
            cameras=tuple(map(str, raw["cameras"])),
            crop=int(raw["crop"]),
            horizon=int(raw["horizon"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ConfigError(f"{folder}/shard.json does not fit: {error!r}") from error
    if (header.horizon, header.crop) != (HORIZON, TOP):
        raise ConfigError(
            f"{folder} has horizon {header.horizon} and crop {header.crop}; this version "
            f"trains on {HORIZON} and {TOP}: make the data again"
        )
    return header


def _read_array(path: Path) -> Image:
    try:
        array: Image = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise ConfigError(f"{path} cannot be read as an array: {error}") from error
    return array


def _read_samples(path: Path) -> Samples:
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            return Samples(**{name: archive[name] for name in FIELDS})
    except KeyError as error:
        raise ConfigError(f"{path} lacks a field: {error}") from error
    except UNREADABLE as error:
        raise ConfigError(f"{path} cannot be read: {error}") from error
