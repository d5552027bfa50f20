"""The operators: what turns the window of a signal into a number or a condition.

`OPERATORS` is what the checker, the documentation and the authors read; the functions below it do
the work on numpy views. A view arrives oldest first and holds known values only. Conditions are
answered on their bytes: searching bytes is several times cheaper than reducing short arrays.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from zetta.runtime.core import Array

Flags: TypeAlias = npt.NDArray[np.bool_]
"""A series of conditions. Shape (ticks,)."""

ArgumentKind: TypeAlias = Literal["series", "condition", "either", "level", "seconds", "any"]
"""series: of numbers · condition: series of conditions · either: one of these · level: a number
of the same sort as the series · seconds: a literal or a parameter, may be left out · any: a number
or a series of numbers, taken tick by tick."""
ResultKind: TypeAlias = Literal["number", "condition", "same", "either"]
"""number · condition · same: as the arguments are · either: a number of a series, a condition of a
series of conditions."""
Place: TypeAlias = Literal["keep", "difference", "refuse"]
"""What becomes of a place in the world: it stays one, its change is a distance, or neither."""


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of an operator."""

    name: str
    kind: ArgumentKind


@dataclass(frozen=True, slots=True)
class Operator:
    """One operator of the language."""

    name: str
    arguments: tuple[Argument, ...]
    result: ResultKind
    meaning: str
    formula: str
    place: Place = "refuse"
    least_ticks: int = 1
    """It looks at no fewer ticks than these."""
    passes: int = 1
    """What it costs, in passes over the window."""
    timed: bool = False
    """Its function also gets the time between the first and the last tick, in seconds."""

    @property
    def signature(self) -> str:
        """How it is called, such as `mean(x, seconds)`."""
        return f"{self.name}({', '.join(argument.name for argument in self.arguments)})"

    @property
    def windowed(self) -> bool:
        """Whether it looks at a window, and not at values of one tick."""
        return self.arguments[0].kind != "any"

    @property
    def takes_seconds(self) -> bool:
        """Whether it takes the length of its window."""
        return self.arguments[-1].kind == "seconds"


X = Argument("x", "series")
CONDITION = Argument("condition", "condition")
SECONDS = Argument("seconds", "seconds")
A, B = Argument("a", "any"), Argument("b", "any")

_ALL: Final = (
    Operator("now", (Argument("x", "either"),), "either", "the latest value", "x[0]", "keep"),
    Operator(
        "ago", (X, SECONDS), "number", "the value so many seconds ago", "x[k]", "keep",
    ),
    Operator(
        "mean", (X, SECONDS), "number", "the average", "(x[0] + … + x[k]) / (k + 1)", "keep",
        passes=2,
    ),
    Operator(
        "minimum", (X, SECONDS), "number", "the least value", "min(x[0..k])", "keep", passes=2,
    ),
    Operator(
        "maximum", (X, SECONDS), "number", "the greatest value", "max(x[0..k])", "keep", passes=2,
    ),
    Operator(
        "delta", (X, SECONDS), "number", "the change, latest minus first", "x[0] - x[k]",
        "difference", 2,
    ),
    Operator(
        "rate", (X, SECONDS), "number", "the change for each second", "(x[0] - x[k]) / (k / rate)",
        "difference", 2, timed=True,
    ),
    Operator(
        "spread", (X, SECONDS), "number", "greatest minus least value",
        "max(x[0..k]) - min(x[0..k])", "difference", passes=4,
    ),
    Operator(
        "path_length", (X, SECONDS), "number", "how far it went, back and forth",
        "|x[0] - x[1]| + … + |x[k-1] - x[k]|", "difference", 2, passes=4,
    ),
    Operator(
        "crossed", (X, Argument("level", "level"), SECONDS), "condition",
        "it went through the level, up or down", "x[i] >= level differs from x[i+1] >= level for "
        "an i < k", "difference", 2, passes=2,
    ),
    Operator(
        "held", (CONDITION, SECONDS), "condition", "it was true all the time",
        "condition[i] for every i <= k: historically[0:seconds]",
    ),
    Operator(
        "once", (CONDITION, SECONDS), "condition", "it was true at some time",
        "condition[i] for an i <= k: once[0:seconds]",
    ),
    Operator(
        "since", (Argument("a", "condition"), Argument("b", "condition"), SECONDS), "condition",
        "b was true at some time, and a has been true ever since",
        "b[i] for an i <= k, and a[j] for every j < i: a since[0:seconds] b",
    ),
    Operator(
        "rose", (CONDITION, SECONDS), "condition", "it became true",
        "condition[i] and not condition[i+1] for an i < k", least_ticks=2,
    ),
    Operator(
        "count", (CONDITION, SECONDS), "number", "at how many ticks it was true",
        "number of i <= k with condition[i]",
    ),
    Operator(
        "share", (CONDITION, SECONDS), "number", "at which share of the ticks it was true, 0 to 1",
        "count / (k + 1)",
    ),
    Operator("abs", (A,), "same", "the size without the sign", "|a|"),
    Operator("min", (A, B), "same", "the smaller of two values", "min(a, b)", "keep"),
    Operator("max", (A, B), "same", "the larger of two values", "max(a, b)", "keep"),
    Operator("hypot", (A, B), "same", "the length of a diagonal", "sqrt(a a + b b)"),
)  # fmt: skip

OPERATORS: Final[Mapping[str, Operator]] = MappingProxyType({op.name: op for op in _ALL})
"""Every operator by name. x[0] is the latest value, x[k] the one k ticks ago."""


def ticks_in(seconds: float, control_hz: float, least: int = 1) -> int:
    """Return how many ticks a window holds: the nearest one to its beginning, and all up to now.

    >>> ticks_in(0.5, 20.0), ticks_in(0.0, 20.0)
    (11, 1)
    """
    return max(math.floor(seconds * control_hz + 0.5) + 1, least)


_add = np.add.reduce
_least = np.minimum.reduce
_greatest = np.maximum.reduce


def ago(x: Array) -> float:
    """Return the oldest value."""
    return x.item(0)


def mean(x: Array) -> float:
    """Return the average."""
    return float(_add(x)) / len(x)


def minimum(x: Array) -> float:
    """Return the least value."""
    return float(_least(x))


def maximum(x: Array) -> float:
    """Return the greatest value."""
    return float(_greatest(x))


def delta(x: Array) -> float:
    """Return the latest value minus the oldest one."""
    return x.item(-1) - x.item(0)


def rate(x: Array, elapsed: float) -> float:
    """Return the change for each of `elapsed` seconds."""
    return (x.item(-1) - x.item(0)) / elapsed


def spread(x: Array) -> float:
    """Return the greatest value minus the least one."""
    return float(_greatest(x)) - float(_least(x))


def path_length(x: Array) -> float:
    """Return the sum of the sizes of all changes."""
    return float(_add(np.abs(x[1:] - x[:-1])))


def crossed(x: Array, level: float) -> bool:
    """Say whether two successive values lie on two sides of `level`."""
    sides = (x >= level).tobytes()
    return b"\0\1" in sides or b"\1\0" in sides


def held(condition: Flags) -> bool:
    """Say whether every value is true."""
    return b"\0" not in condition.tobytes()


def once(condition: Flags) -> bool:
    """Say whether any value is true."""
    return b"\1" in condition.tobytes()


def since(a: Flags, b: Flags) -> bool:
    """Say whether `b` was true, and `a` at every later tick."""
    last = b.tobytes().rfind(b"\1")
    return last >= 0 and b"\0" not in a.tobytes()[last + 1 :]


def rose(condition: Flags) -> bool:
    """Say whether a false value is followed by a true one."""
    return b"\0\1" in condition.tobytes()


def count(condition: Flags) -> float:
    """Return how many values are true."""
    return float(condition.tobytes().count(1))


def share(condition: Flags) -> float:
    """Return which share of the values is true."""
    return condition.tobytes().count(1) / len(condition)


WINDOW_FUNCTIONS: Final[Mapping[str, Callable[..., float | bool]]] = {
    function.__name__: function
    for function in (
        *(ago, mean, minimum, maximum, delta, rate, spread, path_length, crossed),
        *(held, once, since, rose, count, share),
    )
}
"""What computes each operator over a window; `now` is read directly."""
NUMBER_FUNCTIONS: Final[Mapping[str, Callable[..., float]]] = {
    "abs": abs, "min": min, "max": max, "hypot": math.hypot,
}  # fmt: skip
SERIES_FUNCTIONS: Final[Mapping[str, Callable[..., Array]]] = {
    "abs": np.abs, "min": np.minimum, "max": np.maximum, "hypot": np.hypot,
}  # fmt: skip
