"""How large a picture is drawn after the fact: policies never see these sizes, only people do."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol, runtime_checkable

import numpy as np
from PIL import Image as Pillow

from zetta.runtime.core import CameraSpec, Env, Image
from zetta.runtime.errors import ConfigError

SMALLEST, LARGEST = 16, 4096
"""Sides of a picture in pixels; what a renderer without a graphics card can hold."""
_TEXT: Final = re.compile(r"(?:(\d+)x)?(\d+)")


@dataclass(frozen=True, slots=True)
class PictureSize:
    """How large each camera's picture shall be."""

    height: int
    width: int | None = None
    """None keeps the shape of the camera's own picture."""

    def __str__(self) -> str:
        return f"{self.height}" if self.width is None else f"{self.width}x{self.height}"

    def of(self, camera: CameraSpec) -> tuple[int, int]:
        """Return height and width of a camera's picture.

        >>> PictureSize(480).of(CameraSpec("front", 48, 64))
        (480, 640)
        """
        width = self.width or max(1, round(self.height * camera.width / camera.height))
        return self.height, width


def parse_size(text: str) -> PictureSize:
    """Return the size that a user typed: WIDTHxHEIGHT, or HEIGHT alone.

    >>> parse_size("640x480"), parse_size("512")
    (PictureSize(height=480, width=640), PictureSize(height=512, width=None))

    Raises:
        ConfigError: it is none, or too small or too large.
    """
    found = _TEXT.fullmatch(text.strip().lower())
    if found is None:
        raise ConfigError(
            f"got the size {text!r}; expected WIDTHxHEIGHT in pixels, such as 640x480, or the "
            "height alone, such as 512"
        )
    sides = [int(side) for side in found.groups() if side is not None]
    if not all(SMALLEST <= side <= LARGEST for side in sides):
        raise ConfigError(
            f"got the size {text!r}; each side of a picture has {SMALLEST} to {LARGEST} pixels"
        )
    return PictureSize(sides[-1], sides[0] if len(sides) == 2 else None)


@runtime_checkable
class SizedEnv(Env, Protocol):
    """An environment that draws at any size, beside the pictures that a policy sees."""

    def picture(self, camera: str, height: int, width: int) -> Image | None:
        """Draw what a camera sees now, or at the pose that is shown; physics is not touched.

        Shape (height, width, 3). The vertical angle of view is the camera's own. None where this
        world draws at one size only.

        Raises:
            ConfigError: no such camera.
        """
        ...


def pictures_of(env: Env, cameras: Sequence[str], size: PictureSize | None) -> list[Image]:
    """Return what cameras see, in order: as policies see it, or at another size.

    A world that draws at one size only is enlarged or reduced.

    Raises:
        ConfigError: no such camera, or a side that cannot be drawn.
    """
    if size is None:
        images = env.observe(cameras).images
        return [images[name] for name in cameras]
    return [_sized(env, name, size) for name in cameras]


def _sized(env: Env, camera: str, size: PictureSize) -> Image:
    height, width = size.of(env.spec.camera(camera))
    if not SMALLEST <= width <= LARGEST:
        raise ConfigError(
            f"the camera {camera!r} at a height of {height} is {width} pixels wide; each side of "
            f"a picture has {SMALLEST} to {LARGEST}"
        )
    drawn = env.picture(camera, height, width) if isinstance(env, SizedEnv) else None
    if drawn is not None:
        return drawn
    own = env.observe((camera,)).images[camera]
    return np.asarray(Pillow.fromarray(own).resize((width, height), Pillow.Resampling.LANCZOS))
