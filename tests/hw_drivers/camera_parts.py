"""Pictures for the tests of cameras."""

from __future__ import annotations

import numpy as np

from zetta.hw_drivers.arm_setup import IDENTITY, CameraSetup
from zetta.hw_drivers.cameras import Frame
from zetta.runtime.core import Image
from zetta.runtime.errors import InfraError

HEIGHT, WIDTH = 24, 32
INTRINSICS = ((30.0, 0.0, 16.0), (0.0, 30.0, 12.0), (0.0, 0.0, 1.0))


def picture(seed: int = 0) -> Image:
    """Return a smooth picture whose left side is red and whose right side is blue."""
    image = np.zeros((HEIGHT, WIDTH, 3), np.uint8)
    image[:, : WIDTH // 2, 0] = 200
    image[:, WIDTH // 2 :, 2] = 150
    image[:, :, 1] = seed % 250
    return image


def camera_setup(source: str = "zmq:tcp://127.0.0.1:5704", **other: object) -> CameraSetup:
    """Return a small camera."""
    return CameraSetup(source, HEIGHT, WIDTH, INTRINSICS, IDENTITY, **other)  # type: ignore[arg-type]


class Still:
    """A `CameraSource` that shows one picture, as old as it is told to be."""

    def __init__(self, camera: str, frame: Frame) -> None:
        self.camera, self.frame, self.age, self.closed = camera, frame, 0.0, False

    def latest(self, max_age_s: float) -> Frame:
        if self.age > max_age_s:
            raise InfraError(
                f"the newest picture of the camera {self.camera!r} is {self.age} s old"
            )
        return self.frame

    def close(self) -> None:
        self.closed = True
