"""What a simulator's packages do not bundle, as lists; nothing is downloaded here."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from zetta.runtime.errors import ConfigError, suggest

FOLDER = Path(__file__).parent / "assets"
MB = 10**6


@dataclass(frozen=True, slots=True)
class AssetPart:
    """One zip."""

    name: str
    about: str
    url: str
    file: str
    """Its name where it lies in a folder or on another server."""
    into: str
    """Folder it is unpacked in, below the root of the assets; empty for the root."""
    gives: tuple[str, ...]
    """Folders below the root that it brings, each with something in it."""
    needed: bool
    """Whether the simulator is of little use without it."""
    download_mb: int
    """Its size, about."""
    unpacked_mb: int
    """Room that its files take, about."""
    size: int
    """Its exact bytes; 0 where nobody has published them."""
    sha256: str
    """Its hash; empty where nobody has published it."""

    @property
    def download_bytes(self) -> int:
        """Return its size as far as it is known."""
        return self.size or self.download_mb * MB


@dataclass(frozen=True, slots=True)
class AssetList:
    """What one simulator needs downloaded."""

    name: str
    variable: str
    """Environment variable that tells the simulator the root of its assets."""
    copies: str
    """Folder of a package that is copied to the root first, `MODULE:FOLDER`; empty for none."""
    bundled_suite: str
    """A suite that runs with what the packages bundle; empty where none does."""
    parts: tuple[AssetPart, ...]

    def chosen(self, names: tuple[str, ...]) -> tuple[AssetPart, ...]:
        """Return the parts of these names; `all` are all, and no name at all is what is needed.

        Raises:
            ConfigError: there is no part of that name.
        """
        if not names:
            return tuple(part for part in self.parts if part.needed)
        known = [part.name for part in self.parts]
        for name in names:
            if name not in (*known, "all"):
                raise ConfigError(
                    f"{self.name} has no assets {name!r}; {suggest(name, [*known, 'all'])}"
                )
        return tuple(part for part in self.parts if part.name in names or "all" in names)


def names() -> tuple[str, ...]:
    """Return the simulators that need something downloaded."""
    return tuple(sorted(path.stem for path in FOLDER.glob("*.toml")))


@cache
def find(name: str) -> AssetList:
    """Return the list of a simulator.

    Raises:
        ConfigError: there is none of that name.
    """
    if name not in names():
        raise ConfigError(f"{name!r} needs nothing downloaded; {suggest(name, names())}")
    table = tomllib.loads((FOLDER / f"{name}.toml").read_text(encoding="utf-8"))
    return AssetList(
        name=name,
        variable=str(table["variable"]),
        copies=str(table.get("copies", "")),
        bundled_suite=str(table.get("bundled_suite", "")),
        parts=tuple(_part(name, part) for part in table["parts"]),
    )


def _part(sim: str, table: Mapping[str, object]) -> AssetPart:
    gives = table["gives"]
    sha256 = str(table.get("sha256", ""))
    if not isinstance(gives, list) or not gives:
        raise ConfigError(f"the assets {table['name']} of {sim} must give at least one folder")
    if sha256 and not re.fullmatch(r"[0-9a-f]{64}", sha256):
        raise ConfigError(f"the hash of the assets {table['name']} of {sim} is no SHA-256")
    return AssetPart(
        name=str(table["name"]),
        about=str(table["about"]),
        url=str(table["url"]),
        file=str(table["file"]),
        into=str(table["into"]),
        gives=tuple(str(folder) for folder in gives),
        needed=bool(table["needed"]),
        download_mb=int(str(table["download_mb"])),
        unpacked_mb=int(str(table["unpacked_mb"])),
        size=int(str(table.get("size", 0))),
        sha256=sha256,
    )
