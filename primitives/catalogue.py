"""The primitives that a recovery may call: names, arguments, bounds and sensing levels.

Data only, and nothing heavy is imported: a recovery program is checked against it without a robot.
`zetta.primitives.robot.Robot` has one method for each entry.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, TypeAlias

from zetta.runtime.core import Sensing
from zetta.runtime.errors import ConfigError, suggest

ParameterKind: TypeAlias = Literal["number", "role"]

ROLES: tuple[str, ...] = ("object", "receptacle", "part")
"""What a primitive may be told to look at; the instruction says what plays the role."""

MOVE_MOST = 0.40
"""Longest displacement along one axis in one call, metres."""
WAIT_MOST = 5.0
"""Longest time that one call may wait or follow, seconds."""


@dataclass(frozen=True, slots=True)
class ParameterSpec:
    """One argument of a primitive."""

    name: str
    kind: ParameterKind = "number"
    low: float = -math.inf
    """Least value of a number; unused for a role."""
    high: float = math.inf
    """Greatest value of a number; unused for a role."""
    unit: str = ""
    default: float | None = None
    """None when the argument must be given; a role always must."""
    roles: tuple[str, ...] = ()
    """What a role argument may say; empty for a number."""

    @property
    def required(self) -> bool:
        """Whether the argument must be given."""
        return self.default is None


@dataclass(frozen=True, slots=True)
class PrimitiveSpec:
    """One primitive: how it is called and what it needs to sense."""

    name: str
    parameters: tuple[ParameterSpec, ...]
    level: Sensing
    doc: str

    @property
    def signature(self) -> str:
        """How it is called, such as `above(role, height=0.08)`."""
        given = (p.name if p.required else f"{p.name}={p.default:g}" for p in self.parameters)
        return f"{self.name}({', '.join(given)})"


def _number(
    name: str, low: float, high: float, unit: str, default: float | None = None
) -> ParameterSpec:
    return ParameterSpec(name, "number", low, high, unit, default)


def _role(*roles: str) -> ParameterSpec:
    return ParameterSpec("role", "role", roles=roles or ROLES)


_SHIFT = tuple(_number(axis, -MOVE_MOST, MOVE_MOST, "m") for axis in ("dx", "dy", "dz"))
_SECONDS = _number("seconds", 0.0, WAIT_MOST, "s")

_ALL = (
    PrimitiveSpec(
        "hold", (_SECONDS,), "proprio", "Stay where the hand is, with the present gripper command."
    ),
    PrimitiveSpec("open", (), "proprio", "Open the gripper and wait until it stands still."),
    PrimitiveSpec("close", (), "proprio", "Close the gripper; completed when it holds something."),
    PrimitiveSpec("move_by", _SHIFT, "proprio", "Move the hand by a displacement in the world."),
    PrimitiveSpec(
        "turn_by",
        (_number("yaw", -math.pi, math.pi, "rad"),),
        "proprio",
        "Turn the hand about the vertical.",
    ),
    PrimitiveSpec(
        "retreat",
        (_number("height", 0.0, MOVE_MOST, "m", 0.10),),
        "proprio",
        "Rise straight up.",
    ),
    PrimitiveSpec("point_down", (), "proprio", "Turn the hand until it points straight down."),
    PrimitiveSpec(
        "until_contact",
        _SHIFT,
        "proprio",
        "Move by a displacement until something stops the hand; completed when it was stopped.",
    ),
    PrimitiveSpec("look", (_role(),), "vision", "Look where a thing is; completed when found."),
    PrimitiveSpec(
        "above",
        (_role(), _number("height", 0.0, MOVE_MOST, "m", 0.08)),
        "vision",
        "Go over a thing, so many metres above its top.",
    ),
    PrimitiveSpec(
        "descend",
        (_role(),),
        "vision",
        "Come down onto a thing, lined up as for grasping it.",
    ),
    PrimitiveSpec(
        "grasp",
        (_role("object"),),
        "vision",
        "Look, go above, descend, close and lift; completed when the thing is held.",
    ),
    PrimitiveSpec(
        "place",
        (_role("receptacle"),),
        "vision",
        "Carry what is held over the receptacle, lower it, release and retreat.",
    ),
    PrimitiveSpec(
        "follow", (_role(), _SECONDS), "vision", "Stay above a thing and follow it as it moves."
    ),
    PrimitiveSpec("pull", (_role("part"),), "vision", "Pinch a drawer's handle and pull it open."),
    PrimitiveSpec(
        "press", (_role("part"),), "vision", "Push a drawer or a door shut until it stops."
    ),
    PrimitiveSpec("turn", (_role("part"),), "vision", "Pinch a knob and twist it on, or off."),
    PrimitiveSpec(
        "push",
        (_role("object"),),
        "vision",
        "Push the object along the ground towards the receptacle.",
    ),
)

PRIMITIVES: Mapping[str, PrimitiveSpec] = MappingProxyType({spec.name: spec for spec in _ALL})
"""Every primitive by its name."""


def check_call(primitive: str, role: str | None = None, **numbers: float) -> None:
    """Refuse arguments outside the catalogue, before anything moves.

    Raises:
        ConfigError: an unknown role, or a number that is out of bounds or not finite.
    """
    for parameter in PRIMITIVES[primitive].parameters:
        if parameter.kind == "role":
            if role not in parameter.roles:
                raise ConfigError(
                    f"{primitive} got the role {role!r}; {suggest(str(role), parameter.roles)}"
                )
            continue
        value = numbers[parameter.name]
        if not parameter.low <= value <= parameter.high:  # also refuses NaN
            raise ConfigError(
                f"{primitive} got {parameter.name} = {value:g} {parameter.unit}; "
                f"expected {parameter.low:g} to {parameter.high:g}"
            )
