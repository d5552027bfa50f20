"""An arm of numpy behind a server in a thread, for the tests of the link."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import zmq

from zetta.hw_drivers.arm import OPEN, ArmReading, ArmTarget, Guard, Passed, PoseTarget, RobotSide
from zetta.hw_drivers.arm_guard import KernelGuard
from zetta.hw_drivers.arm_limits import load_limits
from zetta.hw_drivers.arm_messages import Command, Endpoints, command_to_wire, sealed
from zetta.hw_drivers.arm_server import ArmServer, ServerSettings
from zetta.hw_drivers.simple_side import SimpleSide
from zetta.hw_drivers.zmq_arm import hello
from zetta.runtime.curve_keys import ServerKeys
from zetta.runtime.transport import Dealer
from zetta.runtime.wire import Request, request_frames

PATIENCE_S = 20.0
DOWN = np.array([1.0, 0.0, 0.0, 0.0])


def until(fact: Callable[[], bool], said: str, within_s: float = PATIENCE_S) -> None:
    """Wait for what another thread or process brings about.

    Raises:
        AssertionError: it did not happen.
    """
    deadline = time.monotonic() + within_s
    while not fact():
        assert time.monotonic() < deadline, f"never happened: {said}"
        time.sleep(0.002)


def pose(x: float = 0.4, y: float = 0.0, z: float = 0.3, opening: float = 0.08) -> PoseTarget:
    """Return a target with the hand down."""
    return PoseTarget(np.array([x, y, z]), DOWN, opening)


@dataclass
class Served:
    """A running server."""

    server: ArmServer
    side: RobotSide
    thread: threading.Thread
    ended: threading.Event = field(default_factory=threading.Event)

    @property
    def url(self) -> str:
        return self.server.endpoints.command

    def end(self) -> None:
        self.ended.set()
        self.thread.join()
        self.server.close()


def serve(
    side: RobotSide,
    guard: Guard = OPEN,
    endpoints: Endpoints | None = None,
    keys: ServerKeys | None = None,
    clock: Callable[[], float] = time.monotonic,
    latch: Path | None = None,
    lease_s: float = 5.0,
) -> Served:
    """Start a server in a thread; its lease outlasts the pauses of a busy machine."""
    settings = ServerSettings(endpoints or Endpoints.on(port=0), latch=latch, lease_s=lease_s)
    server = ArmServer(side, guard, settings, keys, clock)
    ended = threading.Event()
    thread = threading.Thread(target=server.serve, args=(ended.is_set,), daemon=True)
    thread.start()
    return Served(server, side, thread, ended)


@contextmanager
def served(side: RobotSide, **settings: object) -> Iterator[Served]:
    """Serve for the length of a block."""
    running = serve(side, **settings)  # type: ignore[arg-type]
    try:
        yield running
    finally:
        running.end()


def told(side: SimpleSide) -> list[str]:
    """Return what the side was told so far."""
    return [heard.told for heard in list(side.heard)]


def kernel_for(side: RobotSide, **given: object) -> KernelGuard:
    """Return the kernel with the limits of the simple arm."""
    return KernelGuard(load_limits("simple"), side.facts, **given)  # type: ignore[arg-type]


class Gate:
    """A guard for tests: passes what it is asked through `admit`, once for each fresh target."""

    limits, tick_s, stopped, rests = "", 0.0, "", True

    def __init__(self, admit: Callable[[ArmTarget], ArmTarget]) -> None:
        self._admit = admit

    def tick(
        self, asked: ArmTarget | None, reading: ArmReading | None, now: float, driver: str
    ) -> Passed:
        assert asked is not None
        return Passed(self._admit(asked))

    def held(self) -> None: ...

    def stop(self, reason: str, now: float, by: str) -> None: ...

    def clear(self, by: str, now: float) -> None: ...

    def approve(self, token: str, by: str, now: float) -> None: ...


class RawClient:
    """Speaks the link by hand: it sends what our client never would."""

    def __init__(self, url: str, owner: str = "raw") -> None:
        self.dealer = Dealer(url)
        self.welcome = hello(self.dealer, "", 5.0)
        wish = {"session": self.welcome.session, "owner": owner}
        self.lease = self.dealer.call("lease", wish, 5.0)["lease"]
        self.socket: zmq.Socket[bytes] = zmq.Context.instance().socket(zmq.DEALER)
        self.socket.linger = 0
        self.socket.sndhwm = 0
        self.socket.connect(url)

    def command(
        self,
        seq: int,
        deadline: float,
        target: PoseTarget | None = None,
        driver: str = "policy",
    ) -> None:
        target = target or pose(z=0.3 + 1e-5 * seq)
        command = Command(self.welcome.session, self.lease, seq, deadline, target, driver)
        self.socket.send_multipart(
            request_frames(Request(seq, "command", command_to_wire(command)))
        )

    def beat(self) -> bool:
        return bool(self.dealer.call("beat", sealed({"lease": self.lease}), 5.0)["held"])

    def close(self) -> None:
        self.socket.close(0)
        self.dealer.close()
