"""`lekiwi:FILE` as the name of an arm: a connected session, as the arm server takes it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from zetta.hw_drivers.arm import RobotSide
from zetta.hw_drivers.declared import read_declared
from zetta.hw_drivers.kinematic_chain import ChainSetup, KinematicChain
from zetta.hw_drivers.kinematic_side import KinematicSide
from zetta.hw_drivers.lekiwi.messages import LEKIWI, SO_ARM
from zetta.hw_drivers.lekiwi.session import (
    COMMAND_PORT,
    CONNECT_WITHIN_S,
    OBSERVATION_PORT,
    LekiwiSession,
    lekiwi_endpoints,
)
from zetta.hw_drivers.lekiwi.side import LekiwiArm, LekiwiSide
from zetta.runtime.errors import ConfigError

SCHEME: Final = "lekiwi:"


@dataclass(frozen=True, slots=True)
class LekiwiSetup:
    """The file that `lekiwi:` names."""

    host: str
    """Address of the computer that runs LeRobot's host."""
    degrees: bool
    """The host sends degrees (`use_degrees`). Nothing on the wire says so: somebody looked."""
    base: bool = True
    """False for an SO-100 or SO-101: no wheels, and no `arm_` before the keys."""
    command_port: int = COMMAND_PORT
    observation_port: int = OBSERVATION_PORT
    connect_s: float = CONNECT_WITHIN_S
    arm: LekiwiArm = field(default_factory=LekiwiArm)
    kinematics: ChainSetup | None = None
    """With it the arm takes poses too, and its readings have one."""

    def __post_init__(self) -> None:
        if not self.degrees:
            raise ConfigError(
                "without use_degrees a host sends -100 to 100 of a calibrated range, of which no "
                "angle can be made; start it with use_degrees and say degrees = true here"
            )
        if not all(0 < port < 65536 for port in (self.command_port, self.observation_port)):
            raise ConfigError("ports are 1 to 65535")
        if not 0.0 < self.connect_s <= 600.0:
            raise ConfigError(f"connect_s is a number of seconds up to 600, got {self.connect_s}")


def load(name: str) -> RobotSide:
    """Connect to the host of `lekiwi:FILE`; nothing moves.

    Raises:
        ConfigError: the file cannot be read or is odd, or its kinematics do not fit.
        InfraError: the host does not report, or takes no commands.
    """
    path = Path(name.removeprefix(SCHEME)).expanduser()
    setup = read_declared(path, LekiwiSetup)
    chain = KinematicChain(setup.kinematics, path.parent) if setup.kinematics else None
    ends = lekiwi_endpoints(setup.host, setup.command_port, setup.observation_port)
    session = LekiwiSession(*ends, layout=LEKIWI if setup.base else SO_ARM)
    try:
        session.connect(setup.connect_s)
        side = LekiwiSide(session, setup.arm)
        return side if chain is None else KinematicSide(side, chain)
    except BaseException:
        session.close()
        raise
