"""ZMQ sockets that always come back: every wait has a deadline, and a late answer is no answer.

The client is a DEALER, not a REQ: a REQ socket is dead after one time-out. Each request carries an
id that the reply repeats; a reply to anything but the awaited id is dropped and counted. After a
time-out or a broken connection the socket is thrown away with what it still wanted to send, so that
an old request cannot reach a server that was restarted in the meantime.

A server binds loopback. Any other address needs CURVE keys (`zetta.runtime.curve_keys`), because
whoever reaches a policy moves a robot.
"""

from __future__ import annotations

import contextlib
import ipaddress
import math
import time
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

import zmq
from zmq.auth.thread import ThreadAuthenticator

from zetta.runtime.curve_keys import ClientKeys, ServerKeys
from zetta.runtime.errors import ConfigError, ConnectionLost, SpecMismatch, Timeout, cannot_listen
from zetta.runtime.wire import (
    MAX_MESSAGE_BYTES,
    Frame,
    Reply,
    Request,
    read_reply,
    request_frames,
)

WAITING_MESSAGES: Final = 16
"""Whole messages that are kept for one peer; whoever sends more at once waits."""
LARGE_BYTES: Final = 2**14
"""Parts above this are not copied when they are received."""
LINGER_MS: Final = 1000
"""How long a server that ends may still be sending its last replies."""

Socket: TypeAlias = "zmq.Socket[bytes]"
Place: TypeAlias = Callable[[list[Frame]], list[Frame]]
"""Puts the frames of large arrays somewhere else than on the socket."""

_LOST: Final = zmq.EVENT_DISCONNECTED
_REFUSED: Final = (
    zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL
    | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL
    | zmq.EVENT_HANDSHAKE_FAILED_AUTH
)


class Dealer:
    """The client's end of one connection: one call at a time, not to be shared by threads."""

    def __init__(self, endpoint: str, keys: ClientKeys | None = None) -> None:
        """Connect in the background; nothing is awaited yet.

        Raises:
            ConfigError: the endpoint is no place that can be connected to.
        """
        check_destination(endpoint)
        self._endpoint, self._keys = endpoint, keys
        self._calls = 0
        self._late = 0
        self._rebuilt = 0
        self._connect()

    @property
    def endpoint(self) -> str:
        """Where the server is."""
        return self._endpoint

    @property
    def late(self) -> int:
        """Replies that were dropped because nobody waited for them any more."""
        return self._late

    @property
    def rebuilt(self) -> int:
        """How often the socket was thrown away."""
        return self._rebuilt

    def call(
        self, do: str, given: Mapping[str, Any], within_s: float, place: Place | None = None
    ) -> Any:
        """Send one request and return the value of its reply.

        Raises:
            ZettaError: the error of the reply.
            Timeout: no reply within `within_s`.
            ConnectionLost: the server went away, or does not know our keys.
            SpecMismatch: the answer is no reply.
        """
        if not within_s > 0:
            raise ConfigError(f"a call must be waited for longer than 0 s, got {within_s:g} s")
        self._calls += 1
        frames = request_frames(Request(self._calls, do, given))
        deadline = time.monotonic() + within_s
        self._forget_events()
        with contextlib.suppress(zmq.Again):  # a full queue is a server that does not answer
            placed = frames if place is None else place(frames)
            self._socket.send_multipart(placed, zmq.NOBLOCK, copy=False)
        try:
            reply = self._awaited(do, deadline, within_s)
        except (Timeout, ConnectionLost, SpecMismatch):
            self.rebuild()
            raise
        except KeyboardInterrupt:
            self.rebuild()  # its reply must not be the first thing that the next call sees
            raise
        if reply.error is not None:
            raise reply.error
        return reply.value

    def lost(self) -> bool:
        """Say whether the connection broke since the last call; it may have been mended since."""
        return bool(self._monitor.poll(0))

    def rebuild(self) -> None:
        """Throw the socket away, with everything that is still under way, and make another."""
        self.close()
        self._rebuilt += 1
        self._connect()

    def close(self, linger_ms: int = 0) -> None:
        """Close the socket; calling it again does nothing."""
        if self._socket.closed:
            return
        self._socket.disable_monitor()
        self._monitor.close(0)
        self._socket.close(linger_ms)

    def _connect(self) -> None:
        socket: Socket = zmq.Context.instance().socket(zmq.DEALER)
        socket.linger = 0  # what nobody takes must not keep this process alive
        socket.maxmsgsize = MAX_MESSAGE_BYTES
        socket.sndhwm = socket.rcvhwm = WAITING_MESSAGES
        socket.reconnect_ivl, socket.reconnect_ivl_max = 50, 1000
        if self._keys is not None:
            present_keys(socket, self._keys)
        monitor = socket.get_monitor_socket(_LOST | _REFUSED)
        monitor.linger = 0
        try:
            socket.connect(self._endpoint)
        except zmq.ZMQError as error:
            socket.disable_monitor()
            monitor.close(0)
            socket.close(0)
            raise ConfigError(f"cannot connect to {self._endpoint}: {error}") from error
        self._socket, self._monitor, self._poller = socket, monitor, zmq.Poller()
        self._poller.register(socket, zmq.POLLIN)
        self._poller.register(monitor, zmq.POLLIN)

    def _awaited(self, do: str, deadline: float, within_s: float) -> Reply:
        while True:
            left_ms = math.ceil(max(0.0, deadline - time.monotonic()) * 1000)
            ready = dict(self._poller.poll(left_ms))
            if self._socket in ready:
                reply = read_reply(self._socket.recv_multipart(zmq.NOBLOCK))
                if reply.id == self._calls:
                    return reply
                self._late += 1
            elif ready:
                self._explain(do)
            else:
                raise Timeout(f"{self._endpoint} did not answer {do} within {within_s:g} s")

    def _explain(self, do: str) -> None:
        """Say what happened to the connection."""
        event = int.from_bytes(self._monitor.recv_multipart(zmq.NOBLOCK)[0][:2], "little")
        if event & _REFUSED:
            raise ConnectionLost(
                f"{self._endpoint} refused the handshake; give the client key that belongs to "
                "the server, or none to a server without keys"
            )
        raise ConnectionLost(
            f"{self._endpoint} went away during {do}; was the server ended or restarted?"
        )

    def _forget_events(self) -> None:
        # What broke between two calls has been mended since, or will show in this one.
        while self._monitor.poll(0):
            self._monitor.recv_multipart(zmq.NOBLOCK)


class Router:
    """The server's end: a bound ROUTER socket that never blocks when it sends."""

    def __init__(
        self, bind: str, keys: ServerKeys | None = None, max_bytes: int = MAX_MESSAGE_BYTES
    ) -> None:
        """Bind; a peer that sends a frame of more than `max_bytes` is cut off.

        Raises:
            ConfigError: the address may not be bound without keys, or is none of this machine.
            InfraError: it is taken.
        """
        check_bind(bind, keys is not None)
        # A context of its own: who may come in is decided once for a whole context.
        self._context = zmq.Context()
        self._gate: ThreadAuthenticator | None = None
        self.socket = self._context.socket(zmq.ROUTER)
        try:
            self._set_up(keys, max_bytes)
            self.socket.bind(bind)
        except zmq.ZMQError as error:
            self.close(0)
            advice = "is another server there? end it, or choose another port"
            raise cannot_listen(bind, error, advice) from error
        self.endpoint = self.socket.getsockopt_string(zmq.LAST_ENDPOINT)

    def _set_up(self, keys: ServerKeys | None, max_bytes: int) -> None:
        self.socket.maxmsgsize = max_bytes
        self.socket.rcvhwm = self.socket.sndhwm = WAITING_MESSAGES
        self.socket.router_handover = False
        self.socket.tcp_keepalive = 1
        self.socket.handshake_ivl = 5000
        # A peer that vanished without closing is dropped, and what waits for it with it.
        self.socket.heartbeat_ivl, self.socket.heartbeat_timeout = 10_000, 60_000
        if keys is not None:
            self._gate = ask_for_keys(self._context, self.socket, keys)

    def receive(self) -> list[Frame] | None:
        """Return the next message, its sender first; None when none is waiting."""
        try:
            parts = self.socket.recv_multipart(zmq.NOBLOCK, copy=False)
        except zmq.Again:
            return None
        # Pictures stay where they were received; copying a small part is cheaper than its view.
        return [part.buffer if len(part) > LARGE_BYTES else part.bytes for part in parts]

    def send(self, peer: bytes, frames: list[Frame]) -> None:
        """Send to `peer`; what a vanished or stuck peer does not take is dropped."""
        with contextlib.suppress(zmq.Again):
            self.socket.send_multipart([peer, *frames], zmq.NOBLOCK)

    def close(self, linger_ms: int = LINGER_MS) -> None:
        """Send what is still waiting, for a moment, and close; again does nothing."""
        if self.socket.closed:
            return
        self.socket.close(linger_ms)
        if self._gate is not None and self._gate.is_alive():
            self._gate.stop()
        self._context.term()


class _KnownClients:
    """Answers whether a public key may come in."""

    def __init__(self, keys: ServerKeys) -> None:
        self._known = frozenset(keys.clients)

    def callback(self, domain: str, key: bytes) -> bool:
        """Tell whether `key`, in Z85, is known."""
        return key.decode("ascii", "replace") in self._known


def ask_for_keys(
    context: zmq.Context[Socket], socket: Socket, keys: ServerKeys
) -> ThreadAuthenticator:
    """Let only known clients in to `socket`, which is not bound yet; stop the result at the end."""
    gate = ThreadAuthenticator(context)
    gate.start()
    gate.configure_curve_callback("*", _KnownClients(keys))
    socket.curve_server = True
    socket.curve_publickey = keys.public.encode()
    socket.curve_secretkey = keys.secret.encode()
    return gate


def present_keys(socket: Socket, keys: ClientKeys) -> None:
    """Encrypt `socket`, which is not connected yet, and say who we are."""
    socket.curve_serverkey = keys.server.encode()
    socket.curve_publickey = keys.public.encode()
    socket.curve_secretkey = keys.secret.encode()


def check_bind(endpoint: str, keys: bool) -> None:
    """Refuse to listen where strangers are, without keys.

    Raises:
        ConfigError: an unknown kind of endpoint, or a reachable address without keys.
    """
    if endpoint.startswith("ipc://"):
        return
    host = _host(endpoint)
    if not keys and not is_loopback(host):
        raise ConfigError(
            f"{endpoint} can be reached from other machines and whoever reaches it moves the "
            "robot; make keys with zetta serve keygen and name the server's file (--keys, or keys "
            "in a file), or bind tcp://127.0.0.1:PORT and use an SSH tunnel"
        )


def check_destination(endpoint: str) -> None:
    """Refuse an address that nothing can be connected to.

    Raises:
        ConfigError: an unknown kind of endpoint, or an address that is for binding only.
    """
    if endpoint.startswith("ipc://"):
        return
    if _host(endpoint) in ("*", "0.0.0.0", "::"):
        raise ConfigError(
            f"{endpoint} is an address to bind, not one to connect to; give the server's own, "
            "such as tcp://127.0.0.1:5601"
        )


def _host(endpoint: str) -> str:
    host, colon, port = endpoint.removeprefix("tcp://").rpartition(":")
    numbered = port == "*" or (port.isdecimal() and int(port) < 65536)
    if not endpoint.startswith("tcp://") or not colon or not host or not numbered:
        raise ConfigError(f"got the endpoint {endpoint!r}, expected tcp://HOST:PORT or ipc://PATH")
    return host.removeprefix("[").removesuffix("]")


def is_loopback(host: str) -> bool:
    """Say whether only this machine reaches `host`."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
