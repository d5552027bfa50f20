"""What environments on SAPIEN do alike: pictures are drawn one by one, when they are looked at."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from zetta.runtime.core import Camera, Image, Observation
from zetta.sims.env_checks import check_cameras
from zetta.sims.world_env import WorldEnv


class DrawnPictures(Protocol):
    """The cameras of a scene."""

    def draw(self, name: str, depth: bool) -> tuple[Image, npt.NDArray[np.float32] | None, Camera]:
        """Return a picture, its depth where asked for, and the calibration.

        Raises:
            InfraError: it cannot be drawn.
        """
        ...


class SapienEnv(WorldEnv):
    """An environment on a scene of SAPIEN."""

    _pictures: DrawnPictures

    def observe(self, cameras: Sequence[str] = (), depth: bool = False) -> Observation:
        """Sense now; only the named cameras are drawn.

        Raises:
            ConfigError: unknown camera.
            InfraError: this machine draws no pictures.
        """
        check_cameras(cameras, [camera.name for camera in self._spec.cameras])
        images, depths, calibrations = {}, {}, {}
        if cameras:
            self._refresh()
        for name in cameras:
            images[name], metres, calibrations[name] = self._pictures.draw(name, depth)
            if metres is not None:
                depths[name] = metres
        return Observation(self._proprio(), self.task.instruction, images, depths, calibrations)

    def _refresh(self) -> None:
        """Bring what is drawn up to the world, where that is not done as it moves."""
