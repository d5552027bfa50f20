"""Removing what `zetta sims install` and `zetta sims assets` put into the data folder."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from zetta.runtime.cli.sims_assets import MARKS, assets_of
from zetta.runtime.cli.sims_install import folder_size
from zetta.runtime.cli.sims_lock import alone
from zetta.runtime.cli.sims_venv import STAMP, lives_apart, venv_of
from zetta.runtime.errors import ConfigError, InfraError, suggest
from zetta.sims.installs import downloads, lists


@dataclass(frozen=True, slots=True)
class Removal:
    """One folder that goes."""

    what: str
    folder: Path
    lock: Path
    log: Path | None
    """Goes with it."""
    size: int
    """Bytes."""


def removals(name: str, keep_assets: bool = False) -> tuple[Removal, ...]:
    """Return what lies here of a simulator.

    Raises:
        ConfigError: nothing is ever installed under that name.
    """
    known = sorted({*lists.names(), *downloads.names()})
    if name not in known:
        raise ConfigError(f"{name!r} has no environment to remove; {suggest(name, known)}")
    found: list[tuple[str, Path, Path, Path | None]] = []
    if lives_apart(name):
        venv = venv_of(name)
        found.append(("environment", venv.folder, venv.lock, venv.log))
    assets = assets_of(name)
    if assets is not None and not keep_assets:
        found.append(("assets", assets.root, assets.lock, None))
    return tuple(
        Removal(what, folder, lock, log, folder_size(folder))
        for what, folder, lock, log in found
        if folder.is_dir()
    )


def remove(removal: Removal) -> None:
    """Remove a folder; what is left when it is broken off counts as half installed.

    Raises:
        InfraError: something in it cannot be removed.
    """
    with alone(removal.lock, f"works in {removal.folder}"):
        (removal.folder / STAMP).unlink(missing_ok=True)
        shutil.rmtree(removal.folder / MARKS, ignore_errors=True)
        try:
            shutil.rmtree(removal.folder)
        except FileNotFoundError:
            pass
        except OSError as error:
            what = error.filename or removal.folder
            raise InfraError(
                f"cannot remove {what}: {error.strerror or error}; end what uses it and type the "
                "command again"
            ) from error
        if removal.log is not None:
            removal.log.unlink(missing_ok=True)
