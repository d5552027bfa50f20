"""An installation of the real order of steps whose steps are quick, and can be stopped in.

A step that finds the file `stop-STEP` in the folder of the installation writes its process id to
`stopped` and stands still, so that whoever waits for that file can kill at that very place.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
from pathlib import Path

from zetta.runtime.cli import sims_install
from zetta.runtime.cli.main import main as zetta
from zetta.sims.installs import lists
from zetta.sims.installs.lists import PackageList

NAME = "robosuite"
STEPS = ("venv", "first", "second", "import", "stamp")
LIST = PackageList(
    name=NAME,
    about="two small packages",
    module="first",
    python=">=3.11",
    needs_mb=1,
    draws_with="opengl",
    assets="",
    packages=("first==1.0", "second==2.0"),
)
STOP = """
import os, signal, sys
from pathlib import Path
def stop(step):
    if (Path({folder!r}) / f"stop-{{step}}").exists():
        reached = Path({folder!r}) / "reached"
        reached.write_text(str(os.getpid()))
        reached.rename(reached.with_name("stopped"))
        signal.pause()
"""
MAKE = """
import venv
Path(sys.argv[-1]).mkdir(parents=True)
stop("venv")
venv.create(sys.argv[-1], symlinks=True)
"""
PIP = """
import sysconfig
name = sys.argv[-1].partition("==")[0]
place = Path(sysconfig.get_path("purelib")) / f"{{name}}.py"
stop(name)
place.write_text({stop!r} + 'stop("import")')
"""


def quick_steps(folder: Path) -> None:
    """Let installations of this process be quick, and stop where files in `folder` say so."""
    stop = STOP.format(folder=str(folder))
    maker = folder / "python"
    maker.write_text(f"#!{sys.executable}\n{stop}{MAKE}", encoding="utf-8")
    maker.chmod(0o755)
    lists.find = lambda name: LIST  # type: ignore[assignment]
    sims_install.find_python = lambda wanted, name: str(maker)
    sims_install._PIP = ("-c", stop + PIP.format(stop=stop))  # type: ignore[misc,assignment]


def killed_before(step: str) -> None:
    """Let this process be killed before it removes an environment, or writes its stamp."""

    def kill(*args: object, **given: object) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    owner, name = {"removal": (shutil, "rmtree"), "stamp": (Path, "replace")}[step]
    setattr(owner, name, kill)


if __name__ == "__main__":
    where, step = Path(sys.argv[1]), sys.argv[2]
    quick_steps(where)
    if step in ("removal", "stamp"):
        killed_before(step)
    zetta(["sims", "install", NAME, *sys.argv[3:]])
