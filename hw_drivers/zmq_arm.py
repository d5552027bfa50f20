"""An arm over the network, as a program sees it.

`connect` takes hold of the arm, a thread keeps hold of it, `command` sends a target that is worth
nothing after a moment, `state` gives a reading whose age is known although the clocks differ.
Nothing here makes the arm safe: the robot's side (`arm_server.py`) does that, whatever we do.
"""

from __future__ import annotations

import contextlib
import os
import socket as sockets
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import zmq

from zetta.hw_drivers.arm import ArmFacts, ArmReading, ArmTarget, checked_driver, checked_target
from zetta.hw_drivers.arm_messages import (
    ARM_PROTOCOL,
    MAX_BYTES,
    MAX_NAME,
    Command,
    StateMessage,
    Welcome,
    beside,
    command_to_wire,
    opened,
    port_of,
)
from zetta.hw_drivers.arm_person import (
    Waiting,
    approve_waiting,
    clear_stop,
    hello,
    press_stop,
    stop_endpoint,
    what_waits,
)
from zetta.hw_drivers.arm_sockets import Newest
from zetta.hw_drivers.lease_keeper import LeaseKeeper
from zetta.runtime.curve_keys import ClientKeys
from zetta.runtime.errors import (
    ConnectionLost,
    InfraError,
    SafetyStop,
    SpecMismatch,
    Timeout,
    ZettaError,
)
from zetta.runtime.transport import Dealer, Socket, check_destination, present_keys
from zetta.runtime.wire import Frame, Request, from_wire, read_reply, request_frames, unpack

__all__ = ["Waiting", "ZmqArm", "approve_waiting", "clear_stop", "hello", "what_waits"]

ASK_AGAIN_S: Final = 0.1
"""Between two requests for an arm that somebody else holds."""
COMMANDS_UNDER_WAY: Final = 16
"""Commands that may wait on our side; whoever sends more at once waits for the network."""


@dataclass(frozen=True, slots=True)
class _Connection:
    """Everything that one hold on the arm needs."""

    welcome: Welcome
    lease: str
    keeper: LeaseKeeper
    states: Newest
    commands: Socket


class ZmqArm:
    """An `Arm` behind an `ArmServer`. `stop` may be called from any thread, the rest from one."""

    def __init__(
        self,
        url: str,
        owner: str = "",
        robot: str = "",
        keys: ClientKeys | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Remember where the arm is; nothing is connected yet.

        Args:
            url: the command socket, such as `tcp://127.0.0.1:5701`.
            owner: shown to others while we hold the arm; program and host by default.
            robot: name of the robot that must be there; empty takes any.
            keys: where the server asks for them.
            clock: our monotonic clock.

        Raises:
            ConfigError: the URL is no place that can be connected to.
        """
        check_destination(url)
        port_of(url)
        self._url, self._robot, self._keys, self._clock = url, robot, keys, clock
        self._owner = (owner or f"{sockets.gethostname()}:{os.getpid()}")[:MAX_NAME]
        self._connection: _Connection | None = None
        self._state: StateMessage | None = None
        self._seq = 0
        self.spoiled = 0
        """States that were spoiled on their way."""
        self._stop_lock = threading.Lock()
        self._stop: Dealer | None = None

    def connect(self, within_s: float = 5.0) -> ArmFacts:
        """Reach the arm and take hold of it; again after it was lost.

        Raises:
            Timeout: nobody answers, or there is no state; the message names the endpoint.
            InfraError: somebody else holds it.
            SpecMismatch: it is another robot, or speaks another protocol.
        """
        self.close()
        deadline = self._clock() + within_s
        dealer = Dealer(self._url, self._keys)
        states: Newest | None = None
        try:
            welcome = hello(dealer, self._robot, within_s)
            states = Newest(beside(self._url, welcome.state_port), self._keys, MAX_BYTES)
            lease = self._leased(dealer, welcome, deadline)
            keeper = LeaseKeeper(dealer, welcome, lease, self._clock)
        except BaseException:
            dealer.close()
            if states is not None:
                states.close()
            raise
        self._stop = Dealer(beside(self._url, welcome.stop_port), self._keys)
        commands = self._command_socket()
        self._connection = _Connection(welcome, lease, keeper, states, commands)
        self._seq, self._state = 0, None
        try:
            self._wait_for_state(deadline, within_s)
        except BaseException:
            self.close()
            raise
        return welcome.arm

    def state(self, max_age_s: float = 0.1) -> ArmReading:
        """Return the latest reading, not older than `max_age_s`, waiting at most as long for one.

        Raises:
            Timeout: there is none so fresh.
            ConnectionLost: the server was restarted, or the hold on the arm is lost.
        """
        connection = self._connected()
        give_up = self._clock() + max_age_s
        while True:
            self._take_newest(0.0)
            if self.age_s() <= max_age_s:
                assert self._state is not None
                return self._state.reading
            left = give_up - self._clock()
            if left <= 0.0:
                break
            self._take_newest(left)
            self._connected()
        trouble = connection.keeper.trouble
        if not connection.keeper.offset.trusted:
            trouble = _CLOCKS
        raise Timeout(
            f"the newest state from {connection.states.endpoint} is {self.age_s():.3f} s old, "
            f"wanted at most {max_age_s:g} s (max_state_age_s of the set-up, stale of its limits)"
            + (f"; the robot says: {trouble}" if trouble else "")
        )

    def age_s(self) -> float:
        """Return how old the newest reading may be, the uncertainty of the clocks included."""
        if self._state is None or self._connection is None:
            return float("inf")
        offset, now = self._connection.keeper.offset, self._clock()
        age = now + offset.seconds - self._state.reading.t + offset.bound(now)
        if age < 0.0:  # from the future: the robot's clock is not where it was
            offset.doubt()
        return age if age >= 0.0 else float("inf")

    def command(self, target: ArmTarget, ttl_s: float = 0.1, driver: str = "policy") -> None:
        """Send a target that must not be executed later than `ttl_s` from now.

        `driver` is who asks: `person`, `policy`, `skill:NAME` or `agent:NAME`. Refusals come back
        with a later call: an arm is not asked whether it heard.

        Raises:
            SafetyStop: a stop is latched.
            ConnectionLost: the server was restarted, or the hold on the arm is lost.
            SpecMismatch: no target of this arm, or no driver.
            Timeout: the network takes nothing, or the clocks do not run alike.
        """
        connection = self._connected(commanding=True)
        if not connection.keeper.offset.trusted:
            raise Timeout(f"no deadline can be told to the arm at {self._url}: {_CLOCKS}")
        self._take_newest(0.0)
        if self._state is not None and self._state.reading.mode == "stopped":
            raise SafetyStop(
                f"the arm is stopped ({self._state.reading.reason}) until a person clears it"
            )
        target = checked_target(target, connection.welcome.arm)
        self._seq += 1
        deadline = self._clock() + connection.keeper.offset.seconds + ttl_s
        command = Command(
            connection.welcome.session,
            connection.lease,
            self._seq,
            deadline,
            target,
            checked_driver(driver),
        )
        self._send("command", command_to_wire(command), ttl_s)

    def hold(self, why: str) -> None:
        """Let the arm keep its place by itself until the next command.

        Raises:
            ConnectionLost: the server was restarted, or the hold on the arm is lost.
            Timeout: the network takes nothing.
        """
        connection = self._connected(commanding=True)
        session = connection.welcome.session
        self._send("hold", {"session": session, "lease": connection.lease, "why": why[:200]}, 0.1)

    def stop(self, reason: str) -> None:
        """Stop the arm at once; it stays stopped until a person clears it.

        Raises:
            Timeout: the robot's side did not confirm; use the emergency stop.
        """
        with self._stop_lock:
            if self._stop is None:
                self._stop = Dealer(stop_endpoint(self._url, self._keys), self._keys)
            press_stop(self._stop, self._owner, reason)

    def offset(self) -> tuple[float, float]:
        """Return the robot's clock minus ours, and how wrong that may be, seconds.

        Raises:
            ConnectionLost: not connected.
        """
        keeper = self._connected().keeper
        return keeper.offset.seconds, keeper.offset.bound(self._clock())

    def counts(self) -> Mapping[str, int]:
        """Return what happened on the robot's side, as of the newest state."""
        self._take_newest(0.0)
        return {} if self._state is None else self._state.counts

    def waiting(self) -> str:
        """Return the token of the target that waits for a person, as of the newest state."""
        self._take_newest(0.0)
        return "" if self._state is None else self._state.waiting

    def _send(self, do: str, given: Mapping[str, Any], within_s: float) -> None:
        """Send what has no answer. What waits here is of no use later, or does no harm then."""
        connection = self._connected()
        try:
            connection.commands.poll(round(1000.0 * within_s), zmq.POLLOUT)
            connection.commands.send_multipart(
                request_frames(Request(self._seq, do, given)), zmq.NOBLOCK
            )
        except zmq.Again:
            raise Timeout(f"{self._url} takes no commands; is the network down?") from None

    def close(self) -> None:
        """Let go of the arm, which then holds; calling it again does nothing."""
        with self._stop_lock:
            if self._stop is not None:
                self._stop.close()
                self._stop = None
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.commands.close(0)
            connection.states.close()
            connection.keeper.end()

    # ---------------------------------------------------------------------- parts

    def _connected(self, commanding: bool = False) -> _Connection:
        """Return the connection, or raise what became of it or of the last commands."""
        if self._connection is None:
            raise ConnectionLost(f"the arm at {self._url} is not connected; call connect")
        if self._connection.keeper.lost is not None:
            raise self._connection.keeper.lost
        with contextlib.suppress(zmq.Again):
            while True:
                error = refusal(self._connection.commands.recv_multipart(zmq.NOBLOCK))
                # Who only looks is told of a stop by the state, which knows the present.
                if error is not None and (commanding or not isinstance(error, SafetyStop)):
                    raise error
        return self._connection

    def _leased(self, dealer: Dealer, welcome: Welcome, deadline: float) -> str:
        wish = {"session": welcome.session, "owner": self._owner}
        while True:
            left = max(ASK_AGAIN_S, deadline - self._clock())
            try:
                match dealer.call("lease", wish, left):
                    case {"lease": str(token)}:
                        return token
                raise SpecMismatch(
                    f"{self._url} answered a request for a lease with something else"
                )
            except (Timeout, ConnectionLost):
                raise
            except InfraError:  # somebody holds it: a program that ended leaves its lease behind
                if self._clock() + ASK_AGAIN_S > deadline:
                    raise
            time.sleep(ASK_AGAIN_S)

    def _command_socket(self) -> Socket:
        socket: Socket = zmq.Context.instance().socket(zmq.DEALER)
        socket.linger, socket.maxmsgsize = 0, MAX_BYTES
        socket.sndhwm, socket.rcvhwm = COMMANDS_UNDER_WAY, 64
        # Without a connection nothing is queued: what is sent later would be the past.
        socket.immediate = True
        socket.reconnect_ivl, socket.reconnect_ivl_max = 50, 500
        if self._keys is not None:
            present_keys(socket, self._keys)
        socket.connect(self._url)
        return socket

    def _wait_for_state(self, deadline: float, within_s: float) -> None:
        connection = self._connected()
        # Both sockets must be there: a command is not sent before its own is connected.
        while self._state is None or not connection.commands.poll(0, zmq.POLLOUT):
            if self._clock() > deadline:
                trouble = connection.keeper.trouble
                raise Timeout(
                    f"no state came from {connection.states.endpoint} within {within_s:g} s"
                    + (f"; the robot says: {trouble}" if trouble else "; is the port open?")
                )
            self._take_newest(0.02)
            self._connected()

    def _take_newest(self, within_s: float) -> None:
        connection = self._connection
        raw = None if connection is None else connection.states.receive(within_s)
        if raw is None or connection is None:
            return
        try:
            message = from_wire(StateMessage, opened(unpack(raw)))
        except (SpecMismatch, InfraError):  # spoiled on its way: the last one grows old
            self.spoiled += 1
            return
        if message.protocol != ARM_PROTOCOL:
            raise SpecMismatch(f"got states of arm protocol {message.protocol}, not {ARM_PROTOCOL}")
        if message.session != connection.welcome.session:
            raise ConnectionLost(
                f"the server of the arm at {self._url} was restarted; connect again"
            )
        if self._state is None or message.number > self._state.number:  # not overtaken by others
            self._state = message


def refusal(frames: Sequence[Frame]) -> ZettaError | None:
    """Return what the server says against a command; None where a message was spoiled.

    A spoiled command is as a lost one: the next one counts, and without one the arm holds.
    """
    try:
        error = read_reply(frames).error
    except SpecMismatch:
        return None
    return None if type(error) is InfraError else error


_CLOCKS: Final = "the clocks of both machines do not run alike (one jumped, or drifts)"
