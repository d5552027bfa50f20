"""Lists of packages, read and named; nothing is installed here."""

from __future__ import annotations

import hashlib
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal, cast

from zetta.runtime.errors import ConfigError, suggest

FOLDER = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class PackageList:
    """What the environment of one simulator is made from."""

    name: str
    about: str
    module: str
    """What must be importable there."""
    python: str
    """Versions of Python that the packages exist for, as `>=3.11,<3.13`."""
    needs_mb: int
    """Room that downloads and the environment take together."""
    draws_with: Literal["opengl", "vulkan"]
    assets: str
    """What must lie in a package's folder, as `MODULE:FOLDER,FOLDER`; empty where nothing must."""
    packages: tuple[str, ...]
    """Each pinned, `name==version`, in the order of installation."""

    accepts: str = ""
    """What a class must take, as `MODULE:CLASS:ARGUMENT`: it tells apart packages of one name and
    version; empty where nothing must."""
    version_of: str = ""
    """The package whose version is the simulator's; empty where it is the last one."""

    @property
    def version(self) -> str:
        """Return the simulator's version."""
        wanted = self.version_of or self.packages[-1].partition("==")[0]
        pins = (pin.partition("==") for pin in self.packages)
        return next((version for name, _, version in pins if name == wanted), "")

    @property
    def digest(self) -> str:
        """Return the hash of what decides what gets installed."""
        text = "\n".join((self.python, *self.packages))
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def names() -> tuple[str, ...]:
    """Return the simulators that have a list."""
    return tuple(sorted(path.stem for path in FOLDER.glob("*.toml")))


@cache
def find(name: str) -> PackageList:
    """Return the list of a simulator.

    Raises:
        ConfigError: there is none of that name.
    """
    if name not in names():
        raise ConfigError(
            f"no simulator {name!r} has an environment of its own; {suggest(name, names())}"
        )
    table = tomllib.loads((FOLDER / f"{name}.toml").read_text(encoding="utf-8"))
    packages = tuple(str(p) for p in table["packages"])
    loose = [p for p in packages if p.count("==") != 1]
    if loose:
        raise ConfigError(f"the list of {name} does not pin {loose[0]!r}; write NAME==VERSION")
    return PackageList(
        name=name,
        about=str(table["about"]),
        module=str(table["module"]),
        python=str(table["python"]),
        needs_mb=int(table["needs_mb"]),
        draws_with=cast(Literal["opengl", "vulkan"], table["draws_with"]),
        assets=str(table.get("assets", "")),
        accepts=str(table.get("accepts", "")),
        packages=packages,
        version_of=str(table.get("version_of", "")),
    )
