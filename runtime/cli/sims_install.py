"""Making the virtual environment of a simulator from its exact list of packages.

Every package stands in the list, so pip is told to resolve nothing and takes one after the other:
the bar shows real progress, and what fails has a name. A half made environment is made anew; what
pip has downloaded it keeps in its cache.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Final

from packaging.specifiers import SpecifierSet

from zetta.runtime.cli import output
from zetta.runtime.cli.sims_lock import alone
from zetta.runtime.cli.sims_venv import STAMP, Stamp, Venv, venv_of
from zetta.runtime.errors import ConfigError, InfraError

PACKAGE_TIMEOUT_S: Final = 3600.0
CANDIDATES: Final = ("python3.12", "python3.11", "python3.13", "python3.14", "python3")
_PIP: Final = ("-m", "pip", "--disable-pip-version-check", "--no-input", "install", "--no-deps")
_CPU_INDEX: Final = ("--extra-index-url", "https://download.pytorch.org/whl/cpu")
"""Where builds of torch without CUDA (`torch==VERSION+cpu`) are published."""


@dataclass(frozen=True, slots=True)
class Installation:
    """How an order to install ended."""

    venv: Venv
    stamp: Stamp
    fresh: bool
    """Whether anything had to be done."""


def install(name: str, again: bool = False) -> Installation:
    """Make the environment of a simulator, unless it is whole already.

    Args:
        name: simulator.
        again: make it anew in any case.

    Raises:
        ConfigError: unknown simulator, or no Python here that its packages exist for.
        InfraError: no room, or a package cannot be installed.
    """
    venv = venv_of(name)
    with alone(venv.lock, f"installs {name}") as lock:
        stamp = venv.stamp
        if venv.state == "ready" and stamp is not None and not again:
            return Installation(venv, stamp, fresh=False)
        if venv.state in ("incomplete", "moved", "outdated"):
            output.note(f"{name} {venv.why}: it is made anew")
        python = find_python(venv.packages.python, name)
        _check_room(venv)
        return Installation(venv, _make(venv, python, lock), fresh=True)


def find_python(wanted: str, name: str) -> str:
    """Return an interpreter of the versions `wanted`: the running one, or one on the path.

    Raises:
        ConfigError: there is none.
    """
    versions = SpecifierSet(wanted)
    if versions.contains(platform.python_version(), True):
        return sys.executable
    for candidate in CANDIDATES:
        found = shutil.which(candidate)
        if found is not None and versions.contains(_version_of(found), True):
            return found
    raise ConfigError(
        f"the packages of {name} exist for Python {wanted}; this one is "
        f"{platform.python_version()} and the path has no other; install one of those"
    )


def _version_of(python: str) -> str:
    program = "import platform; print(platform.python_version())"
    try:
        child = subprocess.run(
            [python, "-I", "-c", program], capture_output=True, text=True, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return "0"
    return child.stdout.strip() or "0"


def _check_room(venv: Venv) -> None:
    free_mb = shutil.disk_usage(venv.folder.parent).free // 10**6
    needed = venv.packages.needs_mb
    if free_mb < needed:
        raise InfraError(
            f"{venv.packages.name} needs {needed / 1000:.1f} GB at {venv.folder.parent}, where "
            f"{free_mb / 1000:.1f} GB are free; free some room, or set XDG_DATA_HOME to a folder "
            "on another disk"
        )


def _make(venv: Venv, python: str, lock: IO[str]) -> Stamp:
    begun = time.monotonic()
    name, packages = venv.packages.name, venv.packages.packages
    (venv.folder / STAMP).unlink(missing_ok=True)  # first: what is half removed is not whole
    shutil.rmtree(venv.folder, ignore_errors=True)
    venv.log.unlink(missing_ok=True)
    with output.progress(f"installing {name}", len(packages) + 1) as advance:
        advance(0, "virtual environment")
        _run([python, "-m", "venv", str(venv.folder)], venv, lock, "making the virtual environment")
        for i, package in enumerate(packages):
            advance(i + 1, package)
            where = _CPU_INDEX if package.endswith("+cpu") else ()
            line = [str(venv.python), "-I", *_PIP, *where, package]
            _run(line, venv, lock, f"installing {package}")
        advance(len(packages) + 1, "")
    program = f"import {venv.packages.module}"
    _run([str(venv.python), "-I", "-c", program], venv, lock, f"importing {venv.packages.module}")
    stamp = Stamp(
        digest=venv.packages.digest,
        folder=str(venv.folder),
        seconds=round(time.monotonic() - begun, 1),
        size_mb=folder_size(venv.folder) // 10**6,
    )
    unfinished = venv.folder / f".{STAMP}"
    unfinished.write_text(json.dumps(asdict(stamp)), encoding="utf-8")
    unfinished.replace(venv.folder / STAMP)
    return stamp


def _run(line: Sequence[str], venv: Venv, lock: IO[str], doing: str) -> None:
    """Run one step, its output appended to the log.

    The step holds the lock as well: when this process is killed and the step goes on alone, the
    next installation waits for its end instead of writing into the same folder.

    Raises:
        InfraError: it failed, or took too long.
    """
    with venv.log.open("a", encoding="utf-8") as log:
        log.write(f"$ {' '.join(line)}\n")
        log.flush()
        start = log.tell()
        try:
            child = subprocess.run(
                line,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                timeout=PACKAGE_TIMEOUT_S,
                check=False,
                pass_fds=(lock.fileno(),),
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise InfraError(f"{doing} failed: {error}; the log is {venv.log}") from error
    if child.returncode != 0:
        raise InfraError(
            f"{doing} failed: {_cause(venv.log, start)}; the whole log is {venv.log}; then type "
            f"again: zetta sims install {venv.packages.name}"
        )


def _cause(log: Path, start: int) -> str:
    """Return the line that says what went wrong: pip's first error, or the last line."""
    text = log.read_bytes()[start:].decode(errors="replace")
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR: ")]
    return (errors or lines[-1:] or ["it said nothing"])[0].rstrip(".")


def folder_size(folder: Path) -> int:
    """Return the bytes of all files below a folder."""
    return sum(
        entry.stat(follow_symlinks=False).st_size
        for parent, _, files in os.walk(folder)
        for entry in map(Path(parent).joinpath, files)
    )
