"""`zetta serve` in a process of its own, to be stopped, killed and weighed."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

LONG_S = 60.0


def free_port() -> int:
    """Return a port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class ServerProcess:
    """One server; started when made, ready when `wait_ready` returns."""

    def __init__(self, policy: str, port: int, *options: str) -> None:
        self.place = f"127.0.0.1:{port}"
        self.process = subprocess.Popen(
            [
                *(sys.executable, "-m", "zetta.runtime.cli.main", "serve", "--json"),
                *("--policy", policy, "--bind", f"tcp://{self.place}", *options),
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def wait_ready(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, self.process.stderr.read() if self.process.stderr else ""
        return dict(json.loads(line))

    def send(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def end(self, number: signal.Signals = signal.SIGKILL) -> tuple[int, str]:
        """Send a signal, unless it has ended, and return exit code and stderr."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        _, said = self.process.communicate(timeout=LONG_S)
        return self.process.returncode, said

    def resident_kib(self) -> int:
        """Return the memory that it holds now."""
        status = Path(f"/proc/{self.process.pid}/status").read_text(encoding="utf-8")
        return int(next(line.split()[1] for line in status.splitlines() if "VmRSS" in line))
