"""The loop's hand on the environment: when a tick begins, what is sensed then, who is named."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from zetta.runtime.core import Action, Array, Clock, DrivenEnv, Env, HoldingEnv, Step, WatchedEnv
from zetta.runtime.drivers import ActionCheck, Late
from zetta.runtime.holding import Holder
from zetta.runtime.pacing import Pacer

ACT_WITHIN: Final = 0.8
"""Share of a period in which an action is waited for; what is left is for sending it."""
SETTLING_TICKS: Final = 2
"""Held ticks in which an action leads the robot gently to rest; then it keeps its place itself."""


class Stepper:
    """Begins the ticks of one episode and carries their actions out.

    Without a clock a tick begins at once, nothing is sensed twice, and whoever drives is waited
    for as long as it takes.

    Attributes:
        held: for how many ticks the robot was held because whoever drives was late.
    """

    def __init__(self, env: Env, clock: Clock | None) -> None:
        """Bind to `env`; `clock` paces the ticks."""
        self.held = 0
        self._env = env
        self._told = env if isinstance(env, DrivenEnv) else None
        self._watched = env if isinstance(env, WatchedEnv) and clock is not None else None
        self._holds = env if isinstance(env, HoldingEnv) and clock is not None else None
        self._kept, self._still = 0, ""
        self._driving: str | None = None
        self._pacer = None if clock is None else Pacer(clock, env.spec.control_hz)
        self._holder = Holder(env.spec.action)
        self._checks: dict[str, ActionCheck] = {}

    @property
    def late(self) -> int:
        """How many ticks began late."""
        return 0 if self._pacer is None else self._pacer.late

    def begin_tick(self, step: Step) -> Step:
        """Wait for the next tick and return `step` with what is sensed then.

        A robot moves on while the loop waits, so what its last step said is a period old.
        """
        if self._pacer is None:
            return step
        self._pacer.wait()
        return replace(step, proprio=self._env.observe().proprio)

    def blind(self) -> str:
        """Return why whoever drives must not go on at this tick; empty if they may.

        Raises:
            InfraError: what is wrong has lasted too long.
        """
        return "" if self._watched is None else self._watched.watch()

    def left_s(self) -> float | None:
        """Return how long an action may still be waited for; None for as long as it takes."""
        return None if self._pacer is None else self._pacer.left_s(ACT_WITHIN)

    def action(
        self, wish: Array | Late, source: str, step: Step, last: Action | None
    ) -> tuple[Action, str]:
        """Return what is done at this tick, and why that is only to hold; empty if it is more.

        Args:
            wish: what `source` wants to do.
            source: who drives.
            step: what is sensed now.
            last: the action of the tick before.

        Raises:
            SpecMismatch: the action is none of this environment, or nobody knows how to stand
                still in its convention.
        """
        if not isinstance(wish, Late):
            self._kept, self._still = 0, ""
            self._holder.release()
            check = self._checks.get(source)
            if check is None:
                check = self._checks[source] = ActionCheck(self._env.spec.action, source)
            return check(wish), ""
        assert last is not None  # what was told nothing yet is not held
        self.held += 1
        self._kept += 1
        self._still = wish.reason if wish.blind or self._kept > SETTLING_TICKS else ""
        return self._holder.action(step.proprio, last), wish.reason

    def step(self, action: Action, source: str) -> Step:
        """Carry out an action on behalf of `source`."""
        if self._told is not None and source != self._driving:
            self._told.driven_by(source)
            self._driving = source
        if self._holds is not None and self._still:
            return self._holds.hold(self._still)
        return self._env.step(action)
