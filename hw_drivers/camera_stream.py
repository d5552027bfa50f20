"""Pictures of a camera from another process or machine: the newest one, raw or as JPEG.

A message says how long ago its picture was taken, not when: the two clocks need not agree. The time
on the network is not in that age; it is bounded by what waits, which is one picture.
"""

from __future__ import annotations

import io
import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
from PIL import Image as Pillow
from PIL import UnidentifiedImageError

from zetta.hw_drivers.arm_sockets import Newest, Publisher
from zetta.hw_drivers.cameras import FIRST_FRAME_S, CameraSource, Frame, NewestFrame
from zetta.runtime.core import Image
from zetta.runtime.curve_keys import ClientKeys, ServerKeys
from zetta.runtime.errors import InfraError, SpecMismatch
from zetta.runtime.wire import MAX_MESSAGE_BYTES, from_wire, pack, to_wire, unpack

CAMERA_PROTOCOL: Final = 1
CAMERA_PORT: Final = 5704
MAX_SIDE: Final = 4096
JPEG_QUALITY: Final = 90
POLL_S: Final = 0.2
RELAY_S: Final = 0.002
"""Between two looks for a new picture."""
RELAYED_AGE_S: Final = 2.0
"""A camera that is silent for so long is lost."""

Encoding: TypeAlias = Literal["raw", "jpeg"]


@dataclass(frozen=True, slots=True)
class FrameMessage:
    """One picture on its way."""

    protocol: int
    camera: str
    number: int
    """Counts the pictures of one start of the publisher."""
    age_s: float
    """From taking it to sending it."""
    height: int
    width: int
    encoding: Encoding
    pixels: bytes
    """RGB rows, or a JPEG file."""
    depth: npt.NDArray[np.float32] | None = None
    """Metres. Shape (height, width)."""


class CameraPublisher:
    """Sends the pictures of one camera to whoever listens."""

    def __init__(
        self,
        bind: str,
        camera: str,
        encoding: Encoding = "raw",
        keys: ServerKeys | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Bind.

        Raises:
            ConfigError: the address may not be bound without keys.
            InfraError: it is taken.
        """
        self._publisher = Publisher(bind, keys, waiting=1)
        self._camera, self._encoding, self._clock = camera, encoding, clock
        self._number = 0

    @property
    def endpoint(self) -> str:
        """Where it listens."""
        return self._publisher.endpoint

    def send(self, frame: Frame) -> None:
        """Send one picture; who is slow misses it.

        Raises:
            SpecMismatch: no picture.
        """
        self._number += 1
        height, width = frame.image.shape[:2]
        message = FrameMessage(
            CAMERA_PROTOCOL,
            self._camera,
            self._number,
            max(0.0, self._clock() - frame.t),
            height,
            width,
            self._encoding,
            encoded(frame.image, self._encoding),
            frame.depth,
        )
        self._publisher.send(pack(to_wire(message)))

    def close(self) -> None:
        """Close; calling it again does nothing."""
        self._publisher.close()


def relay(
    source: CameraSource,
    publisher: CameraPublisher,
    until: Callable[[float], bool],
    max_age_s: float = RELAYED_AGE_S,
) -> int:
    """Send every new picture of `source` until `until`, which waits so long, says so; count them.

    Raises:
        InfraError: the camera gives no more pictures.
    """
    sent, last = 0, -math.inf
    while not until(RELAY_S):
        frame = source.latest(max_age_s)
        if frame.t > last:
            publisher.send(frame)
            sent, last = sent + 1, frame.t
    return sent


class StreamedCamera:
    """A `CameraSource` that listens to a `CameraPublisher`."""

    def __init__(
        self,
        endpoint: str,
        camera: str,
        height: int,
        width: int,
        keys: ClientKeys | None = None,
        within_s: float = FIRST_FRAME_S,
    ) -> None:
        """Wait for the first picture.

        Raises:
            ConfigError: the endpoint is no place that can be connected to.
            InfraError: no picture comes, or those that come do not fit.
        """
        self._camera, self._size, self._endpoint = camera, (height, width), endpoint
        self._newest = NewestFrame(camera)
        self._ended = threading.Event()
        self._socket = Newest(endpoint, keys, MAX_MESSAGE_BYTES)
        self._thread = threading.Thread(target=self._listen, name=f"camera-{camera}", daemon=True)
        self._thread.start()
        try:
            self._newest.wait(within_s)
        except InfraError as error:
            self.close()
            raise InfraError(f"{error}; it should come from {endpoint}") from None

    def latest(self, max_age_s: float) -> Frame:
        """Return the newest picture.

        Raises:
            InfraError: there is none, or it is too old.
        """
        return self._newest.latest(max_age_s)

    def close(self) -> None:
        """Stop listening; calling it again does nothing."""
        self._ended.set()
        self._thread.join()

    def _listen(self) -> None:
        # Received at once and stamped here: what waits in a socket would look young.
        try:
            while not self._ended.is_set():
                raw = self._socket.receive(POLL_S)
                if raw is None:
                    continue
                now = time.monotonic()
                try:
                    self._newest.put(self._frame(raw, now))
                except SpecMismatch as error:
                    self._newest.fail(str(error))
        finally:
            self._socket.close()

    def _frame(self, raw: bytes, now: float) -> Frame:
        message = from_wire(FrameMessage, unpack(raw))
        if message.protocol != CAMERA_PROTOCOL:
            raise SpecMismatch(
                f"{self._endpoint} speaks camera protocol {message.protocol}, not {CAMERA_PROTOCOL}"
            )
        if message.camera != self._camera:
            raise SpecMismatch(
                f"{self._endpoint} sends the camera {message.camera!r:.40}, not {self._camera!r}"
            )
        if (message.height, message.width) != self._size:
            raise SpecMismatch(
                f"{self._endpoint} sends pictures of {message.width} x {message.height}, expected "
                f"{self._size[1]} x {self._size[0]}"
            )
        if not message.age_s >= 0.0:
            raise SpecMismatch(f"{self._endpoint} sends a picture of age {message.age_s} s")
        depth = message.depth
        if depth is not None and depth.shape != self._size:
            raise SpecMismatch(f"{self._endpoint} sends depth of shape {depth.shape}")
        return Frame(decoded(message), now - message.age_s, depth)


def encoded(image: Image, encoding: Encoding) -> bytes:
    """Return the bytes of a picture.

    Raises:
        SpecMismatch: it is no picture, or too large.
    """
    if image.dtype != np.uint8 or image.ndim != 3 or image.shape[2] != 3:
        raise SpecMismatch(f"a picture is uint8 RGB, got {image.dtype} of shape {image.shape}")
    if max(image.shape) > MAX_SIDE or min(image.shape) < 1:
        raise SpecMismatch(f"a picture has 1 to {MAX_SIDE} pixels a side, got {image.shape}")
    if encoding == "raw":
        return np.ascontiguousarray(image).tobytes()
    file = io.BytesIO()
    Pillow.fromarray(image).save(file, "JPEG", quality=JPEG_QUALITY, subsampling=0)
    return file.getvalue()


def decoded(message: FrameMessage) -> Image:
    """Return the picture of a message. Shape (height, width, 3), uint8.

    Raises:
        SpecMismatch: its bytes are not what it says.
    """
    height, width = message.height, message.width
    if not (0 < height <= MAX_SIDE and 0 < width <= MAX_SIDE):
        raise SpecMismatch(f"a picture has 1 to {MAX_SIDE} pixels a side, got {width} x {height}")
    if message.encoding == "raw":
        if len(message.pixels) != height * width * 3:
            raise SpecMismatch(
                f"got {len(message.pixels)} bytes for a picture of {width} x {height}"
            )
        return np.frombuffer(message.pixels, np.uint8).reshape(height, width, 3)
    try:
        with Pillow.open(io.BytesIO(message.pixels), formats=("JPEG",)) as file:
            if file.size != (width, height):  # said before anything is decoded
                raise SpecMismatch(f"got a JPEG of {file.size}, expected {(width, height)}")
            image: Image = np.asarray(file.convert("RGB"))
    except (UnidentifiedImageError, OSError, ValueError, SyntaxError) as error:
        raise SpecMismatch(f"got a JPEG that cannot be read: {error}") from error
    return image
