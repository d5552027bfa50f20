"""Getting small assets for a simulator in a made-up data folder, and looking at what lies there."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path

from tests.runtime.cli.asset_lists import SIM
from tests.runtime.cli.asset_server import Server
from zetta.runtime.cli.sims_assets import AssetFolder, assets_of
from zetta.runtime.cli.sims_assets_get import get_assets
from zetta.runtime.cli.sims_venv import STAMP, Stamp, venv_of

NEEDED_FILES = {"robots/arm/a.xml", "robots/b.xml", "objects/cups/1/cup.obj"}


def folder() -> AssetFolder:
    """Return the assets of the simulator."""
    found = assets_of(SIM)
    assert found is not None
    return found


def get(source: str, *parts: str, again: bool = False) -> bool:
    """Get parts; return whether anything had to be done."""
    here = folder()
    return get_assets(here, here.assets.chosen(parts), source, again).fresh


def lying(here: AssetFolder) -> set[str]:
    """Return what the simulator finds."""
    files = (path for path in here.root.rglob("*") if path.is_file())
    names = {path.relative_to(here.root).as_posix() for path in files}
    return {name for name in names if not name.startswith(".zetta/")}


def asked(zips: Server) -> int:
    """Return how many requests came."""
    return sum(len(file.asked) for file in zips.files.values())


def made_up_venv() -> Path:
    """Let the environment of the simulator look whole."""
    venv = venv_of(SIM)
    venv.python.parent.mkdir(parents=True)
    venv.python.symlink_to(sys.executable)
    stamp = Stamp(venv.packages.digest, str(venv.folder), 1.0, 1200)
    (venv.folder / STAMP).write_text(json.dumps(asdict(stamp)))
    return venv.folder
