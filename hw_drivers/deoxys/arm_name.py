"""`deoxys:PC,NUC` as the name of an arm: a connected session, as the arm server takes it.

Options follow an `@`, with commas: `robot=NAME`, `private_network=1`, `ports=A:B:C:D` (command,
state, gripper command, gripper state), `connect_s=S`.
"""

from __future__ import annotations

from typing import Final

from zetta.hw_drivers.deoxys.endpoints import deoxys_endpoints
from zetta.hw_drivers.deoxys.session import DeoxysSession
from zetta.hw_drivers.deoxys.side import DeoxysSide
from zetta.runtime.errors import ConfigError, suggest

SCHEME: Final = "deoxys:"
EXAMPLE: Final = "deoxys:172.16.0.1,172.16.0.3@private_network=1"
DEFAULTS: Final = {
    "robot": "franka",
    "private_network": "0",
    "ports": "5555:5556:5557:5558",
    "connect_s": "5",
}


def load(name: str) -> DeoxysSide:
    """Connect to the arm and choose its controller, which takes some seconds.

    Raises:
        ConfigError: the name or an option is wrong, or an address may not be bound.
        Timeout: the robot's side does not report or does not listen.
    """
    places, _, options = name.removeprefix(SCHEME).partition("@")
    pc, comma, nuc = places.partition(",")
    if not (pc and comma and nuc):
        raise ConfigError(f"got the arm {name!r}; expected {EXAMPLE}")
    given = _options(options)
    session = DeoxysSession(
        deoxys_endpoints(pc, nuc, _ports(given["ports"])),
        private_network=given["private_network"] == "1",
    )
    try:
        session.connect(_seconds(given["connect_s"]))
        return DeoxysSide(session, given["robot"])
    except BaseException:
        session.close()
        raise


def _options(text: str) -> dict[str, str]:
    given = dict(DEFAULTS)
    for entry in filter(None, text.split(",")):
        key, equals, value = entry.partition("=")
        if key not in DEFAULTS:
            raise ConfigError(f"unknown option {key!r} of deoxys; {suggest(key, DEFAULTS)}")
        if not equals or not value:
            raise ConfigError(f"the option {key!r} of deoxys needs a value, as in {EXAMPLE}")
        given[key] = value
    if given["private_network"] not in ("0", "1"):
        raise ConfigError(f"private_network is 0 or 1, got {given['private_network']!r}")
    return given


def _ports(text: str) -> tuple[int, int, int, int]:
    numbers = [int(part) for part in text.split(":") if part.isdecimal() and len(part) < 6]
    match numbers:
        case [a, b, c, d] if text.count(":") == 3 and max(numbers) < 65536:
            return (a, b, c, d)
    raise ConfigError(f"got the ports {text!r}, expected four, as in {DEFAULTS['ports']}")


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0.0 < seconds <= 600.0:
        raise ConfigError(f"connect_s is a number of seconds up to 600, got {text!r}")
    return seconds
