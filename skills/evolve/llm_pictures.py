"""Pictures for a language model: few, small, and drawn anew so that nothing hides in the file."""

from __future__ import annotations

import io
from collections.abc import Sequence
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


def read_pictures(paths: Sequence[Path], limits: PictureLimits) -> tuple[bytes, ...]:
    """Return the first few pictures as JPEG, scaled down; what is no picture is left out.

    Names, comments and other texts of the files are not in them.
    """
    found: list[bytes] = []
    for path in paths:
        if len(found) >= limits.count:
            break
        picture = _read(path, limits)
        if picture is not None:
            found.append(picture)
    return tuple(found)


def _read(path: Path, limits: PictureLimits) -> bytes | None:
    try:
        with Image.open(path) as opened:
            if opened.width * opened.height > PIXELS_MOST:
                return None
            picture = opened.convert("RGB")
    except (OSError, UnidentifiedImageError, ValueError, Image.DecompressionBombError):
        return None
    picture = Image.frombytes("RGB", picture.size, picture.tobytes())
    picture.thumbnail((limits.width, limits.height))
    while True:
        written = io.BytesIO()
        picture.save(written, "JPEG", quality=QUALITY)
        if written.tell() <= limits.bytes:
            return written.getvalue()
        if min(picture.size) < 2 * SMALLEST:
            return None
        picture = picture.resize((picture.width // 2, picture.height // 2))
