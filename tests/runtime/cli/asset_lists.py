"""A small list of assets in place of a real one, for tests and for the children they kill."""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.runtime.cli.asset_server import zipped
from zetta.runtime.cli import sims_assets_get
from zetta.runtime.cli.main import main as zetta
from zetta.sims.installs import downloads

SIM = "robosuite"
"""It is registered, so that `check` and `list` know it; what it would need is made up here."""
ROBOTS = zipped({"robots/arm/a.xml": b"a" * 300_000, "robots/b.xml": b"b" * 10})
THINGS = zipped({"cups/1/cup.obj": b"c" * 200_000, "__MACOSX/._cups": b"junk"})
EXTRA = zipped({"walls/w.png": b"w" * 5000})
ZIPS = {"robots.zip": ROBOTS, "things.zip": THINGS, "extra.zip": EXTRA}

PART = """
[[parts]]
name = "{name}"
about = "some {name}"
url = "http://127.0.0.1:9/{name}.zip"
file = "{name}.zip"
into = "{into}"
gives = ["{gives}"]
needed = {needed}
download_mb = 1
unpacked_mb = 2
{more}
"""


def write_list(folder: Path, copies: str = "", sha256: str = "") -> None:
    """Write the list of `SIM`, with the hash of its first part."""
    folder.mkdir(exist_ok=True)
    hashed = f'sha256 = "{sha256 or hashlib.sha256(ROBOTS).hexdigest()}"\nsize = {len(ROBOTS)}'
    text = f'variable = "TEST_ASSETS"\ncopies = "{copies}"\n'
    text += PART.format(name="robots", into="", gives="robots/arm", needed="true", more=hashed)
    text += PART.format(name="things", into="objects", gives="objects/cups", needed="true", more="")
    text += PART.format(name="extra", into="", gives="walls", needed="false", more="")
    (folder / f"{SIM}.toml").write_text(text, encoding="utf-8")


def use_list(folder: Path) -> None:
    """Let the lists of this process be those of a folder."""
    downloads.FOLDER = folder
    downloads.find.cache_clear()


def killed_at(step: int) -> None:
    """Let this process be killed before it moves, unpacks or removes a file for the n-th time."""
    done = 0

    def counted(original: Callable[..., Any]) -> Callable[..., Any]:
        def carried_out(*args: Any, **given: Any) -> Any:
            nonlocal done
            if done == step:
                os.kill(os.getpid(), signal.SIGKILL)
            done += 1
            return original(*args, **given)

        return carried_out

    for owner, name in ((shutil, "copyfileobj"), (Path, "replace"), (sims_assets_get, "drop")):
        setattr(owner, name, counted(getattr(owner, name)))


def main() -> None:
    """Run `zetta` with the list of the folder of the first argument; the second kills it."""
    folder, step, *typed = sys.argv[1:]
    use_list(Path(folder))
    if step != "-":
        killed_at(int(step))
    zetta(typed)


if __name__ == "__main__":
    main()
