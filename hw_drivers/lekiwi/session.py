"""The client's end of LeKiwi: commands that are never delivered late, and the newest observation.

A plain PUSH socket keeps its last command for a host that is away, and a host that comes back is
given it, however old. Here a command is queued only while the host is connected, and only the
newest one waits.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Final

import zmq

from zetta.hw_drivers.lekiwi.messages import (
    LEKIWI,
    MAX_TEXT_BYTES,
    Layout,
    LekiwiObservation,
    LekiwiRow,
    command_bytes,
    read_observation,
)
from zetta.hw_drivers.links import Frames, Inbox, Socket, open_socket
from zetta.runtime.errors import ConnectionLost
from zetta.runtime.transport import check_destination

COMMAND_PORT: Final = 5555
OBSERVATION_PORT: Final = 5556
"""What LeRobot's host binds; ours are only ever those that the user gives."""
CONNECT_WITHIN_S: Final = 5.0
MAX_AGE_S: Final = 0.2
"""Six observations of a host at 30 Hz."""
WAITING: Final = 2


def lekiwi_endpoints(
    host: str, command_port: int = COMMAND_PORT, observation_port: int = OBSERVATION_PORT
) -> tuple[str, str]:
    """Return the command and the observation endpoint of a host."""
    return f"tcp://{host}:{command_port}", f"tcp://{host}:{observation_port}"


@dataclass(frozen=True, slots=True)
class LekiwiReading:
    """What the host sent last."""

    observation: LekiwiObservation
    at: float
    """Monotonic seconds, ours, of its arrival."""
    age_s: float
    rate_hz: float
    """Measured; 30 is usual."""


class LekiwiSession:
    """Drives one host; used by one thread."""

    def __init__(
        self, command: str, observation: str, layout: Layout = LEKIWI, max_age_s: float = MAX_AGE_S
    ) -> None:
        """Connect in the background.

        Raises:
            ConfigError: an endpoint that nothing can be connected to.
        """
        check_destination(command)
        check_destination(observation)
        self._command, self._layout, self._max_age_s = command, layout, max_age_s
        self._context: zmq.Context[Socket] = zmq.Context()
        self._out = open_socket(self._context, zmq.PUSH, MAX_TEXT_BYTES, 1)
        self._out.conflate = True  # before connecting: afterwards it has no effect
        self._out.immediate = True
        self._out.reconnect_ivl = 50
        self._out.connect(command)
        # Conflation would tear messages of several frames apart; the receiving thread keeps the
        # newest one instead.
        source = open_socket(self._context, zmq.PULL, MAX_TEXT_BYTES, WAITING)
        source.reconnect_ivl = 50
        source.connect(observation)
        self._inbox = Inbox(source, f"the host at {observation}", self._read)

    @property
    def refused(self) -> int:
        """Messages of the host that could not be read."""
        return self._inbox.refused[0]

    def connect(self, within_s: float = CONNECT_WITHIN_S) -> LekiwiReading:
        """Wait for an observation and for the command socket.

        Raises:
            Timeout: the host sends nothing; the message names its endpoint.
            ConnectionLost: it sends, but takes no commands.
        """
        deadline = time.monotonic() + within_s
        self._inbox.wait(bool, within_s)  # any at all
        if not self._out.poll(max(0, int((deadline - time.monotonic()) * 1000)), zmq.POLLOUT):
            raise ConnectionLost(f"{self._command} {_NOT_THERE}")
        return self.state(within_s)

    def state(self, max_age_s: float | None = None) -> LekiwiReading:
        """Return the last observation.

        Raises:
            Timeout: it is older than `max_age_s`, or there is none. Hosts end by themselves after
                their session (30 s unless told otherwise).
        """
        newest = self._inbox.fresh(self._max_age_s if max_age_s is None else max_age_s)
        age = time.monotonic() - newest.at
        return LekiwiReading(newest.value, newest.at, age, newest.rate_hz)

    def send(self, row: LekiwiRow) -> None:
        """Send one command; without another within 0.5 s the host stops the base.

        Raises:
            SpecMismatch: no row of this robot.
            Timeout: there is no fresh observation, and nothing is moved blindly.
            ConnectionLost: the host is not connected.
        """
        raw = command_bytes(row, self._layout)
        self._inbox.fresh(self._max_age_s)
        self._push(raw)

    def stop(self) -> None:
        """Stop the base, and let the arm stay where it was seen last, however long ago that was.

        Raises:
            Timeout: the arm was never seen.
            ConnectionLost: the host is not connected; it stops the base by itself after 0.5 s.
        """
        seen = self._inbox.fresh(float("inf")).value.row
        self.keep(LekiwiRow(seen.joints, min(1.0, max(0.0, seen.gripper))))

    def keep(self, row: LekiwiRow) -> None:
        """Send a place where the arm was seen, however long ago that was.

        Raises:
            SpecMismatch: no row of this robot.
            ConnectionLost: the host is not connected; it stops the base by itself after 0.5 s.
        """
        self._push(command_bytes(row, self._layout))

    def close(self) -> None:
        """Free the sockets; the base stops by the host's watchdog. Idempotent."""
        self._inbox.close()
        self._out.close(100)
        if not self._context.closed:
            self._context.term()

    def _push(self, raw: bytes) -> None:
        try:
            self._out.send(raw, zmq.NOBLOCK)
        except zmq.Again:
            raise ConnectionLost(f"{self._command} {_NOT_THERE}") from None

    def _read(self, frames: Frames) -> LekiwiObservation:
        return read_observation(frames, self._layout)


_NOT_THERE: Final = "takes no commands; is the host running? It ends by itself after its session"
