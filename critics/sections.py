"""Splits a program into its docstring, its constants and its functions."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from zetta.critics.problems import Problem, Refused
from zetta.critics.statements import STATEMENTS
from zetta.critics.values import LONGEST_WINDOW_S, MAX_STATEMENTS, Scope
from zetta.runtime.errors import suggest

Constant: TypeAlias = "str | float"

SKILL_NAME: Final = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
CONSTANTS: Final[Mapping[str, str]] = {
    "WINDOW_S": "how far back it looks, in seconds",
    "SKILL": "the skill that recovers",
    "REFRACTORY_S": "how long it stays silent after it fired, in seconds",
    "ARMED_WHEN": "a condition in quotes: it is asked only while this holds",
    "MAX_AGE_S": "how old a sighting may be before it counts as unknown, in seconds",
}
"""Constants of a program and what each says."""
LIMITS: Final[Mapping[str, tuple[float, float]]] = {
    "WINDOW_S": (0.0, LONGEST_WINDOW_S), "REFRACTORY_S": (0.0, 3600.0), "MAX_AGE_S": (0.0, 60.0),
}  # fmt: skip


@dataclass(slots=True)
class Sections:
    """A program, taken apart."""

    docstring: str = ""
    constants: dict[str, Constant] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)
    """Where each constant stands."""
    functions: dict[str, ast.FunctionDef] = field(default_factory=dict)

    def number(self, name: str) -> float | None:
        """Return a constant that is a number, or None when the program does not set it."""
        value = self.constants.get(name)
        return value if isinstance(value, float) else None

    def text(self, name: str) -> str | None:
        """Return a constant that is a text, or None when the program does not set it."""
        value = self.constants.get(name)
        return value if isinstance(value, str) else None


def split(
    tree: ast.Module, scope: Scope, functions: Mapping[str, str], constants: tuple[str, ...]
) -> Sections:
    """Return the parts of a program and tell `scope` what is wrong with them.

    Args:
        tree: the program.
        scope: takes the problems.
        functions: arguments by the name of each function that must be there, such as "w, p".
        constants: names that may be set.

    Raises:
        Refused: the program is so large that it is not looked at.
    """
    statements = [node for node in ast.walk(tree) if isinstance(node, ast.stmt)]
    if len(statements) > MAX_STATEMENTS:
        last = sorted(node.lineno for node in statements)[MAX_STATEMENTS]
        raise Refused(last, f"there are {len(statements)} statements, at most {MAX_STATEMENTS}")
    sections = Sections()
    for node in tree.body:
        try:
            _take(node, sections, functions, constants)
        except Refused as refused:
            scope.tell(refused)
    if not sections.docstring.strip() and not any(p.line == 1 for p in scope.problems):
        scope.problems.append(
            Problem(1, "it begins with no docstring; say what it watches and why", scope.path)
        )
    for name, arguments in functions.items():
        if name not in sections.functions and not _defines(tree, name):
            last = tree.body[-1].end_lineno or 1 if tree.body else 1
            scope.problems.append(
                Problem(last, f"there is no function {name}({arguments})", scope.path)
            )
    return sections


def _take(
    node: ast.stmt, sections: Sections, functions: Mapping[str, str], constants: tuple[str, ...]
) -> None:
    match node:
        case ast.Expr(value=ast.Constant(value=str(text))) if not (
            sections.docstring or sections.constants or sections.functions
        ):
            sections.docstring = text
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            if name not in constants:
                raise Refused(
                    node,
                    f"{name!r} is none of the constants of this program; "
                    f"{suggest(name, constants)}",
                )
            if name in sections.constants:
                raise Refused(node, f"{name} is set twice")
            sections.constants[name] = _constant(name, value)
            sections.lines[name] = node.lineno
        case ast.FunctionDef(name=name) if name in functions:
            if name in sections.functions:
                raise Refused(node, f"the function {name!r} is there twice")
            sections.functions[name] = node
            _check_head(node, functions[name])
        case ast.FunctionDef(name=name):
            raise Refused(
                node, f"the function {name!r} is none of this program's; {suggest(name, functions)}"
            )
        case ast.AsyncFunctionDef():
            raise Refused(node, "async is not part of the language")
        case ast.Assign():
            raise Refused(node, "one constant is set at a time, as in: WINDOW_S = 1.0")
        case _:
            what = STATEMENTS.get(type(node), "a statement outside of the functions")
            raise Refused(node, f"{what} is not part of the language")


def _constant(name: str, node: ast.expr) -> Constant:
    value = node.value if isinstance(node, ast.Constant) else None
    if name in LIMITS:
        low, high = LIMITS[name]
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise Refused(node, f"{name} is a number: {CONSTANTS[name]}")
        if not low <= value <= high:
            raise Refused(node, f"{name} lies between {low:g} and {high:g}")
        if name == "WINDOW_S" and value == 0.0:
            raise Refused(node, "WINDOW_S is greater than 0")
        return float(value)
    if not isinstance(value, str):
        raise Refused(node, f"{name} is a text in quotes: {CONSTANTS[name]}")
    if name == "SKILL" and not SKILL_NAME.fullmatch(value):
        raise Refused(node, f"SKILL names a skill in small letters and '-', not {value[:40]!r}")
    return value


def _check_head(node: ast.FunctionDef, arguments: str) -> None:
    """Refuse a function whose first line is not exactly `def name(arguments):`."""
    if node.decorator_list:
        raise Refused(node.decorator_list[0], "decorators are not part of the language")
    if getattr(node, "type_params", ()):
        raise Refused(node, "type parameters are not part of the language")
    args = node.args
    every = [*args.posonlyargs, *args.args, *args.kwonlyargs]
    if args.defaults or any(default is not None for default in args.kw_defaults):
        raise Refused(
            node, f"default arguments are not part of the language: def {node.name}({arguments})"
        )
    if node.returns is not None or any(arg.annotation is not None for arg in every):
        raise Refused(
            node, f"annotations are not part of the language: def {node.name}({arguments})"
        )
    plain = not (args.posonlyargs or args.kwonlyargs or args.vararg or args.kwarg)
    if not plain or ", ".join(arg.arg for arg in every) != arguments:
        raise Refused(node, f"it is written: def {node.name}({arguments}):")


def _defines(tree: ast.Module, name: str) -> bool:
    """Return whether the program tries to define a function, in whatever way."""
    return any(
        isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name
        for node in ast.walk(tree)
    )
