"""The two command sockets of the client's end: published, but never into the void.

The published client uses PUB sockets, which silently drop what nobody has subscribed to yet. XPUB
is the same on the wire and shows subscriptions, so a command that nobody would hear is an error.
"""

from __future__ import annotations

import time
from typing import Final

import zmq

from zetta.hw_drivers.links import Socket, bind, open_socket
from zetta.runtime.errors import ConnectionLost, Timeout

WAITING: Final = 2
MAX_SUBSCRIPTION_BYTES: Final = 256


class CommandsOut:
    """One bound socket that the robot side subscribes to; used by one thread."""

    def __init__(
        self, context: zmq.Context[Socket], endpoint: str, what: str, private_network: bool
    ) -> None:
        """Bind.

        Raises:
            ConfigError: the address may not be bound.
            InfraError: it is taken.
        """
        self._what = what
        self._socket = open_socket(context, zmq.XPUB, MAX_SUBSCRIPTION_BYTES, WAITING)
        self._heard = False
        try:
            self.endpoint = bind(self._socket, endpoint, private_network)
        except BaseException:
            self._socket.close(0)
            raise

    @property
    def heard(self) -> bool:
        """Whether somebody is subscribed."""
        self._look(0.0)
        return self._heard

    def await_listener(self, within_s: float) -> None:
        """Wait until somebody is subscribed.

        Raises:
            Timeout: nobody was within `within_s`.
        """
        deadline = time.monotonic() + within_s
        while not self._heard:
            left = deadline - time.monotonic()
            if left <= 0.0:
                raise Timeout(f"{self._nobody()} within {within_s:g} s; {_ADVICE}")
            self._look(left)

    def send(self, raw: bytes) -> None:
        """Send one message to whoever is subscribed.

        Raises:
            ConnectionLost: nobody is.
        """
        if not self.heard:
            raise ConnectionLost(f"{self._nobody()}; {_ADVICE}")
        self._socket.send(raw, zmq.NOBLOCK)

    def close(self) -> None:
        """Close; again does nothing. What is still under way has a moment to leave."""
        self._socket.close(100)

    def _nobody(self) -> str:
        return f"nobody listens to the {self._what} commands at {self.endpoint}"

    def _look(self, wait_s: float) -> None:
        while self._socket.poll(int(wait_s * 1000.0)):
            frame = self._socket.recv(zmq.NOBLOCK)
            # 1 is the first subscription, 0 the end of the last one.
            self._heard = frame[:1] == b"\x01"
            wait_s = 0.0


_ADVICE: Final = (
    "is the program on the robot's computer running, and does its configuration name this address "
    "and port?"
)
