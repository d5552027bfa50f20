"""What the twin's cameras see. A process draws with one context, for however many worlds."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from zetta.hw_drivers.twin.scene import FAR_M, NEAR_M, PICTURE_SIZE, engine, model
from zetta.runtime.core import Array, Image
from zetta.runtime.errors import InfraError

HEADLESS = ("egl", "osmesa")


@cache
def drawer() -> Drawer:
    """Return what draws in this process; a second context would give garbage.

    Raises:
        ConfigError: MuJoCo or robosuite is not installed.
        InfraError: no OpenGL works here.
    """
    return Drawer()


class Drawer:
    """Draws the twin's model. Made by `drawer`."""

    def __init__(self) -> None:
        mujoco = engine()
        if not mujoco.GLContext.__module__.endswith(HEADLESS):
            raise InfraError(
                f"MuJoCo would draw with {mujoco.GLContext.__module__}, which needs a screen; set "
                "MUJOCO_GL to egl or osmesa before it is imported, as every zetta command does"
            )
        self._mj, self._model = mujoco, model()
        self._data = mujoco.MjData(self._model)
        try:
            self._gl = mujoco.GLContext(PICTURE_SIZE, PICTURE_SIZE)
            self._gl.make_current()
        except Exception as error:
            raise InfraError(f"no OpenGL context: {error}; run zetta doctor") from error
        self._context = mujoco.MjrContext(self._model, mujoco.mjtFontScale.mjFONTSCALE_100)
        mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN, self._context)
        self._scene = mujoco.MjvScene(self._model, maxgeom=200)
        self._options, self._perturb = mujoco.MjvOption(), mujoco.MjvPerturb()
        self._options.sitegroup[:] = 0
        self._camera: Any = mujoco.MjvCamera()
        self._camera.type = mujoco.mjtCamera.mjCAMERA_FIXED

    def draw(self, qpos: Array, camera: str) -> tuple[Image, npt.NDArray[np.float32]]:
        """Return an upright picture of a state, and its depth.

        Args:
            qpos: of `TwinWorld`. Shape (nq,).
            camera: its name.

        Returns:
            RGB of shape (256, 256, 3), and metres along the optical axis of shape (256, 256).
        """
        mj, box = self._mj, self._mj.MjrRect(0, 0, PICTURE_SIZE, PICTURE_SIZE)
        self._data.qpos[:] = qpos
        mj.mj_kinematics(self._model, self._data)
        mj.mj_camlight(self._model, self._data)
        self._camera.fixedcamid = self._model.camera(camera).id
        mj.mjv_updateScene(
            self._model, self._data, self._options, self._perturb, self._camera,
            mj.mjtCatBit.mjCAT_ALL, self._scene,
        )  # fmt: skip
        mj.mjr_render(box, self._scene, self._context)
        rgb = np.empty((PICTURE_SIZE, PICTURE_SIZE, 3), np.uint8)
        depth = np.empty((PICTURE_SIZE, PICTURE_SIZE), np.float32)
        mj.mjr_readPixels(rgb, depth, box, self._context)
        # OpenGL rows run from the bottom: this is the one place where pictures are turned.
        metres = np.float32(NEAR_M) / (1 - depth[::-1] * np.float32(1 - NEAR_M / FAR_M))
        return np.ascontiguousarray(rgb[::-1]), np.ascontiguousarray(metres, dtype=np.float32)
