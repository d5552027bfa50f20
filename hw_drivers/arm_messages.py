"""What crosses the link between a program and the robot's side.

Three sockets: commands (and everything that is answered), the stream of states, and the stop. The
envelopes are those of `zetta.runtime.wire`; the link has a version of its own, told in the hello.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from zetta.hw_drivers.arm import ArmFacts, ArmReading, ArmTarget, JointTarget, PoseTarget
from zetta.runtime.errors import ConfigError, InfraError, SpecMismatch
from zetta.runtime.wire import from_wire, pack, to_wire

ARM_PROTOCOL: Final = 3
"""Raised when an old peer could misread a message."""
COMMAND_PORT, STATE_PORT, STOP_PORT = 5701, 5702, 5703
MAX_BYTES: Final = 2**16
"""No message of the link is nearly as large; whoever sends more is cut off."""
MAX_NAME: Final = 64
"""Characters of an owner's or a person's name."""


@dataclass(frozen=True, slots=True)
class Endpoints:
    """Where the three sockets of one robot are."""

    command: str
    state: str
    stop: str

    def __post_init__(self) -> None:
        for endpoint in (self.command, self.state, self.stop):
            if endpoint.endswith(":5555"):
                raise ConfigError(
                    "port 5555 is the default of several other robot systems; take others, such "
                    f"as {COMMAND_PORT} to {STOP_PORT}"
                )

    @classmethod
    def on(cls, host: str = "127.0.0.1", port: int = COMMAND_PORT) -> Endpoints:
        """Return three ports in a row on `host`; port 0 takes any that are free.

        Raises:
            ConfigError: ports that other systems use by default.
        """
        ports = ["*"] * 3 if port == 0 else [str(port + k) for k in range(3)]
        return cls(*(f"tcp://{host}:{p}" for p in ports))


@dataclass(frozen=True, slots=True)
class Welcome:
    """The answer to a hello."""

    protocol: int
    session: str
    """Differs for every start of the server: what was meant for another one is void."""
    arm: ArmFacts
    state_port: int
    stop_port: int
    state_hz: float
    watchdog_s: float
    """Without a command for so long, the arm holds."""
    lease_s: float
    """Without a heartbeat for so long, the arm is free for others."""
    limits: str = ""
    """Of which arm the limits are that are kept there; empty where nothing is limited."""


@dataclass(frozen=True, slots=True)
class Beat:
    """The answer to a heartbeat."""

    t_received: float
    """By the robot's clock, as is `t_sent`."""
    t_sent: float
    session: str
    held: bool
    """The lease that was shown is the present one."""
    trouble: str = ""
    """Why there is no state, where there is none."""


@dataclass(frozen=True, slots=True)
class StateMessage:
    """One message of the stream of states."""

    protocol: int
    session: str
    number: int
    """Counts the messages of a session."""
    reading: ArmReading
    owner: str = ""
    """Who holds the arm; empty for nobody."""
    seq: int = 0
    """Number of the last command of the present lease that was sent on to the arm."""
    counts: Mapping[str, int] = field(default_factory=dict)
    """What happened so far, by `COUNTED`."""
    waiting: str = ""
    """Token of the target that waits for a person's approval; empty where none does."""


COUNTED: Final[Mapping[str, str]] = {
    "sent": "commands that were sent on to the arm, as asked or within limits",
    "changed": "of those, the ones that the guard had to bring within limits",
    "declined": "commands that the guard did not follow",
    "superseded": "commands that a newer one overtook before the guard saw them",
    "duplicate": "commands that came twice",
    "reordered": "commands that came behind a newer one",
    "expired": "commands whose time was over",
    "clock": "commands whose time lay too far ahead: the clocks disagree",
    "session": "commands meant for an earlier start of the server",
    "owner": "commands of somebody who does not hold the arm",
    "refused": "commands that the arm cannot follow",
    "latched": "commands while a stop was latched",
    "garbage": "messages that were none",
    "watchdog": "times that the arm was made to hold because nobody commanded it",
    "stops": "stops that were none before, however often each was sent",
}


@dataclass(frozen=True, slots=True)
class Command:
    """One target on its way."""

    session: str
    lease: str
    seq: int
    deadline: float
    """By the robot's clock; later it is not executed."""
    target: ArmTarget
    driver: str
    """Who asks: `person`, `policy`, `skill:NAME` or `agent:NAME`."""


def command_to_wire(command: Command) -> dict[str, Any]:
    """Return a command as plain maps, sealed."""
    kind = "pose" if isinstance(command.target, PoseTarget) else "joints"
    return sealed(
        {
            "session": command.session,
            "lease": command.lease,
            "seq": command.seq,
            "deadline": command.deadline,
            "driver": command.driver,
            kind: to_wire(command.target),
        }
    )


def read_command(given: Mapping[str, Any]) -> Command:
    """Return the command of what was opened.

    Raises:
        SpecMismatch: it is no command.
    """
    match given:
        case {
            "session": str(session),
            "lease": str(lease),
            "seq": int(seq),
            "deadline": float(t),
            "driver": str(driver),
        }:
            pose, joints = given.get("pose"), given.get("joints")
        case _:
            raise SpecMismatch("a command holds session, lease, seq, deadline, driver and a target")
    if (pose is None) == (joints is None) or len(given) != 6:
        raise SpecMismatch("a command holds either a pose or joints, and nothing else")
    target: ArmTarget = (
        from_wire(JointTarget, joints) if pose is None else from_wire(PoseTarget, pose)
    )
    return Command(session, lease, seq, t, target, driver)


def welcomed(given: Mapping[str, Any], welcome: Welcome) -> object:
    """Return the answer to a hello as plain maps, if the other side fits.

    Raises:
        SpecMismatch: it speaks another protocol, or looks for another robot.
    """
    theirs, wanted = given.get("arm_protocol"), text_of(given, "robot")
    if theirs != ARM_PROTOCOL:
        raise SpecMismatch(
            f"the other side speaks arm protocol {theirs!r:.20}, this one {ARM_PROTOCOL}; "
            "install the same version of zetta on both sides"
        )
    robot = welcome.arm.robot
    if wanted and wanted != robot:
        raise SpecMismatch(f"this is the robot {robot!r}, not {wanted!r}; check the URL")
    return to_plain(welcome)


def text_of(given: Mapping[str, Any], name: str) -> str:
    """Return a short text of a request.

    Raises:
        SpecMismatch: it is missing, no text, or too long.
    """
    value = given.get(name)
    if not isinstance(value, str) or len(value) > MAX_NAME:
        raise SpecMismatch(f"{name} must be text of at most {MAX_NAME} characters")
    return value


def name_of(given: Mapping[str, Any], name: str) -> str:
    """Return a name of a request.

    Raises:
        SpecMismatch: it is missing, no text, empty or too long.
    """
    value = text_of(given, name).strip()
    if not value:
        raise SpecMismatch(f"{name} must be a name, got an empty text")
    return value


def to_plain(record: Welcome | Beat) -> object:
    """Return an answer as plain maps, sealed."""
    return sealed(to_wire(record))


def sealed(plain: Mapping[str, Any]) -> dict[str, Any]:
    """Return a message with a checksum of what it says.

    A turned bit in a number is a number, and an arm would go there. The checksum of TCP has 16 bits
    and ends at every box between two networks.
    """
    return {**plain, _CHECK: _checksum(plain)}


def opened(plain: object) -> dict[str, Any]:
    """Undo `sealed`.

    Raises:
        InfraError: the message was spoiled on its way, or was never sealed.
        SpecMismatch: it is no map.
    """
    if not isinstance(plain, Mapping):
        raise SpecMismatch(f"expected a map of values, got {type(plain).__name__}")
    rest = {key: value for key, value in plain.items() if key != _CHECK}
    if plain.get(_CHECK) != _checksum(rest):
        raise InfraError("a message was spoiled on its way: it does not have its checksum")
    return rest


_CHECK: Final = "check"


def _checksum(plain: Mapping[str, Any]) -> int:
    return zlib.crc32(pack(dict(plain)))


def beside(endpoint: str, port: int) -> str:
    """Return the endpoint at another port of the same host.

    >>> beside("tcp://127.0.0.1:5701", 5703)
    'tcp://127.0.0.1:5703'
    """
    host, _, _ = endpoint.rpartition(":")
    return f"{host}:{port}"


def port_of(endpoint: str) -> int:
    """Return the port of a TCP endpoint.

    Raises:
        ConfigError: it has none.
    """
    port = endpoint.rpartition(":")[2]
    if not endpoint.startswith("tcp://") or not port.isdecimal():
        raise ConfigError(f"got the endpoint {endpoint!r}, expected tcp://HOST:PORT")
    return int(port)
