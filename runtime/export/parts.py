"""One finished clip: its table, its videos and what they hold, whatever the layout."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol, TypeAlias

import numpy as np

from zetta.runtime.core import Image
from zetta.runtime.episode_log import EpisodeHeader, LoggedEpisode, read_episode
from zetta.runtime.errors import SpecMismatch
from zetta.runtime.export.clips import Clip, Selection
from zetta.runtime.export.films import Film, check_length
from zetta.runtime.export.ledger import Ledger
from zetta.runtime.export.statistics import Counts, counts_of
from zetta.runtime.records import to_json

BYTES_PER_PIXEL: Final = 0.12
"""Of a video, a cautious guess."""
BYTES_PER_TICK: Final = 600
Row: TypeAlias = dict[str, Any]
"""What is kept of a finished part, as JSON."""


class PictureSource(Protocol):
    """Gives the pictures of a clip, one mapping by camera name for each tick."""

    def __call__(self, clip: Clip, episode: LoggedEpisode) -> Iterator[Mapping[str, Image]]:
        """Yield what the cameras showed before the action of each tick.

        Raises:
            ZettaError: they cannot be had.
        """
        ...


@dataclass(frozen=True, slots=True)
class Filming:
    """How pictures come."""

    cameras: tuple[str, ...]
    pictures: PictureSource


class Advance(Protocol):
    """Told how an export gets on."""

    def __call__(self, ticks: int, word: str, /) -> None:
        """Hear how many ticks are finished, and of which clip."""
        ...


class Layout(Protocol):
    """A way of writing an export."""

    def part(self, folder: Path, number: int, clip: Clip, episode: LoggedEpisode) -> Row:
        """Write one clip into `folder` and say what was written.

        Raises:
            ZettaError: it does not fit the others, or cannot be drawn.
            OSError: the disk takes nothing more.
        """
        ...

    def finish(self, ledger: Ledger) -> Row:
        """Put the parts together and say what there is.

        Raises:
            ZettaError: a part cannot be read.
            OSError: the disk takes nothing more.
        """
        ...


@dataclass(frozen=True, slots=True)
class Filmed:
    """Videos of one clip."""

    sizes: Mapping[str, tuple[int, int]]
    """Height and width by camera."""
    counts: Mapping[str, Counts]


def export(
    selection: Selection,
    ledger: Ledger,
    layout: Layout,
    advance: Advance = lambda ticks, word: None,
) -> Row:
    """Write what is not finished yet, part by part, then the whole.

    Args:
        selection: the clips.
        ledger: knows what is finished.
        layout: writes.
        advance: told how many ticks are finished, and of which clip.

    Raises:
        ZettaError: see `Layout`.
        InfraError: the disk takes nothing more.
    """
    finished = 0
    for number, clip in enumerate(selection.clips):
        if not ledger.has(number):
            episode = read_episode(Path(clip.folder))
            ledger.add(number, _Writing(layout, number, clip, episode))
        finished += clip.ticks
        advance(finished, Path(clip.folder).name)
    return layout.finish(ledger)


@dataclass(frozen=True, slots=True)
class _Writing:
    """One call of a layout; a closure would bind the loop's variables too late."""

    layout: Layout
    number: int
    clip: Clip
    episode: LoggedEpisode

    def __call__(self, folder: Path) -> Row:
        return self.layout.part(folder, self.number, self.clip, self.episode)


def film(folder: Path, fps: float, filming: Filming, clip: Clip, episode: LoggedEpisode) -> Filmed:
    """Write `CAMERA.mp4` of a clip for each camera into `folder`.

    Raises:
        SpecMismatch: pictures of one camera differ in size, or have odd sides.
        InfraError: the encoder does not work, or a video has not one picture for each tick.
    """
    counts: dict[str, Counts] = {c: np.zeros((3, 256), np.int64) for c in filming.cameras}
    sizes: dict[str, tuple[int, int]] = {}
    paths = {camera: folder / f"{camera}.mp4" for camera in filming.cameras}
    films = {camera: Film(path, fps) for camera, path in paths.items()}
    with contextlib.ExitStack() as stack:
        for each in films.values():
            stack.callback(each.close)
        for images in filming.pictures(clip, episode):
            for camera, made in films.items():
                made.add(images[camera])
                counts[camera] += counts_of(images[camera])
                sizes[camera] = (images[camera].shape[0], images[camera].shape[1])
    for path in paths.values():
        check_length(path, clip.ticks)
    return Filmed(sizes, counts)


class Alike:
    """Keeps the sizes of pictures equal from clip to clip."""

    def __init__(self) -> None:
        self._sizes: dict[str, tuple[int, int]] = {}

    def check(self, sizes: Mapping[str, tuple[int, int]], clip: Clip) -> None:
        """Compare with the clips before.

        Raises:
            SpecMismatch: a camera has another size now.
        """
        for camera, size in sizes.items():
            before = self._sizes.setdefault(camera, size)
            if before != size:
                raise SpecMismatch(
                    f"pictures of {camera} in {clip.folder} are {size[1]}x{size[0]}, those of the "
                    f"episodes before {before[1]}x{before[0]}; give one --size for all"
                )


def origin(header: EpisodeHeader, clip: Clip, number: int) -> Row:
    """Return where a clip comes from and under what it was run; no simulator truth."""
    scene, run, result = header.scene, header.run, header.result
    return {
        "episode_index": number,
        "log": "/".join(Path(clip.folder).parts[-3:]),
        "sim": header.sim,
        "suite": scene.task.suite,
        "task": scene.task.index,
        "init": str(to_json(scene.layout)),
        "seed": scene.seed,
        "policy": run.policy_name,
        "policy_digest": "" if run.policy is None else run.policy.digest,
        "policy_seed": run.policy_seed,
        "bundle": run.bundle,
        "bundle_digest": run.bundle_digest,
        "sensing": run.sensing,
        "success": result.success,
        "reason": result.reason,
        "interventions": result.interventions,
        "first_tick": clip.first,
        "of_ticks": result.ticks,
    }


def needed_bytes(selection: Selection, pixels: int) -> int:
    """Guess how many bytes an export needs, with the parts that are put together.

    `pixels` are those of all cameras of one tick.
    """
    return round(1.3 * selection.ticks * (BYTES_PER_TICK + pixels * BYTES_PER_PIXEL))
