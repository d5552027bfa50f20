"""Cameras: the latest picture, and how old it is. Nobody ever waits for a picture in a tick."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Protocol

import numpy as np
import numpy.typing as npt

from zetta.runtime.core import Image
from zetta.runtime.errors import ConfigError, InfraError

FIRST_FRAME_S: Final = 5.0
"""How long the first picture of a camera is waited for."""
SILENT_MS: Final = 4000
"""A RealSense that gives nothing for so long is lost; old pictures are noticed before that."""
RECORDINGS: Final = (".db3", ".bag")
"""How recordings of librealsense end, of version 2.57 and of older ones."""


@dataclass(frozen=True, slots=True)
class Frame:
    """One picture."""

    image: Image
    """Upright RGB. Shape (height, width, 3), uint8."""
    t: float
    """When it was taken, by our monotonic clock, as far as its driver lets us know."""
    depth: npt.NDArray[np.float32] | None = None
    """Metres along the optical axis. Shape (height, width)."""


class CameraSource(Protocol):
    """Where pictures of one camera come from."""

    def latest(self, max_age_s: float) -> Frame:
        """Return the newest picture.

        Raises:
            InfraError: there is none, or it is older than `max_age_s`; the message names the
                camera and what went wrong.
        """
        ...

    def close(self) -> None:
        """Free the camera; calling it again does nothing."""
        ...


class NewestFrame:
    """The newest picture of a camera, between the thread that takes it and whoever looks."""

    def __init__(self, camera: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._camera, self._clock = camera, clock
        self._changed = threading.Condition()
        self._frame: Frame | None = None
        self._trouble = ""

    def put(self, frame: Frame) -> None:
        """Replace the picture."""
        with self._changed:
            self._frame, self._trouble = frame, ""
            self._changed.notify_all()

    def fail(self, trouble: str) -> None:
        """Say why there is none; the last picture grows old."""
        with self._changed:
            self._trouble = trouble
            self._changed.notify_all()

    def wait(self, within_s: float) -> None:
        """Wait for the first picture.

        Raises:
            InfraError: none came.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._frame is not None or self._trouble, within_s)
            if self._frame is None:
                why = self._trouble or f"none came within {within_s:g} s"
                raise InfraError(f"the camera {self._camera!r} gives no pictures: {why}")

    def latest(self, max_age_s: float) -> Frame:
        """Return the newest picture.

        Raises:
            InfraError: there is none, or it is too old.
        """
        with self._changed:
            frame, trouble = self._frame, self._trouble
        because = f"; {trouble}" if trouble else ""
        if frame is None:
            raise InfraError(f"the camera {self._camera!r} has given no picture yet{because}")
        age = self._clock() - frame.t
        if age > max_age_s:
            raise InfraError(
                f"the newest picture of the camera {self._camera!r} is {age:.2f} s old, wanted at "
                f"most {max_age_s:g} s{because}"
            )
        return frame


class Grabber(Protocol):
    """A driver that gives pictures one after the other."""

    def grab(self) -> tuple[Image, npt.NDArray[np.float32] | None]:
        """Wait for the next picture and return it, with depth where there is one.

        Raises:
            InfraError: none comes.
        """
        ...

    def release(self) -> None:
        """Free the device."""
        ...


class CapturedCamera:
    """A `CameraSource`: a thread grabs, the newest picture counts."""

    def __init__(self, camera: str, open_device: Callable[[], Grabber]) -> None:
        """Open the device in its thread and wait for the first picture.

        Raises:
            InfraError: the device gives none.
        """
        self._newest = NewestFrame(camera)
        self._ended = threading.Event()
        self._thread = threading.Thread(
            target=self._capture, args=(open_device,), name=f"camera-{camera}", daemon=True
        )
        self._thread.start()
        try:
            self._newest.wait(FIRST_FRAME_S)
        except InfraError:
            self.close()
            raise

    def latest(self, max_age_s: float) -> Frame:
        """Return the newest picture.

        Raises:
            InfraError: there is none, or it is too old.
        """
        return self._newest.latest(max_age_s)

    def close(self) -> None:
        """Free the device; calling it again does nothing."""
        self._ended.set()
        # A driver that hangs in its kernel must not hang us.
        self._thread.join(FIRST_FRAME_S)

    def _capture(self, open_device: Callable[[], Grabber]) -> None:
        try:
            device = open_device()
        except (InfraError, ConfigError) as error:
            self._newest.fail(str(error))
            return
        try:
            while not self._ended.is_set():
                # Before the driver waits, so that a picture counts as older rather than younger.
                t = time.monotonic()
                image, depth = device.grab()
                self._newest.put(Frame(image, t, depth))
        except InfraError as error:
            self._newest.fail(str(error))
        finally:
            device.release()


class UsbDevice:
    """A camera of V4L, or a film file, through OpenCV."""

    def __init__(self, place: int | str, height: int, width: int) -> None:
        """Open it at the wanted size.

        Raises:
            ConfigError: OpenCV is not installed.
            InfraError: it cannot be opened, or gives another size.
        """
        try:
            import cv2
        except ImportError:
            raise ConfigError(
                "USB cameras need OpenCV; run: pip install 'zetta[cameras]'"
            ) from None
        self._place, self._size = place, (height, width)
        self._capture: Any = cv2.VideoCapture(place)
        if isinstance(place, int) or str(place).startswith("/dev/"):
            self._capture.set(cv2.CAP_PROP_BUFFERSIZE, 1)
            self._capture.set(cv2.CAP_PROP_FRAME_WIDTH, width)
            self._capture.set(cv2.CAP_PROP_FRAME_HEIGHT, height)
        if not self._capture.isOpened():
            raise InfraError(f"cannot open the camera device {place!r}; is it in use?")

    def grab(self) -> tuple[Image, None]:
        """Return the next picture.

        Raises:
            InfraError: none comes, or it has another size.
        """
        got, bgr = self._capture.read()
        if not got:
            raise InfraError(f"the camera device {self._place!r} gives no more pictures")
        if bgr.shape != (*self._size, 3) or bgr.dtype != np.uint8:
            raise InfraError(
                f"the camera device {self._place!r} gives pictures of shape {bgr.shape}, expected "
                f"{(*self._size, 3)}; declare a size that it has"
            )
        return np.ascontiguousarray(bgr[:, :, ::-1]), None  # OpenCV's order is BGR

    def release(self) -> None:
        """Free the device."""
        self._capture.release()


class RealSenseDevice:
    """A RealSense camera, depth aligned to colour.

    A recording of librealsense can stand for it. That is how this was run; no camera was attached.
    """

    def __init__(self, place: str, height: int, width: int, hz: int = 30) -> None:
        """Start its streams.

        Args:
            place: serial number, empty for the only camera; or a recording, which is played over
                and over.
            height: pixels.
            width: pixels.
            hz: pictures a second.

        Raises:
            ConfigError: its library is not installed, or cannot be loaded.
            InfraError: it does not start.
        """
        try:
            import pyrealsense2 as rs
        except ImportError as error:
            raise ConfigError(
                f"RealSense cameras need: pip install 'zetta[realsense]' and, on Debian, "
                f"apt-get install libusb-1.0-0 ({error})"
            ) from None
        config: Any = rs.config()
        if place.endswith(RECORDINGS):
            config.enable_device_from_file(place, True)
        else:
            # Asked before, since the library itself waits for a camera longer than we wait for it.
            _check_attached(rs, place)
            if place:
                config.enable_device(place)
        config.enable_stream(rs.stream.color, width, height, rs.format.rgb8, hz)
        config.enable_stream(rs.stream.depth, width, height, rs.format.z16, hz)
        self._pipeline: Any = rs.pipeline()
        self._align: Any = rs.align(rs.stream.color)
        try:
            started = self._pipeline.start(config)
        except RuntimeError as error:
            raise InfraError(f"the RealSense {place!r} does not start: {error}") from error
        self._metres = float(started.get_device().first_depth_sensor().get_depth_scale())

    def grab(self) -> tuple[Image, npt.NDArray[np.float32]]:
        """Return the next picture and its depth.

        Raises:
            InfraError: none comes.
        """
        try:
            frames = self._align.process(self._pipeline.wait_for_frames(SILENT_MS))
        except RuntimeError as error:
            raise InfraError(f"the RealSense gives no pictures: {error}") from error
        image = np.array(frames.get_color_frame().get_data(), dtype=np.uint8)
        depth = np.array(frames.get_depth_frame().get_data(), dtype=np.float32) * self._metres
        return image, depth.astype(np.float32)

    def release(self) -> None:
        """Stop its streams."""
        self._pipeline.stop()


def _check_attached(rs: Any, serial: str) -> None:
    """Refuse a RealSense that is not attached.

    Raises:
        InfraError: it is not; the message names those that are.
    """
    devices = rs.context().query_devices()
    attached = [device.get_info(rs.camera_info.serial_number) for device in devices]
    if not attached or (serial and serial not in attached):
        raise InfraError(
            f"no RealSense {serial!r} is attached to this computer; "
            f"attached: {', '.join(attached) or 'none'}"
        )
