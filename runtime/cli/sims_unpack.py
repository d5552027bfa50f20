"""Unpacking a zip from elsewhere: nothing leaves the folder, and every checksum is looked at.

It goes to a folder of its own first; only a zip whose files are all whole is moved to its place.
"""

from __future__ import annotations

import hashlib
import lzma
import os
import shutil
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from zetta.runtime.cli.byte_progress import Reached, in_words
from zetta.runtime.errors import InfraError
from zetta.sims.installs.downloads import AssetPart

BLOCK: Final = 1 << 20
MOST_GROWTH: Final = 200
"""Times the size of the zip that its files may have; meshes as text come to ten."""
_JUNK: Final = "__MACOSX"
_BROKEN: Final = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, NotImplementedError)


class DamagedError(InfraError):
    """A zip is broken, is another one than was expected, or would write where it may not."""


@dataclass(frozen=True, slots=True)
class Contents:
    """What is in a zip."""

    files: tuple[zipfile.ZipInfo, ...]
    unpacked: int
    """Bytes of its files."""


def hash_of(path: Path, reached: Reached) -> str:
    """Return the SHA-256 of a file.

    Raises:
        InfraError: it cannot be read.
    """
    digest, size, done = hashlib.sha256(), path.stat().st_size, 0
    try:
        with path.open("rb") as file:
            while block := file.read(BLOCK):
                digest.update(block)
                done += len(block)
                reached(done, size)
    except OSError as error:
        raise InfraError(f"cannot read {path}: {error.strerror}") from error
    return digest.hexdigest()


def contents(path: Path, part: AssetPart, reserved: str) -> Contents:
    """Return what a zip holds, once it is sure that it can be unpacked.

    Args:
        path: the zip.
        part: what it should be.
        reserved: name of a folder that it may not touch.

    Raises:
        DamagedError: it is broken, is another one, or would write where it may not.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            entries = [e for e in archive.infolist() if e.filename.split("/")[0] != _JUNK]
    except (*_BROKEN, OSError, ValueError) as error:
        raise DamagedError(f"the zip of {part.name} is damaged: {error}") from error
    for entry in entries:
        _check_name(part, entry, reserved)
    files = tuple(entry for entry in entries if not entry.is_dir())
    unpacked = sum(entry.file_size for entry in files)
    if unpacked > MOST_GROWTH * path.stat().st_size:
        raise DamagedError(
            f"the zip of {part.name} would grow to {in_words(unpacked)}, more than "
            f"{MOST_GROWTH} times its size; it is refused"
        )
    places = [PurePosixPath(part.into) / entry.filename for entry in files]
    for folder in part.gives:
        if not any(place.is_relative_to(folder) for place in places):
            raise DamagedError(f"the zip of {part.name} holds no {folder}: it is another one")
    return Contents(files, unpacked)


def unpack(path: Path, held: Contents, part: AssetPart, staging: Path, reached: Reached) -> None:
    """Write the files of a zip to a new folder, each as it would lie below the root.

    Raises:
        DamagedError: a file in it is broken.
        InfraError: a file cannot be written.
    """
    done = 0
    shutil.rmtree(staging, ignore_errors=True)
    try:
        with zipfile.ZipFile(path) as archive:
            for entry in held.files:
                target = staging / part.into / entry.filename
                target.parent.mkdir(parents=True, exist_ok=True)
                with archive.open(entry) as packed, target.open("wb") as file:
                    shutil.copyfileobj(packed, file, BLOCK)
                done += entry.file_size
                reached(done, held.unpacked)
    except (*_BROKEN, RuntimeError) as error:  # RuntimeError: it is encrypted
        raise DamagedError(f"the zip of {part.name} is damaged: {error}") from error
    except OSError as error:
        raise InfraError(
            f"cannot unpack {part.name} to {staging}: {error.strerror}; the zip is kept, and the "
            "same command goes on from there"
        ) from error


def settle(staging: Path, root: Path) -> Sequence[str]:
    """Move unpacked files to their places, over older ones; return their names.

    Raises:
        InfraError: a file cannot be moved.
    """
    moved = []
    try:
        for parent, _, names in os.walk(staging):
            below = Path(parent).relative_to(staging)
            (root / below).mkdir(parents=True, exist_ok=True)
            for name in names:
                (Path(parent) / name).replace(root / below / name)
                moved.append((below / name).as_posix())
    except OSError as error:
        raise InfraError(
            f"cannot write to {root}: {error.strerror}; the same command goes on from there"
        ) from error
    shutil.rmtree(staging, ignore_errors=True)
    return sorted(moved)


def _check_name(part: AssetPart, entry: zipfile.ZipInfo, reserved: str) -> None:
    """Refuse a name that leads out; a link is no danger, for its text becomes a plain file."""
    name = entry.filename
    place = PurePosixPath(part.into) / name
    outside = place.is_absolute() or ".." in place.parts or "\\" in name
    if outside or place.parts[:1] == (reserved,):
        raise DamagedError(
            f"the zip of {part.name} holds {name!r}, which is no place inside its folder; it is "
            "refused"
        )
