"""Checks the call of an operator and turns it into code."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Protocol

from zetta.critics.operators import Argument, Operator
from zetta.critics.parameters import Parameter
from zetta.critics.problems import Refused
from zetta.critics.values import (
    READ_WORK,
    SERIES_WORK,
    STEP_WORK,
    TICKS,
    WORDS,
    Kind,
    Scope,
    Value,
)
from zetta.critics.wording import foreign, place_rule, text_of
from zetta.runtime.errors import suggest


class Checker(Protocol):
    """What checks the arguments."""

    scope: Scope

    def value(self, node: ast.expr, depth: int = 1) -> Value:
        """Return what an expression is."""
        ...

    def wanted(self, node: ast.expr, kind: Kind, where: str, depth: int = 1) -> Value:
        """Return an expression that must be of one kind."""
        ...

    def settled(self, value: Value) -> str:
        """Return the code of a value that, when it is not finite, ends the call."""
        ...


def operator_call(checker: Checker, node: ast.Call, operator: Operator, depth: int) -> Value:
    """Return what an operator gives.

    Raises:
        Refused: its arguments are not what it takes.
    """
    given = arranged(node, operator.name, operator.arguments)
    return (_window if operator.windowed else _each)(checker, node, operator, given, depth)


def _each(
    checker: Checker,
    node: ast.Call,
    operator: Operator,
    given: Sequence[ast.expr | None],
    depth: int,
) -> Value:
    """Apply an operator tick by tick, to numbers or series."""
    nodes = [part for part in given if part is not None]
    values = [checker.value(part, depth) for part in nodes]
    for part, value in zip(nodes, values, strict=True):
        refuse_conditions(part, value, operator.name)
        if value.axis != values[0].axis or (value.axis and operator.place == "refuse"):
            raise Refused(part, place_rule(part if value.axis else nodes[0]))
    series = any(value.kind == "series" for value in values)
    checker.scope.warns |= series
    # The smaller of infinity and a number would hide the infinity.
    codes = ", ".join(checker.settled(value) for value in values)
    step = SERIES_WORK if series else STEP_WORK
    work = sum(value.work for value in values) + 2 * step
    work += SERIES_WORK * sum(v.kind == "series" and not v.known for v in values)
    code = f"{'s' if series else 'x'}_{operator.name}({codes})"
    kind: Kind = "series" if series else "number"
    return Value(kind, code, work, values[0].axis, known=operator.name != "hypot")


def _window(
    checker: Checker,
    node: ast.Call,
    operator: Operator,
    given: Sequence[ast.expr | None],
    depth: int,
) -> Value:
    """Apply an operator to the window of one or two series."""
    values: list[Value] = []
    axis = ""
    for argument, part in zip(operator.arguments, given, strict=True):
        if argument.kind == "seconds" or part is None:
            continue
        value = _argument(checker, operator, argument, part, depth)
        if argument.kind == "level" and value.axis != values[0].axis:
            raise Refused(part, place_rule(part if value.axis else given[0] or part))
        values.append(value)
        axis = value.axis
    if operator.name == "now":
        return _now(values[0])
    if axis and operator.place == "refuse":
        raise Refused(node, place_rule(node))
    ticks = checker.scope.ticks_name(
        _seconds(checker, node, operator, given[-1]), operator.least_ticks
    )
    codes = [checker.settled(value).replace(TICKS, ticks) for value in values]
    if operator.timed:
        codes.append(f"d{ticks[1:]}")
    checker.scope.warns |= operator.name in ("mean", "path_length")
    work = sum(value.work for value in values) + SERIES_WORK * operator.passes
    work += SERIES_WORK * sum(value.kind == "series" and not value.known for value in values)
    kind: Kind = "condition" if operator.result == "condition" else "number"
    kept = axis if operator.place == "keep" else ""
    code = f"f_{operator.name}({', '.join(codes)})"
    return Value(kind, code, work, kept, known=kind == "condition")


def _now(value: Value) -> Value:
    if value.signal and value.work == READ_WORK:  # most frequent, so it has a way of its own
        code = f"(t if (t := last({value.signal!r}, 1).item()) - t == 0.0 "
        code += f"else unknown({value.signal!r}))"
        return Value("number", code, value.work, value.axis)
    code = value.code.replace(TICKS, "1") + ".item()"
    if value.kind == "conditions":
        return Value("condition", code, value.work + STEP_WORK)
    return Value("number", code, value.work + STEP_WORK, value.axis, known=value.known)


def _argument(
    checker: Checker, operator: Operator, argument: Argument, part: ast.expr, depth: int
) -> Value:
    where = f"{operator.signature}: {argument.name}"
    match argument.kind:
        case "series":
            return checker.wanted(part, "series", where, depth)
        case "condition":
            return checker.wanted(part, "conditions", where, depth)
        case "level":
            return checker.wanted(part, "number", where, depth)
    value = checker.value(part, depth)
    if value.kind not in ("series", "conditions"):
        raise Refused(
            part, f"{where} wants a series; {text_of(part)} is {WORDS[value.kind]} already"
        )
    return value


def _seconds(
    checker: Checker, node: ast.Call, operator: Operator, part: ast.expr | None
) -> float | Parameter:
    """Return the length of a window, which is known before the program runs."""
    longest = checker.scope.window_s
    if part is None:
        return longest
    seconds = checker.value(part).seconds
    if seconds is None:
        raise Refused(
            part, f"{operator.signature}: seconds is a number or p.<name>, not {text_of(part)}"
        )
    low, high = seconds, seconds
    if isinstance(seconds, Parameter):
        if seconds.unit not in ("", "s"):
            raise Refused(part, f"p.{seconds.name} is in {seconds.unit}; seconds are wanted")
        low, high = seconds.low, seconds.high
    if not 0.0 <= low <= high <= longest:  # type: ignore[operator]
        bound = f"p.{seconds.name} reaches" if isinstance(seconds, Parameter) else "this is"
        raise Refused(
            part, f"{bound} {high:g} s from {low:g} s; a window has 0 to WINDOW_S = {longest:g} s"
        )
    return seconds


def refuse_conditions(node: ast.expr, value: Value, where: str) -> None:
    """Do nothing when `value` is a number or a series of numbers.

    Raises:
        Refused: it is a condition or a series of conditions.
    """
    if value.kind in ("condition", "conditions"):
        raise Refused(node, f"{where} wants numbers; {text_of(node)} is {WORDS[value.kind]}")


def arranged(
    node: ast.Call, name: str, arguments: Sequence[Argument]
) -> tuple[ast.expr | None, ...]:
    """Return what is given for each argument; only `seconds` may be left out.

    Raises:
        Refused: too many, too few, twice or unknown.
    """
    names = [argument.name for argument in arguments]
    given = by_name(node, name, names)
    for argument in arguments:
        if argument.name not in given and argument.kind != "seconds":
            raise Refused(node, f"{name}({', '.join(names)}): {argument.name} is missing")
    return tuple(given.get(each) for each in names)


def by_name(node: ast.Call, name: str, names: Sequence[str]) -> dict[str, ast.expr]:
    """Return the arguments of a call by their names.

    Raises:
        Refused: too many, twice, unknown, or with a star.
    """
    signature = f"{name}({', '.join(names)})"
    if len(node.args) > len(names):
        raise Refused(
            node, f"{signature} takes no more than {len(names)} values; got {len(node.args)}"
        )
    for part in node.args:
        if isinstance(part, ast.Starred):
            raise foreign(part)
    given = dict(zip(names, node.args, strict=False))
    for keyword in node.keywords:
        if keyword.arg is None:
            raise Refused(keyword.value, "'**' is not part of the language")
        if keyword.arg not in names:
            raise Refused(
                keyword.value,
                f"{signature} has no {keyword.arg!r}; "
                f"{suggest(keyword.arg, names) if names else 'it takes nothing'}",
            )
        if keyword.arg in given:
            raise Refused(keyword.value, f"{signature} gets {keyword.arg!r} twice")
        given[keyword.arg] = keyword.value
    return given
