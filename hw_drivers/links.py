"""Sockets of other people's wires: the newest message counts, and every wait has a deadline.

These wires carry no keys, so whoever reaches one of their sockets moves the arm. What we bind is
therefore loopback, or one named private address that the user has said is a cable of its own.
"""

from __future__ import annotations

import ipaddress
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeAlias, TypeVar

import zmq

from zetta.runtime.errors import ConfigError, SpecMismatch, Timeout, cannot_listen
from zetta.runtime.transport import check_destination, is_loopback

T = TypeVar("T")
Socket: TypeAlias = "zmq.Socket[bytes]"
Frames: TypeAlias = Sequence[bytes]

ARRIVALS: Final = 64
"""Arrivals over which a rate is taken."""
LOOK_MS: Final = 20
"""How long a receiving thread sleeps at most before it sees that it is to end."""


def check_foreign_bind(endpoint: str, private_network: bool) -> None:
    """Refuse to listen where strangers are, on a wire that knows no keys.

    Raises:
        ConfigError: an address that other machines reach and nobody vouched for, or every address.
    """
    if endpoint.startswith("ipc://"):
        return
    host = endpoint.removeprefix("tcp://").rpartition(":")[0].strip("[]")
    if host in ("*", "0.0.0.0", "::"):
        raise ConfigError(
            f"{endpoint} listens on every network of this computer and this wire has no keys; bind "
            "127.0.0.1 or the one address of the cable to the robot"
        )
    check_destination(endpoint)
    if is_loopback(host):
        return
    if not _is_private(host):
        raise ConfigError(
            f"{endpoint} is no private address and this wire has no keys; bind 127.0.0.1 or the "
            "address of the cable to the robot, such as tcp://172.16.0.1:PORT"
        )
    if not private_network:
        raise ConfigError(
            f"{endpoint} can be reached from other machines, this wire has no keys, and whoever "
            "reaches it moves the arm; if only the robot is on that cable say private_network=True"
        )


def _is_private(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_private
    except ValueError:
        return False


def open_socket(context: zmq.Context[Socket], kind: int, limit_bytes: int, waiting: int) -> Socket:
    """Return a socket that keeps no process alive, takes no huge frame and queues little."""
    socket = context.socket(kind)
    socket.linger = 0
    socket.maxmsgsize = limit_bytes
    socket.sndhwm = socket.rcvhwm = waiting
    return socket


def bind(socket: Socket, endpoint: str, private_network: bool) -> str:
    """Bind and return the endpoint, with the port that the system chose for `*`.

    Raises:
        ConfigError: the address may not be bound.
        InfraError: it is taken.
    """
    check_foreign_bind(endpoint, private_network)
    try:
        socket.bind(endpoint)
    except zmq.ZMQError as error:
        advice = "is another client of this arm running? end it, or give another port on both sides"
        raise cannot_listen(endpoint, error, advice) from error
    return socket.getsockopt_string(zmq.LAST_ENDPOINT)


@dataclass(frozen=True, slots=True)
class Arrived(Generic[T]):
    """The newest message of a stream."""

    value: T
    at: float
    """Monotonic seconds of its arrival."""
    count: int
    """Messages so far, this one included."""
    rate_hz: float
    """Measured over the last arrivals; 0 until there are two."""


class Inbox(Generic[T]):
    """Receives one stream in a thread of its own and keeps the newest message.

    What cannot be read is counted and explained, and changes nothing: the last good message grows
    old, and whoever needs a fresh one is told.
    """

    def __init__(self, socket: Socket, name: str, read: Callable[[Frames], T]) -> None:
        """Begin to receive; from now on `socket` belongs to the thread."""
        self._socket, self._name, self._read = socket, name, read
        self._changed = threading.Condition()
        self._newest: Arrived[T] | None = None
        self._times: deque[float] = deque(maxlen=ARRIVALS)
        self._refused, self._why = 0, ""
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"inbox {name}", daemon=True)
        self._thread.start()

    @property
    def newest(self) -> Arrived[T] | None:
        """The newest message, however old; None before the first."""
        with self._changed:
            return self._newest

    @property
    def refused(self) -> tuple[int, str]:
        """How many messages could not be read, and why the last one could not."""
        with self._changed:
            return self._refused, self._why

    def fresh(self, max_age_s: float) -> Arrived[T]:
        """Return the newest message.

        Raises:
            Timeout: there is none, or it is older than `max_age_s`.
        """
        newest = self.newest
        if newest is None:
            raise Timeout(f"nothing has come from {self._name} yet{self._reason()}")
        age = time.monotonic() - newest.at
        if age > max_age_s:
            raise Timeout(
                f"the last message of {self._name} is {age:.2f} s old, at most {max_age_s:g} s is "
                f"allowed; is the other side running?{self._reason()}"
            )
        return newest

    def wait(self, wanted: Callable[[Arrived[T]], bool], within_s: float) -> Arrived[T]:
        """Return the first message from now on, or the present one, that is `wanted`.

        Raises:
            Timeout: none came within `within_s`.
        """
        deadline = time.monotonic() + within_s
        with self._changed:
            while self._newest is None or not wanted(self._newest):
                if not self._changed.wait(max(0.0, deadline - time.monotonic())):
                    what = "nothing" if self._newest is None else "not what was awaited"
                    raise Timeout(
                        f"{what} came from {self._name} within {within_s:g} s{self._reason()}"
                    )
            return self._newest

    def close(self) -> None:
        """End the thread and close the socket; again does nothing."""
        self._over.set()
        if self._thread.is_alive():
            self._thread.join()

    def _reason(self) -> str:
        return f"; {self._refused} messages were refused, the last: {self._why}" * bool(self._why)

    def _run(self) -> None:
        try:
            while not self._over.is_set():
                if self._socket.poll(LOOK_MS):
                    self._take(self._socket.recv_multipart(zmq.NOBLOCK))
        finally:
            self._socket.close(0)

    def _take(self, frames: Frames) -> None:
        now = time.monotonic()
        try:
            value = self._read(frames)
        except SpecMismatch as error:
            with self._changed:
                self._refused, self._why = self._refused + 1, str(error)
            return
        with self._changed:
            self._times.append(now)
            span = self._times[-1] - self._times[0]
            rate = (len(self._times) - 1) / span if span > 0.0 else 0.0
            count = 1 if self._newest is None else self._newest.count + 1
            self._newest = Arrived(value, now, count, rate)
            self._changed.notify_all()
