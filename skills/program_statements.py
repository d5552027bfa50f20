"""The bodies of a recovery's functions: answers of yes or no, and the run of primitives."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Final

from zetta.critics.calls import by_name
from zetta.critics.expressions import Expressions
from zetta.critics.parameters import Parameter
from zetta.critics.problems import Refused
from zetta.critics.statements import Flow, Statements, assigned_names, indented
from zetta.critics.values import STEP_WORK, Names, Scope, Value
from zetta.critics.wording import text_of
from zetta.primitives.catalogue import ParameterSpec, PrimitiveSpec
from zetta.runtime.errors import suggest

MOST_ROUNDS: Final = 8
"""Of one loop."""
MOST_LOOPS: Final = 2
"""Within each other."""
DONE: Final = "done"
"""Holds, in the code, how the last primitive ended."""


class AnswerStatements(Statements):
    """The body of `precondition` or `reentry`."""

    def returned(self, node: ast.Return, expressions: Expressions) -> Flow:
        """Check that a condition is returned.

        Raises:
            Refused: it is none.
        """
        if node.value is None:
            raise Refused(node, f"{self.function} returns a condition, such as True; got nothing")
        value = expressions.wanted(node.value, "condition", f"return of {self.function}")
        return Flow([f"return {value.code}"], value.work + STEP_WORK, falls=False)


class ActionStatements(Statements):
    """The body of `recover`: a generator that runs primitives."""

    def __init__(self, scope: Scope, primitives: Mapping[str, PrimitiveSpec]) -> None:
        super().__init__(scope, "recover")
        self.primitives = primitives
        self.used: dict[str, None] = {}
        """Primitives that it runs."""
        self._loops = 0

    def reading(self, value: Value, code: str) -> str:
        """Return code that reads the window without warnings, and not beyond one statement."""
        return f"reading(lambda: {code})" if value.work else code

    def returned(self, node: ast.Return, expressions: Expressions) -> Flow:
        """Return how the last primitive ended, or whether a condition holds.

        Raises:
            Refused: something else is returned.
        """
        if node.value is None:
            return Flow([f"return {DONE}"], falls=False)
        _refuse_hidden_primitive(node.value)
        value = expressions.wanted(node.value, "condition", "return of recover")
        code = self.reading(value, value.code)
        return Flow([f"return ended({code}, {DONE})"], value.work + STEP_WORK, falls=False)

    def statement(self, node: ast.stmt, names: Names, depth: int) -> Flow:
        """Check one statement.

        Raises:
            Refused: it is not allowed.
        """
        expressions = Expressions(self.scope, names)
        match node:
            case ast.Expr(value=ast.YieldFrom(value=wish)):
                return self._primitive(wish, expressions)
            case ast.Assign(targets=[ast.Name() as target], value=ast.YieldFrom(value=wish)):
                flow = self._primitive(wish, expressions)
                completed = Value("condition", f"{DONE}.completed")
                flow.then(self.assign(target, completed, expressions))
                return flow
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id="robot")))):
                raise Refused(node, f"a primitive is run by: yield from {text_of(node.value)}")
            case ast.For():
                return self._loop(node, names, depth)
            case ast.If():
                _refuse_hidden_primitive(node.test)
            case ast.Assign(value=value) | ast.AugAssign(value=value):
                _refuse_hidden_primitive(value)
        return super().statement(node, names, depth)

    # ----------------------------------------------------------------------- primitives

    def _primitive(self, node: ast.expr, expressions: Expressions) -> Flow:
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id="robot"), attr=name)):
                pass
            case _:
                raise Refused(node, f"a primitive is run by: yield from robot.<primitive>(…), not "
                              f"{text_of(node)}")  # fmt: skip
        if name not in self.primitives:
            raise Refused(node, f"there is no primitive {name!r}; {suggest(name, self.primitives)}")
        spec = self.primitives[name]
        given = by_name(node, name, [parameter.name for parameter in spec.parameters])
        work, parts = STEP_WORK, []
        for parameter in spec.parameters:
            if parameter.name not in given:
                if parameter.required:
                    raise Refused(node, f"{spec.signature}: {parameter.name} is missing")
                continue
            part = given[parameter.name]
            if parameter.kind == "role":
                code = _role(spec, parameter, part)
            else:
                value = expressions.wanted(part, "number", f"{spec.signature}: {parameter.name}")
                work += value.work + STEP_WORK
                code = self.reading(value, _within(spec, parameter, part, value, expressions))
            parts.append(f"{parameter.name}={code}")
        self.used[name] = None
        line = f"{DONE} = yield from robot.{name}({', '.join(parts)})"
        return Flow([line], work, yields=True)

    # ----------------------------------------------------------------------- loops

    def _loop(self, node: ast.For, names: Names, depth: int) -> Flow:
        rounds, told = _rounds(node), len(self.scope.problems)
        if self._loops >= MOST_LOOPS:
            raise Refused(node, f"loops stand within each other {MOST_LOOPS} deep at most")
        carried = self._carry_in(node, names)
        inside: Names = dict(names)
        self._loops += 1
        flow = self.block(node.body, inside, depth + 1)
        self._loops -= 1
        if flow.falls and not flow.yields and len(self.scope.problems) == told:
            raise Refused(node, "every round of a loop runs a primitive; this one has a way "
                          "without")  # fmt: skip
        before = [f"{local.code} = {first}" for local, first in carried.values()]
        after = self._carry_out(node, carried, inside)
        names.clear()
        names.update(self._left_behind(node, carried, inside))
        lines = [*before, f"for _ in range({rounds}):", *indented([*flow.lines, *after])]
        return Flow(lines, rounds * (flow.work + STEP_WORK), flow.falls, flow.yields)

    def _carry_in(self, node: ast.For, names: Names) -> dict[str, tuple[Value, str]]:
        """Give each name that a round may change a place of its own in the code.

        Returns that place and what it holds at first, by name.
        """
        carried = {}
        for name in assigned_names(node.body):
            value = names.get(name)
            if not isinstance(value, Value):
                continue
            if value.kind in ("series", "conditions"):
                names[name] = f"{name!r} is a series that the loop changes; use two names"
                continue
            local = Value(value.kind, self.scope.fresh(f"v_{name}"), axis=value.axis)
            carried[name] = (local, value.code)
            names[name] = local
        return carried

    def _carry_out(
        self, node: ast.For, carried: Mapping[str, tuple[Value, str]], inside: Names
    ) -> list[str]:
        """Return the lines that hand what changed to the next round."""
        lines = []
        for name, (local, _) in carried.items():
            value = inside.get(name)
            if isinstance(value, Value) and value != local:
                if (value.kind, value.axis) != (local.kind, local.axis):
                    raise Refused(node, f"{name!r} becomes another sort of thing within the loop")
                lines.append(f"{local.code} = {value.code}")
        return lines

    def _left_behind(
        self, node: ast.For, carried: Mapping[str, tuple[Value, str]], inside: Names
    ) -> Names:
        """Return what the names are after the loop."""
        left: Names = dict(inside)
        left.update({
            name: local for name, (local, _) in carried.items()
            if isinstance(inside.get(name), Value)
        })  # fmt: skip
        for name in assigned_names(node.body):
            value = left.get(name)
            if isinstance(value, Value) and value.kind in ("series", "conditions"):
                left[name] = f"{name!r} is a series of the loop; set it again after the loop"
        return left

    def other(self, node: ast.stmt, names: Names, depth: int) -> Flow:
        """Check a statement that not every function may have.

        Raises:
            Refused: it is not allowed here.
        """
        if isinstance(node, ast.While):
            raise Refused(node, f"write: for _ in range({MOST_ROUNDS}): with at most "
                          f"{MOST_ROUNDS} rounds; 'while' is not part of the language")  # fmt: skip
        return super().other(node, names, depth)


def _rounds(node: ast.For) -> int:
    """Return how often a loop runs.

    Raises:
        Refused: it is no `for _ in range(constant)`.
    """
    match node:
        case ast.For(
            target=ast.Name(id="_"),
            iter=ast.Call(
                func=ast.Name(id="range"), args=[ast.Constant(value=int(n))], keywords=[]
            ),
            orelse=[],
        ) if not isinstance(n, bool):
            if 1 <= n <= MOST_ROUNDS:
                return n
            raise Refused(node, f"a loop has 1 to {MOST_ROUNDS} rounds")
    raise Refused(
        node, f"a loop is written: for _ in range(n): with n a number up to {MOST_ROUNDS}"
    )


def _role(spec: PrimitiveSpec, parameter: ParameterSpec, node: ast.expr) -> str:
    """Return the code of a role.

    Raises:
        Refused: it is no text, or no role that this primitive takes.
    """
    roles = " or ".join(f'"{role}"' for role in parameter.roles)
    if not (isinstance(node, ast.Constant) and node.value in parameter.roles):
        raise Refused(node, f"{spec.signature}: {parameter.name} is {roles}, not {text_of(node)}")
    return repr(node.value)


def _within(
    spec: PrimitiveSpec,
    parameter: ParameterSpec,
    node: ast.expr,
    value: Value,
    expressions: Expressions,
) -> str:
    """Return the code of a number that stays within the bounds of a primitive.

    Raises:
        Refused: it is known to leave them, or it is a place.
    """
    low, high, unit = parameter.low, parameter.high, parameter.unit
    if value.axis:
        raise Refused(node, f"{spec.signature}: {parameter.name} is a distance; {text_of(node)} is "
                      "a place in the world, which belongs to one scene")  # fmt: skip
    bounds = f"{parameter.name} lies between {low:g} and {high:g} {unit}".rstrip()
    match value.seconds:
        case float(number):
            if not low <= number <= high:
                raise Refused(node, f"{spec.signature}: {bounds}; got {number:g}")
            return value.code
        case Parameter() as tuned:
            if not low <= tuned.low <= tuned.high <= high:
                raise Refused(node, f"{spec.signature}: {bounds}; p.{tuned.name} goes from "
                              f"{tuned.low:g} to {tuned.high:g}")  # fmt: skip
            if tuned.unit and unit and tuned.unit != unit:
                raise Refused(node, f"{spec.signature}: {parameter.name} is in {unit}; "
                              f"p.{tuned.name} is in {tuned.unit}")  # fmt: skip
            return value.code
    return f"x_min(x_max({expressions.settled(value)}, {low!r}), {high!r})"


def _refuse_hidden_primitive(node: ast.expr) -> None:
    for part in ast.walk(node):
        if isinstance(part, ast.YieldFrom):
            raise Refused(part, "a primitive stands on a line of its own, as in: "
                          'ok = yield from robot.grasp("object")')  # fmt: skip
