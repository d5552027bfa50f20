"""Runs as a process of its own: holds the two computers and carries out scripts on them.

It reads requests, one JSON object a line, and ends with its standard input. As the first process of
a process namespace it takes everything with it that was started there, and the networks go with the
last process in them: however a test ends, nothing stays. Where there are no namespaces it ends its
descendants itself.
"""

from __future__ import annotations

import ctypes
import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, Final

PR_SET_CHILD_SUBREAPER: Final = 36
NETWORK_WITHIN_S: Final = 5.0
END: Final = "end"


class Computers:
    """Two computers on a cable, or two names for one where the machine allows no more."""

    def __init__(self, addresses: Mapping[str, str], apart: bool) -> None:
        """Make the networks.

        Args:
            addresses: of each computer.
            apart: give each a network of its own, joined by a pair of devices.

        Raises:
            OSError, subprocess.CalledProcessError: not on this machine.
        """
        self._holders: dict[str, subprocess.Popen[bytes]] = {}
        if apart:
            self._join(addresses)

    def line(self, host: str, script: str) -> list[str]:
        """Return the command line that carries out `script` on `host`."""
        shell = ["bash", "--noprofile", "--norc", "-e", "-c", script]
        if not self._holders:
            return shell
        return ["nsenter", f"--net=/proc/{self._holders[host].pid}/ns/net", "--", *shell]

    def cable(self, plugged: bool) -> None:
        """Pull the cable, or plug it in; without networks of their own nothing happens."""
        for host in self._holders:
            self._ip(host, "link", "set", f"{host}0", "up" if plugged else "down")

    def _join(self, addresses: Mapping[str, str]) -> None:
        own = Path("/proc/self/ns/net").readlink()
        for host in addresses:
            self._holders[host] = subprocess.Popen(["unshare", "--net", "--", "sleep", "infinity"])
        deadline = time.monotonic() + NETWORK_WITHIN_S
        for holder in self._holders.values():
            while Path(f"/proc/{holder.pid}/ns/net").readlink() == own:
                if time.monotonic() > deadline or holder.poll() is not None:
                    raise OSError("no network namespace of its own was given")
                time.sleep(0.002)
        first, second = (f"{holder.pid}" for holder in self._holders.values())
        one, other = (f"{host}0" for host in self._holders)
        _carried_out(
            "ip", "link", "add", one, "netns", first, "type", "veth",
            "peer", "name", other, "netns", second,
        )  # fmt: skip
        for host, address in addresses.items():
            self._ip(host, "link", "set", "lo", "up")
            self._ip(host, "address", "add", f"{address}/24", "dev", f"{host}0")
            self._ip(host, "link", "set", f"{host}0", "up")

    def _ip(self, host: str, *words: str) -> None:
        where = f"--net=/proc/{self._holders[host].pid}/ns/net"
        _carried_out("nsenter", where, "--", "ip", *words)


def _carried_out(*line: str) -> None:
    subprocess.run(line, check=True, capture_output=True, timeout=NETWORK_WITHIN_S)


class Running:
    """One script and what it prints."""

    def __init__(self, line: list[str], folder: str, environment: Mapping[str, str]) -> None:
        self._said: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - read at the end
        self._process = subprocess.Popen(
            line,
            stdin=subprocess.DEVNULL,
            stdout=self._said,
            stderr=subprocess.STDOUT,
            cwd=folder,
            env=dict(environment),
            start_new_session=True,
        )

    def ended(self, within_s: float) -> dict[str, Any]:
        """Wait for its end and return how it ended; what lasts longer is killed."""
        late = False
        try:
            self._process.wait(within_s)
        except subprocess.TimeoutExpired:
            late = True
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        self._said.seek(0)
        said = self._said.read().decode(errors="replace")
        return {"code": self._process.returncode, "said": said, "late": late}

    def interrupt(self) -> None:
        """Interrupt everything in its terminal."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGINT)

    def told(self) -> str:
        """Return what it has printed so far."""
        return os.pread(self._said.fileno(), 1 << 20, 0).decode(errors="replace")


def serve(computers: Computers) -> None:
    """Carry out requests until there are no more."""
    requests: queue.Queue[str] = queue.Queue()
    threading.Thread(target=_read, args=(requests,), daemon=True).start()
    background: dict[str, Running] = {}
    while (line := requests.get()) != END:
        print(json.dumps(_answer(json.loads(line), computers, background)), flush=True)


def _answer(
    asked: dict[str, Any], computers: Computers, background: dict[str, Running]
) -> dict[str, Any]:
    if asked["do"] == "cable":
        computers.cable(asked["plugged"])
        return {}
    if asked["do"] == "wait":
        running = background.pop(asked["name"])
        if asked["interrupt"]:
            running.interrupt()
        return running.ended(asked["within_s"])
    if asked["do"] == "told":
        return {"said": background[asked["name"]].told()}
    line = computers.line(asked["host"], asked["script"])
    running = Running(line, asked["folder"], asked["environment"])
    if asked["do"] == "start":
        background[asked["name"]] = running
        return {}
    return running.ended(asked["within_s"])


def _read(requests: queue.Queue[str]) -> None:
    for line in sys.stdin:
        requests.put(line)
    requests.put(END)
    time.sleep(1.0)  # whoever waits for a script ends it now
    end_all()


def end_all() -> None:
    """End this process and every process that it started."""
    if os.getpid() != 1:  # the first process of a namespace takes the others with it
        for _ in range(20):
            below = descendants(os.getpid())
            if not below:
                break
            for pid in below:
                try:
                    os.kill(pid, signal.SIGKILL)
                    os.waitpid(pid, os.WNOHANG)
                except (ProcessLookupError, ChildProcessError):
                    continue
            time.sleep(0.01)
    os._exit(0)


def descendants(top: int) -> set[int]:
    """Return the living processes that `top` started, directly or not."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if fields[0] != "Z":
                parents[int(entry.name)] = int(fields[1])
    found = {top}
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return found - {top}


def main() -> None:
    """Make the computers that the arguments describe, say so, and serve."""
    told = json.loads(sys.argv[1])
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)  # orphans stay ours
    try:
        computers = Computers(told["addresses"], told["apart"])
    except (OSError, subprocess.SubprocessError) as error:
        print(json.dumps({"ready": False, "why": str(error)}), flush=True)
    else:
        print(json.dumps({"ready": True}), flush=True)
        serve(computers)
    end_all()


if __name__ == "__main__":
    main()
