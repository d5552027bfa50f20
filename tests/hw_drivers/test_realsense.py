"""`realsense:`: the reader, with librealsense itself and a recording in place of a camera."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.hw_drivers.camera_parts import HEIGHT, WIDTH, camera_setup
from zetta.hw_drivers.camera_sources import open_camera
from zetta.hw_drivers.cameras import CameraSource
from zetta.runtime.errors import InfraError

rs: Any = pytest.importorskip(
    "pyrealsense2", reason="needs pip install 'zetta[realsense]'", exc_type=ImportError
)

DEPTH_MM = 1234
FRAMES, HZ = 45, 30


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a recording of a device of software: upper half reddish, everything 1.234 m away."""
    path = tmp_path_factory.mktemp("realsense") / "recording.db3"
    device = rs.software_device()
    device.register_info(rs.camera_info.serial_number, "0001")
    depth, colour = device.add_sensor("Depth"), device.add_sensor("Color")
    depth.add_read_only_option(rs.option.depth_units, 0.001)
    streams = {
        depth: _stream(depth, rs.stream.depth, 1, rs.format.z16),
        colour: _stream(colour, rs.stream.color, 2, rs.format.rgb8),
    }
    here = rs.extrinsics()
    here.rotation, here.translation = np.eye(3).ravel().tolist(), [0.0, 0.0, 0.0]
    streams[depth].register_extrinsics_to(streams[colour], here)
    device.create_matcher(rs.matchers.default)
    recorder = rs.recorder(str(path), device)
    queue = rs.frame_queue(2 * FRAMES)
    sensors = recorder.query_sensors()
    for sensor in sensors:
        sensor.open(sensor.get_stream_profiles())
        sensor.start(queue)
    image = np.full((HEIGHT, WIDTH, 3), 40, np.uint8)
    image[: HEIGHT // 2] = (200, 10, 30)
    distance = np.full((HEIGHT, WIDTH), DEPTH_MM, np.uint16)
    for number in range(1, FRAMES + 1):
        for sensor, pixels in ((depth, distance), (colour, image)):
            sensor.on_video_frame(_frame(streams[sensor], pixels, number))
            queue.wait_for_frame(1000)
    for sensor in sensors:
        sensor.stop()
        sensor.close()
    return path


@pytest.fixture
def camera(recording: Path) -> Iterator[CameraSource]:
    source = open_camera("front", camera_setup(f"realsense:{recording}"))
    yield source
    source.close()


def test_pictures_are_rgb_and_upright_with_depth_in_metres(camera: CameraSource) -> None:
    frame = camera.latest(max_age_s=5.0)
    assert frame.image.shape == (HEIGHT, WIDTH, 3)
    assert frame.image[0, 0].tolist() == [200, 10, 30]
    assert frame.image[-1, -1].tolist() == [40, 40, 40]
    assert frame.depth is not None
    assert frame.depth.dtype == np.float32
    # Aligning leaves some pixels without depth, as a camera does: 0.
    seen = frame.depth[frame.depth > 0.0]
    assert np.allclose(seen, DEPTH_MM / 1000.0, atol=1e-6)
    assert seen.size > 0.8 * frame.depth.size


def test_camera_that_is_not_there_is_an_error_with_its_serial() -> None:
    with pytest.raises(InfraError, match=r"no RealSense '999' is attached .* attached: none"):
        open_camera("front", camera_setup("realsense:999"))


def test_recording_of_another_size_is_refused(recording: Path) -> None:
    here = camera_setup(f"realsense:{recording}")
    other = replace(here, height=2 * HEIGHT, width=2 * WIDTH)
    with pytest.raises(InfraError, match="does not start"):
        open_camera("front", other)


def _stream(sensor: Any, kind: Any, uid: int, pixel: Any) -> Any:
    stream, lens = rs.video_stream(), rs.intrinsics()
    lens.width, lens.height, lens.fx, lens.fy = WIDTH, HEIGHT, 60.0, 60.0
    lens.ppx, lens.ppy, lens.model, lens.coeffs = WIDTH / 2, HEIGHT / 2, rs.distortion.none, [0] * 5
    stream.type, stream.index, stream.uid, stream.fmt = kind, 0, uid, pixel
    stream.width, stream.height, stream.fps = WIDTH, HEIGHT, HZ
    stream.bpp = 2 if pixel == rs.format.z16 else 3
    stream.intrinsics = lens
    return sensor.add_video_stream(stream)


def _frame(profile: Any, pixels: np.ndarray, number: int) -> Any:
    frame = rs.software_video_frame()
    frame.bpp = pixels.nbytes // (HEIGHT * WIDTH)
    frame.pixels, frame.stride = pixels, WIDTH * frame.bpp
    frame.timestamp, frame.frame_number = number * 1000.0 / HZ, number
    frame.domain, frame.profile = rs.timestamp_domain.system_time, profile.as_video_stream_profile()
    if frame.bpp == 2:
        frame.depth_units = 0.001
    return frame
