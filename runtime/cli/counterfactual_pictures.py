"""Two branches of an episode side by side, on one time axis, as a film and as a strip."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from zetta.runtime.core import Env, Image
from zetta.runtime.episode_log import LoggedEpisode
from zetta.runtime.errors import SpecMismatch
from zetta.runtime.picture_sizes import PictureSize
from zetta.runtime.pictures import (
    STRIP_MOMENTS,
    Film,
    Moment,
    Overlay,
    beside,
    drawn,
    encode_film,
    film_frame,
    moments,
    save_picture,
    strip_column,
    titled,
)

LEAD_S: Final = 2.0
"""How much is shown of what both share, seconds."""
_GAP: Final = 16
"""Pixels between two films; a multiple of 16, as encoders want."""


class SideBySide:
    """Draws two branches that were logged, each with its part before they part."""

    def __init__(
        self,
        env: Env,
        branches: Sequence[tuple[str, LoggedEpisode]],
        cameras: Sequence[str],
        size: PictureSize | None = None,
    ) -> None:
        """Take the world and the branches.

        Args:
            env: holds the scene.
            branches: a name and the log of each, left to right.
            cameras: of each, left to right.
            size: of each picture; None is what policies see, enlarged.

        Raises:
            SpecMismatch: a log cannot be drawn.
        """
        if any(record.poses is None for _, record in branches):
            raise SpecMismatch(f"{env.spec.name} cannot draw a logged moment")
        self._env, self._branches, self._cameras, self._size = env, branches, cameras, size
        self._moments = [moments(record) for _, record in branches]
        self.last = max(len(each) for each in self._moments) - 1
        """Of the time axis, ticks: where the longer branch ends."""

    def axis(self, tick: int, every: int) -> range:
        """Return the ticks that a film shows when branches part at `tick`."""
        hz = self._branches[0][1].header.spec.control_hz
        first = max(0, tick - round(LEAD_S * hz))
        return range(first, first + every * -(-(self.last - first) // every) + 1, every)

    def write_film(
        self, path: Path, tick: int, every: int, overlay: Overlay, advance: Callable[[int], None]
    ) -> Film:
        """Write an MP4: frame i shows all branches at tick `axis(tick, every)[i]`.

        Raises:
            InfraError: no encoder works here, or the file cannot be written.
        """
        fps = self._branches[0][1].header.spec.control_hz / every
        frames = self._frames(self.axis(tick, every), overlay)
        count, height, width = encode_film(path, frames, fps, advance)
        return Film(fps, every, count, tuple(self._cameras), height, width)

    def write_strip(
        self, path: Path, title: str, tick: int, count: int = STRIP_MOMENTS
    ) -> tuple[int, ...]:
        """Write a PNG: a column for each moment, a row of pictures for each branch; return the
        ticks that it shows.

        Raises:
            InfraError: the file cannot be written.
        """
        spread = np.linspace(self.axis(tick, 1)[0], self.last, count).round().astype(int).tolist()
        ticks = sorted({*spread, tick})
        columns = []
        for at in ticks:
            sides = self._at(at)
            small = self._size is None
            columns.append(np.vstack([strip_column(m, images, small) for m, images in sides]))
        save_picture(path, titled(title, beside(columns)))
        return tuple(ticks)

    def _frames(self, ticks: range, overlay: Overlay) -> Iterator[Image]:
        for at in ticks:
            sides = [
                film_frame(moment, images, "", self._size is None, overlay)
                for moment, images in self._at(at, named=True)
            ]
            yield beside(sides, _GAP)

    def _at(self, tick: int, named: bool = False) -> list[tuple[Moment, list[Image]]]:
        """Draw every branch at a tick; one that has ended stays as it ended."""
        shown: list[tuple[Moment, list[Image]]] = []
        for (name, record), known in zip(self._branches, self._moments, strict=True):
            moment = known[min(tick, len(known) - 1)]
            ((_, images),) = drawn(self._env, record, self._cameras, [moment], self._size)
            said = f"{name} | {moment.caption}" if named else moment.caption
            shown.append((Moment(moment.row, said, moment.source, moment.verdict), images))
        return shown
