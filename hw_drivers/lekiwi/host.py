"""The host's end of LeKiwi, as LeRobot's host behaves: for tests and for a twin.

30 times a second it takes the newest command, stops the base where none came for 0.5 s (the arm
keeps its goal), and sends what it sees, in either variant of the wire.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Final, Protocol

import numpy as np
import zmq

from zetta.hw_drivers.lekiwi.messages import (
    JOINTS,
    LEKIWI,
    MAX_COMMAND_BYTES,
    Layout,
    LekiwiObservation,
    LekiwiRow,
    Variant,
    observation_frames,
    read_command,
)
from zetta.hw_drivers.links import Socket, bind, open_socket
from zetta.runtime.errors import SpecMismatch

HOST_HZ: Final = 30.0
WATCHDOG_S: Final = 0.5
WAITING: Final = 2
SPEED: Final = 2.0
"""Radians a second of every joint of `PointLekiwi`, and its gripper's share a second."""


class LekiwiBody(Protocol):
    """The robot behind the wire; one thread calls all of it."""

    def command(self, row: LekiwiRow) -> None:
        """Go there, and drive so."""
        ...

    def stop_base(self) -> None:
        """Stop the base; the arm keeps its goal."""
        ...

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        ...

    def row(self) -> LekiwiRow:
        """Return where everything is now."""
        ...

    def jpegs(self) -> Mapping[str, bytes]:
        """Return the newest picture of each camera, red and blue swapped as LeRobot's are."""
        ...


class LekiwiHost:
    """Serves one body; `turn` is one round, and `start` lets a thread make them."""

    def __init__(
        self,
        body: LekiwiBody,
        *,
        command: str = "tcp://127.0.0.1:*",
        observation: str = "tcp://127.0.0.1:*",
        variant: Variant = "frames",
        layout: Layout = LEKIWI,
        private_network: bool = False,
        watchdog_s: float = WATCHDOG_S,
    ) -> None:
        """Bind both sockets.

        Raises:
            ConfigError: an address that may not be bound.
            InfraError: one is taken.
        """
        self._body, self._variant, self._layout = body, variant, layout
        self._watchdog_s = watchdog_s
        self._over = threading.Event()
        self._thread: threading.Thread | None = None
        self._context: zmq.Context[Socket] = zmq.Context()
        self._commands = open_socket(self._context, zmq.PULL, MAX_COMMAND_BYTES, WAITING)
        self._commands.conflate = True
        self._out = open_socket(self._context, zmq.PUSH, MAX_COMMAND_BYTES, WAITING)
        try:
            self.command_endpoint = bind(self._commands, command, private_network)
            self.observation_endpoint = bind(self._out, observation, private_network)
        except BaseException:
            self.close()
            raise
        self._last: float | None = None
        self._heard_at: float | None = None
        self.base_stopped = 0
        """How often the watchdog has stopped the base."""
        self.refused: list[str] = []
        """Why commands were not followed; the last hundred."""

    def start(self) -> None:
        """Let a thread serve until `close`."""
        self._thread = threading.Thread(target=self._run, name="lekiwi host", daemon=True)
        self._thread.start()

    def turn(self, now: float) -> None:
        """Make one round at `now` (seconds, monotonic)."""
        if self._last is not None:
            self._body.advance(now - self._last)
        self._last = now
        if self._take_command():
            self._heard_at = now
        elif self._heard_at is not None and now - self._heard_at > self._watchdog_s:
            self._heard_at = None
            self.base_stopped += 1
            self._body.stop_base()
        seen = LekiwiObservation(self._body.row(), self._body.jpegs(), self._variant)
        with contextlib.suppress(zmq.Again):  # nobody is there, or it is too slow: dropped
            self._out.send_multipart(observation_frames(seen, self._layout), zmq.NOBLOCK)

    def close(self) -> None:
        """End the thread and free the sockets; again does nothing."""
        self._over.set()
        if self._thread is not None:
            self._thread.join()
        self._commands.close(0)
        self._out.close(0)
        if not self._context.closed:
            self._context.term()

    def _run(self) -> None:
        while not self._over.wait(1.0 / HOST_HZ):
            self.turn(time.monotonic())

    def _take_command(self) -> bool:
        if not self._commands.poll(0):
            return False
        try:
            row = read_command(self._commands.recv(zmq.NOBLOCK), self._layout)
        except SpecMismatch as error:
            self.refused = [*self.refused[-99:], str(error)]
            return False
        self._body.command(row)
        return True


class PointLekiwi:
    """A `LekiwiBody` whose joints go where they are told, at a speed; its pictures are given."""

    def __init__(self, jpegs: Mapping[str, bytes] | None = None) -> None:
        """Stand still, gripper open; `jpegs` are what its cameras see."""
        self._jpegs = dict(jpegs or {})
        self.commands: list[LekiwiRow] = []
        """What was followed."""
        self.driven_m = 0.0
        """How far the base has come forward."""
        self._row = LekiwiRow((0.0,) * len(JOINTS), 1.0)
        self._goal = self._row

    def command(self, row: LekiwiRow) -> None:
        """Follow a command."""
        self.commands.append(row)
        self._goal = row
        self._row = replace(self._row, base=row.base)

    def stop_base(self) -> None:
        """Stop the base."""
        self._row = replace(self._row, base=(0.0, 0.0, 0.0))

    def advance(self, seconds: float) -> None:
        """Go on towards the goal."""
        reach = SPEED * seconds
        now = np.array([*self._row.joints, self._row.gripper])
        way = np.array([*self._goal.joints, self._goal.gripper]) - now
        *joints, gripper = (now + np.clip(way, -reach, reach)).tolist()
        self._row = LekiwiRow(tuple(joints), gripper, self._row.base)
        self.driven_m += self._row.base[0] * seconds

    def row(self) -> LekiwiRow:
        """Return where everything is."""
        return self._row

    def jpegs(self) -> Mapping[str, bytes]:
        """Return the given pictures."""
        return self._jpegs
