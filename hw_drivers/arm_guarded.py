"""An arm whose targets pass a safety kernel before they leave the program.

It is the near one of two: what it lets through, the kernel at the robot passes unchanged. It keeps
a program from asking for nonsense; it protects nobody from the program, which could leave it out.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final, Protocol, runtime_checkable

from zetta.hw_drivers.arm import Arm, ArmFacts, ArmReading, ArmTarget, checked_target
from zetta.hw_drivers.arm_guard import KernelGuard
from zetta.hw_drivers.arm_limits import Limits
from zetta.hw_drivers.decisions import AuditSink
from zetta.runtime.errors import ConnectionLost, SafetyStop

ANEW_AFTER: Final = 4.0
"""Ticks without a command after which the arm holds by itself, and the sequence begins anew."""


@runtime_checkable
class Counting(Protocol):
    """An arm whose robot's side tells what became of commands."""

    def counts(self) -> Mapping[str, int]:
        """Return how often what happened, by the names of `COUNTED`."""
        ...


class GuardedArm:
    """An `Arm` before which a kernel stands. `stop` may be called from any thread, as on any."""

    def __init__(
        self,
        arm: Arm,
        limits: Limits,
        tick_s: float,
        audit: AuditSink | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Stand before an arm; nothing is connected yet.

        Args:
            arm: what is commanded; it is closed as well.
            limits: of this very arm; their workspace is in the base frame.
            tick_s: period of the commands.
            audit: keeps what was decided.
            clock: our monotonic clock.
        """
        self._arm, self._limits, self._tick_s = arm, limits, tick_s
        self._audit, self._clock = audit, clock
        self._guard: KernelGuard | None = None
        self._facts: ArmFacts | None = None
        self._commanded = -math.inf
        self._counts: dict[str, int] = {}
        self.last = ""
        """What the kernel did with the last target, and why; empty if it passed as asked."""

    @property
    def decided(self) -> Mapping[str, int]:
        """How often the kernel gave which verdict since `connect`."""
        return dict(self._counts)

    def connect(self, within_s: float = 5.0) -> ArmFacts:
        """Reach the arm and take hold of it; a kernel begins anew.

        Raises:
            ConfigError: the limits do not fit the arm.
            Timeout: nobody answers.
            InfraError: somebody else holds it.
            SpecMismatch: it is another robot, or speaks another protocol.
        """
        facts = self._arm.connect(within_s)
        self._guard = KernelGuard(self._limits, facts, self._audit, tick_s=self._tick_s)
        self._facts, self._counts, self.last = facts, {}, ""
        return facts

    def state(self, max_age_s: float = 0.1) -> ArmReading:
        """Return the latest reading, not older than `max_age_s`.

        Raises:
            Timeout: there is none so fresh.
            ConnectionLost: the server was restarted, or the hold on the arm is lost.
        """
        return self._arm.state(max_age_s)

    def age_s(self) -> float:
        """Return how old the newest reading may be; infinite before the first one."""
        return self._arm.age_s()

    def command(self, target: ArmTarget, ttl_s: float = 0.1, driver: str = "policy") -> None:
        """Send what the kernel makes of a target; call it once a tick.

        Raises:
            SafetyStop: the kernel stopped, and with it the arm; or a stop is latched.
            ConnectionLost: the server was restarted, or the hold on the arm is lost.
            SpecMismatch: no target of this arm, or no driver.
            Timeout: there is no fresh reading.
        """
        guard, facts = self._guard, self._facts
        if guard is None or facts is None:
            raise ConnectionLost("the arm is not connected; call connect")
        reading = self._arm.state(self._limits.timing.stale)
        if reading.mode == "stopped":
            raise SafetyStop(f"the arm is stopped ({reading.reason}) until a person clears it")
        now = self._clock()
        if reading.mode != "moving" or now - self._commanded > ANEW_AFTER * self._tick_s:
            guard.held()  # it stands where it is, wherever it was led before
        here = replace(reading, t=now - self._arm.age_s())  # by our clock
        passed = guard.tick(checked_target(target, facts), here, now, driver)
        self._counts[passed.verdict] = self._counts.get(passed.verdict, 0) + 1
        self.last = f"{passed.verdict}: {passed.reason}" if passed.verdict != "as asked" else ""
        if guard.stopped:
            self._arm.stop(guard.stopped)
            raise SafetyStop(guard.stopped)
        self._commanded = now
        if passed.target is not None:
            self._arm.command(passed.target, ttl_s, driver)

    def counts(self) -> Mapping[str, int]:
        """Return what the robot's side counted; empty where it does not tell."""
        return self._arm.counts() if isinstance(self._arm, Counting) else {}

    def hold(self, why: str) -> None:
        """Let the arm keep its place by itself; the kernel begins anew with the next command.

        Raises:
            ConnectionLost: the server was restarted, or the hold on the arm is lost.
            Timeout: the network takes nothing.
        """
        if self._guard is not None:
            self._guard.held()
        self._arm.hold(why)

    def stop(self, reason: str) -> None:
        """Stop the arm at once; it stays stopped until a person clears it.

        Raises:
            Timeout: the robot's side did not confirm; use the emergency stop.
        """
        self._arm.stop(reason)

    def close(self) -> None:
        """Let go of the arm, which then holds; calling it again does nothing."""
        self._guard = None
        self._arm.close()
