"""The stream of states: a publisher that never waits, and a subscriber that sees the newest."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import zmq

from zetta.runtime.curve_keys import ClientKeys, ServerKeys
from zetta.runtime.errors import ConfigError, cannot_listen
from zetta.runtime.transport import (
    Router,
    Socket,
    ask_for_keys,
    check_bind,
    check_destination,
    present_keys,
)

if TYPE_CHECKING:
    from zmq.auth.thread import ThreadAuthenticator

WAITING: Final = 4
"""Messages that wait for a slow subscriber; more are dropped."""


class Publisher:
    """A bound PUB socket."""

    def __init__(self, bind: str, keys: ServerKeys | None = None, waiting: int = WAITING) -> None:
        """Bind; a slow subscriber misses what exceeds `waiting` messages.

        Raises:
            ConfigError: the address may not be bound without keys.
            InfraError: it is taken.
        """
        check_bind(bind, keys is not None)
        self._context = zmq.Context()
        self._gate: ThreadAuthenticator | None = None
        self._socket: Socket = self._context.socket(zmq.PUB)
        self._socket.sndhwm, self._socket.linger = waiting, 0
        self._socket.maxmsgsize = 1024  # subscribers send nothing but subscriptions
        self._socket.handshake_ivl = 5000
        try:
            if keys is not None:
                self._gate = ask_for_keys(self._context, self._socket, keys)
            self._socket.bind(bind)
        except zmq.ZMQError as error:
            self.close()
            advice = "is another server there? end it, or choose another port"
            raise cannot_listen(bind, error, advice) from error
        self.endpoint = self._socket.getsockopt_string(zmq.LAST_ENDPOINT)

    def send(self, message: bytes) -> None:
        """Send to whoever listens; what does not fit is dropped."""
        with contextlib.suppress(zmq.Again):
            self._socket.send(message, zmq.NOBLOCK)

    def close(self) -> None:
        """Close; calling it again does nothing."""
        if self._socket.closed:
            return
        self._socket.close(0)
        if self._gate is not None and self._gate.is_alive():
            self._gate.stop()
        self._context.term()


@dataclass(frozen=True, slots=True)
class Sockets:
    """How a server makes its sockets. A twin makes some that lose and delay messages."""

    router: Callable[[str, ServerKeys | None, int], Router] = Router
    publisher: Callable[[str, ServerKeys | None], Publisher] = Publisher

    def open(
        self, stop: str, command: str, state: str, keys: ServerKeys | None, max_bytes: int
    ) -> tuple[Router, Router, Publisher]:
        """Bind the three sockets of an arm's server.

        Raises:
            ConfigError: an address may not be bound without keys.
            InfraError: one is taken.
        """
        with contextlib.ExitStack() as opened:
            # The stop has a socket, a queue and a thread of its own: nothing can be before it.
            stops = self.router(stop, keys, max_bytes)
            opened.callback(stops.close)
            commands = self.router(command, keys, max_bytes)
            opened.callback(commands.close)
            states = self.publisher(state, keys)
            opened.pop_all()
        return stops, commands, states


class Newest:
    """A subscriber that keeps the newest message and forgets those before."""

    def __init__(self, endpoint: str, keys: ClientKeys | None, max_bytes: int) -> None:
        """Connect in the background.

        Raises:
            ConfigError: the endpoint is no place that can be connected to.
        """
        check_destination(endpoint)
        self.endpoint = endpoint
        self._socket: zmq.Socket[bytes] = zmq.Context.instance().socket(zmq.SUB)
        for option, value in (
            (zmq.CONFLATE, 1),
            (zmq.LINGER, 0),
            (zmq.MAXMSGSIZE, max_bytes),
            (zmq.RECONNECT_IVL, 50),
            (zmq.RECONNECT_IVL_MAX, 500),
        ):
            self._socket.setsockopt(option, value)
        if keys is not None:
            present_keys(self._socket, keys)
        self._socket.subscribe(b"")
        try:
            self._socket.connect(endpoint)
        except zmq.ZMQError as error:
            self._socket.close(0)
            raise ConfigError(f"cannot connect to {endpoint}: {error}") from error

    def receive(self, within_s: float = 0.0) -> bytes | None:
        """Return the newest message that was not returned yet; None without one in time."""
        if self._socket.poll(max(0, round(within_s * 1000))):
            with contextlib.suppress(zmq.Again):
                return self._socket.recv(zmq.NOBLOCK)
        return None

    def close(self) -> None:
        """Close; calling it again does nothing."""
        self._socket.close(0)
