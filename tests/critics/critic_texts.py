"""Texts of critics for tests, and windows to judge."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from zetta.critics.critic import Critic, compile_critic
from zetta.critics.language import check_critic
from zetta.critics.parameters import Parameter
from zetta.critics.problems import Problem
from zetta.runtime.core import Array
from zetta.runtime.signals import SIGNALS, SignalHistory

HZ = 20.0
PARAMETERS = {
    "near": Parameter("near", 0.05, 0.0, 0.2, "m", ""),
    "patience": Parameter("patience", 0.5, 0.1, 1.0, "s", ""),
    "long": Parameter("long", 2.0, 0.1, 9.0, "s", ""),
}
HEAD = '"""A critic of a test."""\n\nWINDOW_S = 2.0\nSKILL = "regrasp"\n\n\ndef check(w, p):\n'
BODY_LINE = 8
"""The line of the first statement of `check` in `critic_of`."""


def critic_of(body: str) -> str:
    """Return a whole critic around the statements of `check`, which need no indentation."""
    lines = "".join(f"    {line}\n" if line else "\n" for line in body.splitlines())
    return HEAD + lines


def firing_when(condition: str) -> str:
    """Return a critic that recovers when `condition` holds."""
    return critic_of(f'if {condition}:\n    return recover("so it is")\nreturn ok()')


def problems_of(source: str | bytes) -> tuple[Problem, ...]:
    """Return what is wrong with a critic that may use the built-in signals."""
    return check_critic(source, "critic.py", SIGNALS, PARAMETERS)


def compiled(source: str, values: Mapping[str, float] | None = None, hz: float = HZ) -> Critic:
    """Return the critic."""
    return compile_critic(source, "critic.py", "test", hz, SIGNALS, PARAMETERS, values)


def history(hz: float = HZ, **series: list[float] | Array) -> SignalHistory:
    """Return a window in which some signals have these latest values, and nothing else is known."""
    ticks = max(len(values) for values in series.values())
    window = SignalHistory(list(SIGNALS), hz)
    names = list(SIGNALS)
    rows = np.full((ticks, len(names)), np.nan)
    for name, values in series.items():
        rows[ticks - len(values) :, names.index(name)] = values
    for row in rows:
        window.push(row)
    return window
