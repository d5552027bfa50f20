"""All critics of a bundle at one tick: who is armed, who is silent, who was switched off.

A critic itself is a pure function of a window. What must be remembered between ticks is kept here:
the latch and the refractory time after its skill has driven, and whether it failed. All of it
follows from the windows and from who drove, so a log gives the verdicts of the live run again.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from zetta.runtime.core import Verdict, Window
from zetta.runtime.errors import ZettaError
from zetta.runtime.skill_arbiter import SKILL_PREFIX

CLEAR_TICKS = 3
"""A latched critic is set free after its condition has been absent for so many ticks in a row."""

FAILURES = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, ZettaError)
"""What a critic that is not written in the critic language may do wrong."""


class Critic(Protocol):
    """What the monitor asks of a critic."""

    @property
    def name(self) -> str:
        """Name, as verdicts give it."""
        ...

    @property
    def skill(self) -> str | None:
        """What recovers; None for a critic that only aborts."""
        ...

    @property
    def refractory_s(self) -> float:
        """How long it stays silent after its skill has driven, seconds."""
        ...

    def armed(self, window: Window) -> bool:
        """Say whether the critic applies now."""
        ...

    def judge(self, window: Window) -> Verdict:
        """Judge the window; the same window gives the same verdict."""
        ...


@dataclass(slots=True)
class _Watch:
    """What is remembered of one critic between ticks."""

    latched: bool = False
    clear_for: int = 0
    drove_at: int = -1
    """Tick at which its skill drove last; -1 is never."""
    off: str = ""


class CriticMonitor:
    """Judges every armed critic at each tick.

    A critic is silent while its skill drives, for its refractory time afterwards, and until its
    condition has cleared once. One that raises, or takes longer than it may, is switched off for
    the rest of the episode, which one verdict records.
    """

    def __init__(self, critics: Sequence[Critic], limit_s: float | None = None) -> None:
        """`limit_s` is the time one critic may take; None sets no limit.

        A limit makes verdicts depend on the machine, so it belongs to arms, not to simulators.
        """
        self._critics = tuple(critics)
        self._limit_s = limit_s
        self._tick = 0
        self._watches = [_Watch() for _ in self._critics]

    def begin(self) -> None:
        """Forget the last episode."""
        self._tick = 0
        self._watches = [_Watch() for _ in self._critics]

    def judge(self, window: Window, driving: str) -> tuple[Verdict, ...]:
        """Return what is not `pass`, in bundle order, and one `pass` for each switching-off."""
        verdicts = []
        for critic, watch in zip(self._critics, self._watches, strict=True):
            if watch.off:
                continue
            verdict = self._judge_one(critic, watch, window, driving)
            if verdict is not None:
                verdicts.append(verdict)
        self._tick += 1
        return tuple(verdicts)

    def _judge_one(
        self, critic: Critic, watch: _Watch, window: Window, driving: str
    ) -> Verdict | None:
        if critic.skill is not None and driving == SKILL_PREFIX + critic.skill:
            watch.latched, watch.clear_for, watch.drove_at = True, 0, self._tick
            return None
        started = time.perf_counter()
        try:
            verdict = critic.judge(window) if critic.armed(window) else Verdict("pass")
        except FAILURES as error:
            return _switched_off(critic, watch, f"raised {type(error).__name__}: {error}")
        spent = time.perf_counter() - started
        if self._limit_s is not None and spent > self._limit_s:
            return _switched_off(
                critic, watch, f"took {spent * 1e3:.1f} ms of {self._limit_s * 1e3:.1f} ms"
            )
        return self._admitted(critic, watch, window, verdict)

    def _admitted(
        self, critic: Critic, watch: _Watch, window: Window, verdict: Verdict
    ) -> Verdict | None:
        """Return the verdict, or None while latch or refractory time keep the critic silent."""
        if verdict.decision == "pass":
            watch.clear_for += 1
            if watch.clear_for >= CLEAR_TICKS:
                watch.latched = False
            return None
        watch.clear_for = 0
        waits = watch.drove_at >= 0 and (
            self._tick - watch.drove_at <= critic.refractory_s * window.control_hz
        )
        # An abort is never held back: it does not hand the robot to anybody.
        if verdict.decision == "recover" and (watch.latched or waits):
            return None
        return verdict


def _switched_off(critic: Critic, watch: _Watch, reason: str) -> Verdict:
    watch.off = reason
    return Verdict("pass", f"switched off: {reason}", critic.name)
