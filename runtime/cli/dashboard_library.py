"""What the dashboard shows of skills: those that come with zetta, and the user's own library."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from zetta.runtime.cli.home import home_library
from zetta.runtime.cli.library_commands import change_json, library_at, roll_back
from zetta.runtime.cli.output import Json
from zetta.runtime.errors import ConfigError, ScreenError
from zetta.runtime.records import to_json
from zetta.skills.bundle_folders import Part, read_bundle
from zetta.skills.bundles import STARTER, load_bundle
from zetta.skills.package import SkillPackage, load_skill
from zetta.skills.promotions import EVIDENCE_SUFFIX, read_evidence
from zetta.skills.shelf import library_folder, package_folders
from zetta.skills.user_library import UserLibrary

KEPT: Final = 64
"""Versions that are remembered; a version never changes."""


class LibraryPages:
    """Reads the library for the dashboard and, when a person says so, rolls it back."""

    def __init__(self, folder: Path | None = None) -> None:
        """`folder` is the user's own by default."""
        self._folder = folder or home_library()
        self._versions: dict[str, tuple[str, Sequence[Mapping[str, Json]]]] = {}
        self._shipped: list[Json] = []
        self._lock = threading.Lock()

    def page(self) -> Mapping[str, Json]:
        """Return versions, their skills with evidence, the history, and what comes with zetta.

        Raises:
            ConfigError: the library cannot be read.
        """
        shelf = library_at(self._folder)
        with self._lock:
            if not self._shipped:
                self._shipped = _shipped()
            history = shelf.history()
            begun = {change.version: change.at for change in reversed(history)}
            left_out = shelf.quarantined()
            current = shelf.current()
            versions = [
                self._version(shelf, version, left_out) | {
                    "since": begun.get(version), "current": version == current,
                }
                for version in shelf.versions()
            ]  # fmt: skip
        # Several changes of one second have one time, so the order is that of the history.
        places = {change.version: place for place, change in enumerate(reversed(history))}
        versions.sort(key=lambda each: places.get(str(each["version"]), len(places)))
        return {
            "folder": str(shelf.folder),
            "current": current or None,
            "before": _before(shelf),
            "versions": versions,
            "changes": [change_json(change) for change in reversed(history)],
            "shipped": self._shipped,
        }

    def rollback(self, to: str, why: str) -> Mapping[str, Json]:
        """Use another version, as `zetta skills rollback` does; return the change.

        Raises:
            ConfigError: there is no such version, or it is in use already or damaged.
            InfraError: the library cannot be written.
        """
        return change_json(roll_back(library_at(self._folder), to, why))

    def _version(
        self, shelf: UserLibrary, version: str, left_out: Mapping[str, str]
    ) -> dict[str, Json]:
        try:
            bundle, skills = self._skills(shelf, version)
        except ConfigError as error:
            return {"version": version, "bundle": None, "skills": [], "error": str(error)}
        shown = [
            {**skill, "standing": "quarantined", "why": left_out[str(skill["hash"])]}
            if skill["hash"] in left_out
            else {**skill, "why": None}
            for skill in skills
        ]
        return {"version": version, "bundle": bundle, "skills": shown, "error": None}

    def _skills(self, shelf: UserLibrary, version: str) -> tuple[str, Sequence[Mapping[str, Json]]]:
        if version not in self._versions:
            folder = shelf.path(version)
            manifest = read_bundle(folder)[0]
            skills = [_promoted(folder, part) for part in manifest.skills]
            self._versions[version] = (manifest.bundle, skills)
            while len(self._versions) > KEPT:
                del self._versions[next(iter(self._versions))]
        return self._versions[version]


def _before(shelf: UserLibrary) -> str | None:
    """Return the version that a rollback without a name goes to; None where there is none."""
    try:
        return shelf.before()
    except ConfigError:
        return None


def _promoted(folder: Path, part: Part) -> Mapping[str, Json]:
    """Return one skill of a version with what its gate found."""
    proof = folder / f"{part.name}{EVIDENCE_SUFFIX}"
    return {
        **_described(folder / part.name),
        "name": part.name,
        "hash": part.package,
        "standing": "proven" if part.proven else "unproven",
        "evidence": to_json(read_evidence(proof)) if part.proven else None,
    }


def _shipped() -> list[Json]:
    starter = {package.name for package in load_bundle(STARTER).packages}
    return [
        {**_described(folder), "bundles": [STARTER] if folder.name in starter else []}
        for folder in package_folders(library_folder())
    ]


def _described(folder: Path) -> dict[str, Json]:
    """Return what a package says of itself; a broken one says what is wrong."""
    try:
        package = load_skill(folder)
    except ScreenError as error:
        return {"name": folder.name, "error": str(error)}
    return {**_page(package), "error": None}


def _page(package: SkillPackage) -> dict[str, Json]:
    page = package.page
    return {
        "name": package.name,
        "version": page.version,
        "description": page.description,
        "applies": page.applies,
        "level": package.level,
        "roles": list(page.roles),
        "max_ticks": page.max_ticks,
        "made_by": page.provenance.made_by,
        "author": page.provenance.author,
        "date": page.provenance.date.isoformat(),
        "signed": str(package.signed),
        "hash": package.digest,
        "signals": list(package.signals),
        "windows": len(package.windows),
        "records": [dict(to_json(each)) for each in package.evidence_records()],
        "critic": package.critic_source,
        "recovery": package.recovery_source,
        "parameters": [
            {"name": name, "value": each.default, "low": each.low, "high": each.high,
             "unit": each.unit, "doc": each.doc}
            for name, each in package.parameters.items()
        ],
    }  # fmt: skip
