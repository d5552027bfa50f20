"""Programs of the critic language, judged at every tick of many episodes at once.

A search asks what a critic would have said under thousands of numbers. Here the checked text is
walked once and each operation works on all ticks together; what depends on no number is kept. The
answers are those of the compiled critic, tick by tick; whoever emits one replays it to make sure.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np

from zetta.critics.operators import ticks_in
from zetta.runtime.core import Array
from zetta.runtime.errors import ConfigError
from zetta.skills.evolve.authors import WatchedEpisode
from zetta.skills.evolve.window_arrays import (
    CONDITIONS,
    NUMBERS,
    TWO_TICKS,
    Flags,
    Ticks,
    Values,
    count,
    shifted,
    since,
)


class NotInArrays(Exception):
    """A program does what is not done here; says what."""


@dataclass(frozen=True, slots=True)
class Corpus:
    """Episodes, one after the other in one column for each signal, a NaN before each."""

    columns: Mapping[str, Array]
    """Values by signal. Shape (N,) each."""
    starts: Ticks
    """Where tick 0 of each episode stands. Shape (E,)."""
    lengths: Ticks
    """Ticks of each episode. Shape (E,)."""
    control_hz: float
    kept: dict[str, _Column] = field(default_factory=dict, repr=False)
    """What depends on no parameter, by its text."""

    @property
    def rows(self) -> int:
        """N."""
        return int(self.starts[-1] + self.lengths[-1]) if len(self.starts) else 0


@dataclass(frozen=True, slots=True)
class _Column:
    """A value at every tick, and where it is known."""

    values: Any
    known: Flags
    series: bool = False
    """Whether an operator may look back at it."""


def corpus_of(episodes: Sequence[WatchedEpisode]) -> Corpus:
    """Put episodes together.

    Raises:
        ConfigError: there are none, or their control rates differ.
    """
    rates = {episode.control_hz for episode in episodes}
    if len(rates) != 1:
        raise ConfigError(
            f"got {len(episodes)} episodes with the control rates {sorted(rates)} Hz; expected "
            "some, all with the same rate"
        )
    names = sorted({n for e in episodes for n in (e.ticks[0].signals if e.ticks else ())})
    lengths = np.array([len(episode.ticks) for episode in episodes], dtype=np.int64)
    starts = np.cumsum(lengths + 1) - lengths
    columns = {name: np.full(int(starts[-1] + lengths[-1]), np.nan) for name in names}
    for episode, start in zip(episodes, starts, strict=True):
        for name, column in columns.items():
            values = [tick.signals.get(name, math.nan) for tick in episode.ticks]
            column[start : start + len(values)] = values
    return Corpus(columns, starts, lengths, rates.pop())


def expression_values(corpus: Corpus, text: str) -> tuple[Array, Flags]:
    """Return a number of the language at every row, and where it is known. Shape (N,) each.

    Raises:
        NotInArrays: it uses what is not done here.
    """
    node = ast.parse(text, mode="eval").body
    texts = {id(n): ast.unparse(n) for n in ast.walk(node) if isinstance(n, ast.expr)}
    column = _Run(corpus, texts, {}, 1.0).value(node)
    return np.broadcast_to(column.values, column.known.shape), column.known


class ArrayProgram:
    """One function of a checked program, over all ticks of a corpus."""

    def __init__(self, source: str, function: str, corpus: Corpus, window_s: float = 1.0) -> None:
        """Read the text, which the language's own check has passed.

        Raises:
            NotInArrays: it uses what is not done here.
        """
        self._corpus = corpus
        self._window_s = window_s
        self._armed: ast.expr | None = None
        self._body: list[ast.stmt] = []
        for node in ast.parse(source).body:
            if isinstance(node, ast.Assign):
                self._constant(node)
            if isinstance(node, ast.FunctionDef) and node.name == function:
                self._body = node.body
        self._texts = {id(n): ast.unparse(n) for s in self._body for n in ast.walk(s)
                       if isinstance(n, ast.expr)}  # fmt: skip
        if self._armed is not None:
            self._texts |= {
                id(n): ast.unparse(n) for n in ast.walk(self._armed) if isinstance(n, ast.expr)
            }
        self._everywhere = np.ones(corpus.rows, dtype=np.bool_)
        self._everywhere[corpus.starts - 1] = False

    def _constant(self, node: ast.Assign) -> None:
        name = ast.unparse(node.targets[0])
        value = node.value.value if isinstance(node.value, ast.Constant) else None
        if name == "WINDOW_S" and isinstance(value, int | float):
            self._window_s = float(value)
        elif name == "ARMED_WHEN":
            self._armed = ast.parse(str(value), mode="eval").body
        elif name == "MAX_AGE_S":
            raise NotInArrays("MAX_AGE_S")

    def fires(self, values: Mapping[str, float]) -> Flags:
        """Return at which ticks it recovers, or its condition is true. Shape (N,).

        Args:
            values: of all parameters.

        Raises:
            NotInArrays: it uses what is not done here.
        """
        run = _Run(self._corpus, self._texts, values, self._window_s)
        active = self._everywhere
        with np.errstate(all="ignore"):
            if self._armed is not None:
                armed = run.value(self._armed)
                active = active & armed.known & np.asarray(armed.values, dtype=np.bool_)
            run.block(self._body, active)
        return run.fired


class _Run:
    """One walk through a function, with one set of numbers."""

    def __init__(
        self, corpus: Corpus, texts: Mapping[int, str], values: Mapping[str, float], window_s: float
    ) -> None:
        self._corpus, self._texts, self._values = corpus, texts, values
        self._window_s = window_s
        self._names: dict[str, _Column] = {}
        self._all = np.ones(corpus.rows, dtype=np.bool_)
        self.fired = np.zeros(corpus.rows, dtype=np.bool_)

    # ------------------------------------------------------------------ statements

    def block(self, nodes: Sequence[ast.stmt], active: Flags) -> Flags:
        """Run statements at the active ticks and return those that come to their end."""
        for node in nodes:
            match node:
                case ast.If():
                    active = self._if(node, active)
                case ast.Return(value=ast.expr() as value):
                    self._return(value, active)
                    return np.zeros_like(active)
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    active = self._assign(name, self.value(value), active)
                case ast.AugAssign(target=ast.Name(id=name)):
                    total = self._number(node.op, self._names[name], self.value(node.value))
                    active = self._assign(name, total, active)
                case ast.Expr(value=ast.Constant()) | ast.Pass():
                    continue
                case _:
                    raise NotInArrays(type(node).__name__)
        return active

    def _if(self, node: ast.If, active: Flags) -> Flags:
        test = self.value(node.test)
        active = active & test.known
        taken = np.asarray(test.values, dtype=np.bool_)
        before = dict(self._names)
        yes_active = active & taken
        yes = self.block(node.body, yes_active)
        after = self._names
        self._names = before
        no = self.block(node.orelse, active & ~taken)
        for name, column in after.items():
            other = self._names.get(name)
            if other is None or other is column:
                self._names[name] = column
            else:
                mixed = np.where(taken, column.values, other.values)
                known = np.where(taken, column.known, other.known)
                self._names[name] = _Column(mixed, known, column.series and other.series)
        return yes | no

    def _assign(self, name: str, column: _Column, active: Flags) -> Flags:
        self._names[name] = column
        return active if column.series else active & column.known

    def _return(self, value: ast.expr, active: Flags) -> None:
        match value:
            case ast.Call(func=ast.Name(id="ok")):
                return
            case ast.Call(func=ast.Name(id="recover")):
                self.fired |= active
            case ast.Call(func=ast.Name(id="abort")):
                raise NotInArrays("abort")
            case _:
                answer = self.value(value)
                self.fired |= active & answer.known & np.asarray(answer.values, dtype=np.bool_)

    # ------------------------------------------------------------------ expressions

    def value(self, node: ast.expr) -> _Column:
        """Return what an expression is at every tick."""
        text = self._texts[id(node)]
        fixed = "p." not in text and not any(
            isinstance(n, ast.Name) and n.id in self._names for n in ast.walk(node)
        )
        if fixed and text in self._corpus.kept:
            return self._corpus.kept[text]
        column = self._value(node)
        if fixed:
            self._corpus.kept[text] = column
        return column

    def _value(self, node: ast.expr) -> _Column:
        match node:
            case ast.Constant(value=bool() | int() | float() as value):
                return _Column(value, self._all)
            case ast.Name(id=name):
                return self._names[name]
            case ast.Attribute(value=ast.Name(id="p"), attr=name):
                return _Column(self._values[name], self._all)
            case ast.Attribute(value=ast.Name(id="w"), attr=name):
                return self._signal(name)
            case ast.UnaryOp(op=ast.Not()):
                column = self.value(node.operand)
                return replace(column, values=~np.asarray(column.values, dtype=np.bool_))
            case ast.UnaryOp(op=ast.USub()):
                column = self.value(node.operand)
                return replace(column, values=-column.values)
            case ast.BinOp():
                return self._number(node.op, self.value(node.left), self.value(node.right))
            case ast.BoolOp():
                return self._logic(node)
            case ast.Compare():
                return self._comparison(node)
            case ast.Call(func=ast.Name(id=name)):
                return self._call(name, node)
        raise NotInArrays(ast.unparse(node))

    def _signal(self, name: str) -> _Column:
        column = self._corpus.columns.get(name)
        if column is None:
            return _Column(np.zeros(len(self._all)), np.zeros(len(self._all), np.bool_), True)
        known = np.isfinite(column)
        return _Column(np.where(known, column, 0.0), known, True)

    def _number(self, op: ast.operator, left: _Column, right: _Column) -> _Column:
        self._check_mixed(left, right)
        known = left.known & right.known
        match op:
            case ast.Add():
                values = left.values + right.values
            case ast.Sub():
                values = left.values - right.values
            case ast.Mult():
                values = left.values * right.values
            case _:
                divisor = np.asarray(right.values)
                known = known & (divisor != 0.0)
                values = left.values / np.where(divisor == 0.0, 1.0, divisor)
        known = known & np.isfinite(values)
        return _Column(values, known, left.series or right.series)

    def _check_mixed(self, *columns: _Column) -> None:
        """Refuse a series beside a number that is another one at each tick."""
        if any(c.series for c in columns) and any(
            not c.series and np.ndim(c.values) > 0 for c in columns
        ):
            raise NotInArrays("a series beside a number of the present tick")

    def _logic(self, node: ast.BoolOp) -> _Column:
        both = isinstance(node.op, ast.And)
        total = self.value(node.values[0])
        for part in node.values[1:]:
            column = self.value(part)
            left, right = np.asarray(total.values), np.asarray(column.values)
            if total.series:
                known = total.known & column.known
            else:  # the right side is read only where the left one does not decide
                known = total.known & (column.known | (~left if both else left))
            total = _Column(left & right if both else left | right, known, total.series)
        return total

    def _comparison(self, node: ast.Compare) -> _Column:
        columns = [self.value(part) for part in (node.left, *node.comparators)]
        self._check_mixed(*columns)
        known, values = self._all, np.ones(1, dtype=np.bool_)
        for op, left, right in zip(node.ops, columns[:-1], columns[1:], strict=True):
            values = values & _COMPARE[type(op)](left.values, right.values)
            known = known & left.known & right.known
        return _Column(np.broadcast_to(values, known.shape), known, any(c.series for c in columns))

    # ------------------------------------------------------------------ operators

    def _call(self, name: str, node: ast.Call) -> _Column:
        if node.keywords:
            raise NotInArrays("an argument by its name")
        if name in _EACH:
            left, *rest = [self.value(part) for part in node.args]
            self._check_mixed(left, *rest)
            known, values = left.known, _EACH[name](left.values, *(r.values for r in rest))
            for column in rest:
                known = known & column.known
            return _Column(values, known, any(c.series for c in (left, *rest)))
        column = self.value(node.args[0])
        if name == "now":
            return replace(column, series=False)
        extra = node.args[1:]
        second = self.value(extra.pop(0)) if name in ("since", "crossed") else None
        seconds = float(self.value(extra[0]).values) if extra else self._window_s
        least = 2 if name in TWO_TICKS else 1
        ticks = ticks_in(seconds, self._corpus.control_hz, least)
        known = count(column.known & second.known if second and second.series else column.known,
                       ticks) == ticks  # fmt: skip
        series = np.broadcast_to(column.values, known.shape)
        return _Column(self._windowed(name, series, second, ticks), known)

    def _windowed(self, name: str, x: Values, second: _Column | None, ticks: int) -> Values:
        if name in CONDITIONS:
            return CONDITIONS[name](x, ticks)
        if name in NUMBERS:
            return NUMBERS[name](x, ticks)
        if name == "rate":
            return NUMBERS["delta"](x, ticks) / ((ticks - 1) / self._corpus.control_hz)
        if name == "since" and second is not None:
            return since(x, np.broadcast_to(second.values, x.shape), ticks)
        if name == "crossed" and second is not None and np.ndim(second.values) == 0:
            side = x >= second.values
            return count(side != shifted(side, 1), ticks - 1) > 0
        raise NotInArrays(name)


_COMPARE: Final[Mapping[type, Callable[..., Flags]]] = {
    ast.Lt: np.less, ast.LtE: np.less_equal, ast.Gt: np.greater, ast.GtE: np.greater_equal,
    ast.Eq: np.equal, ast.NotEq: np.not_equal,
}  # fmt: skip
_EACH: Final[Mapping[str, Callable[..., Array]]] = {
    "abs": np.abs, "min": np.minimum, "max": np.maximum, "hypot": np.hypot,
}  # fmt: skip
