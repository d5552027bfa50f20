"""`zetta replay`: draw a logged episode again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from zetta.primitives.agent.drive_log import is_drive, read_turns
from zetta.runtime.cli import output
from zetta.runtime.cli.assemble import find_simulator
from zetta.runtime.cli.graphics import choose_graphics
from zetta.runtime.cli.replay_text import stretch_lines, stretches_json, turn_lines
from zetta.runtime.core import Env
from zetta.runtime.episode_log import HEADER, LoggedEpisode, read_episode
from zetta.runtime.errors import ConfigError
from zetta.runtime.pictures import (
    STRIP_MOMENTS,
    choose_cameras,
    moments,
    write_strip,
    write_video,
)
from zetta.runtime.registry import is_arm


def command(
    episode: Annotated[Path, typer.Argument(help="Folder of one episode.")],
    video: Annotated[Path | None, typer.Option(help="Write an MP4 to this file.")] = None,
    strip: Annotated[Path | None, typer.Option(help="Write a picture strip (PNG) here.")] = None,
    camera: Annotated[
        list[str] | None, typer.Option(help="Camera to draw; may be given again. Default all.")
    ] = None,
    every: Annotated[int, typer.Option(help="Ticks between two frames of the MP4.")] = 1,
    count: Annotated[int, typer.Option(help="Moments of the strip.")] = STRIP_MOMENTS,
    render: Annotated[
        str | None, typer.Option(help="Render profile; default that of the episode.")
    ] = None,
    text: Annotated[
        bool, typer.Option("--text", help="Tell it in words; so is one of an arm, in any case.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Draw a logged episode again, as an MP4 or as a strip of pictures, or tell it in words."""
    if every < 1 or count < 2:
        raise ConfigError("--every is 1 or greater and --count 2 or greater")
    folder = _episode_folder(episode)
    record = read_episode(folder)
    wants_pictures = video is not None or strip is not None
    if not wants_pictures and (text or (record.poses is None and is_arm(record.header.sim))):
        _tell(folder, record, as_json)
        return
    if record.poses is None:
        raise ConfigError(
            f"{episode} holds no poses, so it cannot be drawn again; --text tells it in words"
        )
    if video is None and strip is None:
        video = Path(f"{episode.resolve().name}.mp4")
    _refuse_existing(video, strip)
    env = _environment(record, render)
    try:
        written = _draw(record, env, camera or [], video, strip, every, count)
    finally:
        env.close()
    if as_json:
        output.emit({"episode": str(episode), "written": written, **_facts(record)})
        return
    output.answer(_description(record))
    for path in written:
        output.answer(f"look at {path}")


def _tell(folder: Path, record: LoggedEpisode, as_json: bool) -> None:
    """Tell an episode in words."""
    turns = read_turns(folder) if is_drive(folder) else ()
    if as_json:
        told: dict[str, output.Json] = {
            "stretches": stretches_json(record),
            "turns": list(turn_lines(turns)),
        }
        output.emit({"episode": str(folder), "written": [], **_facts(record), **told})
        return
    output.answer(_description(record))
    for line in (*turn_lines(turns), *stretch_lines(record)):
        output.answer(line)


def _draw(
    record: LoggedEpisode,
    env: Env,
    cameras: list[str],
    video: Path | None,
    strip: Path | None,
    every: int,
    count: int,
) -> list[str]:
    chosen = choose_cameras(env, cameras)
    written = []
    if strip is not None:
        write_strip(strip, env, record, chosen, count)
        written.append(str(strip.resolve()))
    if video is not None:
        with output.progress("video", len(moments(record, every))) as advance:
            write_video(video, env, record, chosen, every, lambda n: advance(n, ""))
        written.append(str(video.resolve()))
    return written


def _environment(record: LoggedEpisode, render: str | None) -> Env:
    """Return the episode's environment, reset to its scene: a pose does not hold the fixtures."""
    header = record.header
    output.note(choose_graphics(header.sim))
    task = header.scene.task
    simulator = find_simulator(header.sim)
    env = simulator.make(task.suite, task.index, render or header.run.render)
    env.reset(header.scene)
    changed = [
        f"{name} {version} (now {env.spec.versions.get(name, 'none')})"
        for name, version in header.spec.versions.items()
        if env.spec.versions.get(name) != version
    ]
    if changed:
        output.note(f"this episode was logged with other versions: {', '.join(changed)}")
    return env


def _episode_folder(path: Path) -> Path:
    """Return `path`, or the one episode below it when a run folder is given.

    Raises:
        ConfigError: there is none, or several.
    """
    if not path.is_dir():
        raise ConfigError(f"there is no folder {path}")
    if (path / HEADER).exists():
        return path
    found = sorted(header.parent for header in path.glob(f"**/{HEADER}"))
    if len(found) != 1:
        several = f"holds {len(found)} episodes, such as {found[0]}" if found else "holds none"
        raise ConfigError(f"give the folder of one episode; {path} {several}")
    return found[0]


def _refuse_existing(*paths: Path | None) -> None:
    for path in paths:
        if path is not None and path.exists():
            raise ConfigError(f"{path} exists already; choose another file")
        if path is not None and not path.absolute().parent.is_dir():
            raise ConfigError(
                f"there is no folder {path.absolute().parent} to write {path.name} to"
            )


def _facts(record: LoggedEpisode) -> dict[str, output.Json]:
    header = record.header
    return {
        "success": header.result.success,
        "ticks": header.result.ticks,
        "policy": header.run.policy_name,
        "bundle": header.run.bundle,
        "sensing": header.run.sensing,
        "render_profile": header.spec.render_profile,
        "versions": dict(header.run.versions),
    }


def _description(record: LoggedEpisode) -> str:
    header = record.header
    scene = header.scene
    partial = "" if header.complete else " - cut short by an error, no score"
    return (
        f"{header.sim}: {scene.task.suite} task {scene.task.index} init {scene.layout} seed "
        f"{scene.seed}: {header.instruction}\n{header.result.reason} after {header.result.ticks} "
        f"ticks, policy {header.run.policy_name}{partial}"
    )
