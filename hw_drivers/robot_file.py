"""What a person declares about an arm on the robot's side, in one TOML file: `zetta arms serve`.

The set-up (`arm_setup.py`) belongs to whoever drives; this file belongs to the computer beside the
robot, and says which driver is served, where, and within which limits.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, cast

from zetta.hw_drivers.arm import ArmFacts, ArmReading, ArmTarget, RobotSide
from zetta.hw_drivers.arm_limits import Limits, load_limits, shipped_limits
from zetta.hw_drivers.arm_messages import COMMAND_PORT, Endpoints
from zetta.hw_drivers.arm_server import ServerSettings
from zetta.hw_drivers.python_arm import MEMBERS, SCHEME
from zetta.hw_drivers.simple_side import SimpleSide
from zetta.runtime import registry
from zetta.runtime.errors import ConfigError, SpecMismatch
from zetta.runtime.records import from_json
from zetta.runtime.transport import check_bind

SIMPLE: Final = "simple"
"""The arm of pure numpy: no robot, so the only driver that is served without limits."""


@dataclass(frozen=True, slots=True)
class RobotFile:
    """One arm, and how it is served."""

    robot: str
    """Name of this very robot: set-ups insist on it."""
    driver: str
    """`simple`, or a name of `zetta arms list`, such as `deoxys:PC,NUC` or `python:MODULE:MAKE`."""
    options: Mapping[str, object] = field(default_factory=dict)
    """Of the driver: what else stands behind the `@` of its name. Text, numbers, yes or no."""
    limits: str = ""
    """Name of an arm whose limits come with zetta, or a file."""
    host: str = "127.0.0.1"
    port: int = COMMAND_PORT
    """For commands; states and stops are on the two after it."""
    keys: str = ""
    """Server key file; without it only loopback is bound."""
    audit: str = ""
    """Folder of the audit log; empty keeps none."""
    latch: str = ""
    """File in which a stop outlives this process; empty forgets it."""
    state_hz: float = 200.0
    watchdog_s: float = 0.2
    lease_s: float = 1.0
    needs_approval: bool = False
    """Every new command waits for a person (`zetta arms approve`)."""

    def __post_init__(self) -> None:
        if not self.robot.strip():
            raise ConfigError("robot is the name of this robot, got an empty text")
        if not self.limits and not self.is_simple:
            raise ConfigError(
                "limits is missing, and an arm is not served without; name one of "
                f"{', '.join(shipped_limits())} or a file of your own (docs/safety.md)"
            )
        if not 0 <= self.port <= 65533:
            raise ConfigError(f"port and the two after it lie in 0 to 65535, got {self.port}")
        self.settings()
        check_bind(self.settings().endpoints.command, bool(self.keys))
        self.name()

    @property
    def is_simple(self) -> bool:
        """Whether no robot is there at all."""
        return self.driver == SIMPLE

    def settings(self) -> ServerSettings:
        """Return how the arm is served.

        Raises:
            ConfigError: a number makes no sense.
        """
        return ServerSettings(
            Endpoints.on(self.host, self.port),
            self.state_hz,
            self.watchdog_s,
            self.lease_s,
            Path(self.latch) if self.latch else None,
        )

    def name(self) -> str:
        """Return the driver with its options, as the registry takes it.

        >>> RobotFile("a", "python:m:make", {"port": "/dev/ttyUSB0", "slow": True}, "panda").name()
        'python:m:make@port=/dev/ttyUSB0,slow=1'

        Raises:
            ConfigError: an option is no text, number, or yes or no.
        """
        if not self.options:
            return self.driver
        if self.is_simple:
            raise ConfigError("the driver 'simple' takes no options")
        joined = ",".join(f"{key}={_text(key, value)}" for key, value in self.options.items())
        return f"{self.driver}{',' if '@' in self.driver else '@'}{joined}"


def read_robot_file(path: Path) -> RobotFile:
    """Return the robot of a TOML file; relative paths in it begin at its folder.

    Raises:
        ConfigError: the file cannot be read, or something in it is unknown, missing or odd.
    """
    try:
        plain = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"cannot read {path}: {error}") from error
    try:
        return _placed(from_json(RobotFile, plain), path.parent)
    except (SpecMismatch, ConfigError) as error:
        raise ConfigError(f"{path}: {error}") from error


def limits_of(robot: RobotFile) -> Limits | None:
    """Return the limits that are declared; None for the simple arm without.

    Raises:
        ConfigError: no such limits, or something in them is odd.
    """
    if not robot.limits:
        return None
    return load_limits(Path(robot.limits) if robot.limits.endswith(".toml") else robot.limits)


def open_side(robot: RobotFile, limits: Limits | None) -> RobotSide:
    """Connect the driver; what it serves has the declared name and limits.

    Raises:
        ConfigError: unknown driver or option.
        SpecMismatch: the limits are those of another arm.
        InfraError: the robot does not report or does not listen.
    """
    made = SimpleSide() if robot.is_simple else registry.arm(robot.name())
    missing = [member for member in MEMBERS if not hasattr(made, member)]
    if missing:
        raise ConfigError(
            f"the driver {robot.driver!r} made a {type(made).__name__} without "
            f"{', '.join(missing)}; a robot side has {', '.join(MEMBERS)}"
        )
    side = cast(RobotSide, made)
    try:
        return DeclaredSide(side, declared(side.facts, robot.robot, limits))
    except SpecMismatch:
        side.close()
        raise


def declared(facts: ArmFacts, robot: str, limits: Limits | None) -> ArmFacts:
    """Return what a driver says of its arm, with the name and the limits that a person declared.

    Raises:
        SpecMismatch: the limits are those of another arm.
    """
    if limits is None:
        return replace(facts, robot=robot)
    if len(limits.joints) != len(facts.joints):
        raise SpecMismatch(
            f"the limits are those of {limits.arm!r} with {len(limits.joints)} joints, but "
            f"{facts.model!r} has {len(facts.joints)}; declare those of this arm"
        )
    low, high = facts.joint_low, facts.joint_high
    if len(low) != len(facts.joints) or len(high) != len(facts.joints):
        low, high = tuple(limits.joint_low.tolist()), tuple(limits.joint_high.tolist())
    return replace(
        facts,
        robot=robot,
        joint_low=low,
        joint_high=high,
        gripper_max=min(facts.gripper_max, limits.gripper.opening),
        workspace_low=limits.workspace.low,
        workspace_high=limits.workspace.high,
        versions={**facts.versions, "limits": limits.arm},
    )


class DeclaredSide:
    """A `RobotSide` that is called what its file calls it; everything else is the driver's."""

    def __init__(self, side: RobotSide, facts: ArmFacts) -> None:
        self._side, self._facts = side, facts

    @property
    def facts(self) -> ArmFacts:
        """Return what the arm is, as declared."""
        return self._facts

    def read(self) -> ArmReading:
        """Return the latest reading.

        Raises:
            InfraError: the robot does not report.
        """
        return self._side.read()

    def send(self, target: ArmTarget) -> None:
        """Begin to go to `target`.

        Raises:
            InfraError: the robot does not take it.
            SafetyStop: it must not go there.
        """
        self._side.send(target)

    def hold(self) -> None:
        """Keep the present place."""
        self._side.hold()

    def stop(self) -> None:
        """Stop until `clear`."""
        self._side.stop()

    def clear(self) -> None:
        """Take targets again."""
        self._side.clear()

    def close(self) -> None:
        """Hold and free everything."""
        self._side.close()


def _placed(robot: RobotFile, folder: Path) -> RobotFile:
    """Let relative paths begin at the folder of the file: a service has no folder of its own."""

    def at(path: str) -> str:
        return str(folder / Path(path).expanduser()) if path else ""

    driver = robot.driver
    where, colon, factory = driver.removeprefix(SCHEME).partition(".py:")
    if driver.startswith(SCHEME) and colon:
        driver = f"{SCHEME}{folder / Path(where).expanduser()}.py:{factory}"
    limits = at(robot.limits) if robot.limits.endswith(".toml") else robot.limits
    return replace(
        robot,
        driver=driver,
        limits=limits,
        keys=at(robot.keys),
        audit=at(robot.audit),
        latch=at(robot.latch),
    )


def _text(key: str, value: object) -> str:
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, str | int | float) and not any(mark in str(value) for mark in ",@"):
        return str(value)
    raise ConfigError(
        f"the option {key!r} is a text without ',' and '@', a number, true or false; got {value!r}"
    )
