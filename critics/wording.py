"""How the checker says what is wrong, and what to write instead."""

from __future__ import annotations

import ast
from typing import Final

from zetta.critics.problems import Refused
from zetta.critics.values import READ_WORK, SERIES_WORK, STEP_WORK, Kind, Value

FOREIGN: Final = {
    ast.ListComp: "a comprehension", ast.SetComp: "a comprehension",
    ast.DictComp: "a comprehension", ast.GeneratorExp: "a generator",
    ast.Lambda: "a lambda", ast.JoinedStr: "an f-string",
    ast.NamedExpr: "':='", ast.Await: "await", ast.Yield: "yield", ast.YieldFrom: "yield from",
    ast.Starred: "'*'", ast.Subscript: "an index", ast.List: "a list", ast.Tuple: "a tuple",
    ast.Dict: "a dictionary", ast.Set: "a set", ast.Slice: "a slice",
    ast.Pow: "'**'", ast.Mod: "'%'", ast.FloorDiv: "'//'", ast.LShift: "'<<'", ast.RShift: "'>>'",
    ast.BitAnd: "'&'", ast.BitOr: "'|'", ast.BitXor: "'^'", ast.MatMult: "'@'", ast.Invert: "'~'",
    ast.Is: "'is'", ast.IsNot: "'is not'", ast.In: "'in'", ast.NotIn: "'not in'",
}  # fmt: skip
INSTEAD: Final = {
    ast.BitAnd: "; write 'and'", ast.BitOr: "; write 'or'", ast.Invert: "; write 'not'",
    ast.Is: "; write '=='", ast.Pow: "; write a product",
}  # fmt: skip


def foreign(node: ast.expr, part: ast.AST | None = None) -> Refused:
    """Return the refusal of what is no part of the language, by its usual name.

    Args:
        node: whose line is named.
        part: what is foreign, when it is not the node itself but its operator.
    """
    kind = type(part or node)
    what = FOREIGN.get(kind, f"'{kind.__name__}'")
    return Refused(node, f"{what} is not part of the language{INSTEAD.get(kind, '')}")


def text_of(node: ast.AST, most: int = 40) -> str:
    """Return how an expression reads, for a message."""
    try:
        text = ast.unparse(node)
    except ValueError:  # a number with thousands of digits
        return "this"
    return text if len(text) <= most else text[: most - 1] + "…"


def too_much(work: int, most: int) -> str:
    """Return why so much work is refused."""
    return (
        f"this takes {work} units of work, at most {most} are allowed (a step between numbers "
        f"counts {STEP_WORK}, reading a signal {READ_WORK}, a step over a window {SERIES_WORK})"
    )


def place_rule(node: ast.AST) -> str:
    """Return why a place in the world may not be used so."""
    return (
        f"{text_of(node)} is a place in the world, which belongs to one scene; it may only be "
        "compared with, or subtracted from, another place along the same axis, as in "
        "now(w.ee_z) < now(w.object_z) + p.near, or use distances such as w.object_above"
    )


def instead(node: ast.expr, value: Value, kind: Kind) -> str:
    """Return what to write instead, where that is easily said."""
    text = text_of(node)
    match value.kind, kind:
        case "series", "number":
            return f"; write now({text})"
        case "series", "condition":
            return f"; write now({text}) > a number"
        case "series", "conditions":
            return f"; compare it, as in {text} > a number"
        case "number", "condition":
            return f"; compare it, as in {text} > a number"
        case "conditions", "condition":
            return f"; write now({text}), held({text}) or once({text})"
        case "number", "series" if text.startswith("now("):
            return f"; write {text[4:-1]}"
    return ""
