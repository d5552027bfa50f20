"""What a critic saw: the code that judges, run once more with a witness at every expression.

The program goes through the same checker and comes to the same code, in which each number and each
condition is also told to somebody. So what was never asked, behind an `and` or a `return`, has no
value here either.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, TypeVar

import numpy as np

from zetta.critics.binding import Unknown, bound_functions
from zetta.critics.expressions import Expressions
from zetta.critics.language import CRITIC_CONSTANTS, CriticStatements, function
from zetta.critics.parameters import Parameter, bound_values
from zetta.critics.problems import parse_program, raise_problems
from zetta.critics.sections import split
from zetta.critics.statements import Flow
from zetta.critics.values import Names, Scope, Value
from zetta.runtime.core import Window
from zetta.runtime.errors import ConfigError
from zetta.runtime.signals import SIGNALS, SignalSpec

SHOWN: Final = (ast.Call, ast.Compare, ast.BoolOp, ast.BinOp, ast.IfExp, ast.UnaryOp)
T = TypeVar("T", bound=float | bool)


@dataclass(frozen=True, slots=True)
class Seen:
    """What one expression came to."""

    line: int
    """Counted from 1."""
    text: str
    value: float | bool


@dataclass(frozen=True, slots=True)
class Trace:
    """One judgement, expression by expression, in the order in which they were asked."""

    seen: tuple[Seen, ...]
    decided: int | None
    """Line of the `return` that was reached; None where a value was unknown."""
    answer: int
    """0 for `ok()`, k for the k-th verdict that the program may give."""
    unknown: str = ""
    """Which value was unknown, where one was."""


class _Witnessed(Expressions):
    """Gives every number and condition a number of its own, under which it is told."""

    def __init__(self, scope: Scope, names: Names, places: list[ast.expr | ast.stmt]) -> None:
        super().__init__(scope, names)
        self._places = places

    def value(self, node: ast.expr, depth: int = 1) -> Value:
        """Return what an expression is."""
        value = super().value(node, depth)
        if not isinstance(node, SHOWN) or value.kind not in ("number", "condition"):
            return value
        if value.seconds is not None:  # a literal with a sign
            return value
        self._places.append(node)
        return replace(value, code=f"saw({len(self._places) - 1}, {value.code})")


class _WitnessedStatements(CriticStatements):
    """The body of `check`, with witnesses."""

    def __init__(self, scope: Scope) -> None:
        super().__init__(scope)
        self.places: list[ast.expr | ast.stmt] = []

    def expressions(self, names: Names) -> Expressions:
        """Return what checks the expressions of a statement."""
        return _Witnessed(self.scope, names, self.places)

    def returned(self, node: ast.Return, expressions: Expressions) -> Flow:
        """Check that a verdict is returned, and tell that it was."""
        flow = super().returned(node, expressions)
        self.places.append(node)
        flow.lines.insert(0, f"saw({len(self.places) - 1}, True)")
        return flow


def trace(
    source: str,
    window: Window,
    parameters: Mapping[str, Parameter] | None = None,
    values: Mapping[str, float] | None = None,
    signals: Mapping[str, SignalSpec] = SIGNALS,
) -> Trace:
    """Judge a window once and return what every expression came to.

    Args:
        source: the program of a critic.
        window: as it was at the tick.
        parameters: what `params.toml` declares.
        values: values of some parameters; the others take their defaults.
        signals: what exists.

    Raises:
        ScreenError: the program is not in the language.
        ConfigError: it has no function `check`, or a value is out of bounds.
    """
    declared = parameters or {}
    scope = Scope("critic.py", signals, declared)
    tree = parse_program(source)
    parts = split(tree, scope, {"check": "w, p"}, CRITIC_CONSTANTS)
    scope.window_s = parts.number("WINDOW_S") or scope.window_s
    scope.max_age_s = parts.number("MAX_AGE_S")
    body = _WitnessedStatements(scope)
    check = parts.functions.get("check")
    if check is None:
        raise ConfigError("the program has no function check")
    flow = body.body(check)
    if scope.problems:
        raise_problems(tuple(scope.problems))
    told: list[tuple[int, float | bool]] = []

    def saw(place: int, value: T) -> T:
        told.append((place, value))
        return value

    functions = bound_functions(
        function("check(window)", flow.lines), "trace", dict(scope.ticks), window.control_hz,
        bound_values(declared, values), {"saw": saw},
    )  # fmt: skip
    answer, unknown = 0, ""
    try:
        with np.errstate(all="ignore"):
            answer = functions["check"](window)
    except (Unknown, KeyError) as missing:
        unknown = str(missing.args[0])
    return _trace(body.places, told, answer, unknown)


def _trace(
    places: list[ast.expr | ast.stmt], told: list[tuple[int, float | bool]], answer: int, why: str
) -> Trace:
    seen, decided = [], None
    for place, value in told:
        node = places[place]
        if isinstance(node, ast.stmt):
            decided = node.lineno
        else:
            seen.append(Seen(node.lineno, ast.unparse(node), value))
    return Trace(tuple(dict.fromkeys(seen)), decided, answer, why)
