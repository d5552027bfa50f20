"""What ties a draft to the scenes it was made from: identifiers, clocks, tables of constants.

Places in the world compared with a number are refused by the language itself. What is looked for
here is what remains: a scene's name or seed in any file, signals that tell how late it is in the
episode, a quantity cut into narrow slices, more numbers than a rule needs, and parameters without
room to move.
"""

from __future__ import annotations

import ast
import math
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from zetta.critics.parameters import Parameter
from zetta.critics.values import MAX_DEPTH
from zetta.runtime.signals import OTHER, SIGNALS, SignalSpec

CLOCKS: Final = frozenset({"elapsed", "budget_used", "skill_share"})
"""Signals that count the ticks of the episode: what is done by the clock is learnt by heart."""
TELLING: Final = 4
"""Characters of a text, or significant digits of a number, below which it is nobody's secret."""
PLAIN_NUMBERS: Final = frozenset({0.0, 0.5, 1.0, 2.0})
"""Not counted as constants: no, halfway, yes, twice."""
VIEWS: Final = frozenset({"now", "ago", "mean", "minimum", "maximum"})
"""Operators whose value is one that the signal itself might have."""
_NUMBER: Final = re.compile(r"(?<![\w.])[-+]?(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
_HEX: Final = re.compile(r"(?<![0-9a-zA-Z])(?:0x)?([0-9a-f]{8,128})(?![0-9a-zA-Z])", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class LeakRules:
    """How much looks like learning by heart."""

    slices: int = 4
    """So many narrow slices of one quantity are a table."""
    narrow: float = 0.02
    """A slice is narrow below this share of what the signal's sensible values span."""
    constants: int = 24
    """Most distinct numbers written into critic and recovery."""
    room: float = 0.05
    """Least width of a parameter's bounds, as a share of the larger one."""


def secret_problems(
    files: Mapping[str, str], secrets: Sequence[str | float]
) -> Iterator[tuple[str, int, str]]:
    """Yield file, line and reason wherever a secret stands, whatever the file.

    Args:
        files: text by path.
        secrets: names, digests, seeds and constants of scenes. Texts of fewer than `TELLING`
            characters and numbers of fewer than `TELLING` significant digits are left out: they
            occur by chance. Numbers count as equal when one is the other, rounded.
    """
    words = [s.lower() for s in secrets if isinstance(s, str) and len(s) >= TELLING]
    numbers = [float(s) for s in secrets if not isinstance(s, str) and math.isfinite(s)]
    seeds = {
        spelled
        for s in secrets
        if isinstance(s, int) and len(str(abs(s))) >= TELLING
        for spelled in (str(abs(s)), f"{abs(s):x}")
        if len(spelled) >= TELLING
    }
    for path, text in files.items():
        for line, content in enumerate(text.splitlines(), 1):
            if _tells(content.lower(), words, seeds, () if _logged(path) else numbers):
                # The reason goes back to the author, so it does not say what was recognised.
                yield path, line, "this names a scene, a seed or a constant of one"


def clock_problems(path: str, tree: ast.Module) -> Iterator[tuple[str, int, str]]:
    """Yield wherever a program reads how late it is in the episode."""
    for node in _signals_in(tree):
        name = node.attr.removeprefix(OTHER)
        if name in CLOCKS:
            yield (
                path, node.lineno,
                f"{node.attr} counts the ticks of the episode; say what has to be seen instead",
            )  # fmt: skip


def table_problems(
    path: str,
    tree: ast.Module,
    parameters: Mapping[str, Parameter],
    rules: LeakRules,
    signals: Mapping[str, SignalSpec] = SIGNALS,
) -> Iterator[tuple[str, int, str]]:
    """Yield each quantity that a program cuts into narrow slices.

    Every number that a quantity is compared with is a cut; two cuts that are nearly the same, and
    every `==`, are a slice. Local names are followed to what they were set to.
    """
    for function in _functions(tree):
        cuts: dict[str, dict[float, int]] = defaultdict(dict)
        equal: dict[str, int] = defaultdict(int)
        spans: dict[str, float] = {}
        names = _assigned(function)
        for node in _in_source_order(function):
            _note_number(node, names, parameters)
            for quantity, values, exact in _cuts_of(node, names, parameters):
                key = ast.dump(quantity)
                spans[key] = _span(quantity, signals)
                equal[key] += exact
                for value in values:
                    cuts[key].setdefault(value, node.lineno)
        for key, found in cuts.items():
            ordered = sorted(found)
            near = rules.narrow * spans[key]
            close = sum(b - a <= near for a, b in pairwise(ordered))
            if close + equal[key] >= rules.slices:
                yield (
                    path, min(found.values()),
                    f"one quantity is cut into {close + equal[key]} narrow slices, which is a "
                    f"table of cases; at most {rules.slices - 1}",
                )  # fmt: skip


def constant_problems(
    trees: Mapping[str, ast.Module], rules: LeakRules
) -> Iterator[tuple[str, int, str]]:
    """Yield the first number beyond those that a rule may have."""
    seen: set[float] = set()
    for path, tree in trees.items():
        for node in _numbers_in(tree):
            seen.add(abs(float(node.value)))  # type: ignore[arg-type]
            if len(seen - PLAIN_NUMBERS) > rules.constants:
                yield (
                    path, node.lineno,
                    f"critic and recovery hold more than {rules.constants} different numbers",
                )  # fmt: skip
                return


def room_problems(
    path: str, text: str, parameters: Mapping[str, Parameter], rules: LeakRules
) -> Iterator[tuple[str, int, str]]:
    """Yield parameters whose bounds are so narrow that they are constants."""
    for name, parameter in parameters.items():
        most = max(abs(parameter.low), abs(parameter.high))
        if parameter.high - parameter.low < rules.room * most or most == 0.0:
            yield (
                path, line_of_table(text, name),
                f"{name!r} may go from {parameter.low:g} to {parameter.high:g}, which makes it a "
                f"constant; its bounds lie apart by at least {100 * rules.room:g} % of the larger",
            )  # fmt: skip


def line_of_table(text: str, name: str) -> int:
    """Return the line where a parameter's table begins, or 1."""
    lines = enumerate(text.splitlines(), 1)
    return next((k for k, line in lines if re.match(rf"\s*\[\s*{name}\s*\]", line)), 1)


# --------------------------------------------------------------------------- secrets


def _logged(path: str) -> bool:
    """Say whether a file holds logged values, in which any number may stand."""
    return path.startswith("replay/")


def _tells(line: str, words: Sequence[str], seeds: set[str], numbers: Sequence[float]) -> bool:
    if any(word in line for word in words):
        return True
    for part in _HEX.findall(line):
        if any(word.startswith(part.lower()) for word in words) or part.lower() in seeds:
            return True
    for token in _NUMBER.findall(line):
        plain = token.replace("_", "").lstrip("+-")
        if plain in seeds or any(_rounds_to(number, plain) for number in numbers):
            return True
    return False


def _rounds_to(secret: float, token: str) -> bool:
    """Say whether a written number is a secret one, or that one rounded; the sign is ignored.

    >>> _rounds_to(0.123456, "0.1235"), _rounds_to(0.123456, "0.12"), _rounds_to(-7351.0, "7351")
    (True, False, True)
    """
    digits = token.lower().split("e")[0].replace(".", "").lstrip("0")
    if len(digits.rstrip("0")) < TELLING:
        return False
    value = float(token)
    return f"{abs(secret):.{len(digits) - 1}e}" == f"{value:.{len(digits) - 1}e}"


# --------------------------------------------------------------------------- programs


def _functions(tree: ast.Module) -> list[ast.AST]:
    """Return the functions of a program, and the condition of `ARMED_WHEN`."""
    found: list[ast.AST] = []
    for node in tree.body:
        match node:
            case ast.FunctionDef():
                found.append(node)
            case ast.Assign(
                targets=[ast.Name(id="ARMED_WHEN")], value=ast.Constant(value=str(text))
            ):
                armed = ast.parse(text, mode="eval")
                for part in ast.walk(armed):
                    if hasattr(part, "lineno"):
                        part.lineno = node.lineno
                found.append(armed)
    return found


def _signals_in(tree: ast.Module) -> Iterator[ast.Attribute]:
    for function in _functions(tree):
        for node in ast.walk(function):
            match node:
                case ast.Attribute(value=ast.Name(id="w")):
                    yield node


def _numbers_in(tree: ast.Module) -> Iterator[ast.Constant]:
    for function in _functions(tree):
        for node in ast.walk(function):
            if isinstance(node, ast.Constant) and type(node.value) in (int, float):
                yield node


def _assigned(function: ast.AST) -> dict[str, ast.expr]:
    """Return what each local name was set to; a name that is set twice stands for itself."""
    found: dict[str, ast.expr] = {}
    twice = set()
    for node in ast.walk(function):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                if name in found:
                    twice.add(name)
                found[name] = value
            case ast.AugAssign(target=ast.Name(id=name)):
                twice.add(name)
    return {name: value for name, value in found.items() if name not in twice}


def _in_source_order(function: ast.AST) -> list[ast.expr | ast.stmt]:
    placed = [n for n in ast.walk(function) if isinstance(n, ast.expr | ast.stmt)]
    return sorted(placed, key=lambda node: (node.lineno, node.col_offset))


def _note_number(
    node: ast.AST, names: dict[str, ast.expr], parameters: Mapping[str, Parameter]
) -> None:
    """Follow a name that is set to one number after another."""
    match node:
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            number = _number(value, parameters, names)
            if number is not None:
                names[name] = ast.Constant(number)


def _cuts_of(
    node: ast.AST, names: Mapping[str, ast.expr], parameters: Mapping[str, Parameter]
) -> Iterator[tuple[ast.expr, tuple[float, ...], int]]:
    """Yield what is compared with numbers, the numbers, and 1 for an `==`."""
    match node:
        case ast.Call(func=ast.Name(id="crossed"), args=[quantity, limit, *_]):
            node = ast.Compare(quantity, [ast.Gt()], [limit])
        case ast.Compare():
            pass
        case _:
            return
    sides = [_followed(side, names) for side in (node.left, *node.comparators)]
    for (one, other), op in zip(pairwise(sides), node.ops, strict=True):
        exact = int(isinstance(op, ast.Eq | ast.NotEq))
        for quantity, limit in ((one, other), (other, one)):
            value = _number(limit, parameters, names)
            if value is None or _number(quantity, parameters, names) is not None:
                continue
            for centre, cut in _peeled(quantity, value, names, parameters):
                yield centre, cut, exact


def _peeled(
    node: ast.expr,
    value: float,
    names: Mapping[str, ast.expr],
    parameters: Mapping[str, Parameter],
) -> Iterator[tuple[ast.expr, tuple[float, ...]]]:
    """Yield what is compared once numbers, `abs` and views of one signal are taken off, and where.

    `abs(now(w.a) - 0.3) < 0.01` cuts `w.a` at 0.29 and 0.31.
    """
    cuts = [value]
    node = _followed(node, names)
    for _ in range(MAX_DEPTH):
        match node:
            case ast.Call(func=ast.Name(id="abs"), args=[inner]):
                cuts = [sign * cut for cut in cuts for sign in (-1.0, 1.0)]
            case ast.Call(func=ast.Name(id=name), args=[inner, *_]) if name in VIEWS:
                pass
            case ast.BinOp(left=left, op=op, right=right):
                one, other = (_number(s, parameters, names) for s in (left, right))
                number = other if one is None else one
                if number is None or (one is None) == (other is None):
                    break
                inner = left if one is None else right
                cuts = [_solved(cut, op, number, one is None) for cut in cuts]
            case _:
                break
        node = _followed(inner, names)
    yield node, tuple(cut for cut in cuts if math.isfinite(cut))


def _solved(cut: float, op: ast.operator, number: float, on_the_right: bool) -> float:
    """Return the quantity at which `quantity op number`, or `number op quantity`, is `cut`."""
    match op:
        case ast.Add():
            return cut - number
        case ast.Sub():
            return cut + number if on_the_right else number - cut
        case ast.Mult():
            return cut / number if number else math.nan
        case ast.Div() if on_the_right:
            return cut * number
        case ast.Div():
            return number / cut if cut else math.nan
    return math.nan


def _followed(node: ast.expr, names: Mapping[str, ast.expr]) -> ast.expr:
    for _ in range(len(names) + 1):
        if not (isinstance(node, ast.Name) and node.id in names):
            return node
        node = names[node.id]
    return node


def _number(
    node: ast.expr, parameters: Mapping[str, Parameter], names: Mapping[str, ast.expr]
) -> float | None:
    """Return the value of a literal, of a parameter's default, or of a sum or product of such."""
    node = _followed(node, names)
    match node:
        case ast.Constant(value=int() | float() as value):
            return float(value)
        case ast.Attribute(value=ast.Name(id="p"), attr=name) if name in parameters:
            return parameters[name].default
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            inner = _number(operand, parameters, names)
            return None if inner is None else -inner
        case ast.BinOp(left=left, op=op, right=right):
            one = _number(left, parameters, names)
            # Asked in this order, names that double each other cost no more than their length.
            other = None if one is None else _number(right, parameters, names)
            if one is None or other is None:
                return None
            match op:
                case ast.Add():
                    return one + other
                case ast.Sub():
                    return one - other
                case ast.Mult():
                    return one * other
                case ast.Div() if other:
                    return one / other
    return None


def _span(node: ast.expr, signals: Mapping[str, SignalSpec]) -> float:
    """Return what the sensible values of the first signal in an expression span, or 1."""
    for part in ast.walk(node):
        match part:
            case ast.Attribute(value=ast.Name(id="w"), attr=name) if name in signals:
                return signals[name].high - signals[name].low
    return 1.0
