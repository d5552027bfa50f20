"""The recovery language: when a skill may start, which primitives it runs, when it may hand back.

A recovery is a docstring and three functions: `precondition(w, p)` and `reentry(w, p)` return a
condition, `recover(robot, w, p)` runs primitives. Everything else is as in the critic language,
with `yield from robot.<primitive>(…)`, `for _ in range(n)` and a plain `return` beside.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol, TypeVar

import numpy as np

from zetta.critics.binding import Unknown, bound_functions
from zetta.critics.critic import parameters_beside, program_digest
from zetta.critics.language import function
from zetta.critics.parameters import Parameter, bound_values, read_parameters
from zetta.critics.problems import (
    Problem,
    Refused,
    in_order,
    parse_program,
    raise_problems,
    read_program,
)
from zetta.critics.sections import Sections, split
from zetta.critics.statements import Flow
from zetta.critics.values import MAX_WORK, Scope, highest
from zetta.primitives.catalogue import PRIMITIVES, PrimitiveSpec
from zetta.runtime.core import Action, Look, Motion, Outcome, Sense, Sensing, Window
from zetta.runtime.signals import SIGNALS, SignalSpec
from zetta.skills.program_statements import DONE, ActionStatements, AnswerStatements

RECOVERY_CONSTANTS: Final = ("WINDOW_S", "MAX_AGE_S")
RECOVERY_FUNCTIONS: Final = {
    "precondition": "w, p", "recover": "robot, w, p", "reentry": "w, p",
}  # fmt: skip
MAX_OPERATIONS: Final = 1000
"""Work of one whole `recover`, every round of its loops counted; so between two yields too."""

T = TypeVar("T")


class Primitives(Protocol):
    """A robot: one method for each primitive, each returns a motion."""


@dataclass(frozen=True, slots=True)
class CheckedProgram:
    """A recovery that passed every check, and the code that runs it."""

    source: str
    docstring: str
    window_s: float
    level: Sensing
    """Highest sensing level among the signals it reads and the primitives it runs."""
    signals: tuple[str, ...]
    primitives: tuple[str, ...]
    code: str = field(repr=False)
    """Defines `precondition(window)`, `recover(robot, window)` and `reentry(window)`."""
    ticks: Mapping[str, tuple[float | str, int]] = field(repr=False)
    work: int = 0
    """Of a whole `recover`."""


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """A recovery that is ready to run: bound to a control rate and to values of its parameters."""

    name: str
    docstring: str
    level: Sensing
    signals: tuple[str, ...]
    primitives: tuple[str, ...]
    parameters: Mapping[str, float]
    digest: str
    """SHA-256 of its text and the values of its parameters."""
    _precondition: Callable[[Window], bool] = field(repr=False)
    _recover: Callable[[object, Window], Motion] = field(repr=False)
    _reentry: Callable[[Window], bool] = field(repr=False)

    def precondition(self, window: Window) -> bool:
        """Say whether the recovery may start; not while a value that it reads is unknown."""
        return _answer(self._precondition, window)

    def recover(self, robot: Primitives, window: Window) -> Motion:
        """Return the motion; `window` stays live while it runs.

        It ends as its last primitive did, or incomplete when a value that it reads is unknown.
        """
        return _ending_at_unknown(self._recover(robot, window))

    def reentry(self, window: Window) -> bool:
        """Say whether the policy may go on; not while a value that it reads is unknown."""
        return _answer(self._reentry, window)


def check_program(
    source: str | bytes,
    path: str,
    signals: Mapping[str, SignalSpec],
    parameters: Mapping[str, Parameter],
    primitives: Mapping[str, PrimitiveSpec] = PRIMITIVES,
) -> tuple[Problem, ...]:
    """Return everything that is wrong with a recovery; nothing is when it is empty."""
    checked = analyse_program(source, path, signals, parameters, primitives)
    return checked if isinstance(checked, tuple) else ()


def analyse_program(
    source: str | bytes,
    path: str,
    signals: Mapping[str, SignalSpec],
    parameters: Mapping[str, Parameter],
    primitives: Mapping[str, PrimitiveSpec] = PRIMITIVES,
) -> CheckedProgram | tuple[Problem, ...]:
    """Return a checked recovery, or what is wrong with it."""
    scope = Scope(path, signals, parameters)
    try:
        tree = parse_program(source)
        parts = split(tree, scope, RECOVERY_FUNCTIONS, RECOVERY_CONSTANTS)
    except Refused as refused:
        scope.tell(refused)
        return in_order(scope.problems)
    scope.window_s = parts.number("WINDOW_S") or scope.window_s
    scope.max_age_s = parts.number("MAX_AGE_S")
    answers = [_answers(name, parts, scope) for name in ("precondition", "reentry")]
    actions, flow = _actions(parts, scope, primitives)
    if scope.problems:
        return in_order(scope.problems)
    levels = [signals[name].level for name in scope.used_signals]
    levels += [primitives[name].level for name in actions.used]
    return CheckedProgram(
        source=source.decode() if isinstance(source, bytes) else source,
        docstring=parts.docstring.strip(),
        window_s=scope.window_s,
        level=highest(levels),
        signals=tuple(scope.used_signals),
        primitives=tuple(actions.used),
        code="".join([*answers, function("recover(robot, window)", flow.lines)]),
        ticks=dict(scope.ticks),
        work=flow.work,
    )


def _answers(name: str, parts: Sections, scope: Scope) -> str:
    node = parts.functions.get(name)
    if node is None:
        return ""
    scope.max_work = MAX_WORK
    flow = AnswerStatements(scope, name).body(node)
    if flow.falls:
        end = node.end_lineno or node.lineno
        reason = f"{name} can end without an answer; add: return False"
        scope.problems.append(Problem(end, reason, scope.path))
    return function(f"{name}(window)", flow.lines)


def _actions(
    parts: Sections, scope: Scope, primitives: Mapping[str, PrimitiveSpec]
) -> tuple[ActionStatements, Flow]:
    actions = ActionStatements(scope, primitives)
    node = parts.functions.get("recover")
    if node is None:
        return actions, Flow()
    scope.max_work = MAX_OPERATIONS
    told = len(scope.problems)
    flow = actions.body(node)
    if not actions.used and len(scope.problems) == told:
        reason = "recover runs no primitive; write, for example: yield from robot.retreat()"
        scope.problems.append(Problem(node.lineno, reason, scope.path))
    flow.lines[:0] = [f"{DONE} = nothing"]
    flow.lines.append(f"return {DONE}")
    return actions, flow


# --------------------------------------------------------------------------- ready to run


def compile_program(
    source: str | bytes,
    path: str,
    name: str,
    control_hz: float,
    signals: Mapping[str, SignalSpec] = SIGNALS,
    parameters: Mapping[str, Parameter] | None = None,
    values: Mapping[str, float] | None = None,
    primitives: Mapping[str, PrimitiveSpec] = PRIMITIVES,
) -> Program:
    """Return a recovery.

    Args:
        source: the text of the program.
        path: of the program, for messages.
        name: of the skill.
        control_hz: ticks per second of the windows it will see.
        signals: what exists.
        parameters: what `params.toml` declares.
        values: values of some parameters; the others take their defaults.
        primitives: what a robot can do.

    Raises:
        ScreenError: the program is not in the language; every line is named.
        ConfigError: unknown parameter, or a value out of bounds.
    """
    declared = parameters or {}
    checked = analyse_program(source, path, signals, declared, primitives)
    if isinstance(checked, tuple):
        raise_problems(checked)
        raise AssertionError("unreachable: problems were raised")
    bound = bound_values(declared, values)
    made = bound_functions(checked.code, name, checked.ticks, control_hz, bound, _WORDS)
    return Program(
        name=name,
        docstring=checked.docstring,
        level=checked.level,
        signals=checked.signals,
        primitives=checked.primitives,
        parameters=bound,
        digest=program_digest(checked.source, bound),
        _precondition=made["precondition"],
        _recover=made["recover"],
        _reentry=made["reentry"],
    )


def load_program(
    path: Path,
    control_hz: float,
    signals: Mapping[str, SignalSpec] = SIGNALS,
    values: Mapping[str, float] | None = None,
    primitives: Mapping[str, PrimitiveSpec] = PRIMITIVES,
) -> Program:
    """Return the recovery in a file, with the parameters that stand beside it.

    Raises:
        ConfigError: a file cannot be read, unknown parameter, or a value out of bounds.
        ScreenError: the program or its parameters are refused; every line is named.
    """
    beside = parameters_beside(path)
    parameters = read_parameters(beside) if beside else {}
    source, name = read_program(path), path.parent.name or path.stem
    return compile_program(
        source, str(path), name, control_hz, signals, parameters, values, primitives
    )


def _answer(function: Callable[[Window], bool], window: Window) -> bool:
    try:
        with np.errstate(all="ignore"):
            return function(window)
    except (Unknown, KeyError):
        return False


def _reading(read: Callable[[], T]) -> T:
    """Compute one expression of a running recovery.

    Raises:
        Unknown: a value in it is not known.
    """
    try:
        # Not around the whole motion: the setting would leak into the loop at each yield.
        with np.errstate(all="ignore"):
            return read()
    except KeyError as missing:
        raise Unknown(missing.args[0]) from None


def _ended(completed: bool, last: Outcome) -> Outcome:
    """Return how a recovery ended that says so itself."""
    if completed:
        return Outcome(True, last.reason if last.completed else "")
    return Outcome(False, last.reason or "the recovery ended early")


def _ending_at_unknown(motion: Motion) -> Generator[Action | Look, Sense, Outcome]:
    try:
        return (yield from motion)
    except Unknown as unknown:
        return Outcome(False, f"a value was unknown: {unknown.args[0]}")


_WORDS: Final[Mapping[str, object]] = {
    "reading": _reading, "ended": _ended, "range": range,
    "nothing": Outcome(True, "nothing was done"),
}  # fmt: skip
