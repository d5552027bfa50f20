"""The one place where a policy is asked; every door to it stands before this engine.

One thread loads the policy, resets it and infers, whatever comes in through however many doors:
the rest only queues and waits for futures, so no socket ever waits for a network. Of each session
one request may wait. What is not begun before its deadline is not begun at all.
"""

from __future__ import annotations

import math
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias, cast

from zetta.runtime.core import ActionChunk, Observation, Policy, PolicySpec
from zetta.runtime.errors import ConfigError, ConnectionLost, SpecMismatch, Timeout, ZettaError
from zetta.runtime.policy_server.batching import (
    BUCKETS,
    Pace,
    Waiting,
    decide,
    measured,
    waited,
)
from zetta.runtime.policy_server.limits import ServingLimits
from zetta.runtime.policy_server.observations import check_observation
from zetta.runtime.policy_server.seats import Seats
from zetta.runtime.policy_server.tallies import EngineStats, Tally
from zetta.runtime.wire import explained

ACTIVE_S: Final = 2.0
"""A session that has asked within so many seconds is expected to ask again."""
QUEUED: Final = 8
"""Calls of one session that may wait; an honest client has one."""

Clock: TypeAlias = Callable[[], float]


@dataclass(frozen=True, slots=True)
class _Reset:
    instruction: str
    seed: int
    future: Future[None]


@dataclass(frozen=True, slots=True)
class _Infer:
    observation: Observation
    arrived: float
    deadline: float
    future: Future[ActionChunk]


@dataclass(slots=True)
class _Session:
    robot: str
    priority: int
    calls: deque[_Reset | _Infer] = field(default_factory=deque)
    """What waits, in order; only the first one may be carried out."""
    asked: float = -math.inf
    """When it last asked for a chunk."""
    leaving: bool = False


@dataclass(frozen=True, slots=True)
class _Work:
    """What the worker does next, all of it taken off the queues."""

    resets: tuple[tuple[int, _Reset], ...] = ()
    batch: tuple[tuple[int, _Infer], ...] = ()
    rows: int = 0
    late: tuple[_Infer, ...] = ()
    left: tuple[int, ...] = ()


class Engine:
    """Serves one policy to many sessions. Every method may be called by any thread."""

    def __init__(
        self,
        policy_factory: Callable[[], Policy] | Policy,
        limits: ServingLimits | None = None,
        clock: Clock = time.monotonic,
    ) -> None:
        """Load the policy in the worker thread and wait until it is warm.

        Args:
            policy_factory: makes the policy, and one more for each further session where it does
                not batch. A policy itself is shared; without batching it has one session.
            limits: how much is allowed.
            clock: seconds, monotonic.

        Raises:
            ZettaError: the policy cannot be loaded.
        """
        self._limits, self._clock = limits or ServingLimits(), clock
        self._changed = threading.Condition()
        self._sessions: dict[int, _Session] = {}
        self._numbers = 0
        self._pace = Pace()
        self._last_arrival = self._idle_since = self._busy_since = clock()
        self._busy = self._draining = self._stopped = False
        self._most = 1
        self._tally = Tally()
        loaded: Future[Seats] = Future()
        self._worker = threading.Thread(
            target=self._work, args=(policy_factory, loaded), name="policy", daemon=True
        )
        self._worker.start()
        self._seats = loaded.result()

    @property
    def spec(self) -> PolicySpec:
        """What the policy needs and emits."""
        return self._seats.spec

    @property
    def limits(self) -> ServingLimits:
        """How much is allowed."""
        return self._limits

    @property
    def stats(self) -> EngineStats:
        """What was counted so far."""
        with self._changed:
            calls = sum(len(session.calls) for session in self._sessions.values())
            return self._tally.stats(self._present(), calls)

    @property
    def busy_s(self) -> float:
        """Seconds that the present call of the policy has taken; 0 while there is none."""
        with self._changed:
            return self._clock() - self._busy_since if self._busy else 0.0

    def open(self, robot: str, priority: int = 0) -> int:
        """Return the number of a new session; `robot` is for people to read.

        Raises:
            ConfigError: there are as many sessions as are allowed.
            ConnectionLost: the server is ending.
        """
        with self._changed:
            self._check_open()
            most = min(self._limits.max_sessions, self._seats.limit or self._limits.max_sessions)
            if self._present() >= most:
                raise ConfigError(
                    f"all {most} sessions are taken ({self._robots()}); close one, wait until a "
                    "silent one expires, or allow more with zetta serve --max-sessions"
                )
            self._numbers += 1
            self._sessions[self._numbers] = _Session(robot, priority)
            return self._numbers

    def reset(self, session: int, instruction: str, seed: int) -> Future[None]:
        """Begin an episode; the future holds whatever the policy says against it.

        Raises:
            ConnectionLost: no such session.
        """
        future: Future[None] = Future()
        with self._changed:
            self._queue(session, _Reset(instruction, seed, future))
        return future

    def infer(
        self, session: int, observation: Observation, deadline_s: float | None
    ) -> Future[ActionChunk]:
        """Ask for a chunk, to be begun within `deadline_s` seconds from now.

        The future holds `Timeout` when it was not begun in time, and `SpecMismatch` when the
        observation does not fit the policy or no episode was begun.

        Raises:
            ConnectionLost: no such session.
            ConfigError: it has a request that waits already.
        """
        future: Future[ActionChunk] = Future()
        try:
            check_observation(self.spec, observation)
        except SpecMismatch as error:
            future.set_exception(error)
            return future
        now = self._clock()
        deadline = math.inf if deadline_s is None else now + deadline_s
        with self._changed:
            known = self._known(session)
            if any(isinstance(call, _Infer) for call in known.calls):
                raise ConfigError(f"session {session} waits for a chunk already; ask one at a time")
            self._queue(session, _Infer(observation, now, deadline, future))
            self._pace = waited(self._pace, now - max(self._last_arrival, self._idle_since))
            self._last_arrival = known.asked = now
        return future

    def close(self, session: int) -> None:
        """End a session; what it still waits for fails. An unknown one is no error."""
        with self._changed:
            known = self._sessions.get(session)
            if known is None or known.leaving:
                return
            known.leaving = True
            waiting = tuple(known.calls)
            known.calls.clear()
            self._changed.notify_all()
        _fail(waiting, ConnectionLost(f"session {session} was closed"))

    def drain(self, within_s: float) -> None:
        """Take nothing new, and wait until what was taken is carried out."""
        with self._changed:
            self._draining = True
            self._changed.wait_for(lambda: not self._occupied(), within_s)

    def stop(self) -> None:
        """End the worker and close the policy; what still waits fails. Again does nothing."""
        self._abandon()
        self._worker.join(self._limits.drain_s)  # a policy that hangs keeps nobody here

    def _abandon(self) -> None:
        """Take nothing new and fail what waits."""
        with self._changed:
            self._draining = self._stopped = True
            waiting = [call for session in self._sessions.values() for call in session.calls]
            for session in self._sessions.values():
                session.calls.clear()
            self._changed.notify_all()
        _fail(waiting, ConnectionLost("the policy server is ending"))

    # ------------------------------------------------------------------ queues

    def _queue(self, session: int, call: _Reset | _Infer) -> None:
        self._check_open()
        known = self._known(session)
        if len(known.calls) >= QUEUED:
            raise ConfigError(
                f"session {session} has {QUEUED} calls waiting; await the answers one by one"
            )
        known.calls.append(call)
        self._changed.notify_all()

    def _known(self, session: int) -> _Session:
        known = self._sessions.get(session)
        if known is None or known.leaving:
            raise ConnectionLost(f"there is no session {session}; open one")
        return known

    def _present(self) -> int:
        return sum(not session.leaving for session in self._sessions.values())

    def _check_open(self) -> None:
        if self._draining:
            raise ConnectionLost("the policy server is ending; connect to another one")

    def _robots(self) -> str:
        names = [session.robot for session in self._sessions.values()]
        return ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")

    def _occupied(self) -> bool:
        return self._busy or any(session.calls for session in self._sessions.values())

    # ------------------------------------------------------------------ the worker

    def _work(self, make: Callable[[], Policy] | Policy, loaded: Future[Seats]) -> None:
        try:
            seats = _seats(make)
            seats.warm_up([rows for rows in BUCKETS if rows <= self._limits.max_rows])
        except Exception as error:  # the thread's boundary: whoever waits is told
            known = isinstance(error, ZettaError | ModuleNotFoundError)  # the command names extras
            loaded.set_exception(error if known else explained(error))
            return
        self._most = self._limits.max_rows if seats.batches else 1
        loaded.set_result(seats)
        try:
            while (work := self._next()) is not None:
                for session in work.left:
                    seats.leave(session)
                for session, reset in work.resets:
                    self._reset(seats, session, reset)
                self._turn_away(work.late)
                self._infer(seats, work)
            seats.close()
        finally:
            self._abandon()

    def _next(self) -> _Work | None:
        """Wait for work and take it; None when there will be none."""
        with self._changed:
            self._busy = False
            self._idle_since = self._clock()
            self._changed.notify_all()
            while not self._stopped:
                work, wait_s = self._choose()
                if work is not None:
                    self._busy, self._busy_since = True, self._clock()
                    return work
                self._changed.wait(None if math.isinf(wait_s) else wait_s)
            return None

    def _choose(self) -> tuple[_Work | None, float]:
        left = tuple(number for number, session in self._sessions.items() if session.leaving)
        for number in left:
            del self._sessions[number]
        first = [(n, s.calls[0]) for n, s in self._sessions.items() if s.calls]
        resets = tuple((n, call) for n, call in first if isinstance(call, _Reset))
        if left or resets:
            for number, _ in resets:
                self._sessions[number].calls.popleft()
            return _Work(resets=resets, left=left), 0.0
        return self._choose_batch([(n, call) for n, call in first if isinstance(call, _Infer)])

    def _choose_batch(self, first: Sequence[tuple[int, _Infer]]) -> tuple[_Work | None, float]:
        now = self._clock()
        waiting = [
            Waiting(n, call.arrived, call.deadline, self._sessions[n].priority) for n, call in first
        ]
        active = sum(now - session.asked <= ACTIVE_S for session in self._sessions.values())
        decision = decide(
            waiting, active, self._idle_since, now, self._pace, self._most, self._limits.max_wait_s
        )
        if not decision.late and not decision.take:
            return None, decision.wait_s
        if decision.take and len(waiting) < min(active, self._most):
            kept_waiting = now - max(self._last_arrival, self._idle_since)
            if kept_waiting > self._pace.gap_s:
                self._pace = waited(self._pace, kept_waiting)
        calls = dict(first)
        for number in (*decision.late, *decision.take):
            self._sessions[number].calls.popleft()
        batch = tuple((number, calls[number]) for number in decision.take)
        return _Work((), batch, decision.rows, tuple(calls[n] for n in decision.late)), 0.0

    def _turn_away(self, late: Sequence[_Infer]) -> None:
        for call in late:
            self._tally.late += 1
            waited_s = self._clock() - call.arrived
            _fail([call], Timeout(f"the policy was busy for {waited_s:.2f} s, past the deadline"))

    def _infer(self, seats: Seats, work: _Work) -> None:
        batch = [pair for pair in work.batch if pair[1].future.set_running_or_notify_cancel()]
        for session, call in batch:
            if not seats.ready(session):
                call.future.set_exception(
                    SpecMismatch("reset(instruction, seed) comes before the first infer")
                )
        batch = [pair for pair in batch if not pair[1].future.done()]
        if not batch:
            return
        start = self._clock()
        sessions = [session for session, _ in batch]
        observations = [call.observation for _, call in batch]
        try:
            chunks = seats.infer(sessions, observations, work.rows)
        except Exception as error:  # the thread's boundary: whoever waits is told
            self._tally.failed += len(batch)
            for _, call in batch:
                call.future.set_exception(_said(error))
            return
        took = self._clock() - start
        self._tally.add(len(batch), work.rows, took)
        with self._changed:
            self._pace = measured(self._pace, work.rows, took)
        for (_, call), chunk in zip(batch, chunks, strict=True):
            call.future.set_result(chunk)

    def _reset(self, seats: Seats, session: int, call: _Reset) -> None:
        if not call.future.set_running_or_notify_cancel():
            return
        self._tally.resets += 1
        try:
            seats.reset(session, call.instruction, call.seed)
        except Exception as error:  # the thread's boundary: whoever waits is told
            call.future.set_exception(_said(error))
        else:
            call.future.set_result(None)


def _said(error: Exception) -> ZettaError:
    """Return what clients hear; the whole story of a fault goes to our own stderr."""
    if not isinstance(error, ZettaError):
        traceback.print_exception(error)
    return explained(error)


def _seats(make: Callable[[], Policy] | Policy) -> Seats:
    if isinstance(make, Policy) and not isinstance(make, type):
        shared = make
        return Seats(lambda: shared, shared)
    return Seats(cast(Callable[[], Policy], make), None)


def _fail(calls: Sequence[_Reset | _Infer], error: ZettaError) -> None:
    for call in calls:
        future = cast("Future[Any]", call.future)
        if future.set_running_or_notify_cancel():
            future.set_exception(error)
