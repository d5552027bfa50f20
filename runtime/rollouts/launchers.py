"""Where rollouts run: the words that every launcher shares.

A `Launcher` turns jobs into outcomes. The pool (`rollouts.pool`) seats workers, watches them and
tries again; where its workers live is the business of a `Site`: processes of this machine
(`rollouts.process`), or actors of a Ray cluster (`rollouts.ray_launcher`). So each launcher has the
same retries, the same watchdog and the same results.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from zetta.runtime.core import RunSpec
from zetta.runtime.rollouts.factory import EpisodeRecord, Identity


@dataclass(frozen=True, slots=True)
class Job:
    """One episode to run."""

    key: str
    """Content key: equal keys are the same episode."""
    group: str
    """Jobs of one group share an environment."""
    spec: RunSpec


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a job: a record, or the error that every attempt ended in."""

    job: Job
    record: EpisodeRecord | None
    attempts: int
    """How often a worker has begun it."""
    error: str = ""


class Launcher(Protocol):
    """Runs jobs somewhere; use as a context manager, so that nothing is left behind."""

    def __enter__(self) -> Launcher: ...

    def __exit__(self, *_: object) -> None: ...

    def identify(self, specs: Sequence[RunSpec]) -> Identity:
        """Ask a worker what `specs` would run.

        Raises:
            ZettaError: whatever stops the factory from building it.
            WorkerDied: the worker died or fell silent.
        """
        ...

    def run(self, jobs: Sequence[Job]) -> Iterator[Outcome]:
        """Run `jobs`, each key once, yielding each outcome as it comes.

        Raises:
            ZettaError: an error that would meet every attempt (a wrong name, a foreign model).
        """
        ...

    def status(self) -> str:
        """Return what the workers do at this moment, in one line."""
        ...

    def close(self) -> None:
        """End every worker at once."""
        ...


@dataclass(slots=True)
class Pulse:
    """What a worker was last heard to do."""

    phase: str = "starting"
    heard_at: float = field(default_factory=time.monotonic)
    greeted: bool = False
    """It has come to life; before that, nothing that was asked has been begun."""
    warm: bool = False
    """An episode has ticked; before that, imports and building take their time."""

    def note(self, messages: Sequence[Mapping[str, Any]]) -> None:
        """Take notice of what a worker said."""
        if messages:
            self.heard_at = time.monotonic()
        for message in messages:
            self.greeted = True
            if message["say"] == "phase":
                self.phase = str(message["text"])
            elif message["say"] == "tick":
                self.warm = True
                self.phase = f"{self.phase.partition(', tick')[0]}, tick {message['index']}"


class Worker(Protocol):
    """One process that runs episodes, as its pool sees it."""

    @property
    def pulse(self) -> Pulse:
        """What it was last heard to do."""
        ...

    @property
    def handle(self) -> Any:
        """What its site waits for."""
        ...

    def run(self, job_id: int, spec: RunSpec) -> None:
        """Ask for one episode."""
        ...

    def identify(self, specs: Sequence[RunSpec]) -> None:
        """Ask what the factory would run."""
        ...

    def stop(self) -> None:
        """Ask the worker to end by itself."""
        ...

    def messages(self) -> list[dict[str, Any]]:
        """Return what has arrived, without waiting.

        Raises:
            WorkerDied: it has ended and everything it said has been returned.
        """
        ...

    def last_words(self, what: str) -> str:
        """Return one sentence: who, what happened, and in which phase."""
        ...

    def ended(self) -> bool:
        """Say whether it is gone, or has nothing left to do."""
        ...

    def kill(self) -> None:
        """End it and its children at once; harmless when they have ended."""
        ...


class Site(Protocol):
    """Where workers live."""

    def has_room(self) -> bool:
        """Say whether another worker can be placed now.

        Raises:
            InfraError: there has been no place for too long.
        """
        ...

    def start(self, name: str) -> Worker:
        """Start a worker.

        Raises:
            InfraError: it cannot be started.
        """
        ...

    def wait(self, handles: Sequence[Any], within_s: float) -> None:
        """Return as soon as a worker has something to say, at the latest after `within_s`."""
        ...

    def close(self) -> None:
        """Free the site."""
        ...
