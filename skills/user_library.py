"""The user's library: every bundle that was ever promoted, and a pointer to the one in use.

    <library>/versions/<digest>/     a bundle folder, written once
    <library>/history/000001.json    who changed what, when, why, from which version to which
    <library>/current                the digest of the version in use

Nothing is ever deleted and no version changes, so rolling back is moving the pointer. A change is
recorded before it is carried out; repeating a change that was cut off does no harm.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from zetta.runtime.errors import ConfigError, InfraError, suggest
from zetta.skills.bundle_folders import (
    BundleManifest,
    Member,
    Part,
    manifest_of,
    read_bundle,
    read_manifest,
    write_bundle,
)
from zetta.skills.library_history import (
    Action,
    Author,
    Change,
    change_text,
    new_change,
    quarantined,
    read_change,
    undone,
)

VERSIONS: Final = "versions"
HISTORY: Final = "history"
CURRENT: Final = "current"
LOCK: Final = ".lock"
LEAST_DIGITS: Final = 4
"""Digits of a version that must be given at least."""
SHOWN_DIGITS: Final = 12


@dataclass(frozen=True, slots=True)
class Standing:
    """One skill of a version and how it stands."""

    part: Part
    quarantined: str = ""
    """Why it is left out; empty for a skill that is deployed."""

    @property
    def word(self) -> str:
        """`proven`, `unproven` or `quarantined`."""
        if self.quarantined:
            return "quarantined"
        return "proven" if self.part.proven else "unproven"


class UserLibrary:
    """A library on disk; it need not exist yet."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    # ------------------------------------------------------------------ reading

    def current(self) -> str:
        """Return the digest of the version in use; empty when nothing was promoted yet.

        Raises:
            ConfigError: the pointer cannot be read, or leads nowhere.
        """
        path = self.folder / CURRENT
        try:
            version = path.read_text(encoding="utf-8").strip()
        except FileNotFoundError:
            return ""
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"the pointer {path} cannot be read: {error}") from None
        if version not in self.versions():
            raise ConfigError(
                f"{path} points to {version[:SHOWN_DIGITS]!r}, which is no version in "
                f"{self.folder / VERSIONS}; type: zetta skills rollback --to VERSION"
            )
        return version

    def versions(self) -> tuple[str, ...]:
        """Return the digests of all versions, sorted."""
        found = (self.folder / VERSIONS).glob("[0-9a-f]*")
        return tuple(sorted(path.name for path in found if path.is_dir()))

    def resolve(self, name: str) -> str:
        """Return the version that `name` stands for: `current`, a digest, or its first digits.

        Raises:
            ConfigError: there is none, or several.
        """
        if name in ("", CURRENT):
            return self._current_or_error()
        known = self.versions()
        found = [v for v in known if v.startswith(name) and len(name) >= LEAST_DIGITS]
        if len(found) == 1:
            return found[0]
        shown = ", ".join(v[:SHOWN_DIGITS] for v in known) or "none"
        what = "names several versions" if found else "is no version"
        raise ConfigError(
            f"{name!r} {what} of the library {self.folder}; give {LEAST_DIGITS} digits or more of "
            f"one of: {shown}"
        )

    def path(self, version: str) -> Path:
        """Return the folder of a version."""
        return self.folder / VERSIONS / version

    def bundle(self, version: str) -> tuple[BundleManifest, tuple[Member, ...]]:
        """Return what a version holds, every byte checked; nothing for the empty version.

        Raises:
            ConfigError: it was changed after it was written.
        """
        if not version:
            return manifest_of(()), ()
        manifest, members = read_bundle(self.path(version))
        if manifest.digest != version:
            raise ConfigError(
                f"{self.path(version)} holds the version {manifest.digest[:SHOWN_DIGITS]}; it was "
                "changed after it was written, so go back to another with zetta skills rollback"
            )
        return manifest, members

    def standings(self, version: str) -> tuple[Standing, ...]:
        """Return the skills of a version and how each stands, in bundle order."""
        if not version:
            return ()
        left_out = self.quarantined()
        parts = read_manifest(self.path(version)).skills
        return tuple(Standing(part, left_out.get(part.package, "")) for part in parts)

    def history(self) -> tuple[Change, ...]:
        """Return every change, the oldest first.

        Raises:
            ConfigError: a record cannot be read.
        """
        return tuple(read_change(path) for path in self._records())

    def state(self) -> str:
        """Return a word that differs after every change."""
        return f"{self.current()}/{len(self._records())}"

    def quarantined(self) -> Mapping[str, str]:
        """Return why packages are left out, by their hash."""
        return quarantined(self.history())

    def before(self) -> str:
        """Return the version that `rollback` goes to.

        Rolling back twice goes back two changes: the changes between are undone, as by a stack.

        Raises:
            ConfigError: there is none.
        """
        version = undone(self.history(), self.current())
        if not version:
            raise ConfigError(
                f"there is no version before the present one in {self.folder}; name one with "
                "--to VERSION (zetta skills history lists them)"
            )
        return version

    # ------------------------------------------------------------------ changing

    def promote(self, member: Member, author: Author, why: str = "") -> Change:
        """Put a skill into a new version, in the place of one of the same name, and use it.

        A member without evidence is recorded as unproven.

        Raises:
            ConfigError: this version is in use already, or the package is quarantined.
            InfraError: the library cannot be written.
        """
        with self._held():
            before = self.current()
            reason = self.quarantined().get(member.part.package)
            if reason is not None:
                raise ConfigError(
                    f"this package of {member.name} is quarantined ({reason}); change it, or type: "
                    f"zetta skills release {member.name} --why …"
                )
            members = _with(self.bundle(before)[1], member)
            return self._use(members, "promote", before, member, author, why)

    def retire(self, skill: str, author: Author, why: str) -> Change:
        """Leave a skill out of a new version, and use that.

        Raises:
            ConfigError: the version in use does not hold it.
            InfraError: the library cannot be written.
        """
        with self._held():
            before = self._current_or_error()
            members = self.bundle(before)[1]
            gone = _named(members, skill, self.folder)
            kept = [member for member in members if member is not gone]
            return self._use(kept, "retire", before, gone, author, why)

    def rollback(self, to: str, author: Author, why: str = "") -> Change:
        """Move the pointer to a version, or to the one before when `to` is empty.

        Raises:
            ConfigError: there is no such version, or it is in use already or damaged.
            InfraError: the library cannot be written.
        """
        with self._held():
            version = self.resolve(to) if to else self.before()
            self.bundle(version)  # a damaged version is never put into use
            pointer = self.folder / CURRENT
            before = pointer.read_text(encoding="utf-8").strip() if pointer.exists() else ""
            if version == before:
                raise ConfigError(f"the version {version[:SHOWN_DIGITS]} is in use already")
            change = new_change("rollback", before, version, author, why)
            return self._carry_out(change)

    def quarantine(self, skill: str, author: Author, why: str) -> Change:
        """Leave a skill of the version in use out of every load from now on.

        Raises:
            ConfigError: the version does not hold it, or it is left out already.
            InfraError: the library cannot be written.
        """
        return self._mark("quarantine", skill, author, why)

    def release(self, skill: str, author: Author, why: str) -> Change:
        """Undo a quarantine.

        Raises:
            ConfigError: the skill is not in quarantine.
            InfraError: the library cannot be written.
        """
        return self._mark("release", skill, author, why)

    # ------------------------------------------------------------------ inside

    def _current_or_error(self) -> str:
        version = self.current()
        if not version:
            raise ConfigError(
                f"the library {self.folder} is empty; put a skill into it with: "
                "zetta skills promote SKILL"
            )
        return version

    def _use(
        self,
        members: Sequence[Member],
        action: Action,
        before: str,
        member: Member,
        author: Author,
        why: str,
    ) -> Change:
        version = manifest_of(members).digest
        if version == before:
            raise ConfigError(
                f"{member.name} is in the library already, with these files, this signature and "
                "this evidence"
            )
        if not self.path(version).exists():
            write_bundle(self.path(version), members)
        change = new_change(action, before, version, author, why, member.part)
        return self._carry_out(change)

    def _mark(
        self, action: Literal["quarantine", "release"], skill: str, author: Author, why: str
    ) -> Change:
        with self._held():
            version = self._current_or_error()
            part = _part_named(read_manifest(self.path(version)).skills, skill, self.folder)
            inside = part.package in self.quarantined()
            if inside == (action == "quarantine"):
                state = "in quarantine already" if inside else "not in quarantine"
                raise ConfigError(f"the skill {skill!r} is {state}; zetta skills list shows it")
            return self._carry_out(new_change(action, version, version, author, why, part))

    def _carry_out(self, change: Change) -> Change:
        """Record a change, then move the pointer."""
        with _writing(self.folder):
            folder = self.folder / HISTORY
            folder.mkdir(parents=True, exist_ok=True)
            path = folder / f"{len(self._records()) + 1:06d}.json"
            _put(path, change_text(change), os.link)
            if change.version != change.before:
                _put(self.folder / CURRENT, change.version + "\n", os.replace)
        return change

    def _records(self) -> list[Path]:
        return sorted((self.folder / HISTORY).glob("[0-9]*.json"))

    @contextlib.contextmanager
    def _held(self) -> Iterator[None]:
        """Keep other commands from changing the library meanwhile."""
        with _writing(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            lock = (self.folder / LOCK).open("a", encoding="utf-8")
        with lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise ConfigError(
                    f"another command is changing the library {self.folder}; try again"
                ) from None
            yield


def is_library(folder: Path) -> bool:
    """Say whether a folder is a library."""
    return (folder / CURRENT).is_file() and (folder / VERSIONS).is_dir()


@contextlib.contextmanager
def _writing(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InfraError(f"cannot write to the library {folder}: {error.strerror}") from error


def _put(path: Path, text: str, place: Callable[[Path, Path], None]) -> None:
    """Write a file that is there whole or not at all; `place` puts it where it belongs."""
    fresh = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        with fresh.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        place(fresh, path)
    finally:
        fresh.unlink(missing_ok=True)


def _with(members: Sequence[Member], member: Member) -> list[Member]:
    """Return the members with one more, which takes the place of its namesake."""
    if any(each.name == member.name for each in members):
        return [member if each.name == member.name else each for each in members]
    return [*members, member]


def _named(members: Sequence[Member], skill: str, library: Path) -> Member:
    part = _part_named([member.part for member in members], skill, library)
    return next(member for member in members if member.name == part.name)


def _part_named(parts: Sequence[Part], skill: str, library: Path) -> Part:
    found = next((part for part in parts if part.name == skill), None)
    if found is None:
        names = [part.name for part in parts]
        hint = suggest(skill, names) if names else "it holds none"
        raise ConfigError(f"the library {library} holds no skill {skill!r}; {hint}")
    return found
