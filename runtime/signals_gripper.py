"""What a gripper has hold of, judged from its command and its opening alone.

The limits were measured on LIBERO's Panda hand, at rest while commanded closed. An empty hand
closes to 1.0-2.1 mm: it slows below 5 mm/s at 2.2 mm and creeps on. The thinnest things that were
carried, bowl rims, keep it open by 3.4 mm or more; a rim that slides out of the fingers passes
from 3.4 to 2.6 mm within two seconds and is lost there. Everything else is wider; figures and
their command are in `docs/signals.md`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

NAN: Final = float("nan")


@dataclass(frozen=True, slots=True)
class GripperLimits:
    """Where a gripper's numbers change their meaning."""

    empty: float = 0.0025
    """At rest below this opening the hand has closed on nothing; a hold ends here. Metres."""
    thing: float = 0.0029
    """At rest above this opening the hand has something. Metres."""
    rest: float = 0.005
    """Fingers slower than this are at rest. m/s."""
    rest_ticks: int = 3
    """For so many ticks of 20 Hz in a row."""
    closed_s: float = 0.4
    """How long a command must have been close before anything is concluded. Seconds."""
    moved: float = 0.002
    """Fingers that are this near to their widest opening have not closed, and fingers that opened
    by this much have let go. Metres."""


@dataclass(slots=True)
class GripMemory:
    """What is remembered from tick to tick."""

    command: float = NAN
    since: float = NAN
    """When the present command began."""
    opening: float = NAN
    widest: float = 0.0
    still: int = 0
    """For how many ticks of the present command the fingers have been at rest."""
    rest_opening: float = 0.0
    """The opening when they came to rest."""
    rest_z: float = 0.0
    """The hand's height then: by the time a hold is sure, the hand may be on its way up."""
    holding: bool = False
    nothing: bool = False
    referenced: bool = False
    """A hold began and the hand has not been opened since."""
    hold_opening: float = 0.0
    hold_z: float = 0.0
    closed_opening: float = 0.0
    """The latest opening while the command was close."""


class GripSignals:
    """Tells holding from a miss and from a loss."""

    def __init__(self, limits: GripperLimits | None = None, control_hz: float = 20.0) -> None:
        self._limits = limits or GripperLimits()
        self._rest_ticks = max(1, round(self._limits.rest_ticks * (control_hz / 20.0)))
        self.memory = GripMemory()

    def begin(self) -> None:
        """Forget the last episode."""
        self.memory = GripMemory()

    def update(
        self, t: float, before: float, opening: float, ee_z: float, command: float
    ) -> tuple[float, ...]:
        """Return what follows `command_gripper` in the registry, and `gripper_speed` first.

        Args:
            t: time now.
            before: time of the last tick; NaN at the first one.
            opening: between the fingers now, metres.
            ee_z: height of the hand now, metres.
            command: of the last action: 1 close, 0 open, NaN unknown.

        Returns:
            gripper_speed, closed_for, open_for, gripper_closing, closed_on_nothing, holding, slip,
            lift.
        """
        m, limits = self.memory, self._limits
        speed = (opening - m.opening) / (t - before)
        m.opening = opening
        m.widest = max(m.widest, opening)
        if command != m.command:
            m.command, m.since, m.still = command, before, 0
        m.still = m.still + 1 if abs(speed) < limits.rest else 0
        if m.still == 1:
            m.rest_opening, m.rest_z = opening, ee_z
        duration = t - m.since
        if command == 1.0:
            closed_for, open_for = duration, 0.0
            self._judge_closed(opening, ee_z, duration)
        else:
            closed_for, open_for = 0.0, duration if command == 0.0 else 0.0
            self._judge_open(opening)
        slip = m.hold_opening - opening if m.referenced else 0.0
        lift = ee_z - m.hold_z if m.referenced else 0.0
        closing = 1.0 if speed < -limits.rest else 0.0
        return speed, closed_for, open_for, closing, float(m.nothing), float(m.holding), slip, lift

    def _judge_closed(self, opening: float, ee_z: float, duration: float) -> None:
        m, limits = self.memory, self._limits
        m.closed_opening = opening
        # A rim that turns between the fingers halves the opening and is still held.
        m.holding = m.holding and opening >= limits.empty
        if m.nothing and opening > limits.thing:
            m.nothing = False
        # The slack absorbs the rounding of a difference of two times.
        if m.holding or m.still < self._rest_ticks or duration < limits.closed_s - 1e-9:
            return
        if opening < limits.empty:
            m.nothing = True
        elif limits.thing < opening < m.widest - limits.moved:
            m.holding = m.referenced = True
            m.nothing = False
            m.hold_opening, m.hold_z = m.rest_opening, m.rest_z

    def _judge_open(self, opening: float) -> None:
        """A command does not let go; fingers that open do."""
        m = self.memory
        m.nothing = False
        if m.holding and opening > m.closed_opening + self._limits.moved:
            m.holding = False
        m.referenced = m.referenced and m.holding
