"""The twin's cameras in a process of their own, which the physics never waits for.

The physics sends the state of the world, the newest counts; the process draws it and publishes a
picture of each camera. If it is slow, frozen or killed, pictures grow old and that is all. When the
physics goes away, a pipe between both closes and the process ends.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import tempfile
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from zetta.hw_drivers.arm_sockets import Newest, Publisher
from zetta.hw_drivers.camera_stream import CameraPublisher
from zetta.hw_drivers.cameras import Frame
from zetta.hw_drivers.twin.scene import EYES
from zetta.runtime.core import Array
from zetta.runtime.curve_keys import read_server_keys
from zetta.runtime.errors import ConfigError, InfraError, SpecMismatch, WorkerDied, suggest
from zetta.runtime.records import from_json, to_json
from zetta.runtime.rollouts.messages import encode
from zetta.runtime.rollouts.piped import PipedProcess
from zetta.runtime.wire import from_wire, pack, to_wire, unpack

MAIN: Final = "zetta.hw_drivers.twin.pictures:main"
STARTS_WITHIN_S: Final = 60.0
"""Importing the engine and making a context takes seconds on a busy machine."""
STATES_HZ: Final = 50.0
MAX_BYTES: Final = 2**16
POLL_S: Final = 0.1


@dataclass(frozen=True, slots=True)
class Shown:
    """A state of the world on its way to be drawn."""

    t: float
    """When it was, by the monotonic clock of the machine."""
    qpos: Array
    """Shape (nq,)."""
    lost: tuple[str, ...] = ()
    """Cameras that are silent."""
    frozen: tuple[str, ...] = ()
    """Cameras that repeat their last picture."""


@dataclass(frozen=True, slots=True)
class Order:
    """What the drawing process is told when it starts."""

    states: str
    """Where the states come from."""
    cameras: Mapping[str, str] = field(default_factory=dict)
    """Where each camera's pictures are published."""
    keys: str = ""
    """Server key file of the cameras."""
    hz: float = 12.0


class Pictures:
    """The drawing process, as the physics knows it. Its own thread calls everything."""

    def __init__(
        self, cameras: Mapping[str, str], hz: float = 12.0, keys: Path | None = None
    ) -> None:
        """Start the process and wait until it can draw.

        Args:
            cameras: where each is published.
            hz: pictures a second of each camera.
            keys: server key file; without it only loopback is bound.

        Raises:
            ConfigError: an address may not be bound, or there is no such camera.
            InfraError: an address is taken, or it cannot draw here.
        """
        for camera in cameras:
            _known(camera, EYES)
        self._states = Publisher("tcp://127.0.0.1:*", waiting=1)
        handle, log = tempfile.mkstemp(prefix="zetta-twin-", suffix=".log")
        os.close(handle)
        self._log = Path(log)
        order = Order(self._states.endpoint, cameras, str(keys or ""), hz)
        self._process = PipedProcess(
            "the twin's cameras", MAIN, [json.dumps(to_json(order))], self._log, None
        )
        self._lost: frozenset[str] = frozenset()
        self._frozen: frozenset[str] = frozenset()
        self._due = 0.0
        try:
            self.endpoints: Mapping[str, str] = self._greeting()
            """Where the pictures of each camera are."""
        except BaseException:
            self.close()
            raise

    @property
    def pid(self) -> int:
        """Process id of who draws."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether the process runs; it may still be slow or frozen."""
        return not self._process.ended()

    def show(self, t: float, qpos: Array) -> None:
        """Send a state, at most `STATES_HZ` times a second; waits for nobody."""
        if t < self._due:
            return
        self._due = t + 1.0 / STATES_HZ
        shown = Shown(t, qpos, tuple(sorted(self._lost)), tuple(sorted(self._frozen)))
        self._states.send(pack(to_wire(shown)))

    def lose(self, camera: str, lost: bool) -> None:
        """Make a camera silent, or let it speak again.

        Raises:
            ConfigError: no such camera.
        """
        self._lost = _changed(self._lost, _known(camera, self.endpoints), lost)

    def freeze(self, camera: str, frozen: bool) -> None:
        """Make a camera repeat its last picture as if it were new, or let it look again.

        Raises:
            ConfigError: no such camera.
        """
        self._frozen = _changed(self._frozen, _known(camera, self.endpoints), frozen)

    def close(self) -> None:
        """End the process; calling it again does nothing."""
        self._process.kill()  # it keeps nothing that could be lost
        self._states.close()
        self._log.unlink(missing_ok=True)

    def _greeting(self) -> Mapping[str, str]:
        deadline = time.monotonic() + STARTS_WITHIN_S
        while (left := deadline - time.monotonic()) > 0.0:
            select.select([self._process.handle], [], [], left)
            try:
                for message in self._process.messages():
                    if message["say"] == "ready":
                        return {str(k): str(v) for k, v in message["endpoints"].items()}
                    raise InfraError(str(message["error"]))
            except WorkerDied as death:
                raise InfraError(str(death)) from None
        raise InfraError(self._process.last_words(f"was not ready within {STARTS_WITHIN_S:g} s"))


def main(given: str, read: int, write: int) -> None:
    """Draw until the pipe closes: the other side is gone, however it ended."""
    threading.Thread(target=_end_with, args=(read,), daemon=True).start()
    order = from_json(Order, json.loads(given))
    # A software renderer would take every core of the machine.
    os.environ.setdefault("LP_NUM_THREADS", "1")
    try:
        studio = _Studio(order)
    except (ConfigError, InfraError) as error:
        os.write(write, encode({"say": "failed", "error": str(error)}))
        return
    os.write(write, encode({"say": "ready", "endpoints": studio.endpoints}))
    studio.work()


class _Studio:
    """What draws and publishes, in the process of its own."""

    def __init__(self, order: Order) -> None:
        # Imported here: the physics' process never needs it, and OpenGL is chosen at its import.
        from zetta.hw_drivers.twin.drawing import drawer

        keys = read_server_keys(Path(order.keys)) if order.keys else None
        self._drawer, self._period = drawer(), 1.0 / order.hz
        self._publishers = {
            name: CameraPublisher(bind, name, keys=keys) for name, bind in order.cameras.items()
        }
        self.endpoints = {name: each.endpoint for name, each in self._publishers.items()}
        self._last: dict[str, Frame] = {}
        self._states = Newest(order.states, None, MAX_BYTES)

    def work(self) -> None:
        due = time.monotonic()
        while True:
            time.sleep(max(0.0, due - time.monotonic()))
            raw = self._states.receive(POLL_S)
            if raw is None:
                continue
            due = max(due + self._period, time.monotonic())
            with contextlib.suppress(SpecMismatch):
                self._publish(from_wire(Shown, unpack(raw)))

    def _publish(self, shown: Shown) -> None:
        for name, publisher in self._publishers.items():
            if name in shown.lost:
                continue
            if name in shown.frozen and name in self._last:
                old = self._last[name]
                publisher.send(Frame(old.image, shown.t, old.depth))
                continue
            image, depth = self._drawer.draw(shown.qpos, name)
            self._last[name] = Frame(image, shown.t, depth)
            publisher.send(self._last[name])


def _end_with(read: int) -> None:
    while os.read(read, 4096):
        pass
    os._exit(0)  # drawing may hang in a driver, and nothing here is worth saving


def _known(camera: str, cameras: Mapping[str, object]) -> str:
    if camera not in cameras:
        raise ConfigError(f"the twin has no camera {camera!r}; {suggest(camera, cameras)}")
    return camera


def _changed(names: frozenset[str], name: str, there: bool) -> frozenset[str]:
    return names | {name} if there else names - {name}
