"""Checks one expression and turns it into code: kinds, places, windows, depth, work.

What is produced is text made of our own words, numbers and checked names only; nothing of the
program's text is passed on. Numbers and conditions are Python's; series are numpy views.
"""

from __future__ import annotations

import ast
import math
from typing import Final

from zetta.critics.calls import operator_call, refuse_conditions
from zetta.critics.operators import OPERATORS
from zetta.critics.problems import Refused
from zetta.critics.values import (
    MAX_DEPTH,
    SERIES_WORK,
    STEP_WORK,
    WORDS,
    Kind,
    Names,
    Scope,
    Value,
)
from zetta.critics.wording import foreign, instead, place_rule, text_of, too_much
from zetta.runtime.errors import suggest

ARITHMETIC: Final = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}
COMPARISONS: Final = {
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
}  # fmt: skip
VERDICTS: Final = ("recover", "abort", "ok")
BIGGEST: Final = 1e12
"""Largest number that may be written down."""


class Expressions:
    """Checks expressions in front of what the local names are."""

    def __init__(self, scope: Scope, names: Names) -> None:
        self.scope = scope
        self.names = names

    def value(self, node: ast.expr, depth: int = 1) -> Value:
        """Return what an expression is.

        Raises:
            Refused: it is not allowed.
        """
        if depth > MAX_DEPTH:
            raise Refused(
                node, f"the expression is nested deeper than {MAX_DEPTH}; name a part of it"
            )
        value = self._value(node, depth + 1)
        if value.work > self.scope.max_work:
            raise Refused(node, too_much(value.work, self.scope.max_work))
        return value

    def wanted(self, node: ast.expr, kind: Kind, where: str, depth: int = 1) -> Value:
        """Return an expression that must be of one kind.

        Raises:
            Refused: it is of another one, or not allowed.
        """
        value = self.value(node, depth)
        if value.kind != kind:
            hint = instead(node, value, kind)
            raise Refused(
                node, f"{where} wants {WORDS[kind]}; {text_of(node)} is {WORDS[value.kind]}{hint}"
            )
        return value

    def settled(self, value: Value) -> str:
        """Return the code of a value that, when it is not finite, ends the call."""
        if value.known:
            return value.code
        if value.kind == "series":
            return f"settled({value.code})"
        return f"(t if (t := {value.code}) - t == 0.0 else unknown('a result'))"

    # ----------------------------------------------------------------------- nodes

    def _value(self, node: ast.expr, depth: int) -> Value:
        match node:
            case ast.Constant():
                return _constant(node)
            case ast.Name():
                return self._name(node)
            case ast.Attribute():
                return self._attribute(node)
            case ast.UnaryOp():
                return self._unary(node, depth)
            case ast.BinOp():
                return self._arithmetic(node, depth)
            case ast.BoolOp():
                return self._logic(node, depth)
            case ast.Compare():
                return self._comparison(node, depth)
            case ast.IfExp():
                return self._choice(node, depth)
            case ast.Call():
                return self._call(node, depth)
        raise foreign(node)

    def _name(self, node: ast.Name) -> Value:
        found = self.names.get(node.id)
        if isinstance(found, Value):
            return found
        if found is not None:
            raise Refused(node, found)
        if node.id in ("w", "p"):
            raise Refused(node, f"{node.id!r} stands alone; write {node.id}.<name>")
        if node.id in OPERATORS or node.id in VERDICTS:
            raise Refused(node, f"{node.id!r} is called: {node.id}(…)")
        known = [*self.names, *OPERATORS]
        hint = suggest(node.id, known)
        hint = f"; {hint}" if hint.startswith("did you") else ""
        raise Refused(node, f"the name {node.id!r} was never set{hint}")

    def _attribute(self, node: ast.Attribute) -> Value:
        match node.value:
            case ast.Name(id="w"):
                return self.scope.signal(node, node.attr)
            case ast.Name(id="p"):
                return self.scope.parameter(node, node.attr)
        raise Refused(node, f"only w.<signal> and p.<parameter> are allowed, not {text_of(node)}")

    def _unary(self, node: ast.UnaryOp, depth: int) -> Value:
        operand = self.value(node.operand, depth)
        if isinstance(node.op, ast.Not):
            if operand.kind == "condition":
                return Value("condition", f"(not {operand.code})", operand.work + STEP_WORK)
            if operand.kind == "conditions":
                return Value("conditions", f"(~{operand.code})", operand.work + SERIES_WORK)
            raise Refused(
                node,
                f"'not' wants a condition; {text_of(node.operand)} is "
                f"{WORDS[operand.kind]}{instead(node.operand, operand, 'condition')}",
            )
        if not isinstance(node.op, ast.USub | ast.UAdd):
            raise foreign(node, node.op)
        refuse_conditions(node.operand, operand, "a sign")
        sign = "-" if isinstance(node.op, ast.USub) else "+"
        if isinstance(operand.seconds, float):
            number = operand.seconds if sign == "+" else -operand.seconds
            return Value("number", f"({number!r})", seconds=number)
        if operand.axis:
            raise Refused(node, place_rule(node.operand))
        work = operand.work + (STEP_WORK if operand.kind == "number" else SERIES_WORK)
        return Value(operand.kind, f"({sign}{operand.code})", work, known=operand.known)

    def _arithmetic(self, node: ast.BinOp, depth: int) -> Value:
        symbol = ARITHMETIC.get(type(node.op))
        if symbol is None:
            raise foreign(node, node.op)
        left, right = self.value(node.left, depth), self.value(node.right, depth)
        refuse_conditions(node.left, left, f"'{symbol}'")
        refuse_conditions(node.right, right, f"'{symbol}'")
        axis = _axis_of_result(node, symbol, left, right)
        divisor = right.code
        if symbol == "/":  # an infinite divisor would hide itself behind a zero
            divisor = self.settled(right)
            if right.kind == "number":
                divisor = f"({divisor} or unknown('a division by zero'))"
        series = "series" in (left.kind, right.kind)
        self.scope.warns |= series
        work = left.work + right.work + (SERIES_WORK if series else STEP_WORK)
        if symbol == "/" and right.kind == "series" and not right.known:
            work += SERIES_WORK
        kind: Kind = "series" if series else "number"
        return Value(kind, f"({left.code} {symbol} {divisor})", work, axis, known=False)

    def _logic(self, node: ast.BoolOp, depth: int) -> Value:
        word = "and" if isinstance(node.op, ast.And) else "or"
        parts = [self.value(part, depth) for part in node.values]
        for part, value in zip(node.values, parts, strict=True):
            if value.kind in ("number", "series"):
                hint = instead(part, value, "condition")
                raise Refused(
                    part, f"'{word}' wants conditions; {text_of(part)} is {WORDS[value.kind]}{hint}"
                )
            if value.kind != parts[0].kind:
                raise Refused(
                    part,
                    f"'{word}' joins {WORDS[parts[0].kind]} and {WORDS[value.kind]}; "
                    "make the series a condition first: now(…), held(…) or once(…)",
                )
        kind = parts[0].kind
        symbol = word if kind == "condition" else {"and": "&", "or": "|"}[word]
        step = STEP_WORK if kind == "condition" else SERIES_WORK
        work = sum(value.work for value in parts) + step * (len(parts) - 1)
        return Value(kind, "(" + f" {symbol} ".join(value.code for value in parts) + ")", work)

    def _comparison(self, node: ast.Compare, depth: int) -> Value:
        for op in node.ops:
            if type(op) not in COMPARISONS:
                raise foreign(node, op)
        operands = [node.left, *node.comparators]
        values = [self.value(operand, depth) for operand in operands]
        for operand, value in zip(operands, values, strict=True):
            refuse_conditions(operand, value, "a comparison")
            if value.axis != values[0].axis:
                place = operand if value.axis else node.left
                raise Refused(operand, place_rule(place))
        series = any(value.kind == "series" for value in values)
        codes = [self.settled(value) for value in values]
        links = []
        for k, op in enumerate(node.ops):
            right = codes[k + 1]
            if k + 1 < len(node.ops):  # read once, compared twice
                codes[k + 1] = self.scope.fresh("m")
                right = f"({codes[k + 1]} := {right})"
            links.append(f"({codes[k]} {COMPARISONS[type(op)]} {right})")
        step = SERIES_WORK if series else STEP_WORK
        work = sum(value.work for value in values) + step * (2 * len(links) - 1)
        work += sum(SERIES_WORK for value in values if value.kind == "series" and not value.known)
        code = (
            links[0] if len(links) == 1 else "(" + (" & " if series else " and ").join(links) + ")"
        )
        return Value("conditions" if series else "condition", code, work)

    def _choice(self, node: ast.IfExp, depth: int) -> Value:
        test = self.wanted(node.test, "condition", "'if'", depth)
        yes, no = self.value(node.body, depth), self.value(node.orelse, depth)
        if yes.kind != no.kind or yes.kind not in ("number", "condition"):
            raise Refused(
                node,
                f"'if … else …' chooses between two numbers or two conditions, not "
                f"{WORDS[yes.kind]} and {WORDS[no.kind]}",
            )
        if yes.axis != no.axis:
            raise Refused(node, place_rule(node.body if yes.axis else node.orelse))
        code = f"({yes.code} if {test.code} else {no.code})"
        work = test.work + max(yes.work, no.work) + STEP_WORK
        return Value(yes.kind, code, work, yes.axis, yes.known and no.known)

    # ----------------------------------------------------------------------- calls

    def _call(self, node: ast.Call, depth: int) -> Value:
        if not isinstance(node.func, ast.Name):
            raise Refused(node, f"only operators are called, not {text_of(node.func)}")
        name = node.func.id
        if name in VERDICTS:
            raise Refused(node, f"{name}(…) is only returned from check, as in: return {name}(…)")
        if name not in OPERATORS:
            hint = suggest(name, OPERATORS)
            hint = hint if hint.startswith("did you") else "zetta critics docs lists them"
            raise Refused(node, f"there is no operator {name!r}; {hint}")
        return operator_call(self, node, OPERATORS[name], depth)


def _constant(node: ast.Constant) -> Value:
    match node.value:
        case bool():
            return Value("condition", repr(node.value))
        case int() | float():
            try:
                number = float(node.value)
            except OverflowError:
                number = math.inf
            if not abs(number) <= BIGGEST:
                raise Refused(node, f"the number is larger than {BIGGEST:g}")
            return Value("number", repr(number), seconds=number)
        case str() | bytes():
            raise Refused(node, "a text is only the reason of recover(…) or abort(…)")
        case complex():
            raise Refused(node, "complex numbers are not part of the language")
    raise Refused(node, f"{node.value!r} is not part of the language")


def _axis_of_result(node: ast.BinOp, symbol: str, left: Value, right: Value) -> str:
    """Return along which axis a sum is a place: place + way is a place, place - place a way."""
    if symbol == "+" and not (left.axis and right.axis):
        return left.axis or right.axis
    if symbol == "-" and left.axis and right.axis in ("", left.axis):
        return "" if right.axis else left.axis
    if left.axis or right.axis:
        raise Refused(node, place_rule(node.left if left.axis else node.right))
    return ""
