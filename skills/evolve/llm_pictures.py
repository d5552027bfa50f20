"""The pictures that the author `llm` shows: the first few, small."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from zetta.runtime.prompt_pictures import PictureLimits, compressed, read_picture


def read_pictures(paths: Sequence[Path], limits: PictureLimits) -> tuple[bytes, ...]:
    """Return the first few pictures as JPEG, scaled down; what is no picture is left out.

    Names, comments and other texts of the files are not in them.
    """
    found: list[bytes] = []
    for path in paths:
        if len(found) >= limits.count:
            break
        picture = read_picture(path)
        small = None if picture is None else compressed(picture, limits)
        if small is not None:
            found.append(small)
    return tuple(found)
