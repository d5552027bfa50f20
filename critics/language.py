"""The language of critics: checks a program and returns what there is to compile.

A critic is a docstring, constants and one function `check(w, p)` that returns `recover(reason)`,
`abort(reason)` or `ok()` on every way through it. It can reach nothing, ends after a bounded
number of steps, and says nothing while a value that it reads is unknown.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from zetta.critics.expressions import VERDICTS, Expressions
from zetta.critics.parameters import Parameter
from zetta.critics.problems import Problem, Refused, in_order, parse_program
from zetta.critics.sections import Sections, split
from zetta.critics.statements import Flow, Statements, indented
from zetta.critics.values import Scope, level_of
from zetta.critics.wording import text_of, too_much
from zetta.runtime.core import Sensing
from zetta.runtime.signals import SignalSpec

CRITIC_CONSTANTS: Final = ("WINDOW_S", "SKILL", "REFRACTORY_S", "ARMED_WHEN", "MAX_AGE_S")
MAX_REASON: Final = 200
"""Longest reason of a verdict, characters."""
PROLOGUE: Final = ("last = window.last", "valid = window.valid_for")


@dataclass(frozen=True, slots=True)
class Answer:
    """One verdict that a critic may give."""

    decision: Literal["recover", "abort"]
    reason: str


@dataclass(frozen=True, slots=True)
class CheckedCritic:
    """A critic that passed every check, and the code that runs it."""

    source: str
    docstring: str
    window_s: float
    skill: str | None
    refractory_s: float
    armed_when: str | None
    level: Sensing
    signals: tuple[str, ...]
    answers: tuple[Answer, ...]
    """What the code answers with: 0 is `ok()`, k the k-th of these."""
    code: str = field(repr=False)
    """Defines `check(window) -> int` and `armed(window) -> bool`."""
    ticks: Mapping[str, tuple[float | str, int]] = field(repr=False)
    """Windows by name in the code: seconds, or the parameter that holds them, and least ticks."""
    warns: bool = field(repr=False)
    """Whether numpy may meet an overflow or a division by zero in it."""
    work: int = 0
    """Of the most laborious way through it."""


class CriticStatements(Statements):
    """The body of `check`."""

    def __init__(self, scope: Scope) -> None:
        super().__init__(scope, "check")
        self.answers: list[Answer] = []

    def returned(self, node: ast.Return, expressions: Expressions) -> Flow:
        """Check that a verdict is returned.

        Raises:
            Refused: it is none.
        """
        match node.value:
            case ast.Call(func=ast.Name(id="ok"), args=[], keywords=[]):
                return Flow(["return 0"], falls=False)
            case ast.Call(func=ast.Name(id="recover" | "abort" as decision), args=[reason]) if (
                not node.value.keywords
            ):
                answer = Answer(decision, _reason(reason))
                if answer not in self.answers:
                    self.answers.append(answer)
                return Flow([f"return {self.answers.index(answer) + 1}"], falls=False)
            case ast.Call(func=ast.Name(id=name)) if name in VERDICTS:
                wanted = "ok()" if name == "ok" else f'{name}("why")'
                raise Refused(node, f"write: return {wanted}")
        got = "nothing" if node.value is None else text_of(node.value)
        raise Refused(node, f'check returns ok(), recover("why") or abort("why"); got {got}')


def check_critic(
    source: str | bytes,
    path: str,
    signals: Mapping[str, SignalSpec],
    parameters: Mapping[str, Parameter],
) -> tuple[Problem, ...]:
    """Return everything that is wrong with a critic; nothing is when it is empty."""
    checked = analyse_critic(source, path, signals, parameters)
    return checked if isinstance(checked, tuple) else ()


def analyse_critic(
    source: str | bytes,
    path: str,
    signals: Mapping[str, SignalSpec],
    parameters: Mapping[str, Parameter],
) -> CheckedCritic | tuple[Problem, ...]:
    """Return a checked critic, or what is wrong with it."""
    scope = Scope(path, signals, parameters)
    try:
        tree = parse_program(source)
        parts = split(tree, scope, {"check": "w, p"}, CRITIC_CONSTANTS)
    except Refused as refused:
        scope.tell(refused)
        return in_order(scope.problems)
    _set_windows(parts, scope)
    body = CriticStatements(scope)
    check = parts.functions.get("check")
    flow = body.body(check) if check else Flow()
    if check and flow.falls:
        end = check.end_lineno or check.lineno
        scope.problems.append(
            Problem(end, "check can end without a verdict; add: return ok()", path)
        )
    armed = _armed(parts, scope)
    if max(flow.work, armed.work) <= scope.max_work < flow.work + armed.work:
        reason = too_much(flow.work + armed.work, scope.max_work)
        scope.problems.append(Problem(parts.lines["ARMED_WHEN"], reason, path))
    _check_skill(parts, body.answers, check, scope)
    if scope.problems:
        return in_order(scope.problems)
    return CheckedCritic(
        source=source.decode() if isinstance(source, bytes) else source,
        docstring=parts.docstring.strip(),
        window_s=scope.window_s,
        skill=parts.text("SKILL"),
        refractory_s=parts.number("REFRACTORY_S") or 0.0,
        armed_when=parts.text("ARMED_WHEN"),
        level=level_of(scope.used_signals, signals),
        signals=tuple(scope.used_signals),
        answers=tuple(body.answers),
        code=function("check(window)", flow.lines) + function("armed(window)", armed.lines),
        ticks=dict(scope.ticks),
        warns=scope.warns,
        work=flow.work + armed.work,
    )


def function(head: str, lines: list[str], prologue: tuple[str, ...] = PROLOGUE) -> str:
    """Return the text of a function."""
    return "\n".join([f"def {head}:", *indented([*prologue, *lines]), "", ""])


def _reason(node: ast.expr) -> str:
    if not (isinstance(node, ast.Constant) and isinstance(node.value, str)):
        raise Refused(node, f"the reason is a text in quotes, not {text_of(node)}")
    reason = " ".join(node.value.split())
    if not 0 < len(reason) <= MAX_REASON:
        raise Refused(node, f"the reason has 1 to {MAX_REASON} characters; this has {len(reason)}")
    if not reason.isprintable():
        raise Refused(node, "the reason holds characters that cannot be printed")
    return reason


def _set_windows(parts: Sections, scope: Scope) -> None:
    window_s = parts.number("WINDOW_S")
    if window_s is not None:
        scope.window_s = window_s
    elif not any("WINDOW_S" in problem.reason for problem in scope.problems):
        scope.problems.append(
            Problem(1, "WINDOW_S is not set; write, for example: WINDOW_S = 1.0", scope.path)
        )
    scope.max_age_s = parts.number("MAX_AGE_S")


def _armed(parts: Sections, scope: Scope) -> Flow:
    """Check the expression of `ARMED_WHEN`; whatever is wrong is told at its line."""
    text = parts.text("ARMED_WHEN")
    if text is None:
        return Flow(["return True"])
    line = parts.lines["ARMED_WHEN"]
    try:
        tree = parse_program(text)
        if not (len(tree.body) == 1 and isinstance(tree.body[0], ast.Expr)):
            raise Refused(line, "it is one expression, as in 'now(w.holding) > 0.5'")
        value = Expressions(scope, {}).wanted(tree.body[0].value, "condition", "ARMED_WHEN")
    except Refused as refused:
        if refused.reason:
            scope.tell(Refused(line, f"ARMED_WHEN: {refused.reason}"))
        return Flow()
    return Flow([f"return {value.code}"], value.work)


def _check_skill(
    parts: Sections, answers: list[Answer], check: ast.FunctionDef | None, scope: Scope
) -> None:
    recovers = any(answer.decision == "recover" for answer in answers)
    if check is None or scope.problems:
        return
    if recovers and parts.text("SKILL") is None:
        reason = 'it recovers, but SKILL does not say how; write: SKILL = "name-of-the-skill"'
        scope.problems.append(Problem(check.lineno, reason, scope.path))
    if not answers:
        reason = "it always passes; return recover(…) or abort(…) on some way"
        scope.problems.append(Problem(check.lineno, reason, scope.path))
