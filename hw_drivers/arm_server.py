"""The robot's side of the link: one thread between the network and the driver.

It trusts nobody. Whatever a client does or fails to do, this loop makes the arm hold when commands
cease, lets a stop pass everything that waits, and executes no command but a fresh one of the
present owner. Only the newest of the commands that wait is carried out: a target replaces the one
before, and a queue of old ones would be the past. What is carried out is what the guard makes of
it, tick by tick of the guard's own clock (`arm_lead.py`).
"""

from __future__ import annotations

import math
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import zmq

from zetta.hw_drivers.arm import ArmReading, Guard, RobotSide, checked_driver, checked_target
from zetta.hw_drivers.arm_latch import LATCH, StopLatch
from zetta.hw_drivers.arm_lead import Asked, Lead, shown
from zetta.hw_drivers.arm_lease import Ownership
from zetta.hw_drivers.arm_messages import (
    ARM_PROTOCOL,
    COUNTED,
    MAX_BYTES,
    Beat,
    Endpoints,
    StateMessage,
    Welcome,
    name_of,
    opened,
    port_of,
    read_command,
    sealed,
    text_of,
    to_plain,
    welcomed,
)
from zetta.hw_drivers.arm_sockets import Sockets
from zetta.runtime.curve_keys import ServerKeys
from zetta.runtime.errors import (
    ConfigError,
    ConnectionLost,
    InfraError,
    SafetyStop,
    SpecMismatch,
)
from zetta.runtime.transport import Router
from zetta.runtime.wire import (
    Frame,
    Reply,
    Request,
    claimed_id,
    explained,
    pack,
    read_request,
    reply_frames,
    to_wire,
)

COMMANDS_A_TURN: Final = 32
"""Messages that are read before the arm is looked after again."""


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """How the robot's side is served."""

    endpoints: Endpoints
    state_hz: float = 200.0
    watchdog_s: float = 0.2
    lease_s: float = 1.0
    latch: Path | None = None
    """File in which a latched stop outlives this process; None forgets it at the end."""

    def __post_init__(self) -> None:
        if not 1.0 <= self.state_hz <= 1000.0:
            raise ConfigError(f"states are sent at 1 to 1000 Hz, got {self.state_hz:g}")
        if not 0.02 <= self.watchdog_s <= 1.0:
            raise ConfigError(f"the watchdog waits 0.02 to 1 s, got {self.watchdog_s:g}")
        if not 0.2 <= self.lease_s <= 10.0:
            raise ConfigError(f"a lease lasts 0.2 to 10 s, got {self.lease_s:g}")


class ArmServer:
    """Serves one `RobotSide`. One thread builds it, runs `serve`, and closes it."""

    def __init__(
        self,
        side: RobotSide,
        guard: Guard,
        settings: ServerSettings,
        keys: ServerKeys | None = None,
        clock: Callable[[], float] = time.monotonic,
        sockets: Sockets = Sockets(),  # noqa: B008 - it is frozen
    ) -> None:
        """Bind the three sockets; the arm is not touched yet.

        Args:
            side: the driver; it stamps its readings by `clock`.
            guard: decides at each of its ticks what is sent to the arm.
            settings: where and how.
            keys: without them only loopback is bound.
            clock: the robot's monotonic clock.
            sockets: makes them.

        Raises:
            ConfigError: an address may not be bound without keys, or the guard's tick is too long
                for the watchdog.
            InfraError: an address is taken.
        """
        self._side, self._guard, self._settings, self._clock = side, guard, settings, clock
        self._session = secrets.token_hex(8)
        self._ownership = Ownership(settings.lease_s)
        self._latch = StopLatch(settings.latch)
        self._reading: ArmReading | None = None
        self._number = 0
        self._holding = ""
        self._trouble = self._deaf = ""
        self._counts = dict.fromkeys(COUNTED, 0)
        self._lead = Lead(side, guard, settings.watchdog_s, self._counts)
        if self._latch.reason:
            guard.stop(self._latch.reason, clock(), LATCH)
        self._turned = self._due = -math.inf
        self._longest_turn = 0.0
        self._closed = False
        ends = settings.endpoints
        self._stop, self._commands, self._states = sockets.open(
            ends.stop, ends.command, ends.state, keys, MAX_BYTES
        )
        self._poller = zmq.Poller()
        self._poller.register(self._stop.socket, zmq.POLLIN)
        self._poller.register(self._commands.socket, zmq.POLLIN)

    @property
    def endpoints(self) -> Endpoints:
        """Where it listens, with the ports that were taken."""
        return Endpoints(self._commands.endpoint, self._states.endpoint, self._stop.endpoint)

    @property
    def counts(self) -> Mapping[str, int]:
        """What happened so far, by `COUNTED`."""
        return dict(self._counts)

    @property
    def longest_turn_s(self) -> float:
        """The longest time between two looks at the watchdog so far, beyond the wanted period."""
        return self._longest_turn

    def serve(self, until: Callable[[], bool]) -> None:
        """Serve until `until` says so; a driver or guard that breaks is a latched stop."""
        while not until():
            try:
                self._listen()
                self._act()
            except Exception as error:  # boundary: an arm must not be left alone by a bug
                broke = f"the robot's side broke: {explained(error)}"
                self._latch.set(broke, broke)
                self._guard.stop(self._latch.reason, self._clock(), "server")
            self._look_after()

    def close(self) -> None:
        """Hold the arm and close everything; calling it again does nothing."""
        if self._closed:
            return
        self._closed = True
        self._side.close()
        for socket in (self._stop, self._commands, self._states):
            socket.close()

    # ---------------------------------------------------------------------- one turn

    def _listen(self) -> None:
        """Wait for messages until something is due, and answer those that came, stops first."""
        now = self._clock()
        left = min(max(0.0, self._due - now), self._lead.left_s(now))
        self._poller.poll(math.ceil(min(left, 1.0 / self._settings.state_hz) * 1000))
        self._take_stops()
        for _ in range(COMMANDS_A_TURN):
            if not self._take_message():
                break
            self._take_stops()

    def _act(self) -> None:
        """Read the arm, lead it on and tell its state."""
        now = self._clock()
        if math.isfinite(self._turned):
            late = now - self._turned - 1.0 / self._settings.state_hz
            self._longest_turn = max(self._longest_turn, late)
        self._turned = now
        self._read()
        self._carry_out()
        if now >= self._due:
            period = 1.0 / self._settings.state_hz
            self._due = self._due + period if now - self._due < period else now + period
            self._publish()

    def _look_after(self) -> None:
        """Apply what must hold in every turn, however it went."""
        now = self._clock()
        try:
            if self._latch.reason:
                self._side.stop()
                self._holding = self._deaf = ""
                self._lead.drop()
                self._lead.settle(self._reading, now)
                return
            silent = self._lead.silent(now)
            if self._lead.following and (silent or not self._ownership.owner(now)):
                self._counts["watchdog"] += silent
                for_s = f"{self._settings.watchdog_s:g} s"
                why = f"no command for {for_s}" if silent else "nobody holds the arm any more"
                self._hold(why)
            if self._holding:
                self._side.hold()  # again in every turn: what is said to a controller may be lost
            self._deaf = ""
        except Exception as error:  # boundary: said in every state, tried again in the next turn
            self._deaf = str(explained(error))

    def _hold(self, why: str) -> None:
        """Make `_look_after`, which ends every turn, hold the arm."""
        self._holding = why
        self._lead.hold()

    def _read(self) -> None:
        try:
            self._reading, self._trouble = self._side.read(), ""
            self._latch.watch(self._reading)
        except InfraError as error:
            self._trouble = str(error)
            self._hold(self._trouble)

    def _carry_out(self) -> None:
        """Send on what the guard decides, if its tick has come."""
        if self._latch.reason or self._trouble or self._reading is None:
            return
        try:
            self._lead.tick(self._reading, self._clock())
        except SafetyStop as stop:
            self._halt(str(stop), "guard", str(stop))
            return
        except InfraError as error:
            self._trouble = str(error)
            self._hold(self._trouble)
            return
        if self._lead.following:
            self._holding = ""

    def _halt(self, reason: str, by: str, token: str) -> str:
        """Stop the arm, then the guard; latch, which may write a file; return the stop's id."""
        self._counts["stops"] += not self._latch.reason  # it is sent more than once to be sure
        try:
            self._side.stop()
        finally:
            self._guard.stop(reason, self._clock(), by)
            stop = self._latch.set(reason, token)
        return stop

    def _publish(self) -> None:
        if self._reading is None:
            return
        fault, held = self._trouble or self._deaf, self._holding or self._lead.declined
        reading = shown(self._reading, self._latch.reason, fault, held)
        self._number += 1
        owner = self._ownership.owner(self._clock())
        header, lead = (ARM_PROTOCOL, self._session, self._number), self._lead
        message = StateMessage(*header, reading, owner, lead.seq, self._counts, lead.waiting)
        self._states.send(pack(sealed(to_wire(message))))

    # ---------------------------------------------------------------------- messages

    def _take_stops(self) -> None:
        while (message := self._stop.receive()) is not None:
            self._answer(self._stop, message, self._stopped)

    def _take_message(self) -> bool:
        message = self._commands.receive()
        if message is not None:
            self._answer(self._commands, message, self._asked)
        return message is not None

    def _answer(
        self, socket: Router, message: list[Frame], answer: Callable[[Request], object | None]
    ) -> None:
        """Answer one message; a command that is taken has no answer."""
        peer, *frames = message
        number = claimed_id(frames[0]) if frames else -1
        try:
            request = read_request(frames)
        except SpecMismatch as error:
            self._counts["garbage"] += 1
            reply = Reply(number, error=InfraError(f"{error}; was it spoiled on its way?"))
        else:
            try:
                value = answer(request)
                if value is None:
                    return
                reply = Reply(number, value)
            except Exception as error:  # boundary: one client never ends the server
                reply = Reply(number, error=explained(error))
        socket.send(bytes(peer), reply_frames(reply))

    def _stopped(self, request: Request) -> object:
        """Answer the stop channel, where a stop needs no lease, no session and no version."""
        if request.do != "stop":
            raise SpecMismatch(f"this socket is for stops, got {request.do!r:.40}")
        names = ("by", "reason", "token")
        by, reason, token = (str(request.given.get(name, ""))[:200] for name in names)
        by = by or "somebody"
        stop = self._halt(f"stopped by {by}: {reason or 'no reason given'}", by, token)
        return {"stopped": True, "stop": stop}

    def _asked(self, request: Request) -> object | None:
        given, now = request.given, self._clock()
        match request.do:
            case "command":
                self._command(given, now)
                return None
            case "hold":
                if self._ownership.holds(text_of(given, "lease"), now):
                    self._hold(str(given.get("why", ""))[:200] or "asked to")
                return None
            case "hello":
                return welcomed(given, self._welcome())
            case "lease":
                self._same_session(given)
                token = self._ownership.take(name_of(given, "owner"), now)
                self._lead.begin()
                return {"lease": token}
            case "beat":
                held = self._ownership.renew(text_of(opened(given), "lease"), now)
                return to_plain(Beat(now, self._clock(), self._session, held, self._trouble))
            case "release":
                if self._ownership.holds(text_of(given, "lease"), now):
                    self._ownership.end()
                return {"released": True}
            case "stopped":
                return {"stop": self._latch.stop, "said": self._latch.said}
            case "clear":
                return self._clear(name_of(given, "by"), given.get("stop"), now)
            case "waiting":
                return {"waiting": self._lead.waiting, "said": self._lead.said()}
            case "approve":
                by, token = name_of(given, "by"), name_of(given, "token")
                self._guard.approve(token, by, now)
                return {"approved": token}
        raise InfraError(f"nothing here does {request.do!r:.40}; was it spoiled on its way?")

    def _welcome(self) -> Welcome:
        settings, ports = self._settings, (self._states.endpoint, self._stop.endpoint)
        rates = (settings.state_hz, settings.watchdog_s, settings.lease_s)
        state, stop = (port_of(endpoint) for endpoint in ports)
        facts, limits = self._side.facts, self._guard.limits
        return Welcome(ARM_PROTOCOL, self._session, facts, state, stop, *rates, limits)

    def _same_session(self, given: Mapping[str, Any]) -> None:
        if text_of(given, "session") != self._session:
            raise ConnectionLost("the server of the arm was restarted; connect again")

    def _clear(self, by: str, stop: object, now: float) -> object:
        """Clear the stop of that id. Nobody holds the arm afterwards: commands are made anew."""
        was = self._latch.named(stop)
        if was:
            self._guard.clear(by, now)  # first: it refuses while what it sent still moves
            self._ownership.end()
            self._side.clear()
            self._latch.clear()
            self._hold(f"stop cleared by {by}")
        return {"cleared": was}

    def _command(self, given: Mapping[str, Any], now: float) -> None:
        try:
            command = read_command(opened(given))
        except (SpecMismatch, InfraError):
            self._counts["garbage"] += 1
            raise
        if command.session != self._session:
            self._counts["session"] += 1
            raise ConnectionLost("the server of the arm was restarted; connect again")
        fault = self._ownership.fault_of(command, now)
        if fault:
            self._counts[fault] += 1
            if fault == "owner":
                raise ConnectionLost("this program does not hold the arm any more; connect again")
            return
        if self._latch.reason:
            self._counts["latched"] += 1
            raise SafetyStop(f"the arm is stopped ({self._latch.reason}) until a person clears it")
        try:
            target = checked_target(command.target, self._side.facts)
            checked_driver(command.driver)
        except SpecMismatch:
            self._counts["refused"] += 1
            raise
        self._lead.ask(Asked(command.seq, target, command.driver), now)
