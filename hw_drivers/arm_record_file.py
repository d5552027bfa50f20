"""A recording of an arm on disk: what the recorder writes, and how it is read again.

`recording.json` says what was recorded and whether it ended well; `states.f64` holds one row of
numbers for each state, `events.jsonl` what changed, and for each camera `NAME.jsonl` one line for
each picture in the folder `NAME`. Everything is appended, so that whatever ends the recorder costs
the last row at most; a torn last row or line is no error.

It is no episode log: nobody knows from outside what was commanded, and critics read commands.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from PIL import Image as Pillow

from zetta.hw_drivers.arm import ArmFacts, ArmReading
from zetta.hw_drivers.frames import Pose
from zetta.runtime.core import Array, Image
from zetta.runtime.errors import ConfigError, SpecMismatch
from zetta.runtime.records import from_json, to_json

FORMAT: Final = "zetta-recording-1"
HEADER, STATES, EVENTS = "recording.json", "states.f64", "events.jsonl"
BEFORE_JOINTS: Final = ("t", "t_robot", "number", "seq")
AFTER_JOINTS: Final = (
    *("ee_x", "ee_y", "ee_z", "ee_qx", "ee_qy", "ee_qz", "ee_qw"),
    *("gripper_opening", "gripper_velocity"),
)


@dataclass(frozen=True, slots=True)
class RecordingHeader:
    """`recording.json`."""

    url: str
    arm: ArmFacts
    columns: tuple[str, ...]
    """Of a row of `states.f64`, little-endian float64. `t` is in seconds of the recorder's clock
    since it began, `t_robot` in seconds of the robot's clock, `number` that of the state message,
    `seq` that of the last command that the arm followed."""
    cameras: tuple[str, ...]
    began: str
    """Date and time, ISO 8601."""
    complete: bool = False
    """False while it is being written, and after a crash."""
    seconds: float = 0.0
    states: int = 0
    missed_states: int = 0
    """Of which a number is missing: lost on the way, or more than the recorder could take."""
    pictures: Mapping[str, int] | None = None
    missed_pictures: Mapping[str, int] | None = None
    """Known only of cameras that are streamed."""
    clock_bound_ms: float | None = None
    """How wrong `t` of states may be against `t` of pictures."""
    trouble: str = ""
    """What went wrong last; empty if nothing did."""
    format: str = FORMAT


def columns_of(facts: ArmFacts) -> tuple[str, ...]:
    """Return the names of the columns of an arm's states."""
    return (*BEFORE_JOINTS, *(f"joint_{name}" for name in facts.joints), *AFTER_JOINTS)


def row_of(t: float, number: int, seq: int, reading: ArmReading) -> Array:
    """Return a state as a row."""
    return np.array(
        [
            *(t, reading.t, number, seq),
            *reading.joint_pos,
            *reading.ee_pos,
            *reading.ee_quat,
            *(reading.gripper_opening, reading.gripper_velocity),
        ],
        "<f8",
    )


def write_header(folder: Path, header: RecordingHeader) -> None:
    """Write `recording.json`, whole or not at all.

    Raises:
        OSError: it cannot be written.
    """
    new = folder / f"{HEADER}.new"
    with new.open("w", encoding="utf-8") as file:
        file.write(json.dumps(to_json(header), indent=1, allow_nan=False) + "\n")
        file.flush()
        os.fsync(file.fileno())
    new.replace(folder / HEADER)


@dataclass(frozen=True, slots=True)
class RecordedPicture:
    """One picture of a recording."""

    path: Path
    t: float
    """When it was taken, seconds since the recording began."""


@dataclass(frozen=True, slots=True)
class Recording:
    """A recording, complete or not."""

    folder: Path
    header: RecordingHeader
    rows: Array
    """Shape (states, columns)."""
    pictures: Mapping[str, tuple[RecordedPicture, ...]]

    def column(self, name: str) -> Array:
        """Return one column. Shape (states,)."""
        return self.rows[:, self.header.columns.index(name)]

    def hands(self) -> Iterator[tuple[float, Pose]]:
        """Yield the time and the pose of the hand, in the arm's base, of each state."""
        first = self.header.columns.index("ee_x")
        for row in self.rows:
            yield float(row[0]), Pose(row[first : first + 3], row[first + 3 : first + 7])


def is_recording(folder: Path) -> bool:
    """Say whether a folder holds one."""
    return (folder / HEADER).is_file()


def read_recording(folder: Path) -> Recording:
    """Read a recording; one that was cut short has what reached the disk.

    Raises:
        ConfigError: `folder` holds none, or it cannot be read.
        SpecMismatch: it was written in another format.
    """
    try:
        plain = json.loads((folder / HEADER).read_text(encoding="utf-8"))
        written = plain.get("format") if isinstance(plain, dict) else None
        if written != FORMAT:
            raise SpecMismatch(f"{folder} has the format {written!r}; this version reads {FORMAT}")
        header = from_json(RecordingHeader, plain)
        raw = (folder / STATES).read_bytes()
    except (OSError, ValueError) as error:
        raise ConfigError(f"{folder} is no recording that can be read: {error}") from error
    width = len(header.columns)
    whole = len(raw) // (8 * width) * width
    rows = np.frombuffer(raw, "<f8", count=whole).reshape(-1, width).astype(np.float64)
    return Recording(
        folder, header, rows, {name: _pictures(folder, name) for name in header.cameras}
    )


def read_picture(path: Path) -> Image:
    """Return a picture, upright RGB. Shape (height, width, 3), uint8.

    Raises:
        ConfigError: it cannot be read.
    """
    try:
        with Pillow.open(path) as file:
            return np.asarray(file.convert("RGB"), np.uint8)
    except (OSError, ValueError, SyntaxError) as error:
        raise ConfigError(f"cannot read the picture {path}: {error}") from error


def _pictures(folder: Path, camera: str) -> tuple[RecordedPicture, ...]:
    found = []
    for line in lines_of(folder / f"{camera}.jsonl"):
        name, t = line.get("file"), line.get("t")
        if isinstance(name, str) and isinstance(t, float) and math.isfinite(t):
            path = folder / camera / Path(name).name
            if path.is_file():
                found.append(RecordedPicture(path, t))
    return tuple(found)


def lines_of(path: Path) -> Iterator[Mapping[str, Any]]:
    """Yield the whole lines of a file of JSON lines; none if it is not there.

    Raises:
        ConfigError: it cannot be read.
    """
    if not path.exists():
        return
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from error
    for line in text.splitlines():
        try:
            plain = json.loads(line)
        except ValueError:
            continue  # torn by whatever ended the recorder
        if isinstance(plain, dict):
            yield plain
