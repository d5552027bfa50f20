"""An environment that lives in another process: the same results, bit for bit.

The process is a fresh interpreter (nothing is forked), in a session of its own, so that it and its
children end together. It may be the interpreter of another virtual environment. When this side
goes away, it ends itself; when it goes away, whoever waits for it learns so at once.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import zmq

from zetta.runtime.arm_model import ArmModel
from zetta.runtime.core import Action, Array, EnvSpec, Image, Landmark, Observation, Scene, Step
from zetta.runtime.errors import (
    ConfigError,
    ConnectionLost,
    InfraError,
    SpecMismatch,
    Timeout,
    WorkerDied,
)
from zetta.runtime.wire import (
    MAX_MESSAGE_BYTES,
    PROTOCOL,
    Reply,
    Request,
    from_wire,
    read_reply,
    request_frames,
    to_wire,
)
from zetta.runtime.workspace import Box
from zetta.sims.worker import FOLDER_PREFIX, PACKAGE

LOG_TAIL_LINES = 3
_RUN_WORKER = "from zetta.sims.worker import main; main()"
LONGEST_PATH = 100
"""Local sockets have paths of at most 107 bytes on Linux, 103 elsewhere."""


@dataclass(frozen=True, slots=True)
class RemoteSettings:
    """How a worker is started and how long it is waited for."""

    start_s: float = 600.0
    """Until the environment is built; the first time compiles and caches."""
    call_s: float = 120.0
    """For every other call."""
    farewell_s: float = 5.0
    """How long the worker may take to end by itself."""
    python: str = sys.executable
    """Interpreter that runs the worker; zetta must be installed there, unless it is lent."""
    lent: bool = False
    """The interpreter has no zetta: it gets the one that is running here, and nothing else of
    ours. Both sides are then of one version by construction, which the greeting confirms."""
    environment: Mapping[str, str] | None = None
    """Environment variables of the worker; None passes ours on."""

    def __post_init__(self) -> None:
        for name in ("start_s", "call_s", "farewell_s"):
            if not getattr(self, name) > 0:
                raise ConfigError(
                    f"a worker must be waited for longer than 0 s, got {name} = "
                    f"{getattr(self, name):g}"
                )


class RemoteEnv:
    """A `SnapshotEnv` served by `zetta.sims.worker`. Not to be shared by threads.

    A call that ran out of time may still be carried out; its answer is then dropped, so go on
    with `reset` or `restore`.
    """

    def __init__(
        self,
        sim: str,
        suite: str,
        index: int,
        render: str = "fast",
        settings: RemoteSettings | None = None,
    ) -> None:
        """Start the worker and build the environment there.

        Raises:
            ConfigError: unknown simulator, suite, index or render profile.
            WorkerDied: the process ended; the message holds its last words.
            Timeout: it was not ready in time.
            InfraError: the process cannot be started, or lacks what it needs.
        """
        self._settings = settings or RemoteSettings()
        served = ["--sim", sim, "--suite", suite, "--index", str(index), "--render", render]
        self._worker = _Worker(f"the worker of {sim} {suite}#{index}", served, self._settings)
        try:
            self._worker.connect()
            self._spec = from_wire(EnvSpec, self._worker.call("open", {}, self._settings.start_s))
        except BaseException:
            self._worker.end()
            raise

    @property
    def spec(self) -> EnvSpec:
        """Conventions of the environment, as the worker told them."""
        return self._spec

    @property
    def pid(self) -> int:
        """Process id of the worker."""
        return self._worker.pid

    def instruction(self, scene: Scene) -> str:
        """Return what the robot is asked to do in `scene`: the task's own words, or the scene's.

        Raises:
            ZettaError: as the environment itself does, and `WorkerDied` and `Timeout`.
        """
        return str(self._call("instruction", scene=to_wire(scene)))

    def reset(self, scene: Scene) -> Step:
        """Put the world into `scene`, settled.

        Raises:
            ZettaError: as the environment itself does, and `WorkerDied` and `Timeout`.
        """
        return from_wire(Step, self._call("reset", scene=to_wire(scene)))

    def step(self, action: Action) -> Step:
        """Advance one control tick.

        Raises:
            ZettaError: as the environment itself does, and `WorkerDied` and `Timeout`.
        """
        return from_wire(Step, self._call("step", action=np.asarray(action, np.float64)))

    def observe(self, cameras: Sequence[str] = (), depth: bool = False) -> Observation:
        """Sense now; only the named cameras are drawn.

        Raises:
            ZettaError: as the environment itself does, and `WorkerDied` and `Timeout`.
        """
        return from_wire(Observation, self._call("observe", cameras=list(cameras), depth=depth))

    def picture(self, camera: str, height: int, width: int) -> Image | None:
        """Draw what a camera sees, at any size; None where the environment cannot.

        Raises:
            ZettaError: as the environment itself does, and `WorkerDied` and `Timeout`.
        """
        drawn = self._call("picture", camera=camera, height=height, width=width)
        return None if drawn is None else cast(Image, drawn)

    def snapshot(self) -> bytes:
        """Return the complete state; restoring it, here or in process, continues bit-exactly.

        Raises:
            SpecMismatch: the environment has no snapshots.
        """
        return cast(bytes, self._call("snapshot"))

    def restore(self, snapshot: bytes) -> Step:
        """Continue from `snapshot`.

        Raises:
            SpecMismatch: it was taken by another simulator version or another model.
        """
        return from_wire(Step, self._call("restore", snapshot=snapshot))

    def pose(self) -> Array:
        """Return what is needed to draw the present moment. Shape (N,)."""
        return cast(Array, self._call("pose"))

    def show(self, pose: Array) -> None:
        """Display a logged `pose`; physics is not continued.

        Raises:
            SpecMismatch: it is a pose of another task.
        """
        self._call("show", pose=np.asarray(pose, np.float64))

    def arm_model(self, index: int) -> ArmModel | None:
        """Return the kinematics of an arm; None where the environment does not tell it.

        Raises:
            ZettaError: as the environment itself does, and `WorkerDied` and `Timeout`.
        """
        told = self._call("arm_model", index=index)
        return None if told is None else from_wire(ArmModel, told)

    def workspace(self, index: int) -> Box | None:
        """Return the workspace of an arm; None where the environment does not tell it.

        Raises:
            ZettaError: as the environment itself does, and `WorkerDied` and `Timeout`.
        """
        told = self._call("workspace", index=index)
        return None if told is None else from_wire(Box, told)

    def landmarks(self) -> tuple[Landmark, ...]:
        """Return simulator truth about every named thing of the scene.

        Raises:
            ConfigError: the environment tells none.
            ZettaError: as the environment itself does, and `WorkerDied` and `Timeout`.
        """
        return tuple(from_wire(Landmark, told) for told in self._call("landmarks"))

    def close(self) -> None:
        """End the worker; calling it again does nothing."""
        self._worker.end()

    def _call(self, do: str, **given: object) -> Any:
        return self._worker.call(do, given, self._settings.call_s)


@contextlib.contextmanager
def lent_program(program: str) -> Iterator[list[str]]:
    """Give the arguments with which an interpreter without zetta runs `program` with ours."""
    with tempfile.TemporaryDirectory(prefix=FOLDER_PREFIX) as folder:
        yield _lend(Path(folder), program)


def _lend(folder: Path, program: str) -> list[str]:
    # A folder that holds `zetta` alone: beside an installed one lie all our other packages.
    (folder / "zetta").symlink_to(PACKAGE, target_is_directory=True)
    return ["-I", "-c", f"import sys; sys.path.insert(0, {str(folder)!r}); {program}"]


class _Worker:
    """The process, its log and its socket."""

    def __init__(self, name: str, served: Sequence[str], settings: RemoteSettings) -> None:
        self._name, self._settings = name, settings
        self._calls = 0
        self._busy = False
        """A call was given up, so the worker is still at it and hears nothing."""
        self._socket: zmq.Socket[bytes] | None = None
        self._folder = Path(tempfile.mkdtemp(prefix=FOLDER_PREFIX))
        path = self._folder / "env"
        local = zmq.has("ipc") and len(os.fsencode(path)) < LONGEST_PATH
        endpoint = f"ipc://{path}" if local else "tcp://127.0.0.1:*"
        command = [settings.python, *self._entry(), "--owned", "--bind", endpoint]
        command += ["--folder", str(self._folder)]
        environment = None if settings.environment is None else dict(settings.environment)
        try:
            with (self._folder / "log").open("wb") as log:
                self._process = subprocess.Popen(
                    [*command, *served],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    env=environment,
                    start_new_session=True,
                )
        except OSError as error:
            shutil.rmtree(self._folder, ignore_errors=True)
            raise InfraError(f"cannot start {name} with {settings.python}: {error}") from error

    @property
    def pid(self) -> int:
        return self._process.pid

    def _entry(self) -> list[str]:
        """Return the arguments that make an interpreter run the worker."""
        if not self._settings.lent:
            return ["-P", "-m", "zetta.sims.worker"]
        return _lend(self._folder, _RUN_WORKER)

    def _check_greeting(self, greeting: Mapping[str, Any]) -> None:
        theirs, files = greeting.get("protocol"), greeting.get("zetta")
        if theirs != PROTOCOL:
            raise SpecMismatch(
                f"{self._name} speaks protocol {theirs}, this side {PROTOCOL}; install the same "
                f"version of zetta for {self._settings.python}"
            )
        if self._settings.lent and files != str(PACKAGE):
            raise SpecMismatch(
                f"{self._name} runs the zetta of {files}, expected the one of {PACKAGE}; remove "
                f"zetta from the environment of {self._settings.python}"
            )

    def connect(self) -> None:
        """Wait for the worker's endpoint and connect to it."""
        greeting = json.loads(self._first_line())
        self._check_greeting(greeting)
        endpoint = str(greeting["endpoint"])
        socket = cast("zmq.Socket[bytes]", zmq.Context.instance().socket(zmq.DEALER))
        socket.linger = 0  # a message nobody takes must not keep this process alive
        socket.maxmsgsize = MAX_MESSAGE_BYTES
        socket.connect(endpoint)
        self._socket = socket

    def call(self, do: str, given: Mapping[str, Any], within_s: float) -> Any:
        """Send one request and return the value of its reply.

        Raises:
            ZettaError: the error of the reply.
            WorkerDied: the worker has ended.
            Timeout: no reply within `within_s`.
            ConnectionLost: the worker has been closed from here.
        """
        if self._socket is None:
            raise ConnectionLost(f"{self._name} is closed; make another environment")
        self._calls += 1
        frames = request_frames(Request(self._calls, do, given))
        self._busy = True
        try:
            self._socket.send_multipart(frames, zmq.NOBLOCK, copy=False)
        except zmq.Again:
            raise WorkerDied(self._last_words(do)) from None
        deadline = time.monotonic() + within_s
        while True:
            reply = self._receive(do, deadline, within_s)
            if reply.id != self._calls:
                continue  # the late answer to a call that was given up
            self._busy = False
            if reply.error is not None:
                raise reply.error
            return reply.value

    def end(self) -> None:
        """Ask the process to end, unless it is busy; end it and its children if it does not."""
        if self._socket is not None:
            if not self._busy:
                self._ask_to_end(self._socket)
            self._socket.close(0)
            self._socket = None
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _ask_to_end(self, socket: zmq.Socket[bytes]) -> None:
        self._calls += 1
        with contextlib.suppress(zmq.Again):
            frames = request_frames(Request(self._calls, "close", {}))
            socket.send_multipart(frames, zmq.NOBLOCK)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(self._settings.farewell_s)

    def _receive(self, do: str, deadline: float, within_s: float) -> Reply:
        assert self._socket is not None
        assert self._process.stdout is not None
        poller = zmq.Poller()
        poller.register(self._socket, zmq.POLLIN)
        poller.register(self._process.stdout.fileno(), zmq.POLLIN)  # readable when the worker ends
        left_ms = math.ceil(max(0.0, deadline - time.monotonic()) * 1000)
        ready = dict(poller.poll(left_ms))
        if self._socket in ready:
            return read_reply(self._socket.recv_multipart(zmq.NOBLOCK))
        if ready:
            raise WorkerDied(self._last_words(do))
        raise Timeout(f"{self._name} did not answer {do} within {within_s:g} s")

    def _first_line(self) -> bytes:
        assert self._process.stdout is not None
        pipe, line = self._process.stdout.fileno(), b""
        deadline = time.monotonic() + self._settings.start_s
        with selectors.DefaultSelector() as selector:
            selector.register(pipe, selectors.EVENT_READ)
            while not line.endswith(b"\n"):
                if not selector.select(max(0.0, deadline - time.monotonic())):
                    raise Timeout(f"{self._name} did not start within {self._settings.start_s:g} s")
                read = os.read(pipe, 4096)
                if not read:
                    raise WorkerDied(self._last_words("starting"))
                line += read
        return line

    def _last_words(self, doing: str) -> str:
        try:
            code = self._process.wait(timeout=self._settings.farewell_s)
            how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        except subprocess.TimeoutExpired:
            how = "it closed its pipe"
        log = (self._folder / "log").read_bytes()[-4000:].decode(errors="replace").splitlines()
        spoken = [line.strip() for line in log if line.strip()][-LOG_TAIL_LINES:]
        said = f"; its last output: {' | '.join(spoken)}" if spoken else ""
        return f"{self._name} ended ({how}) during {doing}{said}"
