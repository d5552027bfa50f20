"""A critic that is ready to judge: bound to a control rate and to the values of its parameters."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np

from zetta.critics.binding import Unknown, bound_functions
from zetta.critics.language import CheckedCritic, analyse_critic
from zetta.critics.parameters import Parameter, bound_values, read_parameters
from zetta.critics.problems import raise_problems, read_program
from zetta.runtime.core import Sensing, Verdict, Window
from zetta.runtime.signals import SIGNALS, SignalSpec

DISARMED: Final = "disarmed: "
"""How the reason of a verdict begins that was not given because a value was unknown."""


@dataclass(frozen=True, slots=True, eq=False)
class Critic:
    """A pure function from a window of signals to a verdict.

    Refractory time, arming and latches are the business of whoever runs it: `judge` looks at the
    window and at nothing else.
    """

    name: str
    docstring: str
    window_s: float
    skill: str | None
    """What recovers; None for a critic that only aborts."""
    refractory_s: float
    armed_when: str | None
    level: Sensing
    """Highest sensing level among the signals it reads."""
    signals: tuple[str, ...]
    parameters: Mapping[str, float]
    digest: str
    """SHA-256 of its text and the values of its parameters."""
    _checked: CheckedCritic = field(repr=False)
    _check: Callable[[Window], int] = field(repr=False)
    _armed: Callable[[Window], bool] = field(repr=False)
    _passed: Verdict = field(repr=False)
    _disarmed: dict[str, Verdict] = field(default_factory=dict, repr=False)

    def judge(self, window: Window) -> Verdict:
        """Return what it says now: `pass` also where it is disarmed, see `is_disarmed`."""
        try:
            if self._checked.warns:
                with np.errstate(all="ignore"):
                    k = self._check(window)
            else:
                k = self._check(window)
        except (Unknown, KeyError) as unknown:
            return self._say_nothing(str(unknown.args[0]))
        if k == 0:
            return self._passed
        answer = self._checked.answers[k - 1]
        return Verdict(
            answer.decision,
            answer.reason,
            self.name,
            self.skill if answer.decision == "recover" else None,
            self.evidence(window),
        )

    def armed(self, window: Window) -> bool:
        """Say whether `ARMED_WHEN` holds; not while a value in it is unknown."""
        if self.armed_when is None:
            return True
        try:
            with np.errstate(all="ignore"):
                return self._armed(window)
        except (Unknown, KeyError):
            return False

    def evidence(self, window: Window) -> dict[str, float]:
        """Return the latest known value of each signal it names."""
        found = {}
        for name in self.signals:
            try:
                value = window.last(name, 1).item()
            except KeyError:
                continue
            if value - value == 0.0:
                found[name] = value
        return found

    def _say_nothing(self, what: str) -> Verdict:
        verdict = self._disarmed.get(what)
        if verdict is None:
            verdict = Verdict("pass", f"{DISARMED}{what} is unknown", self.name)
            self._disarmed[what] = verdict
        return verdict


def is_disarmed(verdict: Verdict) -> bool:
    """Return whether a critic passed because a value that it reads was unknown."""
    return verdict.decision == "pass" and verdict.reason.startswith(DISARMED)


def compile_critic(
    source: str | bytes,
    path: str,
    name: str,
    control_hz: float,
    signals: Mapping[str, SignalSpec] = SIGNALS,
    parameters: Mapping[str, Parameter] | None = None,
    values: Mapping[str, float] | None = None,
) -> Critic:
    """Return a critic.

    Args:
        source: the text of the program.
        path: of the program, for messages.
        name: of the critic, for verdicts.
        control_hz: ticks per second of the windows it will see.
        signals: what exists.
        parameters: what `params.toml` declares.
        values: values of some parameters; the others take their defaults.

    Raises:
        ScreenError: the program is not in the language; every line is named.
        ConfigError: unknown parameter, or a value out of bounds.
    """
    declared = parameters or {}
    checked = analyse_critic(source, path, signals, declared)
    if isinstance(checked, tuple):
        raise_problems(checked)
        raise AssertionError("unreachable: problems were raised")
    bound = bound_values(declared, values)
    functions = bound_functions(checked.code, name, checked.ticks, control_hz, bound)
    return Critic(
        name=name,
        docstring=checked.docstring,
        window_s=checked.window_s,
        skill=checked.skill,
        refractory_s=checked.refractory_s,
        armed_when=checked.armed_when,
        level=checked.level,
        signals=checked.signals,
        parameters=bound,
        digest=program_digest(checked.source, bound),
        _checked=checked,
        _check=functions["check"],
        _armed=functions["armed"],
        _passed=Verdict("pass", critic=name),
    )


def load_critic(
    path: Path,
    control_hz: float,
    signals: Mapping[str, SignalSpec] = SIGNALS,
    values: Mapping[str, float] | None = None,
) -> Critic:
    """Return the critic in a file, with the parameters that stand beside it.

    A file `critic.py` is named after its folder, any other after itself; its parameters are in
    `<name>.toml` or `params.toml`.

    Raises:
        ConfigError: a file cannot be read, unknown parameter, or a value out of bounds.
        ScreenError: the program or its parameters are refused; every line is named.
    """
    beside = parameters_beside(path)
    parameters = read_parameters(beside) if beside else {}
    return compile_critic(
        read_program(path), str(path), name_of(path), control_hz, signals, parameters, values
    )


def name_of(path: Path) -> str:
    """Return the name of the critic in a file.

    >>> name_of(Path("skills/library/regrasp/critic.py"))
    'regrasp'
    """
    stem = path.parent.name if path.stem == "critic" and path.parent.name else path.stem
    return stem.replace("_", "-")


def parameters_beside(program: Path) -> Path | None:
    """Return the file that holds the parameters of a program, or None when there is none."""
    for candidate in (program.with_suffix(".toml"), program.with_name("params.toml")):
        if candidate.is_file():
            return candidate
    return None


def program_digest(source: str, values: Mapping[str, float]) -> str:
    """Return the SHA-256 of a program and the values of its parameters."""
    text = json.dumps([source, sorted(values.items())])
    return hashlib.sha256(text.encode()).hexdigest()
