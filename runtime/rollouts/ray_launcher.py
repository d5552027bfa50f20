"""Rollouts on a Ray cluster: each worker is an actor on whatever node has a CPU free.

What travels are the lines of `rollouts.messages`, as texts; Ray wraps them in envelopes of its own.
An actor runs the same loop as a local worker process, in a thread beside the one that answers Ray,
so that a hung simulator is seen as silence. A lost node and a dead actor cost the running episode,
which the pool tries again elsewhere. Actors belong to this process: when it goes away, they do.
"""

from __future__ import annotations

import importlib
import logging
import os
import queue
import socket
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from zetta.runtime.core import RunSpec
from zetta.runtime.errors import ConfigError, InfraError, SpecMismatch, WorkerDied
from zetta.runtime.rollouts.launchers import Pulse
from zetta.runtime.rollouts.messages import decode, encode, spec_to_json
from zetta.runtime.rollouts.pool import Pool, PoolSettings
from zetta.runtime.rollouts.versions import differing, installed
from zetta.runtime.rollouts.worker import Serving

LISTEN_S: Final = 0.5
"""An actor that has nothing to say answers so often, which shows that it is there."""
KNOCK_S: Final = 10.0
LOCAL: Final = "127.0.0.1"
PLAIN_PRIORITY: Final = {"worker_niceness": 0}
"""Of a cluster that we start: nicer workers would starve where other programs run, as Ray's do."""


def ray_pool(settings: PoolSettings, address: str = "") -> Pool:
    """Return a pool whose workers are actors of the Ray cluster at `address`.

    Without an address a cluster of this machine alone is started, and ended with the pool.
    `settings.environment` holds only what the actors are to find besides their node's own
    variables.

    Raises:
        ConfigError: Ray is not installed, or this is no address.
        InfraError: no cluster answers there.
    """
    return Pool(settings, RaySite(settings, address))


class RaySite:
    """The actors of one cluster."""

    def __init__(self, settings: PoolSettings, address: str = "") -> None:
        """Connect to the cluster, or start one here.

        Raises:
            ConfigError: Ray is not installed, or this is no address.
            InfraError: no cluster answers there.
        """
        self._ray = import_ray()
        self._settings = settings
        _connect(self._ray, address, settings.workers)
        runtime_env = {"env_vars": dict(settings.environment or {})}
        self._actor = self._ray.remote(
            num_cpus=1, max_restarts=0, max_task_retries=0, runtime_env=runtime_env
        )(Seat)
        self._living: set[RayWorker] = set()
        self._crowded_since: float | None = None

    def has_room(self) -> bool:
        """Say whether the nodes that are alive have a CPU more than our actors use.

        Raises:
            InfraError: there has been none for as long as a worker may take to start.
        """
        cpus = int(self._ray.cluster_resources().get("CPU", 0))
        if self._living or cpus:
            self._crowded_since = None
            return len(self._living) < cpus
        since = self._crowded_since = self._crowded_since or time.monotonic()
        if time.monotonic() - since > self._settings.start_s:
            raise InfraError(
                f"no node of the Ray cluster has had a CPU for {self._settings.start_s:.0f} s; "
                "add a node with `ray start --address`, then continue with --resume"
            )
        return False

    def start(self, name: str) -> RayWorker:
        """Ask for an actor; it is placed as soon as a CPU is free."""
        paths = [str(Path(path).absolute()) for path in sys.path]
        actor = self._actor.remote(self._settings.factory, paths)
        worker = RayWorker(self._ray, actor, name, self._living.discard)
        self._living.add(worker)
        return worker

    def wait(self, handles: Sequence[Any], within_s: float) -> None:
        """Wait until one of the answers is there, at most `within_s`."""
        self._ray.wait(list(handles), timeout=within_s)

    def close(self) -> None:
        """End every actor and leave the cluster; one that was started here ends with it."""
        for worker in list(self._living):
            worker.kill()
        self._ray.shutdown()


class RayWorker:
    """One actor, as its pool sees it; one call is under way at any time."""

    def __init__(self, ray: Any, actor: Any, name: str, buried: Any) -> None:
        """Speak to `actor`; `buried` is told when it has been ended."""
        self.name = name
        self.pulse = Pulse("waiting for a free CPU")
        self._ray, self._actor, self._buried = ray, actor, buried
        self._to_say: list[str] = []
        self._call: Any = None
        self._said_bye = False

    @property
    def handle(self) -> Any:
        """The call under way, which carries what was to be said."""
        if self._call is None:
            said, self._to_say = self._to_say, []
            self._call = self._actor.exchange.remote(said, LISTEN_S)
        return self._call

    def run(self, job_id: int, spec: RunSpec) -> None:
        """Ask for one episode."""
        self._say({"do": "run", "id": job_id, "spec": spec_to_json(spec)})

    def identify(self, specs: Sequence[RunSpec]) -> None:
        """Ask what the factory would run."""
        self._say({"do": "identify", "id": 0, "specs": [spec_to_json(s) for s in specs]})

    def stop(self) -> None:
        """Ask the actor to free what it holds."""
        self._say({"do": "stop"})

    def messages(self) -> list[dict[str, Any]]:
        """Return what has arrived.

        Raises:
            WorkerDied: the actor or its node is gone.
            SpecMismatch: its node has other versions installed.
        """
        if not self._ray.wait([self.handle], timeout=0)[0]:
            return []
        call, self._call = self._call, None
        try:
            lines = self._ray.get(call)
        except self._ray.exceptions.RayError as error:
            raise WorkerDied(self.last_words(f"is gone ({_first_line(error)})")) from error
        arrived = [decode(line.encode()) for line in lines]
        self.pulse.note(arrived)
        for message in arrived:
            if message["say"] == "hello":
                self._greet(message)
            self._said_bye = self._said_bye or message["say"] == "bye"
        return arrived

    def last_words(self, what: str) -> str:
        """Return one sentence: who, what happened, and in which phase."""
        return f"{self.name} {what} while {self.pulse.phase}; its output is in the logs of Ray"

    def ended(self) -> bool:
        """Say whether the actor has freed what it held, or is gone."""
        try:
            self.messages()
        except WorkerDied:
            return True
        return self._said_bye

    def kill(self) -> None:
        """End the actor at once."""
        self._ray.kill(self._actor, no_restart=True)
        self._buried(self)

    def _say(self, message: Mapping[str, object]) -> None:
        self._to_say.append(encode(message).decode())

    def _greet(self, hello: Mapping[str, Any]) -> None:
        self.name = f"{self.name} on {hello['host']}"
        self.pulse.phase = "starting"
        if other := differing(hello["versions"]):
            raise SpecMismatch(
                f"{hello['host']} has other versions than this machine ({other}); install the same "
                "on every node"
            )


class Seat:
    """The inside of an actor: the loop of a worker process, and the door to it."""

    def __init__(self, factory: str, paths: Sequence[str]) -> None:
        """Serve the factory of that dotted name; `paths` are tried after the node's own."""
        sys.path += [path for path in paths if path not in sys.path]
        self._requests: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        self._lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._serving = Serving(factory, self._lines.put)
        self._serving.say(
            {
                "say": "hello",
                "pid": os.getpid(),
                "host": socket.gethostname(),
                "versions": installed(),
            }
        )
        threading.Thread(target=self._serve, daemon=True).start()

    def exchange(self, lines: Sequence[str], within_s: float) -> list[str]:
        """Take requests; return what there is to say, waiting for the first at most `within_s`."""
        for line in lines:
            self._requests.put(decode(line.encode()))
        said = []
        try:
            said.append(self._lines.get(timeout=within_s))
            while True:
                said.append(self._lines.get_nowait())
        except queue.Empty:
            return [line.decode() for line in said]

    def _serve(self) -> None:
        # One thread for the factory's whole life: a graphics context belongs to a thread.
        while (request := self._requests.get())["do"] != "stop":
            self._serving.answer(request)
        self._serving.close()
        self._serving.say({"say": "bye"})


def import_ray() -> Any:
    """Return Ray.

    Raises:
        ConfigError: it is not installed.
    """
    try:
        return importlib.import_module("ray")
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"--launch ray needs Ray, and {error.name!r} is missing; pip install 'zetta[ray]'"
        ) from error


def _connect(ray: Any, address: str, cpus: int) -> None:
    if "://" in address:
        raise ConfigError(
            f"--ray-address takes HOST:PORT or auto, got {address!r}; run the command on a machine "
            "that is a node of the cluster"
        )
    if address not in ("", "auto"):
        _knock(address)
    quiet = {"log_to_driver": False, "logging_level": logging.ERROR, "configure_logging": True}
    try:
        if address:
            ray.init(address=address, **quiet)
        else:
            ray.init(
                address="local",
                num_cpus=cpus,
                include_dashboard=False,
                _node_ip_address=LOCAL,
                _system_config=PLAIN_PRIORITY,
                **quiet,
            )
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise InfraError(
            f"no Ray cluster can be used at {address or 'this machine'}: {_first_line(error)}; "
            "start one with `ray start --head`, or leave --ray-address out"
        ) from error


def _knock(address: str) -> None:
    """Refuse an address where nobody listens; Ray itself would wait for minutes."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit():
        raise ConfigError(f"--ray-address takes HOST:PORT or auto, got {address!r}")
    try:
        socket.create_connection((host, int(port)), timeout=KNOCK_S).close()
    except (OSError, OverflowError) as error:
        raise InfraError(
            f"nobody listens at {address} ({error}); start a cluster with `ray start --head`, or "
            "leave --ray-address out"
        ) from error


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
