"""The registry of signals, and the recent past of all of them.

A signal is a named number per tick: SI units, yes and no as 1 and 0, NaN where it is unknown.
`SIGNALS` says what exists, and what a critic, a skill or a person may read; what computes them
is `Signals` in `zetta.runtime.signals_source`. `docs/signals.md` is printed from this registry.
"""

from __future__ import annotations

import io
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

import numpy as np

from zetta.runtime.archives import UNREADABLE
from zetta.runtime.core import SENSING_LEVELS, Array, Sensing
from zetta.runtime.errors import ConfigError, SpecMismatch, suggest

ROLES: Final = ("object", "receptacle", "part")
"""What an instruction binds: the thing moved, where it goes, the part of a fixture."""
OTHER: Final = "other_"
"""Prefix of the second arm's signals."""
ORACLE: Final = "oracle_"
"""Prefix of what simulator truth says; for labels only."""
SPAN_S: Final = 5.0
"""Seconds that are kept: the longest window of a critic."""


@dataclass(frozen=True, slots=True)
class SignalSpec:
    """What one signal is."""

    name: str
    unit: str
    """SI; empty for shares, counts and yes or no."""
    low: float
    high: float
    """Where sensible values lie; a search stays inside, nothing is clipped."""
    level: Sensing
    doc: str
    """One sentence with the formula, and when it is NaN."""


def _arm(name: str, unit: str, low: float, high: float, doc: str) -> SignalSpec:
    return SignalSpec(name, unit, low, high, "proprio", doc)


ARM: Final = (
    _arm("ee_x", "m", -2.0, 2.0, "World x of the end effector."),
    _arm("ee_y", "m", -2.0, 2.0, "World y of the end effector."),
    _arm("ee_z", "m", 0.0, 2.0, "World z of the end effector."),
    _arm("ee_speed", "m/s", 0.0, 1.0, "Distance moved in the last tick / tick; NaN at tick 0."),
    _arm("ee_speed_z", "m/s", -1.0, 1.0, "Rise in the last tick / tick; NaN at tick 0."),
    _arm("ee_turn_speed", "rad/s", 0.0, 4.0, "Turn in the last tick / tick; NaN at tick 0."),
    _arm(
        "hand_tilt", "rad", 0.0, math.pi,
        "Angle between the hand's approach axis (its z) and straight down.",
    ),
    _arm("gripper_opening", "m", 0.0, 0.1, "Distance between the fingers."),
    _arm(
        "gripper_speed", "m/s", -0.3, 0.3,
        "Change of the opening in the last tick / tick, negative while closing; NaN at tick 0.",
    ),
    _arm(
        "joint_speed", "rad/s", 0.0, 3.0,
        "Largest absolute joint change in the last tick / tick; NaN at tick 0 and without joints.",
    ),
    _arm(
        "command_speed", "m/s", 0.0, 2.0,
        "Translation asked for by the last action / tick; NaN before the first action and when "
        "actions are no poses.",
    ),
    _arm(
        "command_turn", "rad/s", 0.0, 20.0,
        "Rotation asked for by the last action / tick; NaN as command_speed.",
    ),
    _arm(
        "command_gripper", "", 0.0, 1.0,
        "1 when the last action closes (beyond halfway from open to close), else 0; NaN before "
        "the first action.",
    ),
    _arm(
        "command_residual", "m/s", 0.0, 2.0,
        "Length of (translation asked for - translation made) in the last tick / tick; NaN as "
        "command_speed and when actions are not in world axes.",
    ),
    _arm(
        "stalled_for", "s", 0.0, 10.0,
        "Time since when each tick asked for more than 2 cm/s and made less than 5 mm/s; else 0.",
    ),
    _arm("path_1s", "m", 0.0, 0.5, "Length of the way in the last second."),
    _arm("displacement_1s", "m", 0.0, 0.5, "Distance from where the hand was one second ago."),
    _arm("wander", "", 0.0, 50.0, "path_1s / max(displacement_1s, 5 mm)."),
    _arm(
        "closed_for", "s", 0.0, 20.0,
        "Time since the command became close; 0 while it is open or unknown.",
    ),
    _arm(
        "open_for", "s", 0.0, 20.0,
        "Time since the command became open; 0 while it is close or unknown.",
    ),
    _arm("gripper_closing", "", 0.0, 1.0, "1 when gripper_speed < -5 mm/s, else 0."),
    _arm(
        "closed_on_nothing", "", 0.0, 1.0,
        "1 when commanded closed for 0.4 s, fingers at rest and opening at the floor, else 0.",
    ),
    _arm(
        "holding", "", 0.0, 1.0,
        "1 from when the fingers came to rest on something until they fall shut or open, else 0.",
    ),
    _arm(
        "slip", "m", -0.01, 0.05,
        "Fall of the opening since the fingers came to rest on what is held, kept after a loss "
        "until the command is open; 0 before a hold.",
    ),
    _arm(
        "lift", "m", -0.5, 0.5,
        "ee_z minus ee_z when the fingers came to rest on what is held, kept after a loss until "
        "the command is open; 0 before a hold.",
    ),
)  # fmt: skip

EPISODE: Final = (
    _arm("elapsed", "s", 0.0, 60.0, "Time since tick 0."),
    _arm("budget_used", "", 0.0, 1.0, "Ticks done / step budget of the task."),
    _arm("skill_share", "", 0.0, 1.0, "Ticks that motions drove / step budget of the task."),
    _arm(
        "since_handback", "s", 0.0, 60.0,
        "Time since the policy got the robot back; NaN before the first hand-back.",
    ),
    _arm("policy_drives", "", 0.0, 1.0, "1 while the policy drives, 0 while a motion does."),
    _arm("interventions", "", 0.0, 10.0, "How often a motion took over from another driver."),
)  # fmt: skip


def _policy(name: str, unit: str, high: float, doc: str) -> SignalSpec:
    return SignalSpec(name, unit, 0.0, high, "policy", doc)


POLICY: Final = (
    _policy(
        "chunk_disagreement", "m", 0.3,
        "Root mean square distance between the positions that the last two chunks plan for the "
        "same future ticks; NaN before two chunks overlap and while a motion drives.",
    ),
    _policy(
        "dispersion", "m", 0.3,
        "Spread of several draws, as the policy says it with its chunk; NaN when it does not.",
    ),
    _policy(
        "gripper_flips", "", 10.0,
        "Changes between open and close in the rows that the policy drove with, in the last 2 s.",
    ),
    _policy(
        "chunk_age", "s", 2.0,
        "Time since the observation that the pending chunk was inferred from; NaN without one.",
    ),
)  # fmt: skip

_ROLE_ROWS: Final = (
    ("x", "m", -2.0, 2.0, "World x of the centre of the {role} where it was last seen."),
    ("y", "m", -2.0, 2.0, "World y of the centre of the {role} where it was last seen."),
    ("z", "m", 0.0, 2.0, "World z of the centre of the {role} where it was last seen."),
    ("height", "m", 0.0, 0.5, "Full vertical size of the {role}."),
    ("distance", "m", 0.0, 1.5, "Distance from the hand now to the centre of the {role}."),
    ("offset", "m", 0.0, 1.5, "Horizontal distance from the hand now to the centre of the {role}."),
    ("above", "m", -0.5, 1.0, "ee_z minus top of the {role} (z + height / 2)."),
    ("confidence", "", 0.0, 1.0, "Confidence of the last sighting of the {role}."),
    ("age", "s", 0.0, 60.0, "Time since the {role} was last seen; a hand that holds it hides it."),
    ("moved", "m", 0.0, 1.0, "Distance of the {role} from where it was first seen."),
)


def _sight(level: Sensing, prefix: str) -> tuple[SignalSpec, ...]:
    """Return what is known of each role, with names that begin with `prefix`."""
    tail = " NaN until it is seen."
    specs = [
        SignalSpec(f"{prefix}{role}_{what}", unit, low, high, level, doc.format(role=role) + tail)
        for role in ROLES
        for what, unit, low, high, doc in _ROLE_ROWS
    ]
    doc = "Horizontal distance from the object to the receptacle, centres." + tail
    specs.append(SignalSpec(f"{prefix}object_to_receptacle", "m", 0.0, 1.5, level, doc))
    return tuple(specs)


VISION: Final = _sight("vision", "")
TRUTH: Final = _sight("oracle", ORACLE)
OTHER_ARM: Final = tuple(
    SignalSpec(
        OTHER + spec.name, spec.unit, spec.low, spec.high, spec.level, f"The other arm: {spec.doc}"
    )
    for spec in ARM
)

SIGNALS: Final[Mapping[str, SignalSpec]] = MappingProxyType(
    {
        spec.name: spec
        for group in (ARM, EPISODE, OTHER_ARM, POLICY, VISION, TRUTH)
        for spec in group
    }
)
"""Every built-in signal by name."""


def check_signals(names: Iterable[str], known: Iterable[str] = SIGNALS) -> None:
    """Refuse a name that is no signal.

    Raises:
        ConfigError: unknown name.
    """
    known = tuple(known)
    for name in names:
        if name not in known:
            raise ConfigError(f"there is no signal {name!r}; {suggest(name, known)}")


def names_up_to(level: Sensing, arms: int = 1) -> frozenset[str]:
    """Return the built-in signals that a robot with so many arms has at or below a level."""
    allowed = SENSING_LEVELS[: SENSING_LEVELS.index(level) + 1]
    return frozenset(
        name
        for name, spec in SIGNALS.items()
        if spec.level in allowed and (arms > 1 or not name.startswith(OTHER))
    )


class SignalHistory:
    """The last seconds of named signals; a `core.Window`.

    Every value is written twice, half a buffer apart, so that any window is one contiguous view.
    """

    def __init__(self, names: Sequence[str], control_hz: float, span_s: float = SPAN_S) -> None:
        """Keep `span_s` seconds and the tick before them.

        Raises:
            ConfigError: a rate or span that is not positive, or a name given twice.
        """
        if not (control_hz > 0.0 and span_s > 0.0):
            raise ConfigError(
                f"got the rate {control_hz:g} Hz and the span {span_s:g} s; both are positive"
            )
        self.names = tuple(names)
        self._column = {name: i for i, name in enumerate(self.names)}
        if len(self._column) != len(self.names):
            raise ConfigError("a signal is named twice in one history")
        self._hz = float(control_hz)
        self.ticks = math.ceil(span_s * control_hz - 1e-9) + 1
        """How many ticks are kept: a change over `span_s` needs one more than its ticks."""
        self._rows = np.full((len(self.names), 2 * self.ticks), np.nan)
        self._valid = np.zeros(len(self.names), dtype=np.int64)
        self._finite = np.zeros(len(self.names), dtype=np.bool_)
        self._next = 0

    @property
    def control_hz(self) -> float:
        """Ticks per second."""
        return self._hz

    def push(self, row: Array) -> None:
        """Add one tick, in the order of `names`. Shape (S,)."""
        k = self._next
        self._rows[:, k] = row
        self._rows[:, k + self.ticks] = row
        self._next = k + 1 if k + 1 < self.ticks else 0
        np.isfinite(row, out=self._finite)
        self._valid += 1
        self._valid *= self._finite

    def last(self, name: str, ticks: int) -> Array:
        """Return the latest `ticks` values, oldest first; NaN before the episode. Shape (ticks,).

        The array is a view that the next tick overwrites.

        Raises:
            KeyError: this episode has no such signal.
            ConfigError: `ticks` is not in 1 .. what is kept.
        """
        if not 0 < ticks <= self.ticks:
            raise ConfigError(
                f"got a window of {ticks} ticks; {self.ticks} are kept at {self._hz:g} Hz"
            )
        # The latest value lies just before `_next`, and again `ticks` later.
        end = self._next + self.ticks
        return self._rows[self._column[name], end - ticks : end]

    def valid_for(self, name: str) -> int:
        """Return how many of the latest values are finite in a row, up to what is kept.

        Raises:
            KeyError: this episode has no such signal.
        """
        return min(int(self._valid[self._column[name]]), self.ticks)

    def clear(self) -> None:
        """Forget everything."""
        self._rows.fill(np.nan)
        self._valid.fill(0)
        self._next = 0

    def snapshot(self) -> bytes:
        """Return the contents; `restore` of an equal history continues bit-exactly."""
        meta = json.dumps([list(self.names), self._hz, self._next]).encode()
        buffer = io.BytesIO()
        np.savez(
            buffer,
            meta=np.frombuffer(meta, dtype=np.uint8),
            rows=self._rows[:, : self.ticks],
            valid=self._valid,
        )
        return buffer.getvalue()

    def restore(self, snapshot: bytes) -> None:
        """Continue from `snapshot`.

        Raises:
            SpecMismatch: it is no snapshot, or one of other signals, rate or span.
        """
        try:
            with np.load(io.BytesIO(snapshot), allow_pickle=False) as saved:
                names, hz, following = json.loads(saved["meta"].tobytes())
                rows, valid = saved["rows"], saved["valid"]
        except UNREADABLE as error:
            raise SpecMismatch(
                f"{len(snapshot)} bytes are no history of signals ({error})"
            ) from None
        expected = (len(self.names), self.ticks)
        if (tuple(names), hz, rows.shape) != (self.names, self._hz, expected):
            raise SpecMismatch(
                f"the snapshot holds {len(names)} signals at {hz:g} Hz, this history "
                f"{len(self.names)} at {self._hz:g} Hz; restore it with the same bundle and robot"
            )
        self._rows[:, : self.ticks] = self._rows[:, self.ticks :] = rows
        self._valid[:] = valid
        self._next = int(following)
