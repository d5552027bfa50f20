"""What Ctrl-C leaves of an evaluation: its results, and nothing that runs or listens."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from test_cli_eval import wait_for_rows

from zetta.runtime.soak import descendants

SOCKET_TABLES = ("tcp", "tcp6", "unix")


def sockets_of(pids: list[int]) -> set[str]:
    """Return the inodes of all sockets that these processes hold."""
    held: set[str] = set()
    for pid in pids:
        for link in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(FileNotFoundError):  # closed since it was listed
                target = str(link.readlink())
                if target.startswith("socket:["):
                    held.add(target[len("socket:[") : -1])
    return held


def sockets_of_this_machine() -> set[str]:
    """Return the inodes of all sockets there are."""
    tables = [Path(f"/proc/net/{name}") for name in SOCKET_TABLES]
    return {word for table in tables if table.exists() for word in table.read_text().split()}


def wait_until(so: Callable[[], bool], timeout_s: float = 30.0) -> None:
    """Wait for something that is about to become true."""
    deadline = time.monotonic() + timeout_s
    while not so():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_interrupt_leaves_no_process_no_socket_and_no_folder_of_a_worker(tmp_path: Path) -> None:
    scratch = tmp_path / ("long" * 20)  # too long for a local socket: the worker binds a port
    scratch.mkdir()
    asked = ["eval", "--sim", "toy", "--suites", "toy_pick", "--tasks", "0", "--layout", "sampled"]
    asked += ["--seeds", "0-499", "--option", "worker=yes", "--workers", "2"]
    program = f"from zetta.runtime.cli.main import main; main({[*asked, '--out', 'out']!r})"
    with subprocess.Popen(
        [sys.executable, "-c", program],
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        env={**os.environ, "TMPDIR": str(scratch)},
        cwd=tmp_path,
    ) as parent:
        wait_for_rows(tmp_path / "out", 1, 100.0)
        below = descendants(parent.pid)
        sockets = sockets_of([parent.pid, *below])
        parent.send_signal(signal.SIGINT)
        said = parent.communicate(timeout=60)[1].decode()
    assert len(below) >= 2  # the rollout worker, and its simulator's process
    # A simulator's process is told by the end of a pipe, and ends a moment later.
    wait_until(lambda: not [pid for pid in below if Path(f"/proc/{pid}").exists()])
    wait_until(lambda: not sockets & sockets_of_this_machine())
    wait_until(lambda: not list(scratch.iterdir()))
    assert parent.returncode != 0
    assert "add --resume" in said
    assert "Traceback" not in said
