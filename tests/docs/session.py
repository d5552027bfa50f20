"""One reader's folder: the blocks of a page are carried out in it, one after the other."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.deploy.two_hosts import KINDS, Kind, TwoHosts, two_hosts
from tests.docs.blocks import ROOT, Block

HOST: Final = "gpu"
"""One of two computers is enough; it has a network of its own, in which every port is free."""
ADDRESSES: Final[dict[Kind, dict[str, str]]] = {
    "namespaces": {HOST: "10.77.0.1", "robot": "10.77.0.2"},
    "user namespaces": {HOST: "10.77.0.1", "robot": "10.77.0.2"},
    "loopback": {HOST: "127.79.0.1", "robot": "127.79.0.2"},
}
BLOCK_WITHIN_S: Final = 1800.0
BEGUN_WITHIN_S: Final = 300.0
TOLD_LINES: Final = 40


class BlockFailed(AssertionError):
    """A block of the documentation does not do what it says."""


class Session:
    """A folder with nothing but the installed `zetta`; see `session`."""

    def __init__(self, hosts: TwoHosts, folder: Path) -> None:
        """Begin with an empty folder and an empty home."""
        self._hosts = hosts
        self.work, self._home = folder / "work", folder / "home"
        self.work.mkdir()
        self._home.mkdir()

    def carry_out(self, block: Block) -> None:
        """Save or run a block; leave what is neither.

        Raises:
            BlockFailed: it ended otherwise than it says.
        """
        if block.kind == "file":
            self._save(block)
        elif block.is_run:
            self._run(block)

    def _save(self, block: Block) -> None:
        path = self.work / block.said
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(block.text, encoding="utf-8")

    def _run(self, block: Block) -> None:
        for name in block.values("with"):
            self._lend(Path(name))
        script = block.text
        if block.language == "python":
            program = self.work / f"block_{block.line}.py"
            program.write_text(block.text, encoding="utf-8")
            script = f"python {program.name}"
        if block.value("terminal"):
            self._begin(block, script)
            return
        ended = self._hosts.run(HOST, script, self.work, self._environment(), BLOCK_WITHIN_S)
        expected = int(block.value("exit") or 0)
        if ended.late or ended.code != expected:
            how = "did not end" if ended.late else f"exit code {ended.code}, expected {expected}"
            raise BlockFailed(f"{block.where}: {how}\n{block.text}\n--- said\n{_tail(ended.said)}")

    def _begin(self, block: Block, script: str) -> None:
        """Start what stays; the next block comes when it has begun."""
        self._hosts.start(HOST, script, self.work, self._environment(), block.where)
        deadline = time.monotonic() + BEGUN_WITHIN_S
        while block.value("terminal") not in (said := self._hosts.told(block.where)):
            if time.monotonic() > deadline:
                raise BlockFailed(f"{block.where}: did not begin\n{block.text}\n{_tail(said)}")
            time.sleep(0.1)

    def _lend(self, name: Path) -> None:
        """Copy a file or folder of the checkout to the same place."""
        to = self.work / name
        if not to.exists():
            to.parent.mkdir(parents=True, exist_ok=True)
            copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copyfile
            copy(ROOT / name, to)

    def _environment(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ}
        return {
            "PATH": f"{Path(sys.executable).parent}:/usr/sbin:/usr/bin:/bin",
            "HOME": str(self._home),
            "LANG": "C.UTF-8",
            "COLUMNS": "100",
            "OMP_NUM_THREADS": "1",
            **kept,
        }


def _tail(said: str) -> str:
    return "\n".join(said.splitlines()[-TOLD_LINES:])


@contextmanager
def session(folder: Path) -> Iterator[Session]:
    """Give a fresh folder; what still runs when it is left is ended."""
    with two_hosts(KINDS, ADDRESSES) as hosts:
        yield Session(hosts, folder)
