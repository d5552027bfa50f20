"""Pictures in another size and orientation, and back."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
from PIL import Image as PillowImage

from zetta.runtime.core import Image
from zetta.runtime.errors import SpecMismatch
from zetta.runtime.foreign.conventions import Picture, Turn

CHANNELS: Final = 3


def turned(image: Image, turn: Turn) -> Image:
    """Return `image` turned; doing it twice gives `image` again. Shape (H, W, 3)."""
    if turn == "mirror":
        image = image[:, ::-1]
    elif turn == "flip":
        image = image[::-1]
    elif turn == "rotate":
        image = image[::-1, ::-1]
    return np.ascontiguousarray(image)


def padded(image: Image, size: tuple[int, int]) -> Image:
    """Return `image` scaled into `size` without distortion, centred on black.

    Equal to openpi-client's `resize_with_pad` to the bit.
    """
    if image.shape[:2] == size:
        return image
    inner_h, inner_w, top, left = _inside(image.shape[:2], size)
    scaled = PillowImage.fromarray(image).resize(
        (inner_w, inner_h), resample=PillowImage.Resampling.BILINEAR
    )
    canvas = np.zeros((*size, CHANNELS), np.uint8)
    canvas[top : top + inner_h, left : left + inner_w] = np.asarray(scaled)
    return canvas


def unpadded(image: Image, size: tuple[int, int]) -> Image:
    """Return what `padded` was given, at its `size`: the margin is cut off."""
    if image.shape[:2] == size:
        return image
    inner_h, inner_w, top, left = _inside(size, (image.shape[0], image.shape[1]))
    inner = PillowImage.fromarray(image[top : top + inner_h, left : left + inner_w])
    return np.asarray(
        inner.resize((size[1], size[0]), resample=PillowImage.Resampling.BILINEAR), dtype=np.uint8
    )


def to_wire(image: Image, picture: Picture) -> Image:
    """Return our upright picture as `picture` wants it: turned, then scaled, then laid out."""
    sent = padded(turned(image, picture.turn), picture.size)
    return np.ascontiguousarray(sent.transpose(2, 0, 1)) if picture.layout == "CHW" else sent


def from_wire(sent: object, picture: Picture) -> Image:
    """Return a picture of a request as ours: upright, at the size of our camera.

    Raises:
        SpecMismatch: it is no uint8 picture of the declared layout.
    """
    what = f"the picture {'/'.join(picture.path)!r}"
    if not isinstance(sent, np.ndarray):
        raise SpecMismatch(f"{what} is a {type(sent).__name__}, expected an array")
    pixels: npt.NDArray[Any] = sent
    # A batch of one, and one instant, are written as leading ones.
    while pixels.ndim > CHANNELS and pixels.shape[0] == 1:
        pixels = pixels[0]
    axis = 0 if picture.layout == "CHW" else 2
    fits = pixels.dtype == np.uint8 and pixels.ndim == 3 and pixels.shape[axis] == CHANNELS
    if not fits or 0 in pixels.shape:
        raise SpecMismatch(
            f"{what} has shape {sent.shape} and dtype {sent.dtype}, expected uint8 "
            f"{picture.layout} with {CHANNELS} channels"
        )
    upright = pixels.transpose(1, 2, 0) if axis == 0 else pixels
    camera = picture.camera
    return unpadded(turned(upright, picture.turn), (camera.height, camera.width))


def _inside(shape: tuple[int, ...], size: tuple[int, int]) -> tuple[int, int, int, int]:
    """Return height, width, top and left of `shape` scaled into `size`."""
    ratio = max(shape[1] / size[1], shape[0] / size[0])
    height, width = max(1, int(shape[0] / ratio)), max(1, int(shape[1] / ratio))
    return height, width, int((size[0] - height) / 2), int((size[1] - width) / 2)
