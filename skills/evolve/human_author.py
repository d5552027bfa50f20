"""The author `human`: drafts that a person puts into a folder, handed in one after the other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from zetta.runtime.errors import ConfigError, ScreenError
from zetta.skills.evolve.authors import Brief, Draft, NoDraft, is_resubmission
from zetta.skills.package import SkillPackage
from zetta.skills.package_files import (
    CRITIC,
    EVIDENCE,
    PAGE,
    PARAMETERS,
    RECOVERY,
    REPLAY,
    REQUIRED,
    PackageFiles,
    read_files,
)
from zetta.skills.package_page import read_page


class HumanAuthor:
    """Hands in the packages of a folder, in the order of their names; an `Author`."""

    name = "human"

    def __init__(self, folder: Path) -> None:
        """Take drafts from a folder; each is a skill package, as `zetta skills new` writes one.

        Raises:
            ConfigError: there is no such folder.
        """
        if not folder.is_dir():
            what = "is a file" if folder.exists() else "does not exist"
            raise ConfigError(
                f"the folder of drafts {folder} {what}; make it, and put skill packages into it "
                f"(zetta skills new NAME --out {folder})"
            )
        self._folder = folder

    def propose(self, brief: Brief) -> Draft | NoDraft:
        """Return the first package that is neither the parent's nor was rejected."""
        parent = {package.name: package for package in brief.parent}
        unread: list[str] = []
        for path in self._packages():
            try:
                files = read_files(path.resolve())
                texts = _texts(files)
            except ScreenError as error:
                unread.append(str(error).splitlines()[0])
                continue
            draft = Draft(path.name, texts, _hypothesis(files, path))
            if not _is_deployed(files, parent) and not is_resubmission(draft, brief.rejected):
                return draft
        return NoDraft(self._nothing(brief, unread))

    def _packages(self) -> Iterator[Path]:
        if not self._folder.is_dir():
            return
        for path in sorted(self._folder.iterdir()):
            if path.is_dir() and not path.is_symlink() and path.name[0] not in "._":
                yield path

    def _nothing(self, brief: Brief, unread: list[str]) -> str:
        reason = (
            f"every draft in {self._folder} is deployed or was rejected; put the next skill "
            f"package there (zetta skills new NAME --out {self._folder}) and go on with the "
            f"campaign; the failures miss {brief.cluster.missing!r}"
        )
        return f"{reason}; left out: {'; '.join(unread)}" if unread else reason


def _texts(files: PackageFiles) -> Mapping[str, str]:
    """Return what a draft holds: the files of a package and its windows, without evidence."""
    return {
        path: files.text(path)
        for path in files.contents
        if path != EVIDENCE and (path in REQUIRED or path.startswith(f"{REPLAY}/"))
    }


def _is_deployed(files: PackageFiles, parent: Mapping[str, SkillPackage]) -> bool:
    """Say whether a package is one of the parent's, whatever stands in its evidence."""
    package = parent.get(files.folder.name)
    if package is None:
        return False
    try:
        known = read_files(package.folder.resolve())
    except ScreenError:
        return files.digest == package.digest
    return _programs(files) == _programs(known)


def _programs(files: PackageFiles) -> Mapping[str, bytes]:
    return {path: files.contents[path] for path in (CRITIC, RECOVERY, PARAMETERS)}


def _hypothesis(files: PackageFiles, path: Path) -> str:
    """Return what the package says that it does; one that says nothing right is the screen's."""
    try:
        return read_page(files.text(PAGE), path / PAGE).description
    except ScreenError:
        return f"the draft {path.name}"
