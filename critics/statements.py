"""Checks a block of statements and turns it into code, with a new name for each assignment.

A local name that holds a series stands for what to look at, not for a copy: its code is put where
it is used. So what it was made from must not change afterwards, and each assignment of a number
or a condition gets a name of its own in the code; where two branches meet, both fill a third one.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from zetta.critics.expressions import VERDICTS, Expressions
from zetta.critics.operators import OPERATORS
from zetta.critics.problems import Refused
from zetta.critics.values import MAX_DEPTH, STEP_WORK, Names, Scope, Value
from zetta.critics.wording import foreign, too_much

STEP: Final = "    "
RESERVED: Final = frozenset({"w", "p", "robot", "range", *OPERATORS})
STATEMENTS: Final = {
    ast.For: "a loop", ast.While: "a loop", ast.AsyncFor: "a loop",
    ast.Import: "import", ast.ImportFrom: "import", ast.Global: "global",
    ast.Nonlocal: "nonlocal", ast.FunctionDef: "a function within a function",
    ast.AsyncFunctionDef: "a function within a function", ast.ClassDef: "a class",
    ast.With: "with", ast.AsyncWith: "with", ast.Try: "try", ast.TryStar: "try",
    ast.Raise: "raise", ast.Assert: "assert", ast.Delete: "del", ast.Match: "match",
    ast.AnnAssign: "an annotation", ast.Break: "break", ast.Continue: "continue",
}  # fmt: skip


@dataclass(slots=True)
class Flow:
    """What a block comes to."""

    lines: list[str] = field(default_factory=list)
    work: int = 0
    falls: bool = True
    """Whether its end is reached, on some way."""
    yields: bool = False
    """Whether every way to its end runs a primitive."""

    def then(self, following: Flow) -> None:
        """Append what comes next."""
        self.lines += following.lines
        self.work += following.work
        self.falls = self.falls and following.falls
        self.yields = self.yields or following.yields


class Statements:
    """Checks the body of one function; what it may return is said by a subclass."""

    def __init__(self, scope: Scope, function: str) -> None:
        self.scope = scope
        self.function = function

    # ----------------------------------------------------------------------- what differs

    def returned(self, node: ast.Return, expressions: Expressions) -> Flow:
        """Check what is returned.

        Raises:
            Refused: it is not what this function answers.
        """
        raise NotImplementedError

    def other(self, node: ast.stmt, names: Names, depth: int) -> Flow:
        """Check a statement that not every function may have.

        Raises:
            Refused: it is not allowed here.
        """
        raise Refused(
            node, f"{STATEMENTS.get(type(node), type(node).__name__)} is not part of the language"
        )

    def expressions(self, names: Names) -> Expressions:
        """Return what checks the expressions of a statement."""
        return Expressions(self.scope, names)

    def reading(self, value: Value, code: str) -> str:
        """Return how the code of an expression is run at this place."""
        return code

    # ----------------------------------------------------------------------- blocks

    def body(self, node: ast.FunctionDef) -> Flow:
        """Check the whole function, and tell what is wrong."""
        statements = node.body[1:] if _is_text(node.body[0]) else node.body
        flow = self.block(statements, {}, 1)
        if flow.work > self.scope.max_work:
            self.scope.tell(Refused(node, too_much(flow.work, self.scope.max_work)))
        return flow

    def block(self, nodes: Sequence[ast.stmt], names: Names, depth: int) -> Flow:
        """Check statements in their order; `names` is what they find and leave behind."""
        flow = Flow()
        for node in nodes:
            try:
                if depth > MAX_DEPTH:
                    raise Refused(
                        node, f"blocks (and elif) stand within each other {MAX_DEPTH} deep at most"
                    )
                flow.then(self.statement(node, names, depth))
            except Refused as refused:
                self.scope.tell(refused)
                for name in _assigned([node]):
                    names[name] = ""
                # Nothing more is said of an end that this statement may have decided.
                flow.falls = flow.falls and not _leaves(node)
        return flow

    def statement(self, node: ast.stmt, names: Names, depth: int) -> Flow:
        """Check one statement.

        Raises:
            Refused: it is not allowed.
        """
        expressions = self.expressions(names)
        match node:
            case ast.Assign(targets=[ast.Name() as target]):
                return self.assign(target, expressions.value(node.value), expressions)
            case ast.Assign():
                raise Refused(
                    node, "one name is set at a time, as in: near = now(w.object_distance)"
                )
            case ast.AugAssign(target=ast.Name() as target):
                before = ast.copy_location(ast.Name(target.id, ast.Load()), target)
                total = ast.copy_location(ast.BinOp(before, node.op, node.value), node)
                return self.assign(target, expressions.value(total), expressions)
            case ast.If():
                return self._if(node, names, depth)
            case ast.Return():
                return self.returned(node, expressions)
            case ast.Pass():
                return Flow(["pass"])
            case ast.Expr(value=ast.Call(func=ast.Name(id=called))) if called in VERDICTS:
                raise Refused(
                    node, f"{called}(…) does nothing by itself; write: return {called}(…)"
                )
            case ast.Expr(value=ast.YieldFrom() | ast.Await() | ast.Yield() as wish):
                raise foreign(wish)
            case ast.Expr():
                raise Refused(node, "this line does nothing; set a name, or return")
        return self.other(node, names, depth)

    def assign(self, target: ast.Name, value: Value, expressions: Expressions) -> Flow:
        """Set a local name.

        Raises:
            Refused: the name means something else.
        """
        self.check_name(target)
        names = expressions.names
        if value.kind in ("series", "conditions"):
            names[target.id] = Value(value.kind, value.code, value.work, value.axis, value.known)
            if value.signal:
                names[target.id] = value
            return Flow()
        local = self.scope.fresh(f"v_{target.id}")
        names[target.id] = Value(value.kind, local, axis=value.axis)
        line = f"{local} = {self.reading(value, expressions.settled(value))}"
        return Flow([line], value.work + STEP_WORK)

    def check_name(self, target: ast.Name) -> None:
        """Refuse a local name that means something else.

        Raises:
            Refused: it does.
        """
        verdict = target.id in VERDICTS and self.function == "check"
        if target.id in RESERVED or verdict:
            raise Refused(target, f"{target.id!r} is a word of the language; use another name")
        if target.id.startswith("_"):
            raise Refused(target, f"a name begins with a letter, unlike {target.id!r}")

    def _if(self, node: ast.If, names: Names, depth: int) -> Flow:
        expressions = self.expressions(names)
        test = None
        try:
            test = expressions.wanted(node.test, "condition", "'if'")
        except Refused as refused:
            self.scope.tell(refused)
        yes_names, no_names = dict(names), dict(names)
        yes = self.block(node.body, yes_names, depth + 1)
        no = self.block(node.orelse, no_names, depth + 1)
        self._meet(names, (yes, yes_names), (no, no_names))
        code = self.reading(test, test.code) if test else "True"
        lines = [f"if {code}:", *indented(yes.lines)]
        if no.lines:
            lines += ["else:", *indented(no.lines)]
        reached = [flow for flow in (yes, no) if flow.falls]
        return Flow(
            lines,
            (test.work if test else 0) + STEP_WORK + max(yes.work, no.work),
            falls=bool(reached),
            yields=all(flow.yields for flow in reached),
        )

    def _meet(self, names: Names, yes: tuple[Flow, Names], no: tuple[Flow, Names]) -> None:
        """Let two branches meet: leave in `names` what holds whichever of them was taken."""
        ways = [way for way in (yes, no) if way[0].falls]
        found = [way[1] for way in ways] or [no[1]]
        names.clear()
        for name in dict.fromkeys(key for each in found for key in each):
            values = [each.get(name) for each in found]
            if all(value is values[0] or value == values[0] for value in values):
                names[name] = values[0]  # type: ignore[assignment]
                continue
            joined = joint_value(name, values)
            if isinstance(joined, Value):
                local = self.scope.fresh(f"v_{name}")
                for (flow, _), value in zip(ways, values, strict=True):
                    flow.lines.append(f"{local} = {value.code}")  # type: ignore[union-attr]
                joined = Value(joined.kind, local, axis=joined.axis)
            names[name] = joined


def joint_value(name: str, values: Sequence[Value | str | None]) -> Value | str:
    """Return what a name is that is one of `values`, or why it cannot be used."""
    if any(value == "" for value in values):
        return ""
    known = [value for value in values if isinstance(value, Value)]
    if len(known) < len(values):
        told = [value for value in values if isinstance(value, str)]
        return told[0] if told else f"{name!r} is set on one way to this line only; set it before"
    first = known[0]
    if any((value.kind, value.axis) != (first.kind, first.axis) for value in known):
        return f"{name!r} is not the same sort of thing on every way to this line"
    if first.kind in ("series", "conditions"):
        return f"{name!r} is not the same series on every way to this line; use two names"
    return first


def indented(lines: Sequence[str]) -> list[str]:
    """Return a block one step further in; an empty one becomes `pass`."""
    return [STEP + line for line in lines or ["pass"]]


def assigned_names(nodes: Sequence[ast.stmt]) -> tuple[str, ...]:
    """Return the names that statements set, wherever they stand."""
    return _assigned(nodes)


def _assigned(nodes: Sequence[ast.stmt]) -> tuple[str, ...]:
    names = (
        part.id
        for node in nodes
        for part in ast.walk(node)
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)
    )
    return tuple(dict.fromkeys(names))


def _is_text(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def _leaves(node: ast.stmt) -> bool:
    return any(isinstance(part, ast.Return) for part in ast.walk(node))
