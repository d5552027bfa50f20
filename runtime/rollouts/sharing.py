"""One policy server for all workers of a pool, in a process of its own.

The server listens on a socket file in a folder that only this user may enter, and ends when this
process does, however that ends. One that dies is started again at the same place: that costs the
episodes that were running, and the pool tries them again.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

from zetta.runtime.errors import InfraError, Timeout, WorkerDied
from zetta.runtime.rollouts.launchers import Site, Worker
from zetta.runtime.rollouts.messages import error_from_json
from zetta.runtime.rollouts.piped import PipedProcess, portable
from zetta.runtime.rollouts.pool import POLL_S, PoolSettings

RESTARTS: Final = 3
"""How often one server is started again."""
FAREWELL_S: Final = 5.0
"""How long a server may take to end by itself."""
FOLDER_PREFIX: Final = "zetta-shared-"
LONGEST_PATH: Final = 90
"""Letters of a folder that a socket's file can lie in; the system allows 107 in all."""

Say: TypeAlias = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class SharedPolicy:
    """A policy that the workers of a pool share."""

    name: str
    main: str
    """Dotted name of what serves: it gets `arguments`, its socket's path and two pipe ends."""
    arguments: tuple[str, ...]


class PolicyServer:
    """One server process, and those that follow it at the same place."""

    def __init__(
        self, policy: SharedPolicy, place: Path, log: Path, settings: PoolSettings, say: Say
    ) -> None:
        """Start it; `tend` tells when it is ready.

        Raises:
            InfraError: the operating system refuses another process.
        """
        self._policy, self._place, self._log = policy, place, log
        self._settings, self._say = settings, say
        self._starts = 0
        self._was_ready = False
        self._start()

    @property
    def address(self) -> str:
        """The policy by which workers reach it; they wait as long as their watchdog does."""
        within = f"{min(self._settings.silence_s, 3599.0):g}"
        return f"zmq://{self._place}@within={within},reset_within={within}"

    @property
    def pid(self) -> int:
        """Process id of the present server."""
        return self._process.pid

    def tend(self) -> bool:
        """Start the server again where it died; return whether it can be asked.

        Raises:
            ZettaError: it cannot load the policy.
            InfraError: it died before it was ever ready, or too often, or takes too long.
        """
        try:
            for message in self._process.messages():
                if message["say"] == "error":
                    raise error_from_json(message)
                self._ready = self._was_ready = bool(message["say"] == "ready")
        except WorkerDied as error:
            self._begin_again(error)
        waited_s = time.monotonic() - self._started
        if not self._ready and waited_s > self._settings.start_s:
            raise Timeout(
                self._process.last_words(f"was not ready after {waited_s:.0f} s")
                + "; allow more time with --watchdog"
            )
        return self._ready

    def close(self) -> None:
        """End the server; calling it again does nothing."""
        self._process.leave(FAREWELL_S)

    def _start(self) -> None:
        name = f"the policy server of {self._policy.name}"
        arguments = [*self._policy.arguments, str(self._place)]
        self._process = PipedProcess(
            name, self._policy.main, arguments, self._log, self._settings.environment
        )
        self._started, self._ready = time.monotonic(), False
        self._starts += 1

    def _begin_again(self, error: WorkerDied) -> None:
        self._process.kill()
        if not self._was_ready:
            raise error
        if self._starts > RESTARTS:
            raise WorkerDied(
                f"{error}; it was started again {RESTARTS} times. What is finished is kept: "
                "continue with --resume, without --share-policy to find the cause"
            )
        self._say(f"{error}; it is started again, running episodes are tried again")
        self._start()


class SharingSite:
    """A site whose workers find their policies at servers of this process."""

    def __init__(
        self,
        policies: Sequence[SharedPolicy],
        settings: PoolSettings,
        make_site: Callable[[Mapping[str, str]], Site],
        say: Say,
    ) -> None:
        """Start a server for each policy and wait until all can be asked.

        Args:
            policies: what is shared.
            settings: as of the pool; servers log beside its workers.
            make_site: gets each policy's address by its name, and returns where workers live.
            say: told what a person should know.

        Raises:
            ZettaError: whatever a policy says against being loaded.
            InfraError: a server died, or was not ready in time.
        """
        self._servers: list[PolicyServer] = []
        self._folder = _private_folder()
        settings.log_dir.mkdir(parents=True, exist_ok=True)
        try:
            for number, policy in enumerate(policies):
                place = self._folder / f"{number}.socket"
                log = settings.log_dir / f"policy-{number}-{portable(policy.name)}.log"
                self._servers.append(PolicyServer(policy, place, log, settings, say))
            names = [policy.name for policy in policies]
            addresses = [server.address for server in self._servers]
            self._site = make_site(dict(zip(names, addresses, strict=True)))
            while not self._all_ready():
                time.sleep(POLL_S / 4)
        except BaseException:
            self._end_servers()
            raise

    @property
    def servers(self) -> tuple[PolicyServer, ...]:
        """The servers, one for each policy."""
        return tuple(self._servers)

    def has_room(self) -> bool:
        """Say whether a worker can be placed: not while a server is being started again.

        Raises:
            InfraError: a server does not come back.
        """
        return self._all_ready() and self._site.has_room()

    def start(self, name: str) -> Worker:
        """Start a worker.

        Raises:
            InfraError: it cannot be started.
        """
        return self._site.start(name)

    def wait(self, handles: Sequence[Any], within_s: float) -> None:
        """Wait until a worker has something to say, and look after the servers.

        Raises:
            InfraError: a server does not come back.
        """
        self._site.wait(handles, within_s)
        self._all_ready()

    def close(self) -> None:
        """End the servers; calling it again does nothing."""
        self._site.close()
        self._end_servers()

    def _all_ready(self) -> bool:
        ready = [server.tend() for server in self._servers]  # each of them, ready or not
        return all(ready)

    def _end_servers(self) -> None:
        for server in self._servers:
            server.close()
        shutil.rmtree(self._folder, ignore_errors=True)


def _private_folder() -> Path:
    """Return a new folder of this user alone, whose path suits a socket.

    Raises:
        InfraError: there is no place for one.
    """
    usual = tempfile.gettempdir()
    place = usual if len(usual) <= LONGEST_PATH - 30 and "@" not in usual else "/tmp"
    try:
        return Path(tempfile.mkdtemp(prefix=FOLDER_PREFIX, dir=place))
    except OSError as error:
        raise InfraError(
            f"cannot make a folder for sockets in {place}: {error.strerror}; set TMPDIR to a "
            "writable folder with a short name"
        ) from error
