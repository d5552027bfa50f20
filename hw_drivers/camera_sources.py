"""From the text of a camera's source to what gives its pictures."""

from __future__ import annotations

from collections.abc import Mapping

from zetta.hw_drivers.arm_setup import CameraSetup
from zetta.hw_drivers.camera_stream import StreamedCamera
from zetta.hw_drivers.cameras import CameraSource, CapturedCamera, RealSenseDevice, UsbDevice
from zetta.runtime.curve_keys import ClientKeys
from zetta.runtime.errors import ConfigError


def open_cameras(
    cameras: Mapping[str, CameraSetup], keys: ClientKeys | None = None
) -> dict[str, CameraSource]:
    """Open every camera; when one fails, those before it are closed again.

    Raises:
        ConfigError: a source is written wrongly, or needs what is not installed.
        InfraError: a camera gives no pictures.
    """
    opened: dict[str, CameraSource] = {}
    try:
        for name, setup in cameras.items():
            opened[name] = open_camera(name, setup, keys)
    except BaseException:
        for source in opened.values():
            source.close()
        raise
    return opened


def open_camera(name: str, setup: CameraSetup, keys: ClientKeys | None = None) -> CameraSource:
    """Open one camera and wait for its first picture.

    Raises:
        ConfigError: its source is written wrongly, or needs what is not installed.
        InfraError: it gives no pictures.
    """
    kind, place = check_source(setup.source)
    size = setup.height, setup.width
    match kind:
        case "zmq":
            return StreamedCamera(place, name, *size, keys=keys)
        case "realsense":
            return CapturedCamera(name, lambda: RealSenseDevice(place, *size))
        case _:
            device = int(place) if place.isdecimal() else place
            return CapturedCamera(name, lambda: UsbDevice(device, *size))


def check_source(text: str) -> tuple[str, str]:
    """Return the kind and the place of a camera's source.

    Raises:
        ConfigError: it is none.
    """
    kind, colon, place = text.partition(":")
    if not colon or kind not in ("usb", "zmq", "realsense") or (kind != "realsense" and not place):
        raise ConfigError(
            f"got the camera source {text!r}, expected usb:N, zmq:tcp://HOST:PORT or "
            "realsense:SERIAL"
        )
    return kind, place
