"""The door of our own protocol: one ROUTER socket, any number of clients.

The loop only moves messages: it takes what came, hands it to `Reception`, and sends what the engine
finished. It never waits for a policy.
"""

from __future__ import annotations

import contextlib
import os
import queue
import threading
import time
from collections.abc import Callable
from typing import Final

import zmq

from zetta.runtime import shared_frames
from zetta.runtime.curve_keys import ServerKeys
from zetta.runtime.policy_server.doors import DoorCounts
from zetta.runtime.policy_server.engine import Engine
from zetta.runtime.policy_server.reception import Reception
from zetta.runtime.transport import Router

DEFAULT_BIND: Final = "tcp://127.0.0.1:5601"
"""Never 5555, which four foreign systems use."""
POLL_MS: Final = 100
"""Longest until a wish to end is heard."""
IN_ONE_GO: Final = 64
"""Messages that are taken before finished answers are sent again."""


class ZmqDoor:
    """Serves `zmq://` clients."""

    def __init__(
        self,
        keys: ServerKeys | None = None,
        on_ready: Callable[[str, str], None] | None = None,
    ) -> None:
        """Choose who may come in.

        Args:
            keys: required for every address but loopback.
            on_ready: told the endpoint and the server's instance once clients can connect.
        """
        self._keys, self._on_ready = keys, on_ready
        self._reception: Reception | None = None

    @property
    def counts(self) -> DoorCounts:
        """What came through so far."""
        return DoorCounts() if self._reception is None else self._reception.counts

    def serve(self, engine: Engine, bind: str, stop: threading.Event) -> None:
        """Answer until `stop` is set, then finish what was taken, for as long as the limits say.

        Raises:
            ConfigError: the address may not be bound.
            InfraError: it is taken.
        """
        router = Router(bind, self._keys)
        finished = _Finished()
        reception = self._reception = Reception(engine, router.send, finished.put)
        shared_frames.sweep()
        try:
            if self._on_ready is not None:
                self._on_ready(router.endpoint, reception.instance)
            _answer(router, reception, finished, stop.is_set)
            reception.closing = True
            engine.drain(0.0)
            last = time.monotonic() + engine.limits.drain_s
            _answer(
                router,
                reception,
                finished,
                lambda: not reception.outstanding or time.monotonic() > last,
            )
        finally:
            reception.close()
            router.close()
            finished.close()


class _Finished:
    """What the engine's thread wants the door's thread to do."""

    def __init__(self) -> None:
        self._calls: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self.waiting, self._bell = os.pipe()
        os.set_blocking(self.waiting, False)
        os.set_blocking(self._bell, False)
        self._open = threading.Lock()
        self._closed = False

    def put(self, call: Callable[[], None]) -> None:
        """Queue a call and wake the door."""
        self._calls.put(call)
        with self._open:
            if not self._closed:
                with contextlib.suppress(BlockingIOError):  # rung already
                    os.write(self._bell, b"!")

    def carry_out(self) -> None:
        """Make all calls that are queued."""
        with contextlib.suppress(BlockingIOError):
            os.read(self.waiting, 4096)
        with contextlib.suppress(queue.Empty):
            while True:
                self._calls.get_nowait()()

    def close(self) -> None:
        """Stop listening."""
        with self._open:
            self._closed = True
            os.close(self.waiting)
            os.close(self._bell)


def _answer(
    router: Router, reception: Reception, finished: _Finished, over: Callable[[], bool]
) -> None:
    """Move messages until it is over."""
    poller = zmq.Poller()
    poller.register(router.socket, zmq.POLLIN)
    poller.register(finished.waiting, zmq.POLLIN)
    while not over():
        ready = dict(poller.poll(POLL_MS))
        if finished.waiting in ready:
            finished.carry_out()
        if router.socket in ready:
            for _ in range(IN_ONE_GO):
                message = router.receive()
                if message is None:
                    break
                reception.take(bytes(message[0]), message[1:])
        reception.expire()
