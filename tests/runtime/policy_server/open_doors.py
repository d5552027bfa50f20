"""A door in a thread of the test, and a client that can say anything to it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import zmq

from zetta.runtime.curve_keys import ServerKeys
from zetta.runtime.policies.served import ServedPolicy, ServedSettings
from zetta.runtime.policy_server.engine import Engine
from zetta.runtime.policy_server.limits import ServingLimits
from zetta.runtime.policy_server.zmq_door import ZmqDoor
from zetta.runtime.wire import Frame, Reply, Request, read_reply, request_frames

LONG_S = 20.0


@dataclass(frozen=True)
class Served:
    """What is running."""

    engine: Engine
    door: ZmqDoor
    endpoint: str
    stop: threading.Event
    thread: threading.Thread

    def client(self, **settings: Any) -> ServedPolicy:
        return ServedPolicy(ServedSettings(self.endpoint, **settings))

    def end(self) -> None:
        self.stop.set()
        self.thread.join(LONG_S)
        assert not self.thread.is_alive()


@contextmanager
def served(
    policy: Any, keys: ServerKeys | None = None, bind: str = "tcp://127.0.0.1:*", **limits: Any
) -> Iterator[Served]:
    """Serve `policy` until the block ends."""
    engine = Engine(policy, ServingLimits(**limits))
    ready = threading.Event()
    places: list[str] = []

    def on_ready(endpoint: str, instance: str) -> None:
        places.append(endpoint)
        ready.set()

    door, stop = ZmqDoor(keys, on_ready), threading.Event()
    thread = threading.Thread(target=door.serve, args=(engine, bind, stop))
    thread.start()
    try:
        assert ready.wait(LONG_S)
        yield Served(engine, door, places[0], stop, thread)
    finally:
        stop.set()
        thread.join(LONG_S)
        engine.stop()
    assert not thread.is_alive()


class RawClient:
    """A socket without manners."""

    def __init__(self, endpoint: str) -> None:
        self.socket: zmq.Socket[bytes] = zmq.Context.instance().socket(zmq.DEALER)
        self.socket.linger = 0
        self.socket.connect(endpoint)
        self.calls = 0

    def __enter__(self) -> RawClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close(0)

    def send(self, frames: list[Frame]) -> None:
        self.socket.send_multipart(frames)

    def receive(self, within_s: float = LONG_S) -> Reply:
        assert self.socket.poll(within_s * 1000), "no reply"
        return read_reply(self.socket.recv_multipart())

    def ask(self, do: str, number: int | None = None, **given: Any) -> Reply:
        self.calls = self.calls + 1 if number is None else number
        self.send(request_frames(Request(self.calls, do, given)))
        return self.receive()

    def opened(self, robot: str = "raw") -> str:
        return str(self.ask("open", robot=robot, priority=0).value["session"])
