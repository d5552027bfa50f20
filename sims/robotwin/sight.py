"""Whether this machine draws for SAPIEN, and a world without pictures where it does not.

SAPIEN's shapes and materials ask for a Vulkan device when they are made. Where there is none, they
are blanks: physics are the same, and only whoever looks through a camera is told what is missing.
"""

from __future__ import annotations

import faulthandler
import functools
import os
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, Literal, TypeAlias

Shader: TypeAlias = Literal["rt", "default", "none"]
NO_DEVICE: Final = (
    "SAPIEN finds no Vulkan device on this machine, so it draws no pictures; see what is missing "
    "with: zetta sims check robotwin"
)
_SHAPES = ("Box", "Capsule", "Cylinder", "Plane", "Sphere", "TriangleMesh")


@functools.cache
def choose_shader() -> Shader:
    """Return how pictures are drawn here, and let SAPIEN draw so whatever RoboTwin asks for.

    RoboTwin's own look is ray-traced, which takes a capable GPU; on a processor the first such
    picture takes minutes and its denoiser fails.
    """
    import sapien

    if not _finds_device():
        _draw_blanks(sapien)
        return "none"
    shader: Shader = "rt" if _traces_rays(sapien.render.get_device_summary()) else "default"
    if shader == "default":
        sapien.render.set_camera_shader_dir("default")
        sapien.render.set_camera_shader_dir = lambda folder: None
    return shader


@contextmanager
def watched(seconds: float, doing: str) -> Iterator[None]:
    """End this process when what is inside hangs: its owner then learns so at once.

    A driver or a planner that hangs cannot be interrupted, only ended. Where it does not even let
    another thread of Python run, the interpreter's own watch ends it a little later.
    """
    watch = threading.Timer(seconds, _give_up, (seconds, doing))
    watch.daemon = True
    watch.start()
    faulthandler.dump_traceback_later(seconds + 5.0, exit=True, file=sys.__stderr__ or sys.stderr)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()
        watch.cancel()


def _give_up(seconds: float, doing: str) -> None:
    words = f"{doing} hangs: it took longer than {seconds:g} s, so this process ends\n"
    os.write(2, words.encode())
    os._exit(1)


def _finds_device() -> bool:
    import sapien

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            sapien.render.RenderMaterial()
        except RuntimeError:
            return False
    return True


def _traces_rays(summary: str) -> bool:
    """Say whether a summary of SAPIEN names a CUDA device that traces rays.

    >>> _traces_rays("GPU: llvmpipe\\n cudaId:    -1\\n rayTrace:  1")
    False
    """
    told = {
        key.strip(): value.strip()
        for key, _, value in (line.partition(":") for line in summary.splitlines())
        if value
    }
    return told.get("rayTrace") == "1" and told.get("cudaId", "-1") != "-1"


class _Blank:
    """A material or a shape that is never drawn."""

    def __init__(self, *given: object, **named: object) -> None:
        pass


def _draw_blanks(sapien: Any) -> None:
    import sapien.wrapper.urdf_loader as loader
    from sapien.wrapper.actor_builder import ActorBuilder

    def nothing(self: Any, *given: object) -> None:
        pass

    def attach(self: Any, shape: object) -> Any:
        return self

    told = {"on_add_to_scene": nothing, "on_remove_from_scene": nothing, "on_set_pose": nothing}
    body = type("BlankBody", (sapien.Component,), {**told, "attach": attach})
    for module in (sapien.render, sapien.pysapien.render, loader):
        module.RenderBodyComponent = body
        module.RenderMaterial = _Blank
        for shape in _SHAPES:
            setattr(module, f"RenderShape{shape}", _Blank)
    ActorBuilder.build_render_component = lambda self: body()
