"""The robot's end of deoxys, as the published programs behave: for tests and for a twin.

It subscribes to the client's command sockets, of which only the newest message counts, publishes
the arm 100 times and the gripper 40 times a second, ends the control after 20 ticks without a
command, and takes 0.1 for a smaller time fraction. What the arm does is for a `FrankaBody` to say.
"""

from __future__ import annotations

import threading
import time
from typing import Final, Protocol

import zmq

from zetta.hw_drivers.deoxys.arm_codec import read_command
from zetta.hw_drivers.deoxys.gripper_codec import gripper_state_bytes, read_gripper
from zetta.hw_drivers.deoxys.messages import (
    ArmCommand,
    Controller,
    GripperCommand,
    GripperState,
    RobotState,
)
from zetta.hw_drivers.deoxys.parsing import MAX_BYTES
from zetta.hw_drivers.deoxys.state_codec import state_bytes
from zetta.hw_drivers.links import Socket, bind, open_socket
from zetta.runtime.errors import SpecMismatch

STATE_HZ: Final = 100.0
GRIPPER_HZ: Final = 40.0
TICK_S: Final = 0.05
EMPTY_TICKS: Final = 20


class FrankaBody(Protocol):
    """The arm and the gripper behind the wire; one thread calls all of it."""

    def command(self, command: ArmCommand) -> None:
        """Follow `command` from now on."""
        ...

    def release(self) -> None:
        """The control has ended: the arm holds itself."""
        ...

    def gripper(self, command: GripperCommand) -> None:
        """Let the fingers begin to do this."""
        ...

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        ...

    def state(self) -> RobotState:
        """Return what the arm reports now."""
        ...

    def gripper_state(self) -> GripperState:
        """Return what the gripper reports now."""
        ...


class DeoxysRobotSide:
    """Serves one body; `turn` is one round, and `start` lets a thread make them."""

    def __init__(
        self,
        body: FrankaBody,
        *,
        state: str = "tcp://127.0.0.1:*",
        gripper_state: str = "tcp://127.0.0.1:*",
        private_network: bool = False,
        tick_s: float = TICK_S,
    ) -> None:
        """Bind the state sockets.

        Raises:
            ConfigError: an address that may not be bound.
            InfraError: one is taken.
        """
        self._body, self._tick_s = body, tick_s
        self._context: zmq.Context[Socket] = zmq.Context()
        self._sockets: list[Socket] = []
        self._over = threading.Event()
        self._thread: threading.Thread | None = None
        self._states = self._open(zmq.PUB)
        self._gripper_states = self._open(zmq.PUB)
        try:
            self.state_endpoint = bind(self._states, state, private_network)
            self.gripper_state_endpoint = bind(self._gripper_states, gripper_state, private_network)
        except BaseException:
            self.close()
            raise
        self._commands: Socket | None = None
        self._gripper_commands: Socket | None = None
        self._last: float | None = None
        self._next_state = self._next_gripper = self._next_tick = 0.0
        self._empty = 0
        self.running = False
        """Whether a controller is running."""
        self.begun = 0
        """How often the control has begun."""
        self.ended = 0
        """How often the control has ended: by silence, by a termination, by an idle command."""
        self.refused: list[str] = []
        """Why commands were not followed; the last hundred."""

    def follow(self, command_endpoint: str, gripper_endpoint: str) -> None:
        """Subscribe to the client's command sockets; before `start`."""
        self._commands = self._subscribe(command_endpoint)
        self._gripper_commands = self._subscribe(gripper_endpoint)

    def start(self) -> None:
        """Let a thread serve until `close`."""
        self._thread = threading.Thread(target=self._run, name="deoxys robot side", daemon=True)
        self._thread.start()

    def turn(self, now: float) -> None:
        """Let the body live until `now` (seconds, monotonic) and do what is due."""
        if self._last is not None:
            self._body.advance(now - self._last)
        self._last = now
        if now >= self._next_tick:
            self._next_tick = now + self._tick_s
            self._policy_tick()
        self._take_gripper()
        if now >= self._next_state:
            self._next_state = now + 1.0 / STATE_HZ
            self._states.send(state_bytes(self._body.state()), zmq.NOBLOCK)
        if now >= self._next_gripper:
            self._next_gripper = now + 1.0 / GRIPPER_HZ
            raw = gripper_state_bytes(self._body.gripper_state())
            self._gripper_states.send(raw, zmq.NOBLOCK)

    def close(self) -> None:
        """End the thread and free the sockets; again does nothing."""
        self._over.set()
        if self._thread is not None:
            self._thread.join()
        for socket in self._sockets:
            socket.close(0)
        if not self._context.closed:
            self._context.term()

    def _run(self) -> None:
        # Half the period of the states, so that they come at their rate and not below it.
        while not self._over.wait(0.5 / STATE_HZ):
            self.turn(time.monotonic())

    def _policy_tick(self) -> None:
        raw = _newest(self._commands)
        if raw is None:
            self._empty += self.running
            if self._empty >= EMPTY_TICKS:
                self._end()
            return
        try:
            command = read_command(raw)
        except SpecMismatch as error:
            self._refuse(error)
            return
        self._empty = 0
        if command.termination or command.controller is Controller.NO_CONTROL:
            if self.running:
                self._end()
            return
        self.begun += not self.running
        self.running = True
        self._body.command(command)

    def _end(self) -> None:
        self.running, self._empty = False, 0
        self.ended += 1
        self._body.release()

    def _take_gripper(self) -> None:
        raw = _newest(self._gripper_commands)
        if raw is None:
            return
        try:
            control = read_gripper(raw)
        except SpecMismatch as error:
            self._refuse(error)
            return
        if control.command is not None:
            self._body.gripper(control.command)

    def _refuse(self, error: SpecMismatch) -> None:
        self.refused = [*self.refused[-99:], str(error)]

    def _open(self, kind: int) -> Socket:
        socket = open_socket(self._context, kind, MAX_BYTES, 8)
        self._sockets.append(socket)
        return socket

    def _subscribe(self, endpoint: str) -> Socket:
        socket = self._open(zmq.SUB)
        socket.conflate = True
        socket.reconnect_ivl = 50
        socket.subscribe(b"")
        socket.connect(endpoint)
        return socket


def _newest(socket: Socket | None) -> bytes | None:
    if socket is None or not socket.poll(0):
        return None
    return socket.recv(zmq.NOBLOCK)
