"""What came of a command: asked, moved, error, why it stopped, what the hand holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

StopReason: TypeAlias = Literal[
    "reached",
    "contact",
    "limit",
    "unreachable",
    "timeout",
    "not found",
    "slipped",
    "refused",
    "interrupted",
]
"""`reached`: the command did what it says. `contact`: something stopped the hand. `limit`: it would
leave the workspace or a joint's range. `unreachable`: no joint angles lead there. `timeout`: time
was up. `not found`: the thing was not seen. `slipped`: nothing is held any more, or never was.
`refused`: there is no such arm, base, skill or policy. `interrupted`: somebody stopped it."""

Grip: TypeAlias = Literal["open", "empty", "held", "unsure"]
"""`empty`: closed on nothing. `unsure`: the evidence disagrees."""


@dataclass(frozen=True, slots=True)
class GraspEvidence:
    """What speaks for and against something being held."""

    grip: Grip
    opening: float
    """Distance between the fingers, metres."""
    floor: float
    """What the empty hand shows when it is closed, metres."""
    lifted: bool | None = None
    """Whether the grip outlived a lift; None while nothing was lifted."""
    seen: bool | None = None
    """Whether the thing is seen at the hand; None where nobody looked."""

    @property
    def text(self) -> str:
        """What a person or a model is told, such as `held (2.1 cm between the fingers, ...)`."""
        parts = [f"{100.0 * self.opening:.1f} cm between the fingers"]
        if self.grip != "open":
            parts.append(f"closed on nothing it shows {100.0 * self.floor:.1f}")
        if self.lifted is not None:
            parts.append("it stayed through the lift" if self.lifted else "the lift lost it")
        if self.seen is not None:
            parts.append("seen at the hand" if self.seen else "not seen at the hand")
        return f"{self.grip} ({', '.join(parts)})"


@dataclass(frozen=True, slots=True)
class CommandResult:
    """What one command came to."""

    text: str
    """The command as it was understood."""
    completed: bool
    stop: StopReason
    detail: str
    """One honest sentence: what happened, with numbers."""
    moved: tuple[float, float, float] | None = None
    """Displacement of the grip site in the world, metres; None where no arm was meant."""
    turned: float | None = None
    """Angle by which the hand turned, radians."""
    asked: tuple[float, float, float] | None = None
    """Displacement that was asked for in the world, metres; None where none was."""
    error: float | None = None
    """Distance of the grip site from where it should be, metres; None without such a place."""
    turn_error: float | None = None
    """Angle left, radians."""
    ticks: int = 0
    grasp: GraspEvidence | None = None
    notices: tuple[str, ...] = ()
    """What was clipped or rounded."""

    @property
    def summary(self) -> str:
        """One line for a prompt, a log and a person."""
        mark = "ok" if self.completed else f"FAILED ({self.stop})"
        parts = [f"{self.text}: {mark}: {self.detail}", *self.notices]
        if self.grasp is not None:
            parts.append(f"gripper {self.grasp.text}")
        return "; ".join(parts)
