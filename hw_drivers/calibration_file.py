"""The file of calibrations that `read_setup(file, calibration)` reads, and that is written here."""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from zetta.hw_drivers.arm_setup import (
    ArmSetup,
    CalibratedCamera,
    Calibration,
    CameraSetup,
    Matrix,
)
from zetta.runtime.core import Array
from zetta.runtime.errors import ConfigError, SpecMismatch, suggest
from zetta.runtime.records import from_json

_NAME: Final = re.compile(r"[A-Za-z0-9_-]+")
_NOTE: Final = "# "


def read_calibration(path: Path) -> Calibration:
    """Return the calibrations in a file; none if it is not there yet.

    Raises:
        ConfigError: it cannot be read, or is no file of calibrations.
    """
    if not path.exists():
        return Calibration({})
    try:
        return from_json(Calibration, tomllib.loads(path.read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, SpecMismatch) as error:
        raise ConfigError(f"cannot read the calibrations in {path}: {error}") from error


def known_camera(setup: ArmSetup, path: Path, name: str) -> CameraSetup:
    """Return a camera as the set-up declares it, with what the calibration file knows better.

    Raises:
        ConfigError: the set-up has no such camera, or the file is of another size.
    """
    if name not in setup.cameras:
        raise ConfigError(f"the set-up has no camera {name!r}; {suggest(name, setup.cameras)}")
    camera, found = setup.cameras[name], read_calibration(path).cameras.get(name)
    if found is None:
        return camera
    if (found.height, found.width) != (camera.height, camera.width):
        raise ConfigError(
            f"{path} has {name} at {found.width} x {found.height}, its pictures are "
            f"{camera.width} x {camera.height}; write to another file with --out"
        )
    return replace(camera, intrinsics=found.intrinsics, T_parent_cam=found.T_parent_cam)


def write_calibration(
    path: Path, name: str, camera: CalibratedCamera, notes: Sequence[str]
) -> None:
    """Put one camera into a file, whole or not at all; other cameras in it stay, with their notes.

    Args:
        path: made if it is not there.
        name: of the camera.
        camera: what was measured.
        notes: how good it is, for people; one comment line each.

    Raises:
        ConfigError: the file cannot be read or written.
    """
    cameras = {**read_calibration(path).cameras, name: camera}
    said = {**(_notes_of(path) if path.exists() else {}), name: tuple(notes)}
    text = "\n".join(_table(key, value, said.get(key, ())) for key, value in cameras.items())
    new = path.with_suffix(".new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with new.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)
    except OSError as error:
        raise ConfigError(f"cannot write {path}: {error.strerror}") from error


def rows(matrix: Array) -> Matrix:
    """Return a matrix as a record holds it."""
    return tuple(tuple(float(value) for value in row) for row in matrix)


def _table(name: str, camera: CalibratedCamera, notes: Sequence[str]) -> str:
    key = name if _NAME.fullmatch(name) else json.dumps(name)
    lines = [
        f"[cameras.{key}]",
        *(f"{_NOTE}{note}" for note in notes),
        f"height = {camera.height}",
        f"width = {camera.width}",
        f"intrinsics = {_matrix(camera.intrinsics)}",
        f"T_parent_cam = {_matrix(camera.T_parent_cam)}",
    ]
    return "\n".join(lines) + "\n"


def _matrix(matrix: Matrix) -> str:
    return f"[{', '.join('[' + ', '.join(map(repr, row)) + ']' for row in matrix)}]"


def _notes_of(path: Path) -> Mapping[str, tuple[str, ...]]:
    """Return the comment lines of each camera."""
    notes: dict[str, tuple[str, ...]] = {}
    name = ""
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("[cameras."):
            key = line.removeprefix("[cameras.").removesuffix("]")
            name = key if _NAME.fullmatch(key) else str(_unquoted(key))
        elif line.startswith(_NOTE) and name:
            notes[name] = (*notes.get(name, ()), line.removeprefix(_NOTE))
    return notes


def _unquoted(key: str) -> object:
    """Return a quoted name; one that another program wrote differently loses its notes."""
    try:
        return json.loads(key)
    except ValueError:
        return key
