"""Cameras: streams between processes, capture threads, and pictures that are too old."""

from __future__ import annotations

import contextlib
import importlib.util
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.hw_drivers.arm_parts import until
from tests.hw_drivers.camera_parts import HEIGHT, WIDTH, camera_setup, picture
from zetta.hw_drivers.arm_sockets import Publisher
from zetta.hw_drivers.camera_sources import check_source, open_camera, open_cameras
from zetta.hw_drivers.camera_stream import (
    CAMERA_PROTOCOL,
    CameraPublisher,
    Encoding,
    FrameMessage,
    StreamedCamera,
    decoded,
    encoded,
    relay,
)
from zetta.hw_drivers.cameras import CapturedCamera, Frame, NewestFrame
from zetta.runtime.core import Image
from zetta.runtime.errors import ConfigError, InfraError, SpecMismatch
from zetta.runtime.wire import pack, to_wire


@contextlib.contextmanager
def publishing(encoding: Encoding = "raw", age: float = 0.0) -> Iterator[CameraPublisher]:
    """Publish pictures from a thread, each `age` old when it is sent."""
    publisher = CameraPublisher("tcp://127.0.0.1:*", "front", encoding)
    ended = threading.Event()

    def send() -> None:
        depth = np.full((HEIGHT, WIDTH), 0.75, np.float32)
        while not ended.wait(0.01):
            publisher.send(Frame(picture(7), time.monotonic() - age, depth))

    thread = threading.Thread(target=send)
    thread.start()
    try:
        yield publisher
    finally:
        ended.set()
        thread.join()
        publisher.close()


@pytest.mark.parametrize("encoding", ["raw", "jpeg"])
def test_streamed_picture_arrives_with_its_age_and_depth(encoding: Encoding) -> None:
    with publishing(encoding, age=3.0) as publisher:
        camera = StreamedCamera(publisher.endpoint, "front", HEIGHT, WIDTH)
        frame = camera.latest(60.0)
        camera.close()
    apart = np.abs(frame.image.astype(int) - picture(7).astype(int))
    assert apart.max() == 0 if encoding == "raw" else np.median(apart) <= 3
    assert time.monotonic() - frame.t >= 3.0
    assert frame.depth is not None
    assert frame.depth[0, 0] == 0.75


def test_relay_sends_each_picture_once_and_ends_with_its_camera() -> None:
    device, publisher = Grabs(5), CameraPublisher("tcp://127.0.0.1:*", "front")
    source = CapturedCamera("front", lambda: device)
    assert device.released.wait(20.0)
    looks = iter([False] * 3 + [True])
    assert relay(source, publisher, lambda _: next(looks), 60.0) == 1
    with pytest.raises(InfraError, match="the cable is loose"):
        relay(source, publisher, lambda _: False, 0.0)
    source.close()
    publisher.close()


def test_picture_grows_old_when_its_publisher_falls_silent() -> None:
    with publishing() as publisher:
        camera = StreamedCamera(publisher.endpoint, "front", HEIGHT, WIDTH)
    until(lambda: time.monotonic() - camera.latest(60.0).t > 0.1, "the picture grows old")
    with pytest.raises(InfraError, match=r"camera 'front' is 0\.\d+ s old, wanted at most 0.05 s"):
        camera.latest(0.05)
    camera.close()


def test_camera_that_nobody_publishes_is_named_with_its_endpoint() -> None:
    with pytest.raises(InfraError, match=r"'front' gives no pictures.*tcp://127.0.0.1:5799"):
        StreamedCamera("tcp://127.0.0.1:5799", "front", HEIGHT, WIDTH, within_s=0.2)


def test_stream_of_another_camera_or_size_is_refused_by_name() -> None:
    with publishing() as publisher:
        with pytest.raises(InfraError, match="sends the camera 'front', not 'wrist'"):
            StreamedCamera(publisher.endpoint, "wrist", HEIGHT, WIDTH)
        with pytest.raises(InfraError, match="32 x 24, expected 32 x 25"):
            StreamedCamera(publisher.endpoint, "front", HEIGHT + 1, WIDTH)


def test_hostile_frames_leave_the_last_good_picture_to_grow_old() -> None:
    publisher = Publisher("tcp://127.0.0.1:*")
    good = pack(to_wire(message("raw", encoded(picture(), "raw"))))
    stop = threading.Event()

    def send(raws: list[bytes]) -> None:
        while not stop.wait(0.005):
            for raw in raws:
                publisher.send(raw)

    thread = threading.Thread(target=send, args=([good],))
    thread.start()
    camera = StreamedCamera(publisher.endpoint, "front", HEIGHT, WIDTH)
    stop.set()
    thread.join()
    stop.clear()
    bad = [b"", b"\xc1", pack({"protocol": 1}), pack(to_wire(message("jpeg", b"\xff\xd8 no")))]
    thread = threading.Thread(target=send, args=(bad,))
    thread.start()
    until(lambda: "s old, wanted at most 0 s; " in _complaint(camera), "the trouble is noticed")
    stop.set()
    thread.join()
    camera.close()
    publisher.close()


def _complaint(camera: StreamedCamera) -> str:
    try:
        camera.latest(0.0)
    except InfraError as error:
        return str(error)
    return ""


def message(encoding: Encoding, pixels: bytes, height: int = HEIGHT) -> FrameMessage:
    return FrameMessage(CAMERA_PROTOCOL, "front", 1, 0.0, height, WIDTH, encoding, pixels)


@given(st.binary(max_size=300))
def test_any_bytes_are_a_picture_or_a_mismatch(pixels: bytes) -> None:
    for encoding in ("raw", "jpeg"):
        with pytest.raises(SpecMismatch):
            decoded(message(encoding, pixels))  # type: ignore[arg-type]


def test_jpeg_of_another_size_is_refused_before_it_is_decoded() -> None:
    large = encoded(np.zeros((4000, 4000, 3), np.uint8), "jpeg")
    with pytest.raises(SpecMismatch, match=r"JPEG of \(4000, 4000\)"):
        decoded(message("jpeg", large))
    with pytest.raises(SpecMismatch, match="pixels a side"):
        decoded(message("raw", b"", height=10**9))


# ----------------------------------------------------------------------------- capture


class Grabs:
    """A device of so many pictures."""

    def __init__(self, count: int) -> None:
        self.left, self.released = count, threading.Event()

    def grab(self) -> tuple[Image, npt.NDArray[np.float32] | None]:
        if self.left == 0:
            raise InfraError("the cable is loose")
        self.left -= 1
        return picture(self.left), None

    def release(self) -> None:
        self.released.set()


def test_captured_camera_shows_the_newest_and_says_why_it_is_old() -> None:
    device = Grabs(3)
    camera = CapturedCamera("front", lambda: device)
    assert device.released.wait(20.0)
    np.testing.assert_array_equal(camera.latest(60.0).image, picture(0))
    with pytest.raises(InfraError, match=r"'front' is .* s old.*the cable is loose"):
        camera.latest(0.0)
    camera.close()


def test_device_without_pictures_is_refused_at_the_start() -> None:
    with pytest.raises(InfraError, match="'front' gives no pictures: the cable is loose"):
        CapturedCamera("front", lambda: Grabs(0))
    with pytest.raises(InfraError, match="no picture yet"):
        NewestFrame("front").latest(1.0)


@pytest.mark.skipif(importlib.util.find_spec("cv2") is None, reason="needs OpenCV")
def test_opencv_pictures_come_as_rgb_of_the_declared_size(tmp_path: Path) -> None:
    import cv2

    film = tmp_path / "film.avi"
    writer = cv2.VideoWriter(str(film), cv2.VideoWriter.fourcc(*"MJPG"), 20.0, (WIDTH, HEIGHT))
    for _ in range(5):
        writer.write(np.ascontiguousarray(picture()[:, :, ::-1]))
    writer.release()

    camera = open_camera("front", camera_setup(f"usb:{film}"))
    image = camera.latest(60.0).image
    camera.close()
    assert image[HEIGHT // 2, 4, 0] > 150 > 100 > image[HEIGHT // 2, 4, 2]
    assert image[HEIGHT // 2, -4, 2] > 100 > image[HEIGHT // 2, -4, 0]
    with pytest.raises(InfraError, match="declare a size that it has"):
        open_cameras({"front": camera_setup(f"usb:{film}"), "odd": _wider(f"usb:{film}")})
    with pytest.raises(InfraError, match="cannot open the camera device"):
        open_camera("front", camera_setup(f"usb:{tmp_path / 'none.avi'}"))


def _wider(source: str):  # type: ignore[no-untyped-def]
    from dataclasses import replace

    return replace(camera_setup(source), width=WIDTH + 2)


@pytest.mark.skipif(importlib.util.find_spec("pyrealsense2") is not None, reason="it is installed")
def test_realsense_without_its_library_says_what_to_install() -> None:
    with pytest.raises(InfraError, match=r"pip install 'zetta\[realsense\]'"):
        open_camera("front", camera_setup("realsense:"))


@pytest.mark.parametrize("text", ["0", "usb:", "udp:1", "zmq:"])
def test_unknown_source_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="expected usb:N"):
        check_source(text)
