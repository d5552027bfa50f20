"""The safety kernel: what may be sent to an arm at each tick.

It stands on both ends of a link, is pure (time and readings come in as arguments, nothing is read
or written), and answers at every tick, also when nothing was asked. `docs/safety.md` says what it
guarantees and what not.

    kernel = SafetyKernel(load_limits("panda"))
    decision = kernel.admit(command, reading, now=clock.now(), driver="policy")
    if decision.sent is not None:
        arm.send(decision.sent)
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

from zetta.hw_drivers.arm_limits import Distances, Limits, load_limits, shipped_limits
from zetta.hw_drivers.decisions import (
    AuditEntry,
    AuditEvent,
    AuditSink,
    Command,
    CommandKind,
    Decision,
    Grip,
    Reading,
    Verdict,
)
from zetta.hw_drivers.inspection import (
    checked_command,
    command_token,
    confined_grip,
    joint_trouble,
    reading_fault,
)
from zetta.hw_drivers.tracks import Forward, JointTracker, PoseTracker, Track, Tracker
from zetta.runtime.core import Array, read_only
from zetta.runtime.errors import ConfigError, SafetyStop, SpecMismatch, suggest

__all__ = [
    "AuditEntry",
    "AuditSink",
    "Command",
    "Decision",
    "Grip",
    "Limits",
    "Reading",
    "SafetyKernel",
    "load_limits",
    "shipped_limits",
]

NO_PERSON: Final = ("policy", "skill", "agent", "oracle", "kernel")
"""Names under which nobody can approve or clear."""
MAX_NAME: Final = 80


@dataclass(frozen=True, slots=True)
class _Sequence:
    """All that a tick leaves behind; replaced as a whole, so that an error changes nothing."""

    tick: int = 0
    now: float = -math.inf
    track: Track | None = None
    grip: Grip | None = None
    sent: Command | None = None
    factor: float = 1.0
    """Of the last driver that was admitted."""
    waiting: str = ""
    """Token of the command that waits for approval."""
    using: str = ""
    """Token of the approved command that is followed."""
    measured: tuple[float, Array] | None = None
    """Time and joint positions of the last reading that was used."""


class SafetyKernel:
    """Decides about the commands to one arm. One thread calls it; any thread may call `stop`."""

    def __init__(
        self,
        limits: Limits,
        kind: CommandKind = "target_pose",
        forward: Forward | None = None,
        needs_approval: bool = False,
        audit: AuditSink | None = None,
        after_kernel: bool = False,
    ) -> None:
        """Guard an arm.

        Args:
            limits: of this very arm in its cell.
            kind: the one kind of command that is taken.
            forward: joint positions to the grip site; needed for joint commands, whose way of the
                hand could not be guarded otherwise.
            needs_approval: each new command waits until a person approves it.
            audit: keeps what was decided; while it raises the arm is led to rest.
            after_kernel: what is asked comes from another kernel with these limits, whose targets
                do not end suddenly: it is then followed also where it might have to be overshot.

        Raises:
            ConfigError: joint commands without `forward`.
        """
        if after_kernel:
            limits = replace(limits, overshoot=Distances(math.inf, math.inf, math.inf))
        self._tracker: Tracker = PoseTracker(limits)
        if kind == "joint_position":
            if forward is None:
                raise ConfigError(
                    "joint commands need the forward kinematics of the arm, got none; without it "
                    "workspace and keep-out boxes cannot be kept"
                )
            self._tracker = JointTracker(limits, forward)
        self._limits = limits
        self._kind = kind
        self._needs_approval = needs_approval
        self._audit = audit
        self._at = _Sequence()
        self._stopped = ""
        self._approved = ""

    @property
    def stopped(self) -> str:
        """Why it is stopped; empty while it is not."""
        return self._stopped

    @property
    def rests(self) -> bool:
        """What is sent stands still."""
        return self._at.track is None or self._at.track.rests

    def admit(
        self, command: Command | None, state: Reading | None, now: float, driver: str
    ) -> Decision:
        """Return what may be sent at this tick. Never raises, never waits.

        Call it once a tick, with None where nothing was asked: it then leads to rest.

        Args:
            command: what is asked; anything that is none is refused.
            state: the latest reading of the arm, None where there is none.
            now: seconds of a monotonic clock, that of `state.t`.
            driver: who asks: `person`, `policy`, `skill:<name>` or `agent:<name>`.
        """
        # The one boundary beside server and worker loops where everything is caught: an error in
        # here must not leave a moving arm without its next target.
        try:
            decision, after = self._judge(command, state, now, driver)
            self._record(command, decision, now, driver)
        except Exception as error:
            reason = f"internal error: {type(error).__name__}: {error!s:.200}"
            decision, after = self._coasting(now, reason)
            with suppress(Exception):
                self._record(command, decision, now, driver)
        self._at = after
        return decision

    def stop(self, reason: str, now: float, by: str = "kernel") -> None:
        """Stop: nothing is followed until a person clears it. The first reason stays."""
        self._stopped = self._stopped or reason.strip() or "stopped without a reason"
        with suppress(Exception):  # a record that fails must not keep the arm from stopping
            self._tell("stop", now, by, self._stopped)

    def clear(self, by: str, now: float) -> None:
        """Take commands again; the next one begins from rest where the arm then is.

        Args:
            by: name of the person who looked at the arm; it is recorded.
            now: as `admit`.

        Raises:
            ConfigError: nothing is stopped, or `by` is no person's name.
            SafetyStop: what is sent still moves.
        """
        name = _person(by)
        if not self._stopped:
            raise ConfigError("there is nothing to clear: the arm is not stopped")
        if not self.rests:
            raise SafetyStop("the arm is still being led to rest; clear the stop after that")
        self._tell("clear", now, name, self._stopped)
        self.forget()
        self._stopped = ""

    def forget(self) -> None:
        """Begin anew at the next tick, from rest where the arm then is: it was told to hold.

        Nothing is sent meanwhile, so there is nothing to lead to rest.
        """
        self._at = replace(self._at, track=None, sent=None, using="", waiting="", measured=None)
        self._approved = ""

    def approve(self, token: str, by: str, now: float) -> None:
        """Let the command that waits under `token` be followed, until another one is asked.

        Raises:
            ConfigError: no command waits under this token, or `by` is no person's name.
        """
        name = _person(by)
        if not token or token != self._at.waiting:
            raise ConfigError(f"no command waits for the approval {token!r}; ask for it again")
        self._tell("approve", now, name, token)
        self._approved = token

    # ------------------------------------------------------------------ one tick

    def _judge(
        self, command: Command | None, state: Reading | None, now: float, driver: str
    ) -> tuple[Decision, _Sequence]:
        passed = self._ticks(now)
        if passed == 0:
            return self._again("called within the same tick, or by a clock that is none"), self._at
        at = replace(self._at, tick=self._at.tick + passed, now=float(now))
        anew = at.track is None
        if passed > 1 and at.track is not None:
            # The arm had no target for a while and has come to rest at the last one.
            at, anew = replace(at, track=at.track.stopped_here()), True
        try:
            at = self._sensed(at, state, now)
            if self._stopped:
                raise SafetyStop(self._stopped)
            return self._follow(at, command, driver, anew)
        except _Held as held:
            if not self._stopped:
                return self._resting(at, held.verdict, held.reason, anew, held.approval)
        except SafetyStop as stop:
            if not self._stopped:
                self.stop(str(stop), now)
        return self._resting(at, "stopped", self._stopped, anew)

    def _sensed(self, at: _Sequence, state: Reading | None, now: float) -> _Sequence:
        """Return the sequence, begun if need be, after a look at the arm."""
        if state is None:
            raise _Held("there is no reading of the arm")
        fault = reading_fault(state, now, self._limits)
        if fault:
            raise _Held(fault)
        joints = read_only(state.joint_pos)
        trouble = joint_trouble(joints, state.t, at.measured, self._limits)
        if trouble:
            raise SafetyStop(trouble)
        at = replace(at, measured=(state.t, joints))
        if at.track is None:
            return at if self._stopped else replace(at, track=self._tracker.start(state))
        lag = self._tracker.lag(at.track, state)
        if lag:
            raise SafetyStop(f"the arm does not follow: {lag}")
        return at

    def _follow(
        self, at: _Sequence, command: Command | None, driver: str, anew: bool
    ) -> tuple[Decision, _Sequence]:
        """Return the step towards a command, if it can be followed."""
        track = at.track
        if track is None:
            raise _Held("the sequence has not begun")
        at = replace(at, factor=self._factor(driver))
        if command is None:
            raise _Held("nothing was asked")
        try:
            checked = checked_command(command, self._kind, len(self._limits.joints))
            goal = self._tracker.goal(checked.values)
            jump = self._tracker.jump(track, goal)
            goal, moved = self._tracker.confine(goal)
        except SpecMismatch as error:
            raise _Held(str(error), "refused") from None
        if jump:
            raise _Held(f"jump: {jump}", "refused")
        grip, reasons = confined_grip(checked.grip, self._limits.gripper)
        at = self._approval(at, checked)
        # A slower driver inherits the way to rest, not the way to the last one's target.
        if at.factor < self._at.factor and not track.rests:
            later, why = self._tracker.brake(track, at.factor), "slowing down for this driver"
        else:
            later, why = self._tracker.advance(track, goal, at.factor)
        reasons += [reason for reason in (moved, why) if reason]
        values = checked.values if not reasons else self._tracker.values(later)
        grip = grip or at.grip
        sent = Command(self._kind, read_only(values), grip)
        verdict: Verdict = "changed" if reasons else "as asked"
        decision = Decision(sent, verdict, tuple(reasons), at.tick, anew)
        return decision, replace(at, track=later, grip=grip, sent=sent)

    def _approval(self, at: _Sequence, command: Command) -> _Sequence:
        """Return the sequence where `command` is approved, or hold until it is."""
        if not self._needs_approval:
            return at
        token = command_token(command)
        if token == at.using:
            return at
        if token == self._approved:
            self._approved = ""
            return replace(at, using=token, waiting="")
        raise _Held("waits for approval", approval=token)

    def _factor(self, driver: str) -> float:
        """Return the share of the speed limits that a driver may use."""
        kind = driver.partition(":")[0] if isinstance(driver, str) else repr(driver)
        if kind not in self._limits.drivers:
            raise _Held(
                f"no driver {kind!r:.40} is known; {suggest(kind, self._limits.drivers)}", "refused"
            )
        return self._limits.drivers[kind]

    # ------------------------------------------------------------------ ways to rest

    def _resting(
        self, at: _Sequence, verdict: Verdict, reason: str, anew: bool, approval: str = ""
    ) -> tuple[Decision, _Sequence]:
        """Return the next step to rest."""
        if at.track is not None:
            at = replace(at, track=self._tracker.brake(at.track, at.factor))
        at = replace(self._sending(at), waiting=approval, using="" if approval else at.using)
        anew = anew and at.sent is not None
        return Decision(at.sent, verdict, (reason,), at.tick, anew, approval), at

    def _coasting(self, now: float, reason: str) -> tuple[Decision, _Sequence]:
        """Return the next step of the plan that was proven before, without any search."""
        passed = self._ticks(now)
        if passed == 0:
            return self._again(reason), self._at
        at = replace(self._at, tick=self._at.tick + passed, now=float(now))
        if at.track is not None:
            track = at.track.stopped_here() if passed > 1 else at.track
            at = replace(at, track=self._tracker.coast(track))
        at = self._sending(at)
        anew = passed > 1 and at.track is not None
        verdict: Verdict = "stopped" if self._stopped else "held"
        return Decision(at.sent, verdict, (reason,), at.tick, anew), at

    def _again(self, reason: str) -> Decision:
        """Return what this tick was told already."""
        verdict: Verdict = "stopped" if self._stopped else "held"
        return Decision(self._at.sent, verdict, (reason,), self._at.tick)

    def _sending(self, at: _Sequence) -> _Sequence:
        """Return the sequence with what is sent where it is now."""
        if at.track is None:
            return replace(at, sent=None)
        values = read_only(self._tracker.values(at.track))
        return replace(at, sent=Command(self._kind, values, at.grip))

    def _ticks(self, now: float) -> int:
        """Return how many ticks have passed since the last one; 0 while it is still the same."""
        if isinstance(now, bool) or not isinstance(now, int | float) or not math.isfinite(now):
            return 0
        if self._at.now == -math.inf:
            return 1
        passed = (now - self._at.now) / self._limits.timing.tick
        if not passed >= 1.0 - self._limits.timing.jitter:
            return 0
        return max(1, round(min(passed, 1e9)))

    # ------------------------------------------------------------------ the record

    def _record(self, asked: Command | None, decision: Decision, now: float, driver: str) -> None:
        if self._audit is not None:
            self._audit(
                AuditEntry(
                    now=now,
                    tick=decision.tick,
                    event="decision",
                    driver=driver,
                    verdict=decision.verdict,
                    asked=asked,
                    sent=decision.sent,
                    reasons=decision.reasons,
                )
            )

    def _tell(self, event: AuditEvent, now: float, by: str, reason: str) -> None:
        if self._audit is not None:
            entry = AuditEntry(now, self._at.tick, event, by, event, None, None, (reason,))
            self._audit(entry)


class _Held(Exception):
    """Inside a tick: the command is not followed."""

    def __init__(self, reason: str, verdict: Verdict = "held", approval: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.verdict = verdict
        self.approval = approval


def _person(name: str) -> str:
    """Return the name of a person who answers for something.

    Raises:
        ConfigError: it is empty, too long, or no person's.
    """
    plain = name.strip() if isinstance(name, str) else ""
    kind = plain.partition(":")[0].lower()
    if not plain or len(plain) > MAX_NAME or not plain.isprintable() or kind in NO_PERSON:
        raise ConfigError(f"only a person can do that; give your name, got {name!r:.60}")
    return plain
