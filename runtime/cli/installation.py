"""What of this installation is there: packages of the base and of each extra, and how to add one.

Read from the installed package's own metadata, so it can never disagree with `pyproject.toml`.
"""

from __future__ import annotations

import platform
import shlex
import sys
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, metadata, requires, version
from typing import Final

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

BASE: Final = "base"


@dataclass(frozen=True, slots=True)
class PackageState:
    """One required package, as it is installed."""

    name: str
    wanted: str
    """Version specifier, such as `==3.17.0`; empty when any will do."""
    found: str | None
    """Installed version, or None."""
    fits: bool

    def __str__(self) -> str:
        if self.found is None:
            return f"{self.name} is missing"
        if not self.fits:
            return f"{self.name} is {self.found} instead of {self.wanted}"
        return f"{self.name} {self.found}"


def is_installed() -> bool:
    """Return whether zetta is installed, rather than only importable from a source tree."""
    try:
        version("zetta")
    except PackageNotFoundError:
        return False
    return True


def own_version() -> str:
    """Return the version of zetta; empty when it is not installed."""
    return version("zetta") if is_installed() else ""


def extras() -> tuple[str, ...]:
    """Return the extras, in the order of the project file; none when zetta is not installed."""
    return tuple(metadata("zetta").get_all("Provides-Extra") or ()) if is_installed() else ()


def python() -> PackageState:
    """Return the Python that is running, against the one that zetta asks for."""
    wanted = metadata("zetta")["Requires-Python"] if is_installed() else ""
    found = platform.python_version()
    return PackageState("python", wanted, found, SpecifierSet(wanted).contains(found, True))


def packages(group: str) -> tuple[PackageState, ...]:
    """Return the packages of `base` or of an extra, in the order of the project file.

    Empty when zetta itself is not installed.
    """
    if not is_installed():
        return ()
    wanted = (Requirement(line) for line in requires("zetta") or ())
    return tuple(_package_state(r) for r in wanted if _belongs(r, group))


def _belongs(requirement: Requirement, group: str) -> bool:
    marker = requirement.marker
    in_base = marker is None or marker.evaluate({"extra": ""})
    if group == BASE:
        return in_base
    return not in_base and marker is not None and marker.evaluate({"extra": group})


def _package_state(requirement: Requirement) -> PackageState:
    wanted = str(requirement.specifier)
    try:
        found = version(requirement.name)
    except PackageNotFoundError:
        return PackageState(requirement.name, wanted, None, fits=False)
    fits = requirement.specifier.contains(found, prereleases=True)
    return PackageState(requirement.name, wanted, found, fits)


def install_line(extra: str | None = None) -> str:
    """Return the command that adds `extra`, or the base, to the Python that is running."""
    what = f"'zetta[{extra}]'" if extra else "zetta"
    if not is_installed():
        what = f"-e '.[{extra}]'" if extra else "-e ."
    return f"{shlex.quote(sys.executable)} -m pip install {what}"
