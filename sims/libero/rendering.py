"""Pictures of a MuJoCo simulation: one context per process, profiles that models are bound to.

The simulation itself is built without any renderer; pictures are drawn from its model and data by
an own context. Nothing here changes physics.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from zetta.runtime.core import Camera, Image, read_only
from zetta.runtime.errors import ConfigError, InfraError, suggest
from zetta.sims.env_checks import check_pictures
from zetta.sims.libero.meshes import decimated


@dataclass(frozen=True, slots=True)
class RenderProfile:
    """Settings that decide how pictures look."""

    name: str
    samples: int
    """Multisampling of the offscreen buffer; 4 is the simulator's own setting."""
    decimate: bool


PROFILES = {
    p.name: p
    for p in (
        RenderProfile("fast", samples=0, decimate=True),
        RenderProfile("full", samples=4, decimate=False),
        RenderProfile("no-multisampling", samples=0, decimate=False),
    )
}
"""`fast` is what the embedded models were trained on; `full` is the simulator's own look."""

GL_BACKENDS = ("egl", "osmesa")
_PROBE = """
import mujoco, numpy
context = mujoco.GLContext(64, 64)
context.make_current()
model = mujoco.MjModel.from_xml_string(
    '<mujoco><worldbody><light pos="0 0 3"/><geom type="box" size="1 1 1" rgba="1 0 0 1"/>'
    '</worldbody></mujoco>')
data = mujoco.MjData(model)
mujoco.mj_forward(model, data)
draw = mujoco.MjrContext(model, mujoco.mjtFontScale.mjFONTSCALE_100)
mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN, draw)
scene = mujoco.MjvScene(model, maxgeom=10)
mujoco.mjv_updateScene(model, data, mujoco.MjvOption(), None, mujoco.MjvCamera(), 7, scene)
box = mujoco.MjrRect(0, 0, 64, 64)
mujoco.mjr_render(box, scene, draw)
picture = numpy.empty((64, 64, 3), numpy.uint8)
mujoco.mjr_readPixels(picture, None, box, draw)
assert picture.std() > 1, 'the picture is empty'
print('picture ok', flush=True)
"""


_NO_CAUSE = (" ", "Traceback", "Exception ignored")
"""Beginnings of lines that say nothing about why there is no picture."""


@dataclass(frozen=True, slots=True)
class GlChoice:
    """The rendering backend that works here."""

    backend: str
    note: str
    """Why the first choice was passed over; empty when it works."""


def choose_gl(timeout_s: float = 180.0, python: str | None = None) -> GlChoice:
    """Return the first backend that draws a picture in a child process: EGL, else OSMesa.

    Args:
        timeout_s: how long each may take.
        python: interpreter that has MuJoCo; the running one by default.

    Raises:
        InfraError: none works; the message holds the first error of each.
    """
    failures: list[str] = []
    for backend in GL_BACKENDS:
        error = probe_gl(backend, timeout_s, python)
        if error is None:
            return GlChoice(backend, "; ".join(failures))
        failures.append(f"{backend}: {error}")
    raise InfraError(
        "no headless OpenGL works here (" + "; ".join(failures) + "); on Debian install "
        "libegl1 libegl-mesa0 libgl1-mesa-dri libosmesa6, then run zetta doctor"
    )


def probe_gl(backend: str, timeout_s: float = 180.0, python: str | None = None) -> str | None:
    """Draw one picture with `backend` in a child process; return None or what went wrong."""
    environment = {**os.environ, "MUJOCO_GL": backend, "PYOPENGL_PLATFORM": backend}
    try:
        child = subprocess.run(
            [python or sys.executable, "-P" if python is None else "-I", "-c", _PROBE],
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"no picture within {timeout_s:g} s"
    if "picture ok" in child.stdout:
        return None
    # The first exception is the cause; later ones come from destructors.
    lines = [x for x in child.stderr.splitlines() if x and not x.startswith(_NO_CAUSE)]
    return lines[0] if lines else f"exit code {child.returncode}"


def profile(name: str) -> RenderProfile:
    """Return the render profile called `name`.

    Raises:
        ConfigError: unknown name.
    """
    if name not in PROFILES:
        raise ConfigError(f"unknown render profile {name!r}; {suggest(name, PROFILES)}")
    return PROFILES[name]


def _most_geoms(model: Any) -> int:
    """Return how many things a picture may show: a furnished kitchen has more than 2000."""
    return max(2000, int(model.ngeom) + int(model.nsite) + 200)


class Renderer:
    """Draws one simulation. Create at most one per process."""

    _in_use = False

    def __init__(self, model: Any, data: Any, settings: RenderProfile, size: int) -> None:
        """Set up the context and upload the meshes.

        Args:
            model: `mujoco.MjModel` of the simulation.
            data: its `mujoco.MjData`.
            settings: render profile.
            size: height and width of the largest picture in pixels.

        Raises:
            InfraError: no OpenGL context, or this process has drawn another environment before.
        """
        import mujoco

        if Renderer._in_use:
            raise InfraError(
                "this process already draws another environment, and a second one would give "
                "garbage pictures; use one process for each task"
            )
        if not mujoco.GLContext.__module__.endswith(GL_BACKENDS):
            raise InfraError(
                f"MuJoCo would draw with {mujoco.GLContext.__module__}, which needs a screen; set "
                "MUJOCO_GL to egl or osmesa before it is imported, as every zetta command does"
            )
        self._mj, self._model, self._data = mujoco, model, data
        self._drawn = mujoco.MjData(model)
        """Where everything is now; the simulation's own derived poses lag by one substep."""
        try:
            self._gl = mujoco.GLContext(size, size)
            self._gl.make_current()
        except Exception as error:
            raise InfraError(f"no OpenGL context: {error}; run zetta doctor") from error
        Renderer._in_use = True
        self._settings, self._size = settings, size
        self._context = self._uploaded(model)
        self._scene = mujoco.MjvScene(model, maxgeom=_most_geoms(model))
        self._options = mujoco.MjvOption()
        self._options.geomgroup[0] = 0  # collision geometry is not drawn
        self._camera = mujoco.MjvCamera()
        self._camera.type = mujoco.mjtCamera.mjCAMERA_FIXED
        self._perturb = mujoco.MjvPerturb()

    def become(self, model: Any, data: Any) -> None:
        """Draw another simulation from now on, in the same context: a scene that was built anew."""
        self._context.free()
        self._model, self._data = model, data
        self._drawn = self._mj.MjData(model)
        self._context = self._uploaded(model)
        self._scene = self._mj.MjvScene(model, maxgeom=_most_geoms(model))

    def _uploaded(self, model: Any) -> Any:
        """Return the drawing context that holds the meshes and textures of a model."""
        mujoco, settings = self._mj, self._settings
        drawn = decimated(model) if settings.decimate else model
        saved = model.vis.quality.offsamples
        drawn.vis.quality.offsamples = settings.samples
        drawn.vis.global_.offwidth = drawn.vis.global_.offheight = self._size
        context = mujoco.MjrContext(drawn, mujoco.mjtFontScale.mjFONTSCALE_100)
        model.vis.quality.offsamples = saved
        mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN, context)
        return context

    def draw(
        self, camera: str, height: int, width: int, depth: bool
    ) -> tuple[Image, npt.NDArray[np.float32] | None]:
        """Return an upright picture and, when asked, its depth.

        Returns:
            RGB of shape (height, width, 3), and metres along the optical axis of shape
            (height, width) or None.
        """
        mj, box = self._mj, self._mj.MjrRect(0, 0, width, height)
        self._compose(camera)
        mj.mjr_render(box, self._scene, self._context)
        rgb = np.empty((height, width, 3), np.uint8)
        buffer = np.empty((height, width), np.float32) if depth else None
        mj.mjr_readPixels(rgb, buffer, box, self._context)
        # OpenGL rows run from the bottom: this is the one place where pictures are turned.
        metres = None if buffer is None else self._metres(buffer[::-1])
        return np.ascontiguousarray(rgb[::-1]), metres

    def sized(self, camera: str, height: int, width: int) -> Image:
        """Return an upright picture of any size. Shape (height, width, 3).

        The buffer grows to the largest that was asked for; smaller pictures stay what they were.
        """
        if max(height, width) > self._size:
            self._size = max(height, width)
            self._mj.mjr_resizeOffscreen(self._size, self._size, self._context)
        return read_only(self.draw(camera, height, width, depth=False)[0], np.uint8)

    def look(
        self, cameras: Mapping[str, str], size: int, depth: bool
    ) -> tuple[dict[str, Image], dict[str, npt.NDArray[np.float32]], dict[str, Camera]]:
        """Return what cameras see, by our names: pictures, depths where asked, calibrations.

        Args:
            cameras: the model's names by ours.
            size: height and width, pixels.
            depth: also give metres along the optical axis.
        """
        images, depths, calibrations = {}, {}, {}
        for name, camera in cameras.items():
            rgb, metres = self.draw(camera, size, size, depth)
            images[name] = read_only(rgb, np.uint8)
            if metres is not None:
                depths[name] = read_only(metres, np.float32)
            calibrations[name] = self.calibration(camera, name, size, size)
        return images, depths, calibrations

    def check(self, cameras: Iterable[str], size: int) -> None:
        """Refuse a context that draws nothing.

        Raises:
            InfraError: pictures are empty, or equal.
        """
        check_pictures(self.draw(camera, size, size, depth=False)[0] for camera in cameras)

    def geoms(self, camera: str, height: int, width: int) -> npt.NDArray[np.int32]:
        """Return the id of the geom at every pixel, upright; -1 where there is none.

        For labels only: this is simulator truth. Shape (height, width).
        """
        mj, box = self._mj, self._mj.MjrRect(0, 0, width, height)
        shown = np.array(self._options.sitegroup)
        self._options.sitegroup[:] = 0  # the sites of a burner would hide its plate
        self._compose(camera)
        self._options.sitegroup[:] = shown
        kinds = (mj.mjtRndFlag.mjRND_SEGMENT, mj.mjtRndFlag.mjRND_IDCOLOR)
        for kind in kinds:
            self._scene.flags[kind] = 1
        mj.mjr_render(box, self._scene, self._context)
        for kind in kinds:
            self._scene.flags[kind] = 0
        colors = np.empty((height, width, 3), np.uint8)
        mj.mjr_readPixels(colors, None, box, self._context)
        numbers = colors.astype(np.int32) @ np.array([1, 256, 65536], np.int32)
        geoms = np.full(self._scene.ngeom + 1, -1, np.int32)
        for drawn in self._scene.geoms[: self._scene.ngeom]:
            if drawn.segid >= 0 and drawn.objtype == mj.mjtObj.mjOBJ_GEOM:
                geoms[drawn.segid + 1] = drawn.objid
        return np.ascontiguousarray(geoms[np.where(numbers < len(geoms), numbers, 0)][::-1])

    def upload(self, model: Any, mesh: int) -> None:
        """Draw a mesh from now on as `model`, a changed copy of the drawn one, has it."""
        self._mj.mjr_uploadMesh(model, self._context, mesh)

    def calibration(self, camera: str, name: str, height: int, width: int) -> Camera:
        """Return intrinsics and pose of a camera; optical frame x right, y down, z forward."""
        self._catch_up()
        index = self._model.camera(camera).id
        focal = 0.5 * height / np.tan(np.deg2rad(self._model.cam_fovy[index]) / 2)
        intrinsics = [[focal, 0, width / 2], [0, focal, height / 2], [0, 0, 1]]
        pose = np.eye(4)
        # MuJoCo cameras look along -z with y up.
        pose[:3, :3] = self._drawn.cam_xmat[index].reshape(3, 3) @ np.diag([1.0, -1.0, -1.0])
        pose[:3, 3] = self._drawn.cam_xpos[index]
        return Camera(name, read_only(intrinsics), read_only(pose))

    def close(self) -> None:
        """Free the context; calling it again does nothing."""
        if self._context is not None:
            self._context.free()
            self._gl.free()
            self._context = None

    def _compose(self, camera: str) -> None:
        mj = self._mj
        self._catch_up()
        self._camera.fixedcamid = self._model.camera(camera).id
        mj.mjv_updateScene(
            self._model,
            self._drawn,
            self._options,
            self._perturb,
            self._camera,
            mj.mjtCatBit.mjCAT_ALL,
            self._scene,
        )

    def _catch_up(self) -> None:
        # On data of our own, so that drawing changes nothing that anybody else reads.
        self._drawn.qpos[:] = self._data.qpos
        self._mj.mj_kinematics(self._model, self._drawn)
        self._mj.mj_camlight(self._model, self._drawn)

    def _metres(self, buffer: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        extent = self._model.stat.extent
        near, far = self._model.vis.map.znear * extent, self._model.vis.map.zfar * extent
        metres: npt.NDArray[np.float32] = np.float32(near) / (
            1 - buffer * np.float32(1 - near / far)
        )
        return metres
