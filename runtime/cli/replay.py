"""`zetta replay`: draw a logged episode again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
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
from zetta.runtime.errors import ConfigError, suggest
from zetta.runtime.picture_sizes import PictureSize, parse_size
from zetta.runtime.pictures import (
    OVERLAYS,
    STRIP_MOMENTS,
    Film,
    Overlay,
    choose_cameras,
    moments,
    write_strip,
    write_video,
)
from zetta.runtime.registry import is_arm

_SHOWN, _DRAWN = "What is shown", "How it is drawn"
_ASKED = "What if a skill had started (runs the simulator and the policy again)"


@dataclass(frozen=True, slots=True)
class Manner:
    """How pictures of an episode are drawn."""

    cameras: tuple[str, ...] = ()
    """Empty for all."""
    size: PictureSize | None = None
    """None is the size that policies see."""
    every: int = 1
    """Ticks between two frames of a film."""
    count: int = STRIP_MOMENTS
    """Moments of a strip."""
    overlay: Overlay = "source"
    render: str | None = None
    """Render profile; None is that of the episode."""


def command(
    episode: Annotated[Path, typer.Argument(help="Folder of one episode.")],
    video: Annotated[
        Path | None, typer.Option(help="Write an MP4 to this file.", rich_help_panel=_SHOWN)
    ] = None,
    strip: Annotated[
        Path | None, typer.Option(help="Write a picture strip (PNG) here.", rich_help_panel=_SHOWN)
    ] = None,
    text: Annotated[
        bool,
        typer.Option(
            "--text",
            help="Tell it in words; so is one of an arm, in any case.",
            rich_help_panel=_SHOWN,
        ),
    ] = False,
    camera: Annotated[
        list[str] | None,
        typer.Option(
            help="Camera to draw; may be given again. Default all.", rich_help_panel=_DRAWN
        ),
    ] = None,
    size: Annotated[
        str | None,
        typer.Option(
            help="Size of each camera's picture: WIDTHxHEIGHT, or HEIGHT. Default: what the "
            "policy sees, enlarged.",
            rich_help_panel=_DRAWN,
        ),
    ] = None,
    every: Annotated[
        int,
        typer.Option(
            help="Ticks between two frames of the MP4, which runs in real time.",
            rich_help_panel=_DRAWN,
        ),
    ] = 1,
    count: Annotated[
        int, typer.Option(help="Moments of the strip.", rich_help_panel=_DRAWN)
    ] = STRIP_MOMENTS,
    overlay: Annotated[
        str,
        typer.Option(
            help="What the MP4 says below the pictures: none, source (who drives), or verdicts "
            "(and what critics said).",
            rich_help_panel=_DRAWN,
        ),
    ] = "source",
    render: Annotated[
        str | None,
        typer.Option(help="Render profile; default that of the episode.", rich_help_panel=_DRAWN),
    ] = None,
    counterfactual: Annotated[
        int | None,
        typer.Option(
            metavar="TICK",
            help="Branch at this tick: as it was, and with a skill.",
            rich_help_panel=_ASKED,
        ),
    ] = None,
    skill: Annotated[
        str | None,
        typer.Option(
            help="The skill that starts there: a name, or the folder of one.",
            rich_help_panel=_ASKED,
        ),
    ] = None,
    seeds: Annotated[
        int,
        typer.Option(
            help="Continuations of each branch: the episode's own seed of the policy, then others.",
            rich_help_panel=_ASKED,
        ),
    ] = 3,
    sensing: Annotated[
        str | None,
        typer.Option(
            help="Highest level used; default that of the episode.", rich_help_panel=_ASKED
        ),
    ] = None,
    inexact: Annotated[
        bool,
        typer.Option(
            "--inexact",
            help="Branch also where the episode does not come out again as logged; marked.",
            rich_help_panel=_ASKED,
        ),
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder of the branches; one with the same question is gone on with.",
            rich_help_panel=_ASKED,
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace files that exist.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Draw a logged episode again, tell it in words, or ask what a skill would have made of it.

    Pictures are drawn from the logged states, at any size; nothing is run again for them.
    """
    manner = _manner(camera, size, every, count, overlay, render)
    folder = _episode_folder(episode)
    record = read_episode(folder)
    wants_pictures = video is not None or strip is not None
    if counterfactual is not None or skill is not None:
        if counterfactual is None or skill is None:
            raise ConfigError("--counterfactual TICK and --skill NAME go together; give both")
        if wants_pictures or text or render:
            raise ConfigError(
                "--counterfactual draws into its folder; leave out --video, --strip, --text and "
                "--render"
            )
        _ask(folder, record, (counterfactual, skill, seeds, sensing, inexact, out, force), manner,
             as_json)  # fmt: skip
        return
    if not wants_pictures and (text or (record.poses is None and is_arm(record.header.sim))):
        _tell(folder, record, as_json)
        return
    if record.poses is None:
        raise ConfigError(
            f"{episode} holds no poses, so it cannot be drawn again; --text tells it in words"
        )
    if video is None and strip is None:
        video = Path(f"{episode.resolve().name}.mp4")
    _refuse_existing(video, strip, force=force)
    with drawing(record, render) as env:
        written, film = _draw(record, env, manner, video, strip)
    if as_json:
        told = None if film is None else _film_json(film)
        output.emit({"episode": str(episode), "written": written, "film": told, **_facts(record)})
        return
    output.answer(_description(record))
    for path in written:
        output.answer(f"look at {path}")


def _ask(
    folder: Path,
    record: LoggedEpisode,
    wish: tuple[int, str, int, str | None, bool, Path | None, bool],
    manner: Manner,
    as_json: bool,
) -> None:
    """Branch an episode; exit 1 where a branch could not be run."""
    from zetta.runtime.cli import replay_counterfactual  # late: pictures need no policy

    answer = replay_counterfactual.ask(folder, record, replay_counterfactual.Wish(*wish), manner)
    if as_json:
        output.emit({"episode": str(folder), **answer.to_json(), **_facts(record)})
    else:
        output.answer(_description(record))
        replay_counterfactual.tell(answer)
    if answer.errors:
        raise typer.Exit(1)


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


def render_episode(
    folder: Path,
    target: Path,
    manner: Manner | None = None,
    advance: Callable[[int], None] = lambda count: None,
) -> Film:
    """Draw a logged episode again as an MP4; whatever is at `target` is replaced when it is whole.

    A process draws one task in its lifetime: give each task a process of its own.

    Args:
        folder: of the episode.
        target: the file.
        manner: how it is drawn.
        advance: told how many frames are finished.

    Raises:
        ConfigError: there is no such log, it holds no poses, or `manner` asks for what is not.
        InfraError: nothing can be drawn here, or the file cannot be written.
    """
    manner, record = manner or Manner(), read_episode(folder)
    with drawing(record, manner.render) as env:
        return _film(record, env, manner, target, advance)


@contextmanager
def drawing(record: LoggedEpisode, render: str | None = None) -> Iterator[Env]:
    """Give the environment that draws an episode, put into its scene; close it in the end.

    Raises:
        ConfigError: the simulator is not installed, or has no such render profile.
        InfraError: it cannot be built here.
    """
    env = _environment(record, render)
    try:
        yield env
    finally:
        env.close()


def _film(
    record: LoggedEpisode,
    env: Env,
    manner: Manner,
    target: Path,
    advance: Callable[[int], None],
) -> Film:
    return write_video(
        target,
        env,
        record,
        choose_cameras(env, manner.cameras),
        manner.every,
        advance,
        size=manner.size,
        overlay=manner.overlay,
    )


def _manner(
    camera: Sequence[str] | None,
    size: str | None,
    every: int,
    count: int,
    overlay: str,
    render: str | None,
) -> Manner:
    """Check what was asked for."""
    if every < 1 or count < 2:
        raise ConfigError("--every is 1 or greater and --count 2 or greater")
    known = {name: name for name in OVERLAYS}
    if overlay not in known:
        raise ConfigError(f"there is no overlay {overlay!r}; {suggest(overlay, known)}")
    wanted = None if size is None else parse_size(size)
    return Manner(tuple(camera or ()), wanted, every, count, known[overlay], render)


def _draw(
    record: LoggedEpisode, env: Env, manner: Manner, video: Path | None, strip: Path | None
) -> tuple[list[str], Film | None]:
    chosen, size = choose_cameras(env, manner.cameras), manner.size
    written, film = [], None
    if strip is not None:
        write_strip(strip, env, record, chosen, manner.count, size=size)
        written.append(str(strip.resolve()))
    if video is not None:
        with output.progress("video", len(moments(record, manner.every))) as advance:
            film = _film(record, env, manner, video, lambda n: advance(n, ""))
        written.append(str(video.resolve()))
    return written, film


def _film_json(film: Film) -> dict[str, output.Json]:
    return {
        "fps": film.fps,
        "every": film.every,
        "frames": film.frames,
        "cameras": list(film.cameras),
        "height": film.height,
        "width": film.width,
    }


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


def _refuse_existing(*paths: Path | None, force: bool = False) -> None:
    for path in paths:
        if path is not None and path.exists() and not (force and path.is_file()):
            raise ConfigError(f"{path} exists already; choose another file, or add --force")
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
