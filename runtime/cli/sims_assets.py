"""Downloaded assets of simulators: where they lie, what is there, and who is told.

`<data folder>/sims/NAME.assets` is the root that the simulator reads, beside its environment, so
that a new environment keeps it. `.zetta` inside holds what is on its way and a stamp for each part
that is whole; a part's stamp is written last, so a part without one is half there at most.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, TypeAlias

from zetta.runtime.cli.home import data_home
from zetta.runtime.cli.sims_venv import lives_apart, venv_of
from zetta.sims.installs import downloads
from zetta.sims.installs.downloads import AssetList, AssetPart

MARKS: Final = ".zetta"
COPIED: Final = "copied.json"
PartState: TypeAlias = Literal["ready", "missing", "incomplete", "outdated"]
AssetsState: TypeAlias = Literal["bundled", "ready", "needs assets"]


@dataclass(frozen=True, slots=True)
class PartStamp:
    """What a part says of itself once it is whole."""

    url: str
    """Where the list has it from."""
    source: str
    """Where it was taken from."""
    sha256: str
    size: int
    """Bytes of the zip."""
    files: int
    unpacked: int
    """Bytes of its files."""
    verified: Literal["sha256", "zip"]
    """By its published hash, or by the checksums inside the zip alone."""


@dataclass(frozen=True, slots=True)
class AssetFolder:
    """The assets of one simulator."""

    assets: AssetList
    root: Path

    @property
    def marks(self) -> Path:
        """Where our own files lie."""
        return self.root / MARKS

    @property
    def lock(self) -> Path:
        """Held by the one process that changes anything."""
        return self.root.with_name(f"{self.root.name}.lock")

    def zip_of(self, part: AssetPart) -> Path:
        """Return where its zip lies between download and unpacking."""
        return self.marks / f"{part.name}.zip"

    def stamp_path(self, part: AssetPart) -> Path:
        """Return where its stamp lies."""
        return self.marks / f"{part.name}.json"

    def files_path(self, part: AssetPart) -> Path:
        """Return where the names of its files lie, one a line."""
        return self.marks / f"{part.name}.files"

    def staging(self, part: AssetPart) -> Path:
        """Return where it is unpacked before it goes to its place."""
        return self.marks / f"{part.name}.unpacking"

    def stamp(self, part: AssetPart) -> PartStamp | None:
        """Return what it wrote at the end; None where it did not come to that."""
        told = _json(self.stamp_path(part))
        try:
            return PartStamp(
                url=str(told["url"]),
                source=str(told["source"]),
                sha256=str(told["sha256"]),
                size=int(str(told["size"])),
                files=int(str(told["files"])),
                unpacked=int(str(told["unpacked"])),
                verified="sha256" if told["verified"] == "sha256" else "zip",
            )
        except (KeyError, ValueError):
            return None

    def fetched(self, part: AssetPart) -> int:
        """Return how many bytes of its zip are here already."""
        for path in (self.zip_of(part), self.zip_of(part).with_suffix(".part")):
            if path.is_file():
                return path.stat().st_size
        return 0

    def state_of(self, part: AssetPart) -> PartState:
        """Say whether a part can be used."""
        stamp = self.stamp(part)
        if stamp is None:
            begun = self.fetched(part) or self.staging(part).exists()
            return "incomplete" if begun else "missing"
        if stamp.url != part.url or part.sha256 not in ("", stamp.sha256):
            return "outdated"
        return "incomplete" if lacking(self.root, part) else "ready"

    @property
    def copied(self) -> bool:
        """Whether the folder of the package lies here, from the package that is installed."""
        if not self.assets.copies:
            return True
        copied = _json(self.marks / COPIED).get("digest")
        name = self.assets.name
        return lives_apart(name) and copied == venv_of(name).packages.digest

    @property
    def absent(self) -> tuple[AssetPart, ...]:
        """Return the parts that are needed and not ready."""
        needed = (part for part in self.assets.parts if part.needed)
        return tuple(part for part in needed if self.state_of(part) != "ready")

    @property
    def state(self) -> AssetsState:
        """Whether the simulator has what it needs."""
        return "ready" if self.copied and not self.absent else "needs assets"


def assets_of(name: str) -> AssetFolder | None:
    """Return the assets of a simulator, which need not be there; None where all is bundled."""
    if name not in downloads.names():
        return None
    return AssetFolder(downloads.find(name), data_home().absolute() / "sims" / f"{name}.assets")


def fix_line(name: str) -> str:
    """Return the command that gets what is needed."""
    return f"zetta sims assets {name}"


def lacking(root: Path, part: AssetPart) -> tuple[str, ...]:
    """Return the folders of a part that are not there, or have nothing in them."""
    return tuple(folder for folder in part.gives if not any((root / folder).glob("*")))


def own_root(assets: AssetList) -> Path | None:
    """Return the folder that the user's environment names, which counts before ours."""
    named = os.environ.get(assets.variable, "")
    return Path(named) if named else None


def told_root(name: str) -> Path | None:
    """Return the root that the simulator's processes are told; None where there is none."""
    folder = assets_of(name)
    if folder is None:
        return None
    own = own_root(folder.assets)
    if own is not None:
        return own
    return folder.root if folder.state == "ready" else None


def worker_variables(name: str) -> Mapping[str, str]:
    """Return the environment variables of a process of the simulator: ours, and its assets."""
    root = told_root(name)
    folder = assets_of(name)
    if root is None or folder is None:
        return dict(os.environ)
    return {**os.environ, folder.assets.variable: str(root)}


def assets_state(name: str) -> AssetsState:
    """Return what `zetta sims list` says of a simulator's assets."""
    folder = assets_of(name) if lives_apart(name) or name in downloads.names() else None
    if folder is None:
        return "bundled"
    own = own_root(folder.assets)
    if own is None:
        return folder.state
    wanting = any(lacking(own, part) for part in folder.assets.parts if part.needed)
    return "needs assets" if wanting else "ready"


def _json(path: Path) -> Mapping[str, object]:
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return told if isinstance(told, dict) else {}
