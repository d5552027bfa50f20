"""Reads the files of a skill package once, into memory, and refuses what has no place in one.

Hash, checks and programs all see the same bytes: nothing is read a second time, nothing is
imported, and a link cannot lead anywhere because links are refused.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final

from zetta.runtime.errors import ScreenError
from zetta.skills.signatures import SIGNATURE_NAME

PAGE, CRITIC, RECOVERY = "SKILL.md", "critic.py", "recovery.py"
PARAMETERS, EVIDENCE, REPLAY = "params.toml", "evidence.json", "replay"
REQUIRED: Final = (PAGE, CRITIC, RECOVERY, PARAMETERS, EVIDENCE)
PROGRAMS: Final = (CRITIC, RECOVERY)
"""The only files of an executable kind; both are checked and neither is ever imported."""
KINDS: Final = (".md", ".txt", ".toml", ".json", ".csv", ".png", ".jpg", ".jpeg", ".svg")
FILE_MOST: Final = 1_000_000
"""Bytes of one file."""
PACKAGE_MOST: Final = 8_000_000
"""Bytes of all files together."""
COUNT_MOST: Final = 200
"""Files of a package."""


@dataclass(frozen=True, slots=True)
class PackageFiles:
    """The bytes of a package."""

    folder: Path
    contents: Mapping[str, bytes]
    """Bytes by path inside the package, with `/`; without the signature."""
    signature: bytes | None
    notices: tuple[str, ...] = ()
    """What was left out, one sentence each."""

    @property
    def digest(self) -> str:
        """SHA-256 over the path, the length and the SHA-256 of every file but the signature."""
        lines = (
            f"{len(contents)} {hashlib.sha256(contents).hexdigest()} {path}\n"
            for path, contents in sorted(self.contents.items())
        )
        return hashlib.sha256("".join(lines).encode()).hexdigest()

    def text(self, path: str) -> str:
        """Return a file as text.

        Raises:
            ScreenError: it is not UTF-8.
        """
        try:
            return self.contents[path].decode("utf-8")
        except UnicodeDecodeError as error:
            line = self.contents[path].count(b"\n", 0, error.start) + 1
            raise ScreenError(f"{self.folder / path}:{line}: this is not UTF-8 text") from None


def read_files(folder: Path) -> PackageFiles:
    """Read every file of a package.

    Hidden files, and the caches of Python, are left out with a notice.

    Raises:
        ScreenError: the folder is missing, lacks a file, or holds a link, an unknown kind of file,
            an unknown folder, or more than it may.
    """
    if not folder.is_dir():
        what = "is a file" if folder.exists() else "does not exist"
        raise ScreenError(f"{folder} {what}; a skill package is a folder with {PAGE}")
    if not (folder / PAGE).exists():
        raise ScreenError(f"{folder} is no skill package: there is no {PAGE} in it")
    contents: dict[str, bytes] = {}
    notices: list[str] = []
    try:
        _read_folder(folder, "", contents, notices)
    except OSError as error:
        raise ScreenError(f"{error.filename}: cannot be read: {error.strerror}") from None
    missing = [name for name in REQUIRED if name not in contents]
    if missing:
        raise ScreenError(
            f"{folder} lacks {', '.join(missing)}; `zetta skills new NAME` writes all of them"
        )
    signature = contents.pop(SIGNATURE_NAME, None)
    return PackageFiles(folder, MappingProxyType(contents), signature, tuple(notices))


def _read_folder(folder: Path, prefix: str, contents: dict[str, bytes], notices: list[str]) -> None:
    with os.scandir(folder) as entries:
        for entry in sorted(entries, key=lambda e: e.name):
            path = Path(entry.path)
            if entry.is_symlink():
                raise ScreenError(f"{path} is a link; a package holds plain files only")
            if entry.name.startswith(".") or entry.name == "__pycache__":
                notices.append(f"{path} is no part of the package")
            elif entry.is_dir(follow_symlinks=False):
                if prefix or entry.name != REPLAY:
                    raise ScreenError(f"{path} is a folder; a package has one, named {REPLAY}")
                _read_folder(path, f"{REPLAY}/", contents, notices)
            else:
                _check_kind(path, prefix + entry.name)
                contents[prefix + entry.name] = _read_file(path)
                _check_total(path, contents)


def _check_kind(path: Path, inside: str) -> None:
    if inside.startswith(f"{REPLAY}/") and path.suffix != ".json":
        raise ScreenError(f"{path} is no logged window; {REPLAY}/ holds .json files only")
    if inside not in PROGRAMS and path.suffix.lower() not in KINDS:
        raise ScreenError(
            f"{path} is of a kind that packages do not hold; they hold {CRITIC}, {RECOVERY} and "
            f"{', '.join(KINDS)}"
        )
    if not inside.isprintable() or "\\" in inside:
        raise ScreenError(f"{str(path)!r} has a name that cannot be written on one line")


def _read_file(path: Path) -> bytes:
    """Read a plain file; neither a link put there meanwhile nor a device is followed."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ScreenError(f"{path} is no plain file")
        contents = file.read(FILE_MOST + 1)
    if len(contents) > FILE_MOST:
        raise ScreenError(f"{path} is larger than {FILE_MOST:,} bytes")
    return contents


def _check_total(path: Path, contents: Mapping[str, bytes]) -> None:
    if len(contents) > COUNT_MOST:
        raise ScreenError(f"{path.parent} holds more than {COUNT_MOST} files")
    if sum(map(len, contents.values())) > PACKAGE_MOST:
        raise ScreenError(f"{path.parent} holds more than {PACKAGE_MOST:,} bytes")
