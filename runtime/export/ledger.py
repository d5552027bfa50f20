"""An export that a kill cannot spoil: finished parts are kept, and the word of the whole is last.

`DIR/.export/plan.json` says what is made, `DIR/.export/parts/000000/` holds what is finished of one
clip, written whole or not at all. `DIR/zetta.json` is written last: where it stands, all is there.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from zetta.runtime.core import SENSING_LEVELS
from zetta.runtime.errors import ConfigError, InfraError
from zetta.runtime.export.clips import Selection
from zetta.runtime.export.features import DECISIONS
from zetta.runtime.records import to_json

FORMAT: Final = "zetta-export-1"
WORK, PLAN, PARTS, ROW, MARKER = ".export", "plan.json", "parts", "row.json", "zetta.json"
FOREIGN: Final = frozenset({".lock"})
"""What may lie in the folder beside an export."""
SPARE: Final = 200_000_000
"""Bytes that stay free."""


class Ledger:
    """What of one export is finished."""

    def __init__(self, folder: Path, key: str, layout: str) -> None:
        """Begin, or go on where an export of the same was interrupted.

        Args:
            folder: exists.
            key: of what is exported and how.
            layout: what it is written as.

        Raises:
            ConfigError: the folder holds something else.
            InfraError: it cannot be written.
        """
        self.folder, self._key, self._layout = folder, key, layout
        held = sorted(p.name for p in folder.iterdir() if p.name not in FOREIGN)
        marked = _key_of(folder / MARKER)
        self.complete = marked == key
        if held and not self.complete and (marked or _key_of(folder / WORK / PLAN) != key):
            what = "an export of other episodes or options" if marked or WORK in held else held[0]
            raise ConfigError(f"{folder} already holds {what}; choose a new folder, or empty it")
        self._parts = folder / WORK / PARTS
        if self.complete:
            shutil.rmtree(folder / WORK, ignore_errors=True)
            return
        with writing(folder):
            self._parts.mkdir(parents=True, exist_ok=True)
            for unfinished in self._parts.glob(".*"):
                shutil.rmtree(unfinished)
            write_json(folder / WORK / PLAN, {"format": FORMAT, "key": key, "layout": layout})

    def part(self, number: int) -> Path:
        """Return the folder of a finished part, which may not be there yet."""
        return self._parts / f"{number:06d}"

    def has(self, number: int) -> bool:
        """Say whether a part is finished."""
        return self.complete or (self.part(number) / ROW).exists()

    def row(self, number: int) -> Mapping[str, Any]:
        """Return what is known of a finished part.

        Raises:
            InfraError: it cannot be read.
        """
        path = self.part(number) / ROW
        try:
            row: Mapping[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise InfraError(
                f"{path} cannot be read ({error}); take the folder of its part away and run the "
                "same command again"
            ) from error
        return row

    def add(self, number: int, write: Callable[[Path], Mapping[str, Any]]) -> None:
        """Make one part: `write` fills the folder it is given and returns the row.

        Raises:
            InfraError: the disk takes nothing more.
        """
        own = self._parts / f".{number:06d}"
        with writing(self.folder):
            own.mkdir()
            try:
                write_json(own / ROW, write(own))
            except BaseException:
                shutil.rmtree(own, ignore_errors=True)
                raise
            own.rename(self.part(number))

    def close(self, told: Mapping[str, Any]) -> None:
        """Mark the export as complete, and take away what was needed on the way.

        Raises:
            InfraError: the disk takes nothing more.
        """
        with writing(self.folder):
            facts = {"format": FORMAT, "key": self._key, "layout": self._layout, **told}
            write_json(self.folder / MARKER, facts)
            shutil.rmtree(self.folder / WORK)
        self.complete = True


def key_of(selection: Selection, options: Mapping[str, Any]) -> str:
    """Return the SHA-256 of what is exported and how: of headers, not of where they lie."""
    clips = [[clip.digest, clip.first, clip.ticks] for clip in selection.clips]
    text = json.dumps([FORMAT, clips, options], sort_keys=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def facts_of(selection: Selection) -> dict[str, Any]:
    """Return what the numbers of an export mean, for its marker."""
    action = selection.spec.action
    return {
        "sources": list(selection.sources),
        "skills": list(selection.skills),
        "verdicts": list(DECISIONS),
        "sensing": list(SENSING_LEVELS),
        "action": to_json(action),
        "arms": list(selection.spec.arms),
        "control_hz": selection.spec.control_hz,
        "render_profile": selection.spec.render_profile,
        "versions": dict(selection.spec.versions),
        "skipped": dict(selection.skipped),
    }


def check_room(folder: Path, needed: int) -> None:
    """Refuse to begin what will not fit.

    Raises:
        InfraError: there is too little room.
    """
    free = shutil.disk_usage(folder).free
    if free < needed + SPARE:
        raise InfraError(
            f"the export needs about {needed // 10**6} MB in {folder}, and {free // 10**6} MB are "
            "free there; make room, choose another folder, or use a smaller --size or --no-videos"
        )


@contextlib.contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Say what to do when the disk takes nothing more.

    Raises:
        InfraError: instead of OSError.
    """
    try:
        yield
    except OSError as error:
        raise InfraError(
            f"cannot write to {folder}: {error.strerror or error}; what is finished is kept, and "
            "the same command goes on"
        ) from error


def write_json(path: Path, plain: Mapping[str, Any]) -> None:
    """Write JSON whole or not at all.

    Raises:
        OSError: it cannot be written.
    """
    text = json.dumps(plain, indent=1, allow_nan=False, ensure_ascii=False) + "\n"
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)


def _key_of(path: Path) -> str:
    """Return the key in a file; empty where there is none."""
    try:
        plain = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return ""
    right = isinstance(plain, dict) and plain.get("format") == FORMAT
    return str(plain.get("key", "")) if right else ""
