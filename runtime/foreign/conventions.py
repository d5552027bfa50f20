"""How other people's requests and answers are laid out: declared here, converted in `translate`.

Our side is fixed by `core.py`: upright pictures, SI units, `xyzw`. A convention says what the other
side wants instead. Nothing is guessed: what a convention does not declare is not converted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from zetta.runtime.core import ActionSpec, CameraSpec
from zetta.runtime.errors import ConfigError, suggest

Protocol: TypeAlias = Literal["openpi", "gr00t"]
Turn: TypeAlias = Literal["none", "mirror", "flip", "rotate"]
"""What makes our upright picture theirs: nothing, left-right, upside down, or both. Each undoes
itself."""
Sense: TypeAlias = Literal[
    "ee_pos", "ee_axis_angle", "joint_pos", "gripper_fingers", "gripper_closed", "gripper_opened",
    "ee_pos_base", "ee_quat_base", "base_pos", "base_quat",
]  # fmt: skip
"""`ee_pos` 3 m; `ee_axis_angle` 3 rad, of the quaternion as it is signed, so up to 2 pi;
`joint_pos` rad; `gripper_fingers` the two finger joints, m, of opposite sign; `gripper_closed` and
`gripper_opened` a share of the stroke; `..._base` in the frame of a mobile base (quaternion
`xyzw`); `base_pos`, `base_quat` that frame in the world."""
Path: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Picture:
    """One picture of a request."""

    path: Path
    """Keys from the outermost map inwards."""
    camera: CameraSpec
    """Ours: name and size as our environments draw it."""
    size: tuple[int, int]
    """Height and width as sent; another shape is scaled into it and padded with black."""
    turn: Turn = "none"
    layout: Literal["HWC", "CHW"] = "HWC"


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a state vector."""

    sense: Sense
    arm: int = 0
    index: int | None = None
    """One number of it, or None for all."""


@dataclass(frozen=True, slots=True)
class State:
    """One vector of a request: its parts, one after the other."""

    path: Path
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Rows:
    """Consecutive numbers of an action row that travel under one key."""

    key: str
    size: int


@dataclass(frozen=True, slots=True)
class Switch:
    """A number of an action row that is one of two commands."""

    index: int
    low: float
    """What the wire says for our lowest command."""
    high: float
    """What the wire says for our highest command."""


@dataclass(frozen=True, slots=True)
class Convention:
    """One robot as one protocol's published servers see it."""

    name: str
    protocol: Protocol
    pictures: tuple[Picture, ...]
    states: tuple[State, ...]
    prompt: Path
    action: ActionSpec
    rows: tuple[Rows, ...]
    """How an action row is split over keys, in our order."""
    horizon: int
    """Rows of the shortest chunk that a published server of this kind gives."""
    replan_steps: int
    """Rows that its own client uses."""
    control_hz: float
    joints: int
    """Joints of one arm."""
    stroke_m: float
    """Distance between the fingers of a fully open gripper."""
    checked: str
    """What this table was compared with."""
    switches: tuple[Switch, ...] = ()
    arms: int = 1
    state_dtype: str = "<f8"
    response: float = 1.0
    """Share of a commanded displacement that the arm covers in one tick."""
    base_height_m: float = 0.0
    """Height of the mobile base's frame, which our `Proprio.base` does not hold."""

    @property
    def cameras(self) -> tuple[CameraSpec, ...]:
        """Our cameras that a request shows."""
        return tuple(picture.camera for picture in self.pictures)

    def size_of(self, part: Part) -> int:
        """Return how many numbers `part` has."""
        if part.index is not None:
            return 1
        return self.joints if part.sense == "joint_pos" else SIZES[part.sense]

    def state_size(self, state: State) -> int:
        """Return the length of a state vector."""
        return sum(self.size_of(part) for part in state.parts)


SIZES: Final[Mapping[Sense, int]] = {
    "ee_pos": 3,
    "ee_axis_angle": 3,
    "gripper_fingers": 2,
    "gripper_closed": 1,
    "gripper_opened": 1,
    "ee_pos_base": 3,
    "ee_quat_base": 4,
    "base_pos": 3,
    "base_quat": 4,
}


def convention(protocol: Protocol, name: str) -> Convention:
    """Return a convention by its name.

    Raises:
        ConfigError: there is none of that name for this protocol.
    """
    from zetta.runtime.foreign.robots import CONVENTIONS

    known = {c.name: c for c in CONVENTIONS if c.protocol == protocol}
    if name not in known:
        raise ConfigError(f"unknown {protocol} convention {name!r}; {suggest(name, known)}")
    return known[name]
