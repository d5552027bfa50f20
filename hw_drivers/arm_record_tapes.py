"""The threads of a recorder: one takes states, one for each camera takes pictures, all to disk.

They listen and nothing else. A slow disk costs messages, never memory, and what is lost is counted
by the numbers that the messages carry.
"""

from __future__ import annotations

import contextlib
import io
import json
import math
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, Final

import zmq
from PIL import Image as Pillow
from PIL import UnidentifiedImageError

from zetta.hw_drivers.arm import ArmFacts
from zetta.hw_drivers.arm_messages import MAX_BYTES, StateMessage, opened
from zetta.hw_drivers.arm_record_file import EVENTS, STATES, row_of
from zetta.hw_drivers.camera_stream import CAMERA_PROTOCOL, FrameMessage, decoded, encoded
from zetta.hw_drivers.cameras import CameraSource
from zetta.runtime.curve_keys import ClientKeys
from zetta.runtime.errors import ConfigError, InfraError, SpecMismatch
from zetta.runtime.transport import Socket, check_destination, present_keys
from zetta.runtime.wire import MAX_MESSAGE_BYTES, from_wire, unpack

POLL_S: Final = 0.1
STATES_WAITING: Final = 4000
"""20 s at 200 Hz: as long may the disk stall."""
PICTURES_WAITING: Final = 16
LOOK_S: Final = 0.004
"""Between two looks at a camera of this machine."""
CAMERA_SILENT_S: Final = 2.0


class Every:
    """A subscriber that is given every message, as far as it keeps up."""

    def __init__(
        self, endpoint: str, keys: ClientKeys | None, max_bytes: int, waiting: int
    ) -> None:
        """Connect in the background.

        Raises:
            ConfigError: the endpoint is no place that can be connected to.
        """
        check_destination(endpoint)
        socket: Socket = zmq.Context.instance().socket(zmq.SUB)
        socket.linger, socket.maxmsgsize, socket.rcvhwm = 0, max_bytes, waiting
        socket.reconnect_ivl, socket.reconnect_ivl_max = 50, 500
        if keys is not None:
            present_keys(socket, keys)
        socket.subscribe(b"")
        try:
            socket.connect(endpoint)
        except zmq.ZMQError as error:
            socket.close(0)
            raise ConfigError(f"cannot connect to {endpoint}: {error}") from error
        self._socket = socket

    def receive(self, within_s: float) -> bytes | None:
        """Return the next message; None without one in time."""
        if self._socket.poll(max(0, round(within_s * 1000))):
            with contextlib.suppress(zmq.Again):
                return self._socket.recv(zmq.NOBLOCK)
        return None

    def close(self) -> None:
        """Close; calling it again does nothing."""
        self._socket.close(0)


class Tape(threading.Thread):
    """One thread that writes one thing until `end`; `failure` says why it could not."""

    def __init__(self, name: str) -> None:
        super().__init__(name=name, daemon=True)
        self.count = 0
        self.missed: int | None = None
        self.trouble = ""
        self.failure = ""
        self._ended = threading.Event()

    def end(self) -> None:
        """Write what has come and end."""
        self._ended.set()
        if self.is_alive():
            self.join()

    def run(self) -> None:
        """Record until the end."""
        try:
            while not self._ended.is_set():
                self.turn()
        except OSError as error:
            self.failure = str(error)
        finally:
            try:
                self.finish()
            except OSError as error:
                self.failure = self.failure or str(error)

    def turn(self) -> None:
        """Take one thing, or wait a moment."""
        raise NotImplementedError

    def finish(self) -> None:
        """Close everything."""
        raise NotImplementedError


class StateTape(Tape):
    """Writes every state."""

    def __init__(
        self, folder: Path, source: Every, facts: ArmFacts, ours: Callable[[float], float]
    ) -> None:
        """Open the files.

        Args:
            folder: of the recording.
            source: the stream of states.
            facts: of the arm.
            ours: gives seconds since the recording began for a time of the robot's clock.

        Raises:
            OSError: a file cannot be written.
        """
        super().__init__("states")
        self.missed = 0
        self.session = ""
        self._source, self._facts, self._ours = source, facts, ours
        self._rows: BinaryIO = (folder / STATES).open("wb")
        self._events: BinaryIO = (folder / EVENTS).open("wb")
        self._last = 0
        self._said: tuple[str, ...] = ()

    def turn(self) -> None:
        """Take one state."""
        raw = self._source.receive(POLL_S)
        if raw is None:
            self._rows.flush()
            return
        try:
            self._take(from_wire(StateMessage, opened(unpack(raw))))
        except (SpecMismatch, InfraError) as error:
            self.trouble = str(error)

    def finish(self) -> None:
        """Close everything."""
        self._source.close()
        self._rows.close()
        self._events.close()

    def _take(self, message: StateMessage) -> None:
        reading = message.reading
        if len(reading.joint_pos) != len(self._facts.joints):
            raise SpecMismatch(
                f"{len(reading.joint_pos)} joints report, {len(self._facts.joints)} have names"
            )
        if message.session == self.session and message.number > self._last:
            assert self.missed is not None
            self.missed += message.number - self._last - 1
        self.session, self._last = message.session, message.number
        t = self._ours(reading.t)
        self._rows.write(row_of(t, message.number, message.seq, reading).tobytes())
        self.count += 1
        said = (message.session, reading.mode, reading.reason, message.owner)
        if said != self._said:
            self._said = said
            names = ("session", "mode", "reason", "owner")
            line = {"t": t, **dict(zip(names, said, strict=True))}
            self._events.write(json.dumps(line).encode() + b"\n")
            self._events.flush()


class PictureTape(Tape):
    """Writes pictures of one camera; what gives them is in `next_picture`."""

    def __init__(self, folder: Path, camera: str, began: float, hz: float) -> None:
        """Make the folder of the camera.

        Args:
            folder: of the recording.
            camera: its name.
            began: when the recording began, by our monotonic clock.
            hz: pictures a second at most; 0 for all.

        Raises:
            OSError: it cannot be written.
        """
        super().__init__(f"camera-{camera}")
        self.camera = camera
        self._folder, self._began = folder / camera, began
        self._gap = 1.0 / hz if hz > 0.0 else 0.0
        self._folder.mkdir()
        self._lines: BinaryIO = (folder / f"{camera}.jsonl").open("wb")
        self._written = -math.inf

    def turn(self) -> None:
        """Take one picture."""
        try:
            taken = self.next_picture()
            # A camera's own rhythm is not exact: a little early is not too early.
            if taken is None or taken[0] - self._written < 0.9 * self._gap:
                return
            t, jpeg = taken[0], taken[1]()
        except (SpecMismatch, InfraError) as error:
            self.trouble = str(error)
            self._ended.wait(POLL_S)
            return
        self._written = t
        self.count += 1
        name = f"{self.count:06d}.jpg"
        (self._folder / name).write_bytes(jpeg)
        # The line comes after the picture: a line without one would be a lie after a crash.
        self._lines.write(json.dumps({"file": name, "t": t - self._began}).encode() + b"\n")
        self._lines.flush()

    def finish(self) -> None:
        """Close everything."""
        self._lines.close()

    def next_picture(self) -> tuple[float, Callable[[], bytes]] | None:
        """Return when it was taken, by our clock, and what makes its JPEG; None without one.

        Raises:
            SpecMismatch: what came is no picture.
            InfraError: the camera gives none.
        """
        raise NotImplementedError


class StreamTape(PictureTape):
    """Pictures of a streamed camera: a JPEG is kept as it came."""

    def __init__(
        self,
        folder: Path,
        camera: str,
        size: tuple[int, int],
        source: Every,
        began: float,
        hz: float,
    ) -> None:
        """Prepare; `size` is height and width as declared.

        Raises:
            OSError: it cannot be written.
        """
        super().__init__(folder, camera, began, hz)
        self.missed = 0
        self._size, self._source, self._last = size, source, 0

    def next_picture(self) -> tuple[float, Callable[[], bytes]] | None:
        """Return the next one.

        Raises:
            SpecMismatch: it is another camera, another size, or no picture.
        """
        raw = self._source.receive(POLL_S)
        if raw is None:
            return None
        now = time.monotonic()
        message = from_wire(FrameMessage, unpack(raw))
        if (message.protocol, message.camera) != (CAMERA_PROTOCOL, self.camera):
            raise SpecMismatch(
                f"got the camera {message.camera!r:.40} of protocol {message.protocol}, expected "
                f"{self.camera!r} of {CAMERA_PROTOCOL}"
            )
        if (message.height, message.width) != self._size:
            raise SpecMismatch(
                f"the camera {self.camera!r} sends {message.width} x {message.height}, declared "
                f"are {self._size[1]} x {self._size[0]}"
            )
        if self.missed is not None and self._last and message.number > self._last:
            self.missed += message.number - self._last - 1
        self._last = message.number
        return now - message.age_s, lambda: _jpeg(message)

    def finish(self) -> None:
        """Close everything."""
        self._source.close()
        super().finish()


class LookTape(PictureTape):
    """Pictures of a camera of this machine."""

    def __init__(
        self, folder: Path, camera: str, source: CameraSource, began: float, hz: float
    ) -> None:
        """Prepare; the source is closed at the end.

        Raises:
            OSError: it cannot be written.
        """
        super().__init__(folder, camera, began, hz)
        self._source, self._newest = source, -math.inf

    def next_picture(self) -> tuple[float, Callable[[], bytes]] | None:
        """Return the newest one, if it is new.

        Raises:
            InfraError: the camera gives none.
        """
        frame = self._source.latest(CAMERA_SILENT_S)
        if frame.t <= self._newest:
            self._ended.wait(LOOK_S)
            return None
        self._newest = frame.t
        return frame.t, lambda: encoded(frame.image, "jpeg")

    def finish(self) -> None:
        """Close everything."""
        self._source.close()
        super().finish()


def _jpeg(message: FrameMessage) -> bytes:
    """Return the picture of a message as JPEG, decoding one only if it is raw.

    Raises:
        SpecMismatch: its bytes are not what it says.
    """
    if message.encoding == "raw":
        return encoded(decoded(message), "jpeg")
    try:
        with Pillow.open(io.BytesIO(message.pixels), formats=("JPEG",)) as file:
            size = file.size
    except (UnidentifiedImageError, OSError, ValueError, SyntaxError) as error:
        raise SpecMismatch(f"got a JPEG that cannot be read: {error}") from error
    if size != (message.width, message.height):
        raise SpecMismatch(f"got a JPEG of {size}, expected {(message.width, message.height)}")
    return message.pixels


def states_of(endpoint: str, keys: ClientKeys | None) -> Every:
    """Listen to a stream of states.

    Raises:
        ConfigError: the endpoint is no place that can be connected to.
    """
    return Every(endpoint, keys, MAX_BYTES, STATES_WAITING)


def pictures_of(endpoint: str, keys: ClientKeys | None) -> Every:
    """Listen to a camera.

    Raises:
        ConfigError: the endpoint is no place that can be connected to.
    """
    return Every(endpoint, keys, MAX_MESSAGE_BYTES, PICTURES_WAITING)
