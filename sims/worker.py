"""Serves one environment to another process: `python -m zetta.sims.worker --sim toy …`.

For simulators that cannot live in the caller's process: because a process renders for one
environment in its lifetime, or because their packages clash with the caller's and they have a
virtual environment of their own. `zetta.sims.remote.RemoteEnv` starts it and speaks to it.

One ROUTER socket, one client at a time, ids echoed. The first line on stdout is a JSON object with
the endpoint; afterwards stdout is stderr, whatever a simulator prints. Only loopback and local
sockets are served. Nothing that a client sends can end the worker but its own `close`.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO, cast

import numpy as np
import zmq

from zetta.runtime import registry
from zetta.runtime.arm_model import ArmModels
from zetta.runtime.core import Env, Scene, SnapshotEnv, WordedEnv
from zetta.runtime.errors import ConfigError, InfraError, SpecMismatch, cannot_listen, suggest
from zetta.runtime.picture_sizes import SizedEnv
from zetta.runtime.wire import (
    MAX_MESSAGE_BYTES,
    PROTOCOL,
    Frame,
    Reply,
    Request,
    explained,
    from_wire,
    read_request,
    reply_frames,
    to_wire,
)
from zetta.runtime.workspace import BoundedEnv
from zetta.sims.surveyed import Surveyed

LOCAL = ("ipc://", "tcp://127.0.0.1:", "tcp://localhost:", "tcp://[::1]:")
POLL_MS = 1000
PACKAGE = Path(__file__).absolute().parents[1].resolve()
"""The folder `zetta` that this process runs from."""
FOLDER_PREFIX = "zetta-worker-"
"""Of the folder that an owner makes for the socket and the log."""


@dataclass(frozen=True, slots=True)
class Served:
    """Which environment is built."""

    sim: str
    suite: str
    index: int
    render: str = "fast"


class EnvCalls:
    """The calls of a client, each taking and returning what can cross the wire."""

    def __init__(self, served: Served) -> None:
        self._served = served
        self._env: Env | None = None
        self._calls: Mapping[str, Callable[..., Any]] = {
            "open": self._open,
            "instruction": self._instruction,
            "reset": lambda scene: to_wire(self._made().reset(from_wire(Scene, scene))),
            "step": lambda action: to_wire(self._made().step(_array(action))),
            "observe": self._observe,
            "picture": self._picture,
            "snapshot": lambda: self._frozen().snapshot(),
            "restore": lambda snapshot: to_wire(self._frozen().restore(_bytes(snapshot))),
            "pose": lambda: self._frozen().pose(),
            "show": lambda pose: self._frozen().show(_array(pose)),
            "arm_model": self._arm_model,
            "workspace": self._workspace,
            "landmarks": self._landmarks,
            "close": self.close,
        }

    def carry_out(self, request: Request) -> Any:
        """Return the answer to one request.

        Raises:
            ConfigError: unknown call.
            ZettaError: whatever the environment says.
        """
        call = self._calls.get(request.do)
        if call is None:
            raise ConfigError(f"unknown call {request.do!r}; {suggest(request.do, self._calls)}")
        return call(**request.given)

    def close(self) -> None:
        """Close the environment; calling it again does nothing."""
        if self._env is not None:
            self._env.close()
            self._env = None

    def _open(self) -> Any:
        if self._env is None:
            served = self._served
            simulator = registry.simulator(served.sim)
            try:
                self._env = simulator.make(served.suite, served.index, served.render)
            except ImportError as error:  # an environment that was damaged after it was made
                raise InfraError(
                    f"a package of {served.sim} cannot be imported: {error}; find what is missing "
                    f"with: zetta sims check {served.sim}"
                ) from error
        return to_wire(self._env.spec)

    def _observe(self, cameras: Sequence[str], depth: bool) -> Any:
        return to_wire(self._made().observe(tuple(map(str, cameras)), bool(depth)))

    def _picture(self, camera: str, height: int, width: int) -> Any:
        env = self._made()
        if not isinstance(env, SizedEnv):
            return None
        return env.picture(str(camera), int(height), int(width))

    def _instruction(self, scene: Any) -> str:
        env, asked = self._made(), from_wire(Scene, scene)
        return env.instruction(asked) if isinstance(env, WordedEnv) else asked.task.instruction

    def _arm_model(self, index: int) -> Any:
        env = self._made()
        return to_wire(env.arm_model(int(index))) if isinstance(env, ArmModels) else None

    def _workspace(self, index: int) -> Any:
        env = self._made()
        return to_wire(env.workspace(int(index))) if isinstance(env, BoundedEnv) else None

    def _landmarks(self) -> Any:
        env = self._made()
        if not isinstance(env, Surveyed):
            raise ConfigError(
                f"{self._served.sim} tells no simulator truth about places; run with --sensing "
                "vision"
            )
        return [to_wire(landmark) for landmark in env.landmarks()]

    def _made(self) -> Env:
        if self._env is None:
            raise ConfigError("the environment is not open; call open first")
        return self._env

    def _frozen(self) -> SnapshotEnv:
        env = self._made()
        if not isinstance(env, SnapshotEnv):
            raise SpecMismatch(f"{self._served.sim} has no snapshots; replay from a reset instead")
        return env


def serve(calls: EnvCalls, socket: zmq.Socket[bytes]) -> None:
    """Answer the first client until it says close; others are told that it is taken."""
    owner: bytes | None = None
    said_close = False
    while not said_close:
        if not socket.poll(POLL_MS):
            continue
        identity, *frames = socket.recv_multipart(zmq.NOBLOCK)
        number = -1
        try:
            request = read_request(frames)
            number, owner = request.id, owner or identity
            if identity != owner:
                raise ConfigError("this worker serves another client; start one for each")
            reply = Reply(number, calls.carry_out(request))
            said_close = request.do == "close"
        except Exception as error:  # the worker loop: every request is answered, whatever happens
            traceback.print_exc()
            reply = Reply(number, error=explained(error))
        socket.send_multipart([identity, *_as_frames(reply)], copy=False)


def _as_frames(reply: Reply) -> list[Frame]:
    try:
        return reply_frames(reply)
    except SpecMismatch as error:  # the answer itself is too large or not sendable
        return reply_frames(Reply(reply.id, error=error))


def bind(endpoint: str) -> zmq.Socket[bytes]:
    """Return a ROUTER socket bound to a local endpoint.

    Raises:
        ConfigError: the endpoint can be reached from elsewhere.
        InfraError: it is taken.
    """
    if not endpoint.startswith(LOCAL):
        raise ConfigError(
            f"a worker serves its own host only, got {endpoint!r}; bind ipc://PATH or "
            "tcp://127.0.0.1:PORT, and reach it from elsewhere through an SSH tunnel"
        )
    socket = cast("zmq.Socket[bytes]", zmq.Context.instance().socket(zmq.ROUTER))
    socket.linger = 2000  # at the end, for the answer to close
    socket.maxmsgsize = MAX_MESSAGE_BYTES
    try:
        socket.bind(endpoint)
    except zmq.ZMQError as error:
        socket.close(0)
        advice = "is another worker there? end it, or bind another port"
        raise cannot_listen(endpoint, error, advice) from error
    return socket


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve one environment until the client closes it or the owner goes away."""
    parser = argparse.ArgumentParser(prog="python -m zetta.sims.worker", description=__doc__)
    parser.add_argument("--sim", required=True, help="simulator, as zetta sims lists it")
    parser.add_argument("--suite", required=True)
    parser.add_argument("--index", type=int, required=True, help="task of the suite")
    parser.add_argument("--render", default="fast", help="render profile")
    parser.add_argument("--bind", default="tcp://127.0.0.1:*", help="local endpoint")
    parser.add_argument("--owned", action="store_true", help="end when stdin is closed")
    parser.add_argument("--folder", default="", help="of the owner; cleared when it goes away")
    asked = parser.parse_args(arguments)
    announce = _private_stdout()
    if asked.owned:
        threading.Thread(target=_end_with_owner, args=(asked.folder,), daemon=True).start()
    try:
        socket = bind(asked.bind)
    except (ConfigError, InfraError) as error:
        sys.exit(f"error: {error}")
    endpoint = socket.getsockopt_string(zmq.LAST_ENDPOINT)
    greeting = {"endpoint": endpoint, "pid": os.getpid(), "protocol": PROTOCOL}
    announce.write(json.dumps({**greeting, "zetta": str(PACKAGE)}) + "\n")
    announce.flush()
    calls = EnvCalls(Served(asked.sim, asked.suite, asked.index, asked.render))
    serve(calls, socket)
    socket.close()
    zmq.Context.instance().term()
    _clear(asked.folder)  # its owner may be killed before it gets to it
    sys.stderr.flush()
    os._exit(0)  # a renderer's destructors must not turn a clean end into an error


def _private_stdout() -> TextIO:
    """Return stdout for ourselves; from now on everybody else's stdout is stderr."""
    ours = os.fdopen(os.dup(1), "w", encoding="utf-8")
    sys.stdout.flush()
    os.dup2(2, 1)
    return ours


def _clear(made_for_us: str) -> None:
    """Remove the owner's folder, and no other."""
    folder = Path(made_for_us)
    if folder.name.startswith(FOLDER_PREFIX):
        shutil.rmtree(folder, ignore_errors=True)


def _end_with_owner(made_for_us: str) -> None:
    # In a thread, because a simulator that hangs must not outlive its owner either.
    while os.read(0, 4096):
        pass
    _clear(made_for_us)  # its owner can no longer do that
    if os.getpgrp() == os.getpid():
        os.killpg(os.getpgrp(), signal.SIGKILL)
    os._exit(1)


def _array(value: object) -> np.ndarray[Any, np.dtype[Any]]:
    if not isinstance(value, np.ndarray):
        raise SpecMismatch(f"got a {type(value).__name__}, expected an array")
    return value


def _bytes(value: object) -> bytes:
    if not isinstance(value, bytes):
        raise SpecMismatch(f"got a {type(value).__name__}, expected bytes")
    return value


if __name__ == "__main__":
    main()
