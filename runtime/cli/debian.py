"""Packages of Debian unpacked into a folder; the system and its lists stay as they are.

apt gets sources, lists and a cache of its own below the folder, and from the system only where its
mirror is and how it is reached. No privilege is needed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from zetta.runtime.errors import ConfigError, InfraError

STEP_TIMEOUT_S: Final = 900.0
OS_RELEASE: Final = Path("/etc/os-release")
_KEYRING: Final = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
_TARGET: Final = "$(REPO_URI) $(RELEASE) $(COMPONENT) $(CREATED_BY)"
_OLD_NAMES: Final = {"bookworm": ("stable", "oldstable", "oldoldstable")}
"""What a release may be called in a system's sources, beside its own name."""


@dataclass(frozen=True, slots=True)
class Release:
    """A release of Debian."""

    name: str

    @property
    def backports(self) -> str:
        """Its suite of newer packages."""
        return f"{self.name}-backports"


def running_release() -> str:
    """Return the code name of the Debian that runs here; empty on any other system."""
    try:
        lines = OS_RELEASE.read_text(encoding="utf-8").splitlines()
    except OSError:
        return ""
    told = {key: value.strip('"') for key, _, value in (line.partition("=") for line in lines)}
    return told.get("VERSION_CODENAME", "") if told.get("ID") == "debian" else ""


def mirror_of(targets: str, release: Release) -> str:
    """Return the address of the archive among what `apt-get indextargets` printed.

    Raises:
        ConfigError: the system has no source of this release.

    >>> mirror_of("http://m/debian-security/ bookworm-security main Packages\\n"
    ...           "http://m/debian/ bookworm main Packages", Release("bookworm"))
    'http://m/debian/'
    """
    names = (release.name, *_OLD_NAMES.get(release.name, ()))
    for line in targets.splitlines():
        address, *rest = line.split()
        if len(rest) == 3 and rest[0] in names and rest[1:] == ["main", "Packages"]:
            return address
    raise ConfigError(
        f"apt has no source of {release.name} main, from which the mirror would be taken; add one "
        "to /etc/apt/sources.list"
    )


class Archive:
    """The archive of a release with its backports, read into a folder of ours."""

    def __init__(self, folder: Path, release: Release) -> None:
        """Prepare `folder`; nothing is fetched yet.

        Raises:
            ConfigError: apt is missing, or has no source to take the mirror from.
            InfraError: apt cannot be asked.
        """
        for tool in ("apt-get", "apt-config", "dpkg"):
            if shutil.which(tool) is None:
                raise ConfigError(f"{tool} is missing, with which packages of Debian are fetched")
        self._folder, self._release = folder, release
        mirror = mirror_of(_run(["apt-get", "indextargets", "--format", _TARGET]), release)
        for name in ("lists/partial", "cache/archives/partial", "packages"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        signed = f"[signed-by={_KEYRING}] " if _KEYRING.exists() else ""
        suites = (release.name, release.backports)
        sources = "".join(f"deb {signed}{mirror} {suite} main\n" for suite in suites)
        (folder / "sources.list").write_text(sources, encoding="utf-8")
        (folder / "apt.conf").write_text(self._settings(), encoding="utf-8")

    def update(self) -> None:
        """Fetch the lists of packages.

        Raises:
            InfraError: the mirror cannot be reached, or has no such suite.
        """
        self._apt("-o", "APT::Update::Error-Mode=any", "update")

    def unpack(self, packages: Sequence[str], into: Path) -> None:
        """Fetch packages, from the backports where they have them, and unpack them.

        Raises:
            InfraError: one cannot be fetched or unpacked.
        """
        folder = self._folder / "packages"
        self._apt("-t", self._release.backports, "download", *packages, folder=folder)
        for package in sorted(folder.glob("*.deb")):
            _run(["dpkg", "-x", str(package), str(into)])
            package.unlink()

    def _settings(self) -> str:
        """Return the settings of apt: how the network is reached is the system's, the rest ours.

        The system's hooks are left out: they would clean or touch what is not ours.
        """
        theirs = _run(["apt-config", "dump"]).splitlines()
        kept = [line for line in theirs if line.startswith(("Acquire::", "APT::Architecture"))]
        folder = self._folder
        ours = {
            "Dir::Etc::parts": "/dev/null",
            "Dir::Etc::main": "/dev/null",
            "Dir::Etc::sourceparts": "/dev/null",
            "Dir::Etc::preferences": "/dev/null",
            "Dir::Etc::preferencesparts": "/dev/null",
            "Dir::Etc::sourcelist": f"{folder}/sources.list",
            "Dir::State::lists": f"{folder}/lists",
            "Dir::Cache": f"{folder}/cache",
            "APT::Sandbox::User": "root",
        }
        return "\n".join([*kept, *(f'{key} "{value}";' for key, value in ours.items())]) + "\n"

    def _apt(self, *arguments: str, folder: Path | None = None) -> str:
        settings = {"APT_CONFIG": str(self._folder / "apt.conf")}
        return _run(["apt-get", "-q", *arguments], folder, settings)


def _run(
    line: Sequence[str], folder: Path | None = None, settings: dict[str, str] | None = None
) -> str:
    """Return what a command printed.

    Raises:
        InfraError: it failed, or took too long.
    """
    try:
        child = subprocess.run(
            line,
            cwd=folder,
            env={**os.environ, "LC_ALL": "C", **(settings or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=STEP_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InfraError(f"{' '.join(line[:4])} failed: {error}") from error
    if child.returncode != 0:
        lines = child.stderr.strip().splitlines() or [f"exit code {child.returncode}"]
        wrong = [said for said in lines if said.startswith("E: ")] or lines[-1:]
        raise InfraError(f"{' '.join(line[:4])} failed: {wrong[0].removeprefix('E: ')}")
    return child.stdout
