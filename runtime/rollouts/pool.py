"""A pool of workers that run episodes, one task at a time each.

A process renders for one environment in its lifetime, so a worker serves one group of jobs (one
task of one suite) and is then replaced. What fails for reasons of machinery is tried again on the
same scene, in a fresh process, a bounded number of times, and is then handed back as an error:
it is never a score. Which worker runs which job changes nothing but the wall time.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from zetta.runtime.core import RunSpec
from zetta.runtime.errors import ConfigError, InfraError, WorkerDied, ZettaError
from zetta.runtime.rollouts.factory import EpisodeRecord, Identity, merged
from zetta.runtime.rollouts.launchers import Job, Outcome, Site, Worker
from zetta.runtime.rollouts.messages import error_from_json, identity_from_json, record_from_json
from zetta.runtime.rollouts.process import ProcessSite

POLL_S = 0.2
SHARE_FROM = 3
"""A free worker joins a task that others work on when at least so many of its jobs wait."""


@dataclass(frozen=True, slots=True)
class PoolSettings:
    """How a pool starts and watches its workers."""

    factory: str
    """Dotted name `package.module:function` of the episode factory."""
    log_dir: Path
    workers: int = 1
    environment: Mapping[str, str] | None = None
    """Environment variables of the workers; None passes ours on."""
    silence_s: float = 300.0
    """A worker whose episodes have begun to tick, and that says nothing for so long, is hung."""
    start_s: float = 900.0
    """The same before its first tick, while it imports and builds."""
    stagger_s: float = 1.0
    """Pause between two starts: graphics contexts created at once can lock each other up."""
    attempts: int = 3
    """How often one scene is tried before it is given up as an error. A worker that ends before it
    has said a word has tried nothing; from as many such starts on, each counts."""
    farewell_s: float = 5.0
    """How long a worker may take to end by itself."""

    def __post_init__(self) -> None:
        if self.workers < 1:
            raise ConfigError(f"--workers must be at least 1, got {self.workers}")
        if not min(self.silence_s, self.start_s) > 0:
            raise ConfigError(f"the watchdog needs more than 0 s, got {self.silence_s:g}")


@dataclass(slots=True)
class _Group:
    name: str
    waiting: deque[tuple[int, Job]]
    workers: int = 0
    proven: bool = False
    """Some worker has run an episode of this group to its end."""


@dataclass(slots=True)
class _Desk:
    """A running worker, its group and the job it has in hand."""

    process: Worker
    group: _Group
    job_id: int
    job: Job


@dataclass(slots=True)
class Pool:
    """Runs jobs on worker processes; use as a context manager, so that none is left behind."""

    settings: PoolSettings
    site: Site | None = None
    """Where the workers live; None for processes of this machine."""
    _desks: dict[int, _Desk] = field(default_factory=dict)
    _leaving: list[tuple[float, Worker]] = field(default_factory=list)
    _attempts: dict[int, int] = field(default_factory=dict)
    _lost_starts: dict[int, int] = field(default_factory=dict)
    _groups: list[_Group] = field(default_factory=list)
    _outcomes: deque[Outcome] = field(default_factory=deque)
    _last_start: float = float("-inf")
    _site: Site = field(init=False)

    def __post_init__(self) -> None:
        given = self.settings
        self._site = self.site or ProcessSite(given.factory, given.log_dir, given.environment)

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End every worker at once."""
        for desk in self._desks.values():
            desk.process.kill()
        for _, process in self._leaving:
            process.kill()
        self._desks.clear()
        self._leaving.clear()
        self._site.close()

    def status(self) -> str:
        """Return what the workers do at this moment, in one line."""
        return " · ".join(desk.process.pulse.phase for desk in list(self._desks.values()))

    @property
    def ticking(self) -> int:
        """How many workers have got as far as an episode's ticks."""
        return sum(desk.process.pulse.warm for desk in self._desks.values())

    def identify(self, specs: Sequence[RunSpec]) -> Identity:
        """Ask workers of their own, one for each render setting, what `specs` would run.

        Raises:
            ZettaError: whatever stops the factory from building it.
            WorkerDied: the worker died or fell silent.
        """
        renders = dict.fromkeys(spec.render for spec in specs)
        return merged([self._probe([s for s in specs if s.render == r]) for r in renders])

    def _probe(self, specs: Sequence[RunSpec]) -> Identity:
        process = self._start_process("probe")
        try:
            process.identify(specs)
            while True:
                self._wait([process])
                for message in process.messages():
                    if message["say"] == "error":
                        raise error_from_json(message)
                    if message["say"] == "identity":
                        return identity_from_json(
                            {k: v for k, v in message.items() if k not in ("say", "id")}
                        )
                self._check_silence(process)
        finally:
            process.kill()

    def run(self, jobs: Sequence[Job]) -> Iterator[Outcome]:
        """Run `jobs`, yielding each outcome as it comes (the order depends on the workers).

        Jobs of one key are one job.

        Raises:
            ZettaError: an error that would meet every attempt (a wrong name, a foreign model).
            InfraError: there is no place for a worker.
        """
        jobs = list({job.key: job for job in jobs}.values())
        self._groups = _grouped(jobs)
        self._attempts = dict.fromkeys(range(len(jobs)), 0)
        self._lost_starts = dict.fromkeys(range(len(jobs)), 0)
        while True:
            self._seat_workers()
            yield from self._drain()
            if not self._desks and not any(group.waiting for group in self._groups):
                break
            self._wait([desk.process for desk in self._desks.values()])
            for seat, desk in list(self._desks.items()):
                self._serve(seat, desk)
            self._reap()
            yield from self._drain()
        while self._leaving:
            time.sleep(0.02)
            self._reap()

    def _drain(self) -> Iterator[Outcome]:
        while self._outcomes:
            yield self._outcomes.popleft()

    # ------------------------------------------------------------------ starting

    def _seat_workers(self) -> None:
        for seat in range(self.settings.workers):
            if seat in self._desks:
                continue
            if time.monotonic() - self._last_start < self.settings.stagger_s:
                return
            group = self._next_group()
            if group is None or not self._site.has_room():
                return
            process = self._start_process(f"worker {seat + 1} ({group.name})")
            group.workers += 1
            job_id, job = group.waiting.popleft()
            self._desks[seat] = _Desk(process, group, job_id, job)
            process.run(job_id, job.spec)

    def _next_group(self) -> _Group | None:
        untouched = [g for g in self._groups if g.waiting and not g.workers]
        if untouched:
            return untouched[0]
        shared = [g for g in self._groups if g.workers and len(g.waiting) >= SHARE_FROM * g.workers]
        return max(shared, key=lambda g: len(g.waiting) / g.workers, default=None)

    def _start_process(self, name: str) -> Worker:
        self._last_start = time.monotonic()
        return self._site.start(name)

    # ------------------------------------------------------------------ serving

    def _wait(self, processes: Sequence[Worker]) -> None:
        if not processes:
            time.sleep(min(POLL_S, self.settings.stagger_s))
            return
        self._site.wait([process.handle for process in processes], POLL_S)

    def _serve(self, seat: int, desk: _Desk) -> None:
        try:
            for message in desk.process.messages():
                if message["say"] == "result":
                    self._finish(seat, desk, record_from_json(message["record"]))
                    return
                if message["say"] == "error":
                    self._fail(seat, desk, error_from_json(message), bool(message["again"]))
                    return
            self._check_silence(desk.process)
        except WorkerDied as error:
            self._fail(seat, desk, error, again=True)

    def _check_silence(self, process: Worker) -> None:
        silent = time.monotonic() - process.pulse.heard_at
        if silent > (self.settings.silence_s if process.pulse.warm else self.settings.start_s):
            raise WorkerDied(process.last_words(f"said nothing for {silent:.0f} s and was killed"))

    def _finish(self, seat: int, desk: _Desk, record: EpisodeRecord) -> None:
        if record.reason == "error":
            said = InfraError(record.detail or "the episode ended in an error without a word")
            self._fail(seat, desk, said, again=True)
            return
        desk.group.proven = True
        attempts = self._attempts[desk.job_id] + 1
        self._outcomes.append(Outcome(desk.job, record, attempts))
        if desk.group.waiting:
            desk.job_id, desk.job = desk.group.waiting.popleft()
            desk.process.run(desk.job_id, desk.job.spec)
            return
        self._dismiss(seat, desk)

    def _fail(self, seat: int, desk: _Desk, error: ZettaError, again: bool) -> None:
        desk.process.kill()
        del self._desks[seat]
        desk.group.workers -= 1
        if not again:
            raise error
        self._count(desk)
        attempts = self._attempts[desk.job_id]
        if attempts < self.settings.attempts:
            desk.group.waiting.appendleft((desk.job_id, desk.job))
            return
        self._outcomes.append(Outcome(desk.job, None, attempts, str(error)))
        if not desk.group.proven:
            self._give_up(desk.group, str(error))

    def _count(self, desk: _Desk) -> None:
        """Count an attempt, or a start that came to nothing, as on a node that is gone."""
        if not desk.process.pulse.greeted:
            self._lost_starts[desk.job_id] += 1
            if self._lost_starts[desk.job_id] < self.settings.attempts:
                return
        self._attempts[desk.job_id] += 1

    def _give_up(self, group: _Group, error: str) -> None:
        """A task that has never worked, in as many processes as one scene may use, is left."""
        while group.waiting:
            job_id, job = group.waiting.popleft()
            self._outcomes.append(Outcome(job, None, self._attempts[job_id], error))

    # ------------------------------------------------------------------ ending

    def _dismiss(self, seat: int, desk: _Desk) -> None:
        desk.process.stop()
        del self._desks[seat]
        desk.group.workers -= 1
        self._leaving.append((time.monotonic() + self.settings.farewell_s, desk.process))

    def _reap(self) -> None:
        still: list[tuple[float, Worker]] = []
        for deadline, process in self._leaving:
            if process.ended() or time.monotonic() > deadline:
                process.kill()
            else:
                still.append((deadline, process))
        self._leaving = still


def _grouped(jobs: Sequence[Job]) -> list[_Group]:
    groups: dict[str, _Group] = {}
    for job_id, job in enumerate(jobs):
        group = groups.setdefault(job.group, _Group(job.group, deque()))
        group.waiting.append((job_id, job))
    return list(groups.values())
