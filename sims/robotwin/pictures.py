"""Pictures of a RoboTwin world, drawn when somebody looks.

RoboTwin's cameras: one at the head, one on each wrist, 320 x 240. The first picture of a process
compiles shaders, which takes half a minute on a processor.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from zetta.runtime.core import Camera, CameraSpec, Image, read_only
from zetta.runtime.errors import InfraError
from zetta.sims.robotwin import sight

WIDTH, HEIGHT = 320, 240
CAMERAS: Final = {
    "head": "head_camera",
    "left_wrist": "left_camera",
    "right_wrist": "right_camera",
}
"""RoboTwin's names by ours."""
FIRST_S, PICTURE_S = 280.0, 110.0
"""A picture that takes longer hangs. The first one of a process compiles: twelve seconds of one
core, which is minutes where others use it too."""
_drawn: list[str] = []
"""The first camera that this process has drawn."""


def camera_specs() -> tuple[CameraSpec, ...]:
    """Return the cameras."""
    return tuple(
        CameraSpec(name, HEIGHT, WIDTH, "world" if name == "head" else "wrist") for name in CAMERAS
    )


class Pictures:
    """The cameras of one world."""

    def __init__(self, task: Any, shader: sight.Shader) -> None:
        """Find them; nothing is drawn."""
        self._task, self._shader = task, shader
        self._fresh = False

    def stale(self) -> None:
        """Note that something has moved."""
        self._fresh = False

    def draw(self, name: str, depth: bool) -> tuple[Image, npt.NDArray[np.float32] | None, Camera]:
        """Draw one picture; return it, its depth in metres where asked for, and its calibration.

        Raises:
            InfraError: nothing can be drawn here, or the picture is empty.
        """
        if self._shader == "none":
            raise InfraError(sight.NO_DEVICE)
        with sight.watched(PICTURE_S if _drawn else FIRST_S, "drawing a picture"):
            if not self._fresh:
                self._task.draw()
                self._fresh = True
            camera = self._camera(name)
            camera.take_picture()
            rgba = np.asarray(camera.get_picture("Color"))
            behind = np.asarray(camera.get_picture("Position"))[..., 2] if depth else None
            _drawn[:] = [name]
        image = (rgba[..., :3] * 255.0).clip(0.0, 255.0).astype(np.uint8)
        if image.std() < 1.0:
            raise InfraError("SAPIEN draws empty pictures; run: zetta sims check robotwin")
        # OpenGL's z points backwards; where nothing is seen it is 0, and then it is far away.
        metres = None if behind is None else read_only(_far(-behind), np.float32)
        return read_only(image, np.uint8), metres, self._calibration(camera, name)

    def _camera(self, name: str) -> Any:
        cameras, wanted = self._task.cameras, CAMERAS[name]
        if name != "head":
            return getattr(cameras, wanted)
        return cameras.static_camera_list[cameras.static_camera_name.index(wanted)]

    def _calibration(self, camera: Any, name: str) -> Camera:
        inside = np.eye(4)
        inside[:3] = np.asarray(camera.get_extrinsic_matrix(), np.float64)[:3]
        # Single precision: the rotation is made one again.
        u, _, v = np.linalg.svd(inside[:3, :3])
        place = np.eye(4)
        place[:3, :3] = (u @ v).T
        place[:3, 3] = -(u @ v).T @ inside[:3, 3]
        return Camera(name, read_only(camera.get_intrinsic_matrix()), read_only(place))


_NOTHING_M = 10.0


def _far(metres: npt.NDArray[np.floating[Any]]) -> npt.NDArray[np.floating[Any]]:
    return np.where(metres > 0.0, metres, _NOTHING_M)
