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
from zetta.hw_drivers.arm_guard import check_fit
from zetta.hw_drivers.arm_limits import Limits, load_limits, shipped_limits
from zetta.hw_drivers.arm_messages import COMMAND_PORT, Endpoints
from zetta.hw_drivers.arm_server import ServerSettings
from zetta.hw_drivers.arm_serving import GuardSettings
from zetta.hw_drivers.python_arm import MEMBERS, SCHEME
from zetta.hw_drivers.simple_side import SimpleSide
from zetta.runtime import registry
from zetta.runtime.errors import ConfigError, SpecMismatch
from zetta.runtime.records import from_json
from zetta.runtime.transport import check_bind

SIMPLE: Final = "simple"
"""The arm of pure numpy, for trying the link without a robot."""
TWIN: Final = "twin:"
"""Before the name of an arm whose digital twin is served; a Panda's if there is none."""
OF_FILES: Final = ("lekiwi:", "lerobot:")
"""Drivers that are named by a file."""


@dataclass(frozen=True, slots=True)
class RobotFile:
    """One arm, and how it is served."""

    robot: str
    """Name of this very robot: set-ups insist on it."""
    driver: str
    """`simple`, `twin:`, or a name of `zetta arms list`: `deoxys:PC,NUC`, `python:MODULE:MAKE`."""
    limits: str
    """Name of an arm whose limits come with zetta, or a file. No arm is served without."""
    options: Mapping[str, object] = field(default_factory=dict)
    """Of the driver: what else stands behind the `@` of its name. Text, numbers, yes or no."""
    host: str = "127.0.0.1"
    port: int = COMMAND_PORT
    """For commands; states and stops are on the two after it."""
    keys: str = ""
    """Server key file; without it only loopback is bound."""
    audit: str = ""
    """Folder of the audit log; empty keeps none."""
    audit_all: bool = False
    """Also keep the commands that passed as asked."""
    latch: str = ""
    """File in which a stop outlives this process; empty forgets it."""
    state_hz: float = 200.0
    watchdog_s: float = 0.2
    lease_s: float = 1.0
    needs_approval: bool = False
    """Every new command waits for a person (`zetta arms approve`)."""
    after_kernel: bool = False
    """Every program that drives has a kernel with the same limits, which spares a lag."""
    tick_s: float = 0.0
    """Another tick than that of the limits; 0 keeps theirs."""

    def __post_init__(self) -> None:
        if not self.robot.strip():
            raise ConfigError("robot is the name of this robot, got an empty text")
        if not 0 <= self.port <= 65533:
            raise ConfigError(f"port and the two after it lie in 0 to 65535, got {self.port}")
        self.settings()
        check_bind(self.settings().endpoints.command, bool(self.keys))
        self.name()

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

    def guard(self) -> GuardSettings:
        """Return what the kernel does beyond its limits."""
        return GuardSettings(
            audit=Path(self.audit) if self.audit else None,
            audit_all=self.audit_all,
            needs_approval=self.needs_approval,
            after_kernel=self.after_kernel,
            tick_s=self.tick_s or None,
        )

    def name(self) -> str:
        """Return the driver with its options, as the registry takes it.

        >>> RobotFile("a", "python:m:make", "panda", {"port": "/dev/ttyUSB0", "slow": True}).name()
        'python:m:make@port=/dev/ttyUSB0,slow=1'

        Raises:
            ConfigError: an option is no text, number, or yes or no.
        """
        if not self.options:
            return self.driver
        if self.driver == SIMPLE:
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
    if not plain.get("limits"):
        raise ConfigError(
            f"{path}: limits is missing, and no arm is served without; name one of "
            f"{', '.join(shipped_limits())} or a file of your own (docs/safety.md)"
        )
    try:
        return _placed(from_json(RobotFile, plain), path.parent)
    except (SpecMismatch, ConfigError) as error:
        raise ConfigError(f"{path}: {error}") from error


def limits_of(robot: RobotFile) -> Limits:
    """Return the limits that are declared.

    Raises:
        ConfigError: no such limits, or something in them is odd.
    """
    return load_limits(Path(robot.limits) if robot.limits.endswith(".toml") else robot.limits)


def open_side(robot: RobotFile, limits: Limits) -> RobotSide:
    """Connect the driver; what is served has the declared name, and is described by the limits.

    Raises:
        ConfigError: unknown driver or option, or the limits are those of another arm.
        InfraError: the robot does not report or does not listen.
    """
    made = SimpleSide() if robot.driver == SIMPLE else registry.arm(robot.name(), (SIMPLE, TWIN))
    missing = [member for member in MEMBERS if not hasattr(made, member)]
    if missing:
        raise ConfigError(
            f"the driver {robot.driver!r} made a {type(made).__name__} without "
            f"{', '.join(missing)}; a robot side has {', '.join(MEMBERS)}"
        )
    side = cast(RobotSide, made)
    try:
        return DeclaredSide(side, declared(side.facts, robot.robot, limits))
    except ConfigError:
        side.close()
        raise


def declared(facts: ArmFacts, robot: str, limits: Limits) -> ArmFacts:
    """Return what a driver says of its arm; what it is silent on is told from the limits.

    Raises:
        ConfigError: the limits are those of another arm.
    """
    named = replace(facts, robot=robot)
    check_fit(limits, named)
    low, high = named.joint_low, named.joint_high
    if not (low and high):
        low, high = tuple(limits.joint_low.tolist()), tuple(limits.joint_high.tolist())
    box = limits.workspace
    return replace(
        named,
        joint_low=low,
        joint_high=high,
        gripper_max=min(named.gripper_max, limits.gripper.opening),
        workspace_low=named.workspace_low or box.low,
        workspace_high=named.workspace_high or box.high,
        versions={**named.versions, "limits": limits.arm},
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
    for scheme in OF_FILES:
        if driver.startswith(scheme):
            driver = scheme + at(driver.removeprefix(scheme))
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
