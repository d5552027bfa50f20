"""Writes the bundle that a draft would make: the parent's packages, then the draft's."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from zetta.runtime.errors import ConfigError, ScreenError
from zetta.skills.evolve.authors import Draft
from zetta.skills.package_files import (
    COUNT_MOST,
    EVIDENCE,
    FILE_MOST,
    PACKAGE_MOST,
    PARAMETERS,
    REQUIRED,
    PackageFiles,
    read_files,
)
from zetta.skills.package_page import NAME
from zetta.skills.signatures import SIGNATURE_NAME

WINDOW_FILE: Final = re.compile(r"replay/[a-z0-9][a-z0-9_-]{0,60}\.json")
NO_EVIDENCE: Final = '{"records": []}\n'
"""What a draft may say about its own worth; evidence is written by whoever measures it."""


NAME_MOST: Final = 64
"""Letters of a skill's name, which is a folder's too."""


def path_problems(draft: Draft) -> tuple[str, ...]:
    """Return what is wrong with the name and the files of a draft, before anything is written."""
    problems = []
    if len(draft.name) > NAME_MOST:
        problems.append(
            f"SKILL.md:1: the name has {len(draft.name)} letters; at most {NAME_MOST} are allowed"
        )
    elif not NAME.fullmatch(draft.name):
        problems.append(
            f"SKILL.md:1: a skill cannot be named {draft.name!r}; use lower-case words joined by "
            "hyphens, such as pick-up-again"
        )
    if len(draft.files) > COUNT_MOST:
        problems.append(f"SKILL.md:1: {len(draft.files)} files; a package holds {COUNT_MOST}")
    total = 0
    for path, text in draft.files.items():
        if path not in REQUIRED and not WINDOW_FILE.fullmatch(path):
            problems.append(
                f"{path!r}:1: a draft holds {', '.join(REQUIRED)} and replay/<word>.json, and no "
                "other path"
            )
            continue
        try:
            size = len(text.encode("utf-8"))
        except UnicodeEncodeError as error:
            line = text.count("\n", 0, error.start) + 1
            problems.append(f"{path}:{line}: this cannot be written as UTF-8 text")
            continue
        total += size
        if size > FILE_MOST:
            problems.append(f"{path}:1: {size:,} bytes; a file has at most {FILE_MOST:,}")
    if total > PACKAGE_MOST:
        problems.append(f"SKILL.md:1: {total:,} bytes; a package has at most {PACKAGE_MOST:,}")
    return tuple(problems)


def drafted(draft: Draft, parent: Mapping[str, PackageFiles]) -> dict[str, bytes]:
    """Return the files of the package that a draft stands for.

    A draft of new numbers takes every other file from the parent's skill.
    """
    files = {path: text.encode("utf-8") for path, text in draft.files.items()}
    if draft.name in parent:
        kept = {p: b for p, b in parent[draft.name].contents.items() if p != PARAMETERS}
        return {**kept, PARAMETERS: files.get(PARAMETERS, b"")}
    return {EVIDENCE: NO_EVIDENCE.encode(), **files}


def read_parents(folders: Sequence[Path]) -> dict[str, PackageFiles]:
    """Return the files of the parent's packages by name, in the parent's order.

    Raises:
        ScreenError: one of them is no package any more.
    """
    return {folder.name: read_files(folder.resolve()) for folder in folders}


def write_package(folder: Path, contents: Mapping[str, bytes], signature: bytes | None) -> None:
    """Write the files of one package into a new folder."""
    folder.mkdir(parents=True)
    for path, raw in contents.items():
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_bytes(raw)
    if signature is not None:
        (folder / SIGNATURE_NAME).write_bytes(signature)


def write_candidate(draft: Draft, parent_folders: Sequence[Path], folder: Path) -> Path:
    """Write the candidate bundle into `folder` and return it.

    The parent's packages are copied byte for byte, with their signatures, and then the draft's is
    added or, for new numbers, takes the place of the one of its name. The folder appears whole or
    not at all; one that holds the same candidate already is left as it is.

    Raises:
        ScreenError: the draft's name or paths, a parent that is damaged, or a copy that is not
            the same.
        ConfigError: `folder` holds something else, or cannot be written.
    """
    problems = path_problems(draft)
    if problems:
        raise ScreenError("\n".join(problems))
    parents = read_parents(parent_folders)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        fresh = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    except OSError as error:
        raise ConfigError(f"{folder.parent} cannot be written: {error.strerror}") from error
    try:
        for name, files in parents.items():
            if name != draft.name:
                write_package(fresh / name, files.contents, files.signature)
        write_package(fresh / draft.name, drafted(draft, parents), None)
        _check_copies(fresh, parents, draft.name)
        return _settle(fresh, folder)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def bundle_name(folder: Path, names: Sequence[str]) -> str:
    """Return what `load_bundle` takes for packages of a folder, heard in the order given.

    A folder alone is heard in the order of its names, which need not be the parent's.

    Raises:
        ConfigError: the path holds a `+`, which joins the parts of a bundle.
    """
    if "+" in str(folder):
        raise ConfigError(f"{folder} has a '+' in its path, which joins bundles; use another one")
    return "+".join(str(folder / name) for name in names)


def _check_copies(fresh: Path, parents: Mapping[str, PackageFiles], changed: str) -> None:
    for name, files in parents.items():
        if name == changed:
            continue
        copied = read_files(fresh / name)
        if (copied.digest, copied.signature) != (files.digest, files.signature):
            raise ScreenError(f"{name}/SKILL.md:1: the copy of the parent's skill is not the same")


def _settle(fresh: Path, folder: Path) -> Path:
    if not folder.exists():
        fresh.chmod(0o755)  # a temporary folder is nobody else's to read
        fresh.rename(folder)
        return folder
    if not folder.is_dir() or _digests(folder) != _digests(fresh):
        raise ConfigError(
            f"{folder} exists and holds something else than this candidate; delete it, or write "
            "into another folder"
        )
    return folder


def _digests(folder: Path) -> dict[str, object]:
    found: dict[str, object] = {}
    for path in sorted(folder.iterdir()):
        try:
            files = read_files(path)
        except ScreenError as error:
            found[path.name] = str(error)
        else:
            found[path.name] = (files.digest, files.signature)
    return found
