"""Where the robot's side leads its arm: the newest fresh target, through the guard, by a clock.

Rules without sockets. Messages come when the network likes; the guard is called once a tick of its
own, with the newest target, again while that is fresh and then with none, so that it leads to rest.

The clock follows the messages slowly, so that each is used half a tick after it came. Two clocks of
one rate beat otherwise: where a message comes at the very time of a tick, some ticks see none and
some see two, and the arm lags by its way to rest (measured in `docs/safety.md`). A clock that
follows by at most 2 % of a tick makes nothing faster by more than that.
"""

from __future__ import annotations

import math
from collections.abc import MutableMapping
from dataclasses import dataclass, replace
from typing import Final

from zetta.hw_drivers.arm import (
    FOLLOWED,
    ArmReading,
    ArmTarget,
    Guard,
    Passed,
    RobotSide,
    described,
)
from zetta.runtime.errors import ConfigError, SafetyStop

GAIN: Final = 0.1
"""Share of its distance from the middle between two messages by which a tick comes earlier."""
SHORTEST: Final = 0.9
"""Share of a tick that must pass after one; a kernel takes much less for the same tick again."""
FASTEST: Final = 0.02
"""Share of a tick by which it comes earlier or later at most."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A target that may be carried out."""

    seq: int
    target: ArmTarget
    driver: str


class Lead:
    """Leads one `RobotSide` to what is asked. One thread calls it."""

    def __init__(
        self,
        side: RobotSide,
        guard: Guard,
        watchdog_s: float,
        counts: MutableMapping[str, int],
    ) -> None:
        """Lead nowhere yet.

        Args:
            side: what is led.
            guard: decides what is sent.
            watchdog_s: after so long without a target the arm holds.
            counts: by `COUNTED`; what is seen here is added.

        Raises:
            ConfigError: the guard's tick is too long for the watchdog.
        """
        if guard.tick_s > watchdog_s / 2.0:
            raise ConfigError(
                f"the guard ticks every {guard.tick_s:g} s, the watchdog waits {watchdog_s:g} s; "
                "at least two ticks must fit into it, so take a shorter tick"
            )
        self._side, self._guard, self._counts = side, guard, counts
        self._watchdog_s = watchdog_s
        self._patience_s = watchdog_s / 2.0
        self._asked: Asked | None = None
        self._fresh = False
        self._fed = self._ticked = self._due = -math.inf
        self._passed = Passed(None)
        self.following = False
        """The arm was sent somewhere and not told to hold since."""
        self.seq = 0
        """Number of the last command of the present lease that was sent on."""

    @property
    def waiting(self) -> str:
        """Token of what waits for a person; empty where nothing does."""
        return self._passed.waiting if self._asked is not None else ""

    def said(self) -> str:
        """Return what waits for a person, as they are to read it before they approve it."""
        asked = self._asked
        if asked is None or not self.waiting:
            return ""
        return f"{asked.driver} asks for {described(asked.target)}"

    @property
    def declined(self) -> str:
        """Why the arm stands although it is asked to go somewhere; empty otherwise."""
        wants = self._asked is not None and self._passed.verdict not in FOLLOWED
        return self._passed.reason if wants and self._guard.rests else ""

    def ask(self, asked: Asked, now: float) -> None:
        """Take the newest target; it replaces the one before."""
        self._counts["superseded"] += self._fresh
        if not self._ticks():
            tick_s = self._guard.tick_s
            self._due = max(now + tick_s / 2.0, self._ticked + SHORTEST * tick_s)
        self._asked, self._fresh, self._fed = asked, True, now

    def begin(self) -> None:
        """Somebody new holds the arm: their commands count from 1."""
        self._asked, self._fresh, self.seq = None, False, 0

    def silent(self, now: float) -> bool:
        """Say whether nothing was asked for as long as the watchdog waits."""
        return now - self._fed > self._watchdog_s

    def left_s(self, now: float) -> float:
        """Return the time until the next tick; infinite where none is to come."""
        return max(0.0, self._due - now) if self._ticks() else math.inf

    def tick(self, reading: ArmReading, now: float) -> None:
        """Send on what the guard decides, if its tick has come.

        Raises:
            SafetyStop: the guard stopped, or the arm must not go there.
            InfraError: the arm does not take it.
        """
        if not self._ticks() or now < self._due:
            return
        if now - self._ticked > self._watchdog_s:
            # Nothing was led meanwhile, or this process did not run: the past is no beginning.
            self._guard.held()
        self._schedule(now)
        asked, fresh = self._asked, self._fresh
        if asked is not None and now - self._fed > self._patience_s:
            asked = None
        driver = "policy" if self._asked is None else self._asked.driver
        target = None if asked is None else asked.target
        self._fresh = False
        self._passed = self._guard.tick(target, reading, now, driver)
        if self._guard.stopped:
            raise SafetyStop(self._guard.stopped)
        if self._passed.target is not None:
            self._side.send(self._passed.target)
            self.following = True
        if asked is not None and fresh:
            self._count(asked)

    def settle(self, reading: ArmReading | None, now: float) -> None:
        """Let a stopped guard come to rest, so that it can be cleared; nothing is sent."""
        if not self._guard.rests and now >= self._due:
            self._due = now + self._guard.tick_s
            self._guard.tick(None, reading, now, "policy")

    def hold(self) -> None:
        """Forget what was asked: the arm is told to hold."""
        self.drop()
        self._guard.held()

    def drop(self) -> None:
        """Forget what was asked: the arm is stopped."""
        self._asked, self._fresh, self.following = None, False, False
        self._passed = Passed(None)

    def _schedule(self, now: float) -> None:
        """Set when the next tick comes, nearer to the middle between two messages."""
        period, self._ticked = self._guard.tick_s, now
        late = now - self._due
        if late > 0.5 * period or period == 0.0:
            self._due = now + period
            return
        if self._fresh:
            off = (now - self._fed) % period - period / 2.0
            most = FASTEST * period
            period -= min(max(GAIN * off, -most), most)
        self._due = max(self._due + period, now + SHORTEST * self._guard.tick_s)

    def _ticks(self) -> bool:
        if self._guard.tick_s == 0.0:
            return self._fresh
        return self._asked is not None or self.following

    def _count(self, asked: Asked) -> None:
        if self._passed.verdict in FOLLOWED:
            self.seq = asked.seq
            self._counts["sent"] += 1
            self._counts["changed"] += self._passed.verdict == "changed"
        else:
            self._counts["declined"] += 1


def shown(reading: ArmReading, stopped: str, fault: str, held: str) -> ArmReading:
    """Return a reading as it is told: with the mode that the robot's side knows better."""
    if stopped:
        return replace(reading, mode="stopped", reason=stopped)
    if fault:
        return replace(reading, mode="fault", reason=fault)
    if held and reading.mode != "stopped":  # what it stopped by itself it says
        return replace(reading, mode="holding", reason=held)
    return reading
