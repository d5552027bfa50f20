"""Pictures for a language model: small, and drawn anew so that nothing hides in the file."""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from PIL import Image, UnidentifiedImageError

MEDIA_TYPE: Final = "image/jpeg"
PIXELS_MOST: Final = 40_000_000
"""A file that claims more is not opened."""
SMALLEST: Final = 64
QUALITY: Final = 85


@dataclass(frozen=True, slots=True)
class PictureLimits:
    """How many pictures are sent, and how large."""

    count: int = 4
    width: int = 1600
    """Of a picture at most, pixels; a strip is wide."""
    height: int = 1024
    bytes: int = 400_000
    """Of one picture, compressed."""


def compressed(picture: Image.Image, limits: PictureLimits) -> bytes | None:
    """Return a picture as JPEG within the limits; None where it cannot be made that small."""
    picture = Image.frombytes("RGB", picture.size, picture.convert("RGB").tobytes())
    picture.thumbnail((limits.width, limits.height))
    while True:
        written = io.BytesIO()
        # Full colour for each pixel: thin coloured lines are what a model reads positions from.
        picture.save(written, "JPEG", quality=QUALITY, subsampling=0)
        if written.tell() <= limits.bytes:
            return written.getvalue()
        if min(picture.size) < 2 * SMALLEST:
            return None
        picture = picture.resize((picture.width // 2, picture.height // 2))


def read_picture(path: Path) -> Image.Image | None:
    """Return the picture in a file; None where there is none, or a huge one."""
    try:
        with Image.open(path) as opened:
            if opened.width * opened.height > PIXELS_MOST:
                return None
            return opened.convert("RGB")
    except (OSError, UnidentifiedImageError, ValueError, Image.DecompressionBombError):
        return None
