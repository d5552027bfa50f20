"""A worker process as its pool sees it."""

from __future__ import annotations

import selectors
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from zetta.runtime.core import RunSpec
from zetta.runtime.rollouts.messages import spec_to_json
from zetta.runtime.rollouts.piped import PipedProcess, portable

MAIN: Final = "zetta.runtime.rollouts.worker:main"


class WorkerProcess(PipedProcess):
    """A process that runs the episodes of one factory."""

    def __init__(
        self, name: str, factory: str, log: Path, environment: Mapping[str, str] | None
    ) -> None:
        """Start the process; its stdout and stderr are appended to `log`.

        Raises:
            InfraError: the operating system refuses another process.
        """
        super().__init__(name, MAIN, [factory], log, environment)

    def run(self, job_id: int, spec: RunSpec) -> None:
        """Ask for one episode."""
        self.send({"do": "run", "id": job_id, "spec": spec_to_json(spec)})

    def identify(self, specs: Sequence[RunSpec]) -> None:
        """Ask what the factory would run."""
        self.send({"do": "identify", "id": 0, "specs": [spec_to_json(s) for s in specs]})

    def stop(self) -> None:
        """Ask the worker to end by itself."""
        self.send({"do": "stop"})


class ProcessSite:
    """Worker processes of this machine: there is always room for one more."""

    def __init__(
        self, factory: str, log_dir: Path, environment: Mapping[str, str] | None = None
    ) -> None:
        """Workers run the factory of that dotted name and print into files of `log_dir`."""
        self._factory, self._log_dir, self._environment = factory, log_dir, environment
        self._started = 0

    def has_room(self) -> bool:
        """Say yes: the pool knows how many workers are wanted."""
        return True

    def start(self, name: str) -> WorkerProcess:
        """Start a process.

        Raises:
            InfraError: the operating system refuses another process.
        """
        self._started += 1
        self._log_dir.mkdir(parents=True, exist_ok=True)
        log = self._log_dir / f"{self._started:03d}-{portable(name)}.log"
        return WorkerProcess(name, self._factory, log, self._environment)

    def wait(self, handles: Sequence[Any], within_s: float) -> None:
        """Wait until one of the descriptors is readable, at most `within_s`."""
        with selectors.DefaultSelector() as selector:
            for handle in handles:
                selector.register(handle, selectors.EVENT_READ)
            selector.select(within_s)

    def close(self) -> None:
        """Hold nothing: each process is ended by its pool."""
