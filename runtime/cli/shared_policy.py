"""`--share-policy`: what serves a policy to the workers of one command, and how they find it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from io import FileIO
from pathlib import Path
from typing import Final

from zetta.runtime import registry
from zetta.runtime.cli import output
from zetta.runtime.core import Policy
from zetta.runtime.errors import ConfigError, ZettaError
from zetta.runtime.policy_server.engine import Engine
from zetta.runtime.policy_server.limits import ServingLimits
from zetta.runtime.policy_server.zmq_door import ZmqDoor
from zetta.runtime.rollouts.launchers import Site
from zetta.runtime.rollouts.messages import encode, error_to_json
from zetta.runtime.rollouts.pool import PoolSettings
from zetta.runtime.rollouts.process import ProcessSite
from zetta.runtime.rollouts.sharing import SharedPolicy, SharingSite

MAIN: Final = "zetta.runtime.cli.shared_policy:main"
ADDRESSES: Final = "ZETTA_SHARED_POLICIES"
"""Variable of workers: a JSON object of policy names and where each is served."""
ALREADY_SERVED: Final = ("zmq:", "openpi:", "gr00t:")
SESSIONS: Final = 256
"""Far more than workers: one that was killed keeps its session until it expires."""
FAREWELL_S: Final = 3.0
LOOK_S: Final = 1.0


def shared_site(policies: Sequence[str], temperature: str, settings: PoolSettings) -> SharingSite:
    """Return local workers that share one server for each of `policies`.

    Raises:
        ConfigError: none of the policies is loaded by workers.
        ZettaError: a policy cannot be loaded.
    """
    loaded = [name for name in dict.fromkeys(policies) if _is_loaded(name)]
    if not loaded:
        raise ConfigError(
            f"--share-policy has nothing to share: {', '.join(dict.fromkeys(policies))} is not "
            "loaded by workers; leave it out"
        )
    arguments = (temperature, f"{settings.silence_s:g}", f"{settings.start_s:g}")
    shared = [SharedPolicy(name, MAIN, (name, *arguments)) for name in loaded]

    def make_site(addresses: Mapping[str, str]) -> Site:
        environment = {**(settings.environment or os.environ), ADDRESSES: json.dumps(addresses)}
        return ProcessSite(settings.factory, settings.log_dir, environment)

    output.note(f"one server for all workers loads {', '.join(loaded)}")
    return SharingSite(shared, settings, make_site, output.note)


def served_policies() -> Mapping[str, str]:
    """Return where policies are served to this worker, by name."""
    return dict(json.loads(os.environ.get(ADDRESSES, "{}")))


def main(
    name: str, temperature: str, stuck_s: str, idle_s: str, place: str, read_fd: int, write_fd: int
) -> None:
    """Serve one policy at a socket file until the pipe is closed, then end the process.

    Rows are computed one by one, so that results do not depend on how many workers there are.
    """
    os.umask(0o077)  # the socket's file is for this user alone
    pool = os.fdopen(write_fd, "wb", buffering=0)
    stop = threading.Event()
    threading.Thread(target=_end_with_pool, args=(read_fd, stop, Path(place)), daemon=True).start()
    limits = ServingLimits(
        max_sessions=SESSIONS, max_rows=1, idle_s=float(idle_s), drain_s=FAREWELL_S / 2
    )
    try:
        engine = Engine(lambda: _policy(name, temperature), limits)
        threading.Thread(target=_end_when_stuck, args=(engine, float(stuck_s)), daemon=True).start()
        door = ZmqDoor(on_ready=lambda *_: _say(pool, {"say": "ready"}))
        door.serve(engine, f"ipc://{place}", stop)
        engine.stop()
        print(f"ended; {engine.stats}", file=sys.stderr, flush=True)
    except (ZettaError, ModuleNotFoundError) as error:
        _say(pool, {"say": "error", **error_to_json(error)})
        stop.wait()  # the pool reads what was said and lets go
    _leave_nothing(Path(place))
    os._exit(0)


def _say(pool: FileIO, message: Mapping[str, object]) -> None:
    with contextlib.suppress(BrokenPipeError):  # a pool that is gone is noticed elsewhere
        pool.write(encode(message))


def _policy(name: str, temperature: str) -> Policy:
    policy = registry.policy(name)
    if temperature:
        from zetta.runtime.cli.assemble import set_temperature  # late: a server needs no simulator

        set_temperature(policy, name, temperature)
    return policy


def _is_loaded(name: str) -> bool:
    return not name.startswith((registry.ORACLE_PREFIX, *ALREADY_SERVED))


def _end_with_pool(read_fd: int, stop: threading.Event, place: Path) -> None:
    """Wait until the pool lets go or is gone, then end; what does not end in time is killed."""
    with os.fdopen(read_fd, "rb") as pool:
        pool.read()
    stop.set()
    time.sleep(FAREWELL_S)  # the process is mostly gone before that
    _leave_nothing(place)
    if os.getpgrp() == os.getpid():
        os.killpg(os.getpgrp(), signal.SIGKILL)
    os._exit(1)


def _end_when_stuck(engine: Engine, stuck_s: float) -> None:
    """End the process when one call of the policy takes too long: only that frees the others."""
    while engine.busy_s < stuck_s:
        time.sleep(LOOK_S)
    print(f"the policy was busy for {stuck_s:g} s with one call", file=sys.stderr, flush=True)
    os._exit(1)


def _leave_nothing(place: Path) -> None:
    place.unlink(missing_ok=True)
    with contextlib.suppress(OSError):  # other servers have their sockets there
        place.parent.rmdir()
