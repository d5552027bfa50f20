"""The history of a library: one small record for each change, and what follows from all of them."""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from zetta.runtime.errors import ConfigError, SpecMismatch
from zetta.runtime.records import from_json, to_json
from zetta.skills.bundle_folders import Part

Action: TypeAlias = Literal["promote", "retire", "rollback", "quarantine", "release"]


@dataclass(frozen=True, slots=True)
class Change:
    """One entry of the history."""

    action: Action
    at: str
    """Time in UTC, ISO 8601."""
    who: str
    why: str
    before: str
    """Version that was in use; empty for none."""
    version: str
    """Version in use from then on."""
    skill: str = ""
    package: str = ""
    """Hash of the skill's package."""
    evidence: str = ""
    """Hash of what proves it; empty where nothing does."""
    unproven: bool = False
    """It was promoted on its owner's word."""
    command: str = ""


@dataclass(frozen=True, slots=True)
class Author:
    """Who changes the library, and how."""

    who: str
    command: str = ""


def new_change(
    action: Action, before: str, version: str, author: Author, why: str, part: Part | None = None
) -> Change:
    """Return the record of a change that is made now.

    Args:
        action: what is done.
        before: version in use until now.
        version: version in use from now on.
        author: who does it.
        why: in words.
        part: the skill that it is about, if it is about one.
    """
    return Change(
        action=action,
        at=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        who=author.who,
        why=why,
        before=before,
        version=version,
        skill="" if part is None else part.name,
        package="" if part is None else part.package,
        evidence="" if part is None else part.evidence,
        unproven=action == "promote" and part is not None and not part.proven,
        command=author.command,
    )


def change_text(change: Change) -> str:
    """Return a record as it is written."""
    return json.dumps(to_json(change), indent=1, sort_keys=True) + "\n"


def read_change(path: Path) -> Change:
    """Return the record in a file.

    Raises:
        ConfigError: it cannot be read.
    """
    try:
        return from_json(Change, json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, RecursionError, SpecMismatch) as error:
        raise ConfigError(f"{path} cannot be read as an entry of the history: {error}") from None


def quarantined(history: Sequence[Change]) -> Mapping[str, str]:
    """Return why packages are left out, by their hash."""
    reasons: dict[str, str] = {}
    for change in history:
        if change.action == "quarantine":
            reasons[change.package] = change.why
        elif change.action == "release":
            reasons.pop(change.package, None)
    return reasons


def undone(history: Sequence[Change], current: str) -> str:
    """Return the version to which undoing the last change leads; empty when there is none.

    Changes lie on a stack, and a rollback takes off what it goes back over, so rolling back twice
    goes back two changes.
    """
    trail: list[str] = []
    for change in history:
        if change.action == "rollback" and change.version in trail:
            del trail[_last(trail, change.version) + 1 :]
        elif change.version != (trail[-1] if trail else ""):
            trail.append(change.version)
    if current in trail:
        del trail[_last(trail, current) :]
    return trail[-1] if trail else ""


def _last(trail: Sequence[str], version: str) -> int:
    return max(place for place, each in enumerate(trail) if each == version)
