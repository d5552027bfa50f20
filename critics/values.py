"""What the checker knows about an expression, and about the program that holds it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from zetta.critics.parameters import Parameter
from zetta.critics.problems import Problem, Refused
from zetta.runtime.core import SENSING_LEVELS, Sensing
from zetta.runtime.errors import suggest
from zetta.runtime.signals import SPAN_S, SignalSpec

Kind: TypeAlias = Literal["number", "condition", "series", "conditions"]
WORDS: Final[Mapping[Kind, str]] = {
    "number": "a number",
    "condition": "a condition",
    "series": "a series of values",
    "conditions": "a series of conditions",
}

LONGEST_WINDOW_S: Final = SPAN_S
MAX_STATEMENTS: Final = 200
MAX_DEPTH: Final = 20
"""Of an expression, and of blocks within blocks."""

STEP_WORK: Final = 1
"""One step between numbers or conditions: a sum, a comparison, an assignment."""
READ_WORK: Final = 5
"""Reading a signal; about a microsecond."""
SERIES_WORK: Final = 10
"""One step over a whole window: a sum of series, a comparison, an operator."""
MAX_WORK: Final = 600
"""Of one call of `check`, along its most laborious way. Bounds its time on any window."""

TICKS: Final = "@"
"""Stands in the code of a series for the number of ticks, which the operator around it sets."""


@dataclass(frozen=True, slots=True)
class Value:
    """What is known about an expression, and the code that computes it."""

    kind: Kind
    code: str
    work: int = 0
    axis: str = ""
    """x, y or z when this is a place in the world, which belongs to one scene; else empty."""
    known: bool = True
    """Whether the code never gives NaN or infinity."""
    signal: str = ""
    """The signal this is, when it is one, unchanged."""
    seconds: float | Parameter | None = None
    """The literal or the parameter this is, when it is one."""


Names: TypeAlias = "dict[str, Value | str]"
"""What each local name is, or why it cannot be used; an empty reason was told already."""


@dataclass(slots=True)
class Scope:
    """What one program may name, and what it was found to name."""

    path: str
    signals: Mapping[str, SignalSpec]
    parameters: Mapping[str, Parameter]
    window_s: float = 1.0
    max_age_s: float | None = None
    max_work: int = MAX_WORK
    problems: list[Problem] = field(default_factory=list)
    used_signals: dict[str, None] = field(default_factory=dict)
    ticks: dict[str, tuple[float | str, int]] = field(default_factory=dict)
    """Seconds, or the name of a parameter in seconds, and the least ticks, by name in the code."""
    warns: bool = False
    """Whether numpy may meet an overflow or a division by zero."""
    _fresh: int = 0

    def tell(self, refused: Refused) -> None:
        """Note a problem; one that was told already has no reason."""
        if refused.reason:
            self.problems.append(Problem(refused.line, refused.reason, self.path))

    def fresh(self, stem: str) -> str:
        """Return a name that the code does not have yet."""
        self._fresh += 1
        return f"{stem}_{self._fresh}"

    def ticks_name(self, seconds: float | Parameter, least: int) -> str:
        """Return the name of the constant that holds the ticks of a window."""
        key = (seconds.name if isinstance(seconds, Parameter) else seconds, least)
        for name, known in self.ticks.items():
            if known == key:
                return name
        name = f"n{len(self.ticks)}"
        self.ticks[name] = key
        return name

    def signal(self, node: object, name: str) -> Value:
        """Return the series of a signal.

        Raises:
            Refused: there is no such signal.
        """
        line = getattr(node, "lineno", 1)
        if name not in self.signals:
            raise Refused(line, f"there is no signal {name!r}; {nearest(name, self.signals)}")
        self.used_signals[name] = None
        ages = self._ages(name)
        fresh = "".join(
            f" and last({age!r}, 1).item() <= {float(self.max_age_s or 0.0)!r}" for age in ages
        )
        code = (
            f"(last({name!r}, {TICKS}) if valid({name!r}) >= {TICKS}{fresh} else unknown({name!r}))"
        )
        work = READ_WORK * (1 + len(ages))
        return Value("series", code, work, axis=axis_of(self.signals[name]), signal=name)

    def _ages(self, name: str) -> tuple[str, ...]:
        """Return the signals that say how old a sighting is, where `MAX_AGE_S` limits that."""
        if self.max_age_s is None or name.endswith(("_age", "_confidence")):
            return ()
        prefix = "oracle_" if name.startswith("oracle_") else ""
        parts = name.removeprefix(prefix).split("_")
        roles = [part for part in parts if f"{prefix}{part}_age" in self.signals]
        ages = tuple(f"{prefix}{role}_age" for role in dict.fromkeys(roles))
        self.used_signals.update(dict.fromkeys(ages))
        return ages

    def parameter(self, node: object, name: str) -> Value:
        """Return a parameter.

        Raises:
            Refused: there is no such parameter.
        """
        if name not in self.parameters:
            known = suggest(name, self.parameters) if self.parameters else "params.toml has none"
            raise Refused(getattr(node, "lineno", 1), f"there is no parameter {name!r}; {known}")
        return Value("number", f"p_{name}", seconds=self.parameters[name])


def axis_of(signal: SignalSpec) -> str:
    """Return x, y or z when a signal is a place along that axis of the world, else nothing.

    Such a signal is named after its axis and measured in metres; `lift`, `object_above` or
    `object_offset` are distances between things and no places.
    """
    stem, _, axis = signal.name.rpartition("_")
    return axis if stem and signal.unit == "m" and axis in ("x", "y", "z") else ""


def level_of(names: Mapping[str, None], signals: Mapping[str, SignalSpec]) -> Sensing:
    """Return the highest sensing level among the signals of a program."""
    return highest(signals[name].level for name in names)


def highest(levels: Iterable[Sensing]) -> Sensing:
    """Return the highest of some sensing levels, `proprio` when there is none."""
    return SENSING_LEVELS[max((SENSING_LEVELS.index(level) for level in levels), default=0)]


def nearest(name: str, known: Mapping[str, object]) -> str:
    """Return the nearest known names, or where they are listed."""
    hint = suggest(name, known)
    return "zetta critics docs lists them" if hint.endswith(" more") else hint
