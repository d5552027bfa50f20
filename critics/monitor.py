"""All critics of a bundle at one tick: who is armed, who is silent, who was switched off.

A critic itself is a pure function of a window. What must be remembered between ticks is kept here:
the latch and the refractory time after its skill has driven, and whether it failed. All of it
follows from the windows and from who drove, so a log gives the verdicts of the live run again.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from zetta.runtime.core import Verdict, Window
from zetta.runtime.errors import SpecMismatch, ZettaError
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


@dataclass(frozen=True, slots=True)
class CriticMemory:
    """What is remembered of one critic between ticks."""

    latched: bool = False
    clear_for: int = 0
    """Ticks in a row at which its condition was absent, counted up to `CLEAR_TICKS`."""
    drove_at: int = -1
    """Tick at which its skill drove last; -1 is never."""
    off: str = ""
    """Why it was switched off; empty while it is not."""


@dataclass(frozen=True, slots=True)
class MonitorState:
    """Everything that a monitor remembers between two ticks; the windows are kept elsewhere."""

    tick: int
    critics: tuple[str, ...]
    """Their names, in bundle order."""
    memories: tuple[CriticMemory, ...]
    """One for each of them."""


class CriticMonitor:
    """Judges every armed critic at each tick.

    While its skill drives, for its refractory time afterwards, and until its condition has cleared
    once, a critic does not ask for its skill; it may abort at any time. One that raises, or takes
    longer than it may, is switched off for the rest of the episode, which one verdict records.
    """

    def __init__(self, critics: Sequence[Critic], limit_s: float | None = None) -> None:
        """`limit_s` is the time one critic may take; None sets no limit.

        A limit makes verdicts depend on the machine, so it belongs to arms, not to simulators.
        """
        self._critics = tuple(critics)
        self._limit_s = limit_s
        self.begin()

    def begin(self) -> None:
        """Forget the last episode."""
        self._tick = 0
        self._memories = [CriticMemory() for _ in self._critics]

    def judge(self, window: Window, driving: str) -> tuple[Verdict, ...]:
        """Return what is not `pass`, in bundle order, and one `pass` for each switching-off."""
        verdicts = []
        for k, critic in enumerate(self._critics):
            if self._memories[k].off:
                continue
            verdict = self._judge_one(k, critic, window, driving)
            if verdict is not None:
                verdicts.append(verdict)
        self._tick += 1
        return tuple(verdicts)

    def state(self) -> MonitorState:
        """Return what is remembered now, between two ticks."""
        return MonitorState(self._tick, self._names(), tuple(self._memories))

    def restore(self, state: MonitorState) -> None:
        """Continue from `state`: the same windows and drivers give the same verdicts.

        Raises:
            SpecMismatch: it is the state of other critics.
        """
        check_state(state, self._names())
        self._tick, self._memories = state.tick, list(state.memories)

    def _names(self) -> tuple[str, ...]:
        return tuple(critic.name for critic in self._critics)

    def _judge_one(self, k: int, critic: Critic, window: Window, driving: str) -> Verdict | None:
        own_drives = critic.skill is not None and driving == SKILL_PREFIX + critic.skill
        started = time.perf_counter()
        try:
            verdict = critic.judge(window) if critic.armed(window) else Verdict("pass")
        except FAILURES as error:
            return self._switched_off(k, critic, f"raised {type(error).__name__}: {error}")
        spent = time.perf_counter() - started
        if self._limit_s is not None and spent > self._limit_s:
            return self._switched_off(
                k, critic, f"took {spent * 1e3:.1f} ms of {self._limit_s * 1e3:.1f} ms"
            )
        if own_drives:
            self._memories[k] = CriticMemory(latched=True, drove_at=self._tick)
        elif verdict.decision == "pass":
            self._memories[k] = _cleared(self._memories[k])
        return verdict if self._admits(k, critic, window, verdict) else None

    def _admits(self, k: int, critic: Critic, window: Window, verdict: Verdict) -> bool:
        """Say whether a verdict is heard; latch and refractory time keep a critic silent."""
        if verdict.decision == "pass":
            return False
        memory = self._memories[k]
        if memory.clear_for:
            self._memories[k] = replace(memory, clear_for=0)
        waits = memory.drove_at >= 0 and (
            self._tick - memory.drove_at <= critic.refractory_s * window.control_hz
        )
        # An abort is never held back: it does not hand the robot to anybody.
        return verdict.decision == "abort" or not (memory.latched or waits)

    def _switched_off(self, k: int, critic: Critic, reason: str) -> Verdict:
        self._memories[k] = replace(self._memories[k], off=reason)
        return Verdict("pass", f"switched off: {reason}", critic.name)


def check_state(state: MonitorState, critics: tuple[str, ...]) -> None:
    """Refuse the state of other critics.

    Raises:
        SpecMismatch: it is one.
    """
    if state.critics != critics or len(state.memories) != len(critics):
        raise SpecMismatch(
            f"the state is one of the critics {', '.join(state.critics) or 'of no bundle'}, this "
            f"monitor has {', '.join(critics) or 'none'}; restore it with the same bundle and task"
        )


def _cleared(memory: CriticMemory) -> CriticMemory:
    """Count one more tick without the condition; enough of them free the latch."""
    if memory.clear_for >= CLEAR_TICKS:
        return memory
    clear_for = memory.clear_for + 1
    return replace(memory, clear_for=clear_for, latched=memory.latched and clear_for < CLEAR_TICKS)
