"""Two computers for a test: network namespaces on a cable, or two addresses of one machine."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

Kind: TypeAlias = Literal["namespaces", "user namespaces", "loopback"]
KINDS: Final[tuple[Kind, ...]] = ("namespaces", "user namespaces", "loopback")
"""In the order in which they are tried."""
AGENT: Final = Path(__file__).with_name("host_agent.py")
READY_WITHIN_S: Final = 20.0
MORE_S: Final = 10.0
"""How long an answer may be behind the end of what it tells."""
OWN: Final = ("--net", "--pid", "--fork", "--kill-child", "--mount-proc")
WAYS: Final[Mapping[Kind, tuple[str, ...]]] = {
    "namespaces": ("unshare", *OWN),
    "user namespaces": ("unshare", "--user", "--map-root-user", *OWN),
    "loopback": (),
}


class NoSuchHosts(Exception):
    """This machine does not allow that."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How a script ended."""

    code: int
    said: str
    """Standard output and standard error together."""
    late: bool = False
    """It did not end by itself."""


class TwoHosts:
    """Two computers that carry out scripts; see `two_hosts`."""

    def __init__(self, kind: Kind, addresses: Mapping[str, str]) -> None:
        """Start them.

        Raises:
            NoSuchHosts: not on this machine.
        """
        self.kind, self.addresses = kind, dict(addresses)
        told = json.dumps({"addresses": self.addresses, "apart": kind != "loopback"})
        line = [*WAYS[kind], sys.executable, "-I", str(AGENT), told]
        try:
            self._process = subprocess.Popen(
                line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
            )
        except OSError as error:
            raise NoSuchHosts(str(error)) from error
        try:
            ready = self._answer(READY_WITHIN_S)
        except NoSuchHosts:
            self.close()
            raise
        if not ready["ready"]:
            self.close()
            raise NoSuchHosts(ready["why"])

    @property
    def pid(self) -> int:
        """Return the outermost process."""
        return self._process.pid

    def run(
        self,
        host: str,
        script: str,
        folder: Path,
        environment: Mapping[str, str],
        within_s: float = 60.0,
    ) -> Ended:
        """Carry out a script and wait for its end."""
        told = self._told("run", host, script, folder, environment)
        return Ended(**self._ask({**told, "within_s": within_s}, within_s))

    def start(
        self, host: str, script: str, folder: Path, environment: Mapping[str, str], name: str
    ) -> None:
        """Begin a script and go on."""
        self._ask({**self._told("start", host, script, folder, environment), "name": name}, 0.0)

    def told(self, name: str) -> str:
        """Return what a script that was begun has printed so far."""
        return str(self._ask({"do": "told", "name": name}, 0.0)["said"])

    def wait(self, name: str, within_s: float = 60.0, interrupt: bool = False) -> Ended:
        """Wait for the end of a script that was begun; interrupt it before as Ctrl-C does."""
        told = {"do": "wait", "name": name, "within_s": within_s, "interrupt": interrupt}
        return Ended(**self._ask(told, within_s))

    def cable(self, plugged: bool) -> bool:
        """Pull the cable or plug it in, and say whether there is one."""
        self._ask({"do": "cable", "plugged": plugged}, 0.0)
        return self.kind != "loopback"

    def close(self) -> None:
        """End both and everything on them; again does nothing."""
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            if pipe is not None:
                pipe.close()
        try:
            self._process.wait(10.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    @staticmethod
    def _told(
        do: str, host: str, script: str, folder: Path, environment: Mapping[str, str]
    ) -> dict[str, Any]:
        where = {"host": host, "folder": str(folder), "environment": dict(environment)}
        return {"do": do, "script": script, **where}

    def _ask(self, question: dict[str, Any], within_s: float) -> dict[str, Any]:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(question).encode() + b"\n")
        self._process.stdin.flush()
        return self._answer(within_s + MORE_S)

    def _answer(self, within_s: float) -> dict[str, Any]:
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        deadline, line = time.monotonic() + within_s, b""
        while not line.endswith(b"\n"):
            left = max(0.0, deadline - time.monotonic())
            if not select.select([self._process.stdout], [], [], left)[0]:
                raise NoSuchHosts(f"the two computers did not answer within {within_s:g} s")
            piece = os.read(self._process.stdout.fileno(), 1 << 16)
            if not piece:
                why = self._process.stderr.read().decode(errors="replace").strip()
                raise NoSuchHosts(why or "the two computers ended")
            line += piece
        answer: dict[str, Any] = json.loads(line)
        return answer


@contextmanager
def two_hosts(
    kinds: tuple[Kind, ...], addresses: Mapping[Kind, Mapping[str, str]]
) -> Iterator[TwoHosts]:
    """Give the first kind that this machine allows.

    Raises:
        NoSuchHosts: none of them.
    """
    reasons = []
    for kind in kinds:
        try:
            hosts = TwoHosts(kind, addresses[kind])
        except NoSuchHosts as error:
            reasons.append(f"{kind}: {error}")
            continue
        try:
            yield hosts
        finally:
            hosts.close()
        return
    raise NoSuchHosts("; ".join(reasons))
