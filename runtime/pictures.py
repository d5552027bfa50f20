"""Episodes as pictures: a strip or a film, drawn again from logged poses."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, TypeAlias, get_args

import numpy as np
from PIL import Image as Pillow
from PIL import ImageDraw, ImageFont

from zetta.runtime.core import Env, EnvSpec, Image, SnapshotEnv, Tick
from zetta.runtime.episode_log import LoggedEpisode
from zetta.runtime.errors import ConfigError, InfraError, SpecMismatch, suggest
from zetta.runtime.picture_sizes import PictureSize, pictures_of

PANEL = 256
"""Height of one camera's panel in a film, pixels; small pictures are enlarged to it."""
STRIP_PANEL = 176
BAR = 32
"""Height of a caption bar in pixels; keeps a film's height a multiple of 16, as encoders want."""
STRIP_MOMENTS = 8
GAP = 4
Overlay: TypeAlias = Literal["none", "source", "verdicts"]
"""What is written under the pictures of a film: nothing, who drives, or also what critics said."""
OVERLAYS: Final[tuple[Overlay, ...]] = get_args(Overlay)
DARK, LIGHT, ACCENT = (24, 26, 31), (232, 234, 237), (255, 196, 87)


@dataclass(frozen=True, slots=True)
class Moment:
    """One drawable moment of an episode."""

    row: int
    """Row of the log's poses."""
    caption: str
    source: str
    """Who acts now; empty at the end."""
    verdict: str = ""
    """What critics said at this tick."""

    @property
    def colour(self) -> tuple[int, int, int]:
        """Return the colour of what is said of it: another one where not the policy drives."""
        return LIGHT if self.source in ("policy", "") else ACCENT


@dataclass(frozen=True, slots=True)
class Film:
    """What a film shows: frame i is the moment before tick i * `every`; the last is the end."""

    fps: float
    """Frames per second: the control rate over `every`, so a film runs in real time."""
    every: int
    frames: int
    cameras: tuple[str, ...]
    height: int
    """Of the whole picture, pixels; cameras stand side by side over the overlay."""
    width: int


def moments(record: LoggedEpisode, every: int = 1) -> tuple[Moment, ...]:
    """Return every `every`-th moment of an episode and always its last."""
    if record.poses is None:
        raise ConfigError("this log holds no poses, so it cannot be drawn again")
    last = len(record.poses) - 1
    rows = sorted({*range(0, last + 1, every), last})
    return tuple(_moment(record, row) for row in rows)


def strip_moments(record: LoggedEpisode, count: int = STRIP_MOMENTS) -> tuple[Moment, ...]:
    """Return `count` evenly spaced moments, the first and the last among them."""
    every = moments(record)
    picks = np.unique(np.linspace(0, len(every) - 1, count).round().astype(int))
    return tuple(every[i] for i in picks)


def moments_at(record: LoggedEpisode, rows: Sequence[int]) -> tuple[Moment, ...]:
    """Return the moments at some rows of the poses; rows outside the episode are left out.

    Raises:
        ConfigError: the log holds no poses.
    """
    last = len(moments(record)) - 1
    return tuple(_moment(record, row) for row in sorted(set(rows)) if 0 <= row <= last)


def _moment(record: LoggedEpisode, row: int) -> Moment:
    if row < len(record.ticks):
        tick = record.ticks[row]
        return Moment(row, f"tick {tick.index}", tick.source, said_at(tick))
    return Moment(row, f"end: {record.header.result.reason}", "")


def said_at(tick: Tick) -> str:
    """Return what critics said at a tick, in one line; empty when they were silent."""
    return "; ".join(f"{v.decision} {v.skill or v.critic}: {v.reason}" for v in tick.verdicts)


def choose_cameras(spec: EnvSpec, names: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the cameras to draw: those named, else all.

    Raises:
        ConfigError: no such camera.
    """
    offered = tuple(camera.name for camera in spec.cameras)
    for name in names:
        if name not in offered:
            raise ConfigError(f"no camera {name!r}; {suggest(name, offered)}")
    return tuple(names) or offered


def changed_versions(logged: EnvSpec, now: EnvSpec) -> str:
    """Return what is there in another version than when something was logged; empty for nothing."""
    return ", ".join(
        f"{name} {version} (now {now.versions.get(name, 'none')})"
        for name, version in logged.versions.items()
        if now.versions.get(name) != version
    )


def drawn(
    env: Env,
    record: LoggedEpisode,
    cameras: Sequence[str],
    chosen: Sequence[Moment],
    size: PictureSize | None = None,
) -> Iterator[tuple[Moment, list[Image]]]:
    """Draw moments with `env`, which holds the episode's scene; its physics is not touched.

    Args:
        env: holds the episode's scene.
        record: the log.
        cameras: in order.
        chosen: the moments.
        size: of each picture; None is the one that policies see.

    Raises:
        SpecMismatch: `env` cannot show a pose.
        ConfigError: no such size.
    """
    if not isinstance(env, SnapshotEnv) or record.poses is None:
        raise SpecMismatch(f"{env.spec.name} cannot draw a logged moment")
    for moment in chosen:
        env.show(record.poses[moment.row])
        yield moment, pictures_of(env, cameras, size)


def write_strip(
    path: Path,
    env: Env,
    record: LoggedEpisode,
    cameras: Sequence[str],
    count: int = STRIP_MOMENTS,
    chosen: Sequence[Moment] = (),
    advance: Callable[[int], None] = lambda count: None,
    *,
    size: PictureSize | None = None,
) -> None:
    """Write a PNG: one column for each moment, one row for each camera.

    Without `chosen` moments, `count` evenly spaced ones are drawn. Pictures are squares of
    `STRIP_PANEL` pixels, or as large as `size` says. `advance` is told how many columns are
    finished.

    Raises:
        ConfigError: the log holds no poses.
        InfraError: the file cannot be written.
    """
    shown = drawn(env, record, cameras, chosen or strip_moments(record, count), size)
    columns: list[Image] = []
    for moment, images in shown:
        columns.append(strip_column(moment, images, size is None))
        advance(len(columns))
    save_picture(path, titled(_title(record), beside(columns)))


def strip_column(moment: Moment, images: Sequence[Image], small: bool) -> Image:
    """Return one moment of a strip: pictures under each other below a caption."""
    panels = [_panel(image, STRIP_PANEL, True) for image in images] if small else list(images)
    width = max(panel.shape[1] for panel in panels)
    return np.vstack([_bar(moment, width), *(_widened(panel, width) for panel in panels)])


def beside(columns: Sequence[Image], gap: int = GAP) -> Image:
    """Return pictures of one height side by side, with `gap` pixels between them."""
    between = np.full((columns[0].shape[0], gap, 3), DARK, dtype=np.uint8)
    return np.hstack([part for column in columns for part in (column, between)][:-1])


def titled(title: str, picture: Image) -> Image:
    """Return a picture below a line of text."""
    return np.vstack([text_bar(title, picture.shape[1], LIGHT), picture])


def save_picture(path: Path, picture: Image) -> None:
    """Write a PNG, whole or not at all.

    Raises:
        InfraError: the file cannot be written.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        Pillow.fromarray(picture).save(temporary, format="PNG")
        temporary.replace(path)
    except OSError as error:
        raise InfraError(f"cannot write {path}: {error}") from error


def write_video(
    path: Path,
    env: Env,
    record: LoggedEpisode,
    cameras: Sequence[str],
    every: int = 2,
    advance: Callable[[int], None] = lambda count: None,
    *,
    size: PictureSize | None = None,
    overlay: Overlay = "source",
) -> Film:
    """Write an MP4 in real time: the cameras side by side over a caption.

    Frame i shows the moment before tick i * `every`; the last frame is the end of the episode.

    Args:
        path: the file.
        env: holds the episode's scene.
        record: the log.
        cameras: left to right.
        every: ticks between two frames.
        advance: told how many frames are finished.
        size: of each camera's picture; by default what policies see, enlarged to `PANEL`.
        overlay: what is written below them.

    Raises:
        ConfigError: the log holds no poses, or no such size.
        InfraError: no encoder works here, or the file cannot be written.
    """
    frames = _frames(env, record, cameras, moments(record, every), size, overlay)
    fps = record.header.spec.control_hz / every
    count, height, width = encode_film(path, frames, fps, advance)
    return Film(fps, every, count, tuple(cameras), height, width)


def encode_film(
    path: Path, frames: Iterator[Image], fps: float, advance: Callable[[int], None]
) -> tuple[int, int, int]:
    """Write pictures of one size, one after the other, whole or not at all.

    Returns:
        How many there were, their height and their width.

    Raises:
        InfraError: no encoder works here, or the file cannot be written.
    """
    temporary = path.with_name(f".{path.stem}.{os.getpid()}.part.mp4")
    count, first = 1, next(frames)
    try:
        with _encoder(temporary, first, fps) as encode:
            for count, frame in enumerate(frames, start=2):
                encode(frame)
                advance(count)
        temporary.replace(path)
    except (OSError, ImportError, RuntimeError) as error:
        temporary.unlink(missing_ok=True)
        reason = str(error).strip().splitlines() or [type(error).__name__]
        raise InfraError(f"cannot write the video {path}: {reason[-1]}") from error
    return count, first.shape[0], first.shape[1]


@contextlib.contextmanager
def _encoder(path: Path, first: Image, fps: float) -> Iterator[Callable[[Image], None]]:
    import imageio_ffmpeg

    writer = imageio_ffmpeg.write_frames(
        str(path), (first.shape[1], first.shape[0]), fps=fps, quality=7, ffmpeg_log_level="error"
    )
    writer.send(None)
    try:
        writer.send(np.ascontiguousarray(first))
        yield lambda frame: writer.send(np.ascontiguousarray(frame))
    finally:
        writer.close()


def _frames(
    env: Env,
    record: LoggedEpisode,
    cameras: Sequence[str],
    chosen: Sequence[Moment],
    size: PictureSize | None,
    overlay: Overlay,
) -> Iterator[Image]:
    for moment, images in drawn(env, record, cameras, chosen, size):
        yield film_frame(moment, images, record.header.instruction, size is None, overlay)


def film_frame(
    moment: Moment, images: Sequence[Image], instruction: str, small: bool, overlay: Overlay
) -> Image:
    """Return one picture of a film; its sides are multiples of 16, as encoders want.

    Args:
        moment: which one.
        images: of the cameras, left to right, of one height.
        instruction: of the task.
        small: enlarge or reduce the pictures to `PANEL`.
        overlay: what is written below them.
    """
    panels = np.hstack([_panel(image, PANEL, False) for image in images] if small else images)
    lines = []
    if overlay != "none":
        lines.append((f"{moment.caption}  {moment.source}  {instruction}", moment.colour))
    if overlay == "verdicts":
        lines.append((moment.verdict, ACCENT))
    height, width = panels.shape[0], -(-panels.shape[1] // 16) * 16
    canvas = np.full((-(-height // 16) * 16 + BAR * len(lines), width, 3), DARK, dtype=np.uint8)
    canvas[:height, : panels.shape[1]] = panels
    for number, (text, colour) in enumerate(reversed(lines), start=1):
        low = canvas.shape[0] - BAR * number
        canvas[low : low + BAR] = text_bar(text, width, colour)
    return canvas


def _widened(panel: Image, width: int) -> Image:
    canvas = np.full((panel.shape[0], width, 3), DARK, dtype=np.uint8)
    canvas[:, : panel.shape[1]] = panel
    return canvas


def _panel(image: Image, height: int, square: bool) -> Image:
    """Scale to `height`; a strip's panels are also letterboxed into a square."""
    scale = height / max(image.shape[:2]) if square else height / image.shape[0]
    size = (max(1, round(image.shape[1] * scale)), max(1, round(image.shape[0] * scale)))
    method = Pillow.Resampling.NEAREST if scale > 1.5 else Pillow.Resampling.LANCZOS
    scaled = np.asarray(Pillow.fromarray(image).resize(size, method))
    if not square:
        return scaled
    canvas = np.full((height, height, 3), DARK, dtype=np.uint8)
    top, left = (height - size[1]) // 2, (height - size[0]) // 2
    canvas[top : top + size[1], left : left + size[0]] = scaled
    return canvas


def _bar(moment: Moment, width: int) -> Image:
    return text_bar(f"{moment.caption}  {moment.source}", width, moment.colour)


def text_bar(text: str, width: int, colour: tuple[int, int, int]) -> Image:
    """Return a line of text, shortened to a width. Shape (BAR, width, 3)."""
    bar = Pillow.new("RGB", (width, BAR), DARK)
    pen = ImageDraw.Draw(bar)
    font = ImageFont.load_default(size=14)
    while text and pen.textlength(text, font=font) > width - 12:
        text = text[:-2].rstrip("…") + "…" if len(text) > 2 else ""
    pen.text((6, BAR // 2), text, fill=colour, font=font, anchor="lm")
    return np.asarray(bar)


def _title(record: LoggedEpisode) -> str:
    header = record.header
    scene, run = header.scene, header.run
    what = f"{scene.task.suite} task {scene.task.index} init {scene.layout} seed {scene.seed}"
    how = f"policy {run.policy_name}, bundle {run.bundle[:12]}, sensing {run.sensing}"
    return f"{header.instruction}   |   {what}   |   {how}   |   {header.result.reason}"
