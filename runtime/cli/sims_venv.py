"""Virtual environments of simulators: where each lies, and whether it is whole.

`<data folder>/sims/NAME` is one, `NAME.log` beside it is what its installation printed. The stamp
inside is written last, so an environment without one is half an installation, and it holds the
hash of the list of packages, so a list that has changed since is noticed.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, TypeAlias

from zetta.runtime.cli.home import data_home
from zetta.runtime.core import Simulator
from zetta.runtime.errors import ConfigError
from zetta.sims.apart import ApartSimulator
from zetta.sims.installs import lists
from zetta.sims.installs.lists import PackageList

STAMP: Final = "zetta-installed.json"
VenvState: TypeAlias = Literal["ready", "missing", "incomplete", "moved", "outdated"]

_WHY: Final = {
    "missing": "is not installed",
    "incomplete": "is half installed",
    "moved": "was moved",
    "outdated": "was installed from an older list of packages",
    "ready": "is installed",
}
"""What a state means by itself."""


@dataclass(frozen=True, slots=True)
class Stamp:
    """What a finished installation says of itself."""

    digest: str
    folder: str
    """Where it was made: an environment that was moved does not run."""
    seconds: float
    size_mb: int

    def of(self, folder: Path) -> bool:
        """Say whether it was made at `folder`, by whatever path both are named."""
        return folder.resolve() == Path(self.folder).resolve()


@dataclass(frozen=True, slots=True)
class Venv:
    """The environment of one simulator."""

    packages: PackageList
    folder: Path

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.folder / "bin" / "python"

    @property
    def log(self) -> Path:
        """What the last installation printed."""
        return self.folder.with_suffix(".log")

    @property
    def lock(self) -> Path:
        """Held by the one process that changes anything."""
        return self.folder.with_suffix(".lock")

    @property
    def stamp(self) -> Stamp | None:
        """What its installation wrote at the end; None where it did not come to that."""
        try:
            told = json.loads((self.folder / STAMP).read_text(encoding="utf-8"))
            return Stamp(
                str(told["digest"]),
                str(told["folder"]),
                float(told["seconds"]),
                int(told["size_mb"]),
            )
        except (OSError, ValueError, KeyError, TypeError):
            return None

    @property
    def state(self) -> VenvState:
        """Whether it can be used."""
        if not self.folder.exists():
            return "missing"
        stamp = self.stamp
        if stamp is None or not self.python.exists():
            return "incomplete"
        if not stamp.of(self.folder):
            return "moved"
        return "ready" if stamp.digest == self.packages.digest else "outdated"

    @property
    def why(self) -> str:
        """What its state means, to go on after the name."""
        state, stamp = self.state, self.stamp
        if state == "moved" and stamp is not None:
            return (
                f"was made in {stamp.folder} and moved to {self.folder}, and an environment runs "
                "only where it was made"
            )
        return _WHY[state]

    @property
    def fix(self) -> str:
        """The command that makes it ready; empty when it is."""
        return "" if self.state == "ready" else f"zetta sims install {self.packages.name}"


def venv_of(name: str) -> Venv:
    """Return the environment of a simulator, which need not exist.

    Raises:
        ConfigError: this simulator has none.
    """
    return Venv(lists.find(name), data_home().absolute() / "sims" / name)


def lives_apart(name: str) -> bool:
    """Say whether a simulator has an environment of its own."""
    return name in lists.names()


def apart(name: str, simulator: Simulator) -> Simulator:
    """Return `simulator` with its environments in processes of its own interpreter.

    Raises:
        ConfigError: its environment is not ready.
    """
    from zetta.runtime.cli.sims_assets import worker_variables  # late: it looks at environments

    venv = venv_of(name)
    if venv.state != "ready":
        raise ConfigError(f"the simulator {name!r} {venv.why}; install it with: {venv.fix}")
    return ApartSimulator(simulator, str(venv.python), lambda: worker_variables(name))
