"""The doors that `zetta serve` can open, from what the user typed."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias, cast
from urllib.parse import urlsplit

from zetta.runtime.curve_keys import ServerKeys
from zetta.runtime.errors import ConfigError
from zetta.runtime.foreign.addresses import key_in
from zetta.runtime.foreign.conventions import Protocol as ForeignProtocol
from zetta.runtime.foreign.conventions import convention
from zetta.runtime.foreign.gr00t_codec import Generation
from zetta.runtime.policy_server.doors import Door, DoorCounts
from zetta.runtime.policy_server.engine import Engine
from zetta.runtime.policy_server.gr00t_door import Gr00tDoor
from zetta.runtime.policy_server.openpi_door import OpenpiDoor
from zetta.runtime.policy_server.visitors import Binding
from zetta.runtime.policy_server.zmq_door import ZmqDoor

OPENPI_BIND: Final = "tcp://127.0.0.1:8000"
"""Where openpi clients look."""
GR00T_BIND: Final = "tcp://127.0.0.1:5602"
"""Never 5555, which four foreign systems use: a GR00T client is told the port."""
LAST_ANSWERS_S: Final = 1.0
"""For sending what the engine has finished."""

OnReady: TypeAlias = Callable[[str, str], None]
Opened: TypeAlias = Callable[[Engine, Binding], OpenpiDoor | Gr00tDoor]


@dataclass(frozen=True, slots=True)
class Access:
    """Who may come in, and as whom."""

    keys: ServerKeys | None = None
    """Of the door `zmq`."""
    key_file: Path | None = None
    """Of the foreign doors."""
    convention: str = "libero"
    generation: str = "n1.6"


def own_door(access: Access, on_ready: OnReady) -> Door:
    """Return the door of our own protocol.

    Raises:
        ConfigError: it was given the key of a foreign door.
    """
    if access.key_file is not None:
        raise ConfigError("--key-file is for openpi and gr00t doors; a zmq door takes --keys")
    return ZmqDoor(access.keys, on_ready)


def openpi_serving(access: Access, on_ready: OnReady) -> Door:
    """Return a door for openpi clients.

    Raises:
        ConfigError: unknown convention, or a bad key.
    """
    chosen = convention("openpi", access.convention)
    key = _key(access)
    return ForeignDoor("openpi", key, lambda e, b: OpenpiDoor(e, chosen, b), on_ready)


def gr00t_serving(access: Access, on_ready: OnReady) -> Door:
    """Return a door for GR00T clients.

    Raises:
        ConfigError: unknown convention or generation, or a bad key.
    """
    chosen = convention("gr00t", access.convention)
    if access.generation not in ("n1.5", "n1.6"):
        raise ConfigError(f"unknown generation {access.generation!r}; expected n1.5 or n1.6")
    generation = cast(Generation, access.generation)
    key = _key(access)
    return ForeignDoor("gr00t", key, lambda e, b: Gr00tDoor(e, chosen, b, generation), on_ready)


class ForeignDoor:
    """A foreign protocol's door, opened and closed as `zetta serve` does."""

    def __init__(
        self, protocol: ForeignProtocol, key: str, opened: Opened, on_ready: OnReady
    ) -> None:
        self._protocol, self._key, self._opened, self._on_ready = protocol, key, opened, on_ready
        self._door: OpenpiDoor | Gr00tDoor | None = None

    @property
    def counts(self) -> DoorCounts:
        """What came through so far."""
        if self._door is None:
            return DoorCounts()
        answers = self._door.answers
        return DoorCounts(answers.requests, answers.malformed, answers.late)

    def serve(self, engine: Engine, bind: str, stop: threading.Event) -> None:
        """Answer until `stop` is set, then finish what was taken, for as long as the limits say.

        Raises:
            ConfigError: the address may not be bound, or the policy does not suit.
            InfraError: the address is taken.
            SpecMismatch: its actions cannot become those of the convention.
        """
        host, port = _place(bind)
        limits = engine.limits
        door = self._opened(
            engine, Binding(host, port, self._key, max_visitors=limits.max_sessions)
        )
        self._door = door
        try:
            self._on_ready(door.url, secrets.token_hex(8))
            stop.wait()
            engine.drain(limits.drain_s)
            door.finish(LAST_ANSWERS_S)
        finally:
            door.close()


def _key(access: Access) -> str:
    if access.keys is not None:
        raise ConfigError("--keys is for zmq doors; an openpi or gr00t door takes --key-file")
    return "" if access.key_file is None else key_in(str(access.key_file))


def _place(bind: str) -> tuple[str, int]:
    """Return host and port of `tcp://HOST:PORT`.

    Raises:
        ConfigError: it is none.
    """
    try:
        parts = urlsplit(bind if "://" in bind else f"tcp://{bind}")
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise ConfigError(f"cannot listen at {bind!r}: {error}") from error
    if parts.scheme != "tcp" or not host or port is None or parts.path:
        raise ConfigError(f"cannot listen at {bind!r}; expected tcp://HOST:PORT")
    return host, port
