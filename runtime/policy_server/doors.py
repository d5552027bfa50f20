"""What a door is: something that listens, speaks one protocol, and asks the engine."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Protocol

from zetta.runtime.policy_server.engine import Engine


@dataclass(frozen=True, slots=True)
class DoorCounts:
    """What came through a door."""

    requests: int = 0
    malformed: int = 0
    """Messages that were no request."""
    late: int = 0
    """Answers that were ready after their deadline, so nobody got them."""
    repeated: int = 0
    """Requests that came a second time and were not carried out again."""
    expired: int = 0
    """Sessions that were silent for too long."""
    shared: int = 0
    """Sessions whose pictures come through shared memory."""


class Door(Protocol):
    """Serves the clients of one protocol."""

    @property
    def counts(self) -> DoorCounts:
        """What came through so far; may be read by any thread."""
        ...

    def serve(self, engine: Engine, bind: str, stop: threading.Event) -> None:
        """Listen at `bind` until `stop` is set, then answer what was taken and return.

        Raises:
            ConfigError: the address may not be bound.
            InfraError: it is taken.
        """
        ...
