"""`zetta export`: logged episodes as data sets to train on, with who drove as a column."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Final, Literal, TypeAlias

import typer

from zetta.runtime.cli import output
from zetta.runtime.cli.export_pictures import DrawnAgain, no_pictures
from zetta.runtime.core import EnvSpec
from zetta.runtime.episode_log import POSES, read_episode
from zetta.runtime.errors import ConfigError, suggest
from zetta.runtime.export.clips import Selection, Wishes, select
from zetta.runtime.export.episode_files import EpisodeFiles, write_npz, write_parquet
from zetta.runtime.export.features import TickColumns, whole_state
from zetta.runtime.export.ledger import Ledger, check_room, facts_of, key_of
from zetta.runtime.export.lerobot_layout import LeRobotLayout
from zetta.runtime.export.parts import Filming, Layout, export, needed_bytes
from zetta.runtime.picture_sizes import PictureSize, parse_size
from zetta.runtime.pictures import choose_cameras
from zetta.runtime.reporting.wording import counted

Kind: TypeAlias = Literal["lerobot", "parquet", "gymnasium"]
INTERVENTIONS: Final = "interventions"


@dataclass(frozen=True, slots=True)
class Asked:
    """What the user asked for."""

    kind: Kind
    out: Path
    wishes: Wishes
    state: tuple[str, ...]
    cameras: tuple[str, ...]
    """None of them without videos."""
    size: PictureSize | None
    render: str | None
    videos: bool


def command(
    episodes: Annotated[list[Path], typer.Argument(help="Run folders, or folders of episodes.")],
    lerobot: Annotated[
        Path | None, typer.Option(help="Write a LeRobotDataset v3.0 into this folder.")
    ] = None,
    parquet: Annotated[
        Path | None, typer.Option(help="Write one Parquet file for each episode.")
    ] = None,
    gymnasium: Annotated[
        Path | None, typer.Option(help="Write one npz for each episode: observations, actions ...")
    ] = None,
    only: Annotated[
        str | None, typer.Option(help="Only 'interventions': what skills drove, as clips.")
    ] = None,
    margin: Annotated[int, typer.Option(help="Ticks kept around each intervention.")] = 0,
    successes: Annotated[bool, typer.Option("--successes", help="Only solved episodes.")] = False,
    with_oracle: Annotated[
        bool, typer.Option("--with-oracle", help="Also episodes that used simulator truth.")
    ] = False,
    state: Annotated[
        str | None, typer.Option(help="Parts of the state, such as ee_pos,ee_axis_angle.")
    ] = None,
    camera: Annotated[
        list[str] | None, typer.Option(help="Camera to draw; may be given again. Default all.")
    ] = None,
    size: Annotated[
        str | None, typer.Option(help="Draw pictures of WIDTHxHEIGHT, or of a height.")
    ] = None,
    render: Annotated[
        str | None, typer.Option(help="Render profile; default that of each episode.")
    ] = None,
    videos: Annotated[bool, typer.Option(help="Draw every tick again.")] = True,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Write logged episodes as a data set; the same command again goes on after a kill."""
    kind, out = _target(lerobot, parquet, gymnasium)
    if only not in (None, INTERVENTIONS):
        raise ConfigError(f"got --only {only}; {suggest(str(only), [INTERVENTIONS])}")
    if margin < 0 or (margin and not only):
        raise ConfigError(f"got --margin {margin}; it is 0 or greater, and goes with --only")
    asked = Asked(
        kind, out, Wishes(only is not None, margin, successes, with_oracle),
        tuple(p.strip() for p in (state or "").split(",") if p.strip()),
        tuple(camera or ()), parse_size(size) if size else None, render, videos,
    )  # fmt: skip
    answer = _export(asked, episodes)
    if as_json:
        output.emit(answer)
        return
    _tell(answer)


def _export(asked: Asked, episodes: Sequence[Path]) -> dict[str, output.Json]:
    selection = select(episodes, asked.wishes)
    first = read_episode(Path(selection.clips[0].folder))
    parts = asked.state or whole_state(first.ticks[0].proprio)
    columns = TickColumns(selection, parts)
    fps = _fps(selection.spec)
    cameras = _cameras(selection, asked) if asked.videos else ()
    pixels = _pixels(selection.spec, cameras, asked.size)
    folder = output.run_folder("export", asked.out, resume=True)
    key = key_of(selection, {
        "layout": asked.kind, "state": list(parts), "cameras": list(cameras),
        "size": str(asked.size or ""), "render": asked.render,
    })  # fmt: skip
    ledger = Ledger(folder, key, asked.kind)
    kept = sum(ledger.has(i) for i in range(len(selection.clips)))
    if ledger.complete:
        output.note(f"{folder} holds this export already, whole; nothing is left to do")
    else:
        check_room(folder, needed_bytes(selection, pixels) if not kept else 0)
        with closing(DrawnAgain(cameras, asked.size, asked.render)) as pictures:
            filming = Filming(cameras, pictures) if cameras else None
            layout = _layout(asked.kind, selection, columns, fps, filming)
            with output.progress("export", selection.ticks) as advance:
                made = export(selection, ledger, layout, advance)
        ledger.close({**facts_of(selection), **made, "command": output.command_line()})
    return _answer(asked, selection, columns, cameras, fps, kept)


def _layout(
    kind: Kind, selection: Selection, columns: TickColumns, fps: float, filming: Filming | None
) -> Layout:
    if kind == "lerobot":
        return LeRobotLayout(selection, columns, fps, filming)
    if kind == "parquet":
        return EpisodeFiles(selection, columns, fps, filming, write_parquet, ".parquet")
    return EpisodeFiles(selection, columns, fps, filming, write_npz, ".npz")


def _target(
    lerobot: Path | None, parquet: Path | None, gymnasium: Path | None
) -> tuple[Kind, Path]:
    kinds: tuple[tuple[Kind, Path | None], ...] = (
        ("lerobot", lerobot), ("parquet", parquet), ("gymnasium", gymnasium),
    )  # fmt: skip
    given = [(kind, path) for kind, path in kinds if path is not None]
    if len(given) != 1:
        raise ConfigError(
            f"got {len(given)} of --lerobot DIR, --parquet DIR and --gymnasium DIR; give one"
        )
    return given[0]


def _cameras(selection: Selection, asked: Asked) -> tuple[str, ...]:
    """Return the cameras, having checked that all clips can be drawn.

    Raises:
        ConfigError: a clip cannot, or there is no such camera.
    """
    for clip in selection.clips:
        if not (Path(clip.folder) / POSES).exists():
            raise ConfigError(no_pictures(clip))
    return choose_cameras(selection.spec, asked.cameras)


def _fps(spec: EnvSpec) -> float:
    """Return the rate of the videos.

    Raises:
        ConfigError: the encoder cannot be told it exactly.
    """
    rate = round(spec.control_hz, 2)
    if abs(rate - spec.control_hz) > 1e-9:
        raise ConfigError(
            f"the control rate is {spec.control_hz:.9g} Hz; a data set needs one with at most two "
            "decimals, so that frames and ticks stay together"
        )
    return rate


def _pixels(spec: EnvSpec, cameras: Sequence[str], size: PictureSize | None) -> int:
    """Return how many pixels one tick has.

    Raises:
        ConfigError: a side is odd, which no video can have.
    """
    found = [spec.camera(name) for name in cameras]
    sides = [size.of(camera) if size else (camera.height, camera.width) for camera in found]
    for name, (height, width) in zip(cameras, sides, strict=True):
        if height % 2 or width % 2:
            raise ConfigError(
                f"pictures of the camera {name!r} would be {width}x{height}; videos need even "
                "sides: give --size WIDTHxHEIGHT"
            )
    return sum(height * width for height, width in sides)


def _answer(
    asked: Asked,
    selection: Selection,
    columns: TickColumns,
    cameras: Sequence[str],
    fps: float,
    kept: int,
) -> dict[str, output.Json]:
    files = [p for p in asked.out.rglob("*") if p.is_file()]
    return {
        "out": str(asked.out.absolute()),
        "layout": asked.kind,
        "episodes": len(selection.clips),
        "frames": selection.ticks,
        "fps": fps,
        "tasks": list(selection.instructions),
        "sources": list(selection.sources),
        "skills": list(selection.skills),
        "state": list(columns.parts),
        "action": list(selection.spec.action.names),
        "cameras": list(cameras),
        "wishes": asdict(asked.wishes),
        "skipped": dict(selection.skipped),
        "kept": kept,
        "bytes": sum(p.stat().st_size for p in files),
    }


def _tell(answer: dict[str, output.Json]) -> None:
    episodes = counted(int(str(answer["episodes"])), "episode")
    output.answer(
        f"{episodes}, {answer['frames']} frames at {answer['fps']:g} Hz, "
        f"{float(str(answer['bytes'])) / 1e6:.1f} MB"
    )
    skipped = answer["skipped"]
    if isinstance(skipped, dict) and skipped:
        output.answer("left out: " + ", ".join(f"{n} {why}" for why, n in skipped.items()))
    output.answer(f"look at {answer['out']}")
