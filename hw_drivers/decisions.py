"""What the safety kernel is asked, what it answers, and what it tells the audit log."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

from zetta.runtime.core import Array

CommandKind: TypeAlias = Literal["target_pose", "joint_position"]
"""The kinds of `ActionSpec` that say where to be, which alone can be held."""

Verdict: TypeAlias = Literal["as asked", "changed", "held", "refused", "stopped"]
"""`changed`: towards what was asked, within limits. `held`: nothing may be followed at present.
`refused`: this command cannot be followed. `stopped`: until a person clears it. In the last three
what is sent leads to rest on a way that keeps every limit."""


AuditEvent: TypeAlias = Literal["decision", "stop", "clear", "approve"]


@dataclass(frozen=True, slots=True)
class Grip:
    """What the gripper shall do."""

    opening: float
    """Distance between the fingers, metres."""
    speed: float
    """m/s."""
    force: float
    """Newtons."""


@dataclass(frozen=True, slots=True)
class Command:
    """Where one arm shall be at the next tick. Nothing in it is trusted before the kernel looked.

    `target_pose`: grip site `x y z` in metres and its axis-angle in radians, shape (6,), in the
    frame of the limits' workspace. `joint_position`: radians, shape (J,).
    """

    kind: CommandKind
    values: Array
    grip: Grip | None = None
    """None leaves the gripper as it is."""


class Reading(Protocol):
    """What an arm reports, in the frame of the commands; `t` is of the clock of `now`."""

    @property
    def t(self) -> float:
        """When it was measured, seconds."""
        ...

    @property
    def ee_pos(self) -> Array:
        """Grip site, metres. Shape (3,)."""
        ...

    @property
    def ee_quat(self) -> Array:
        """Its orientation, xyzw. Shape (4,)."""
        ...

    @property
    def joint_pos(self) -> Array:
        """Radians. Shape (J,)."""
        ...

    @property
    def gripper_opening(self) -> float:
        """Distance between the fingers, metres."""
        ...


@dataclass(frozen=True, slots=True)
class Decision:
    """What may be sent at this tick, and why it is not what was asked."""

    sent: Command | None
    """Send exactly this; None: send nothing, the arm keeps what it has."""
    verdict: Verdict
    reasons: tuple[str, ...] = ()
    tick: int = 0
    """Number of the tick; a call that comes too early answers for the same tick again."""
    anew: bool = False
    """The sequence begins here from rest: the first, after a clear, or after missed ticks."""
    approval: str = ""
    """Token for `SafetyKernel.approve`, where the command waits for one."""


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One thing that the kernel decided, or that a person did to it."""

    now: float
    tick: int
    event: AuditEvent
    driver: str
    """Who asked, or by whose name."""
    verdict: str
    asked: Command | None
    sent: Command | None
    reasons: tuple[str, ...]


class AuditSink(Protocol):
    """Keeps entries; must not wait. What cannot be recorded is not sent."""

    def __call__(self, entry: AuditEntry) -> None:
        """Take one entry."""
        ...
