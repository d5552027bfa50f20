"""Pictures and poses for a calibration: from a recording, or from a folder that others wrote.

In a recording the arm was moved from place to place and left still for a moment at each. Pictures
are taken from those moments only: while an arm moves, the time between a picture and a reading is
worth millimetres.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from zetta.hw_drivers.arm_record_file import (
    RecordedPicture,
    Recording,
    is_recording,
    lines_of,
    read_picture,
    read_recording,
)
from zetta.hw_drivers.calibration_board import Finder
from zetta.hw_drivers.calibration_hand import Pair
from zetta.hw_drivers.calibration_poses import alike
from zetta.hw_drivers.frames import Pose
from zetta.runtime.core import Array
from zetta.runtime.errors import ConfigError

PAIRS: Final = "pairs.jsonl"
SETTLED_S: Final = 0.4
"""The hand must have been still for so long before a picture, and for a moment after it."""
AFTER_S: Final = 0.1
STILL_M, STILL_RAD = 0.001, 0.005
"""How far it may move meanwhile."""
MAX_PICTURES: Final = 300
ENDINGS: Final = (".jpg", ".jpeg", ".png")


@dataclass(frozen=True, slots=True)
class Shot:
    """One picture, and where the hand was."""

    name: str
    path: Path
    T_base_ee: Array
    """Shape (4, 4)."""


def pairs_of(folder: Path, camera: str, finder: Finder) -> list[Pair]:
    """Return the pairs of a recording, or of a folder with `pairs.jsonl`.

    A line of that file is `{"file": "1.png", "ee_pos": [x, y, z], "ee_quat": [x, y, z, w]}`, metres
    in the arm's base.

    Raises:
        ConfigError: the folder holds neither, nothing in it stands still, or a file is broken.
        SpecMismatch: the recording is of another format.
    """
    shots = list(shots_of(folder, camera))
    return [Pair(s.name, s.T_base_ee, finder.find(read_picture(s.path))) for s in shots]


def shots_of(folder: Path, camera: str) -> list[Shot]:
    """Return the pictures of which the pose of the hand is known.

    Raises:
        ConfigError: as `pairs_of`.
        SpecMismatch: the recording is of another format.
    """
    if is_recording(folder):
        recording = read_recording(folder)
        if camera not in recording.pictures:
            raise ConfigError(
                f"{folder} has no pictures of {camera!r}; recorded are {list(recording.pictures)}"
            )
        shots = list(_still(recording, recording.pictures[camera]))
        if not shots:
            raise ConfigError(
                f"in {folder} the arm was never still for {SETTLED_S:g} s while the camera "
                f"{camera!r} took a picture; move it, let go, wait a second, and move on"
            )
        return shots
    if not (folder / PAIRS).is_file():
        raise ConfigError(f"{folder} holds no recording (zetta arms record) and no {PAIRS}")
    return [_shot(folder, line, number) for number, line in enumerate(lines_of(folder / PAIRS), 1)]


def pictures_in(folder: Path, camera: str = "") -> list[Path]:
    """Return the pictures in a folder, or those of a camera in a recording, by name.

    Of more than `MAX_PICTURES` some are taken, evenly: neighbours in a recording tell the same.

    Raises:
        ConfigError: there are none.
    """
    inside = folder / camera if camera and is_recording(folder) else folder
    found = sorted(p for p in inside.glob("**/*") if p.suffix.lower() in ENDINGS and p.is_file())
    if not found:
        raise ConfigError(f"there are no pictures (.jpg, .png) in {inside}")
    every = -(-len(found) // MAX_PICTURES)
    return found[::every]


def _still(recording: Recording, pictures: tuple[RecordedPicture, ...]) -> Iterator[Shot]:
    """Yield one picture of each place where the hand stood still."""
    times = recording.column("t")
    hands = [pose.transform() for _, pose in recording.hands()]
    last: Array | None = None
    for picture in pictures:
        first, after = np.searchsorted(times, (picture.t - SETTLED_S, picture.t + AFTER_S))
        if first == 0 or after >= len(times):
            continue  # what was before or came after is not known
        T = hands[int(np.searchsorted(times, picture.t))]
        if not _rests(hands[first:after]) or (last is not None and alike(T, last)):
            continue
        last = T
        yield Shot(picture.path.stem, picture.path, T)


def _rests(hands: list[Array]) -> bool:
    if not hands:
        return False
    stack = np.stack(hands)
    if float(np.ptp(stack[:, :3, 3], axis=0).max()) > STILL_M:
        return False
    return float(np.ptp(stack[:, :3, :3], axis=0).max()) < STILL_RAD


def _shot(folder: Path, line: object, number: int) -> Shot:
    where = f"line {number} of {folder / PAIRS}"
    match line:
        case {"file": str(name), "ee_pos": [_, _, _] as pos, "ee_quat": [_, _, _, _] as quat}:
            pass
        case _:
            raise ConfigError(f"{where} holds file, ee_pos (3 numbers) and ee_quat (4, xyzw)")
    try:
        place, turn = np.array(pos, np.float64), np.array(quat, np.float64)
    except (TypeError, ValueError):
        raise ConfigError(f"{where} holds something that is no number") from None
    if not (np.isfinite(place).all() and abs(float(np.linalg.norm(turn)) - 1.0) < 1e-2):
        raise ConfigError(f"{where} holds no pose: finite metres and a quaternion of length 1")
    return Shot(Path(name).stem, folder / name, Pose(place, turn).transform())
