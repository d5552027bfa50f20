"""`zetta replay`: draw a logged episode again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from zetta.primitives.agent.drive_log import is_drive, read_turns
from zetta.runtime.cli import output
from zetta.runtime.cli import replay_options as options
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
    changed_versions,
    choose_cameras,
    moments,
    write_strip,
    write_video,
)
from zetta.runtime.records import to_json
from zetta.runtime.registry import is_arm

if TYPE_CHECKING:
    from zetta.runtime.cli.replay_counterfactual import Wish


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


@dataclass(frozen=True, slots=True)
class _Targets:
    """Files to write."""

    video: Path | None
    strip: Path | None
    rerun: Path | None

    @property
    def files(self) -> tuple[Path, ...]:
        """Those that are wanted, in the order in which they are named."""
        return tuple(path for path in (self.strip, self.video, self.rerun) if path is not None)


def command(
    episode: options.Episode,
    video: options.Video = None,
    strip: options.Strip = None,
    text: options.Text = False,
    rerun: options.RerunFile = None,
    view: options.View = False,
    camera: options.Cameras = None,
    size: options.Size = None,
    every: options.Every = 1,
    count: options.Count = STRIP_MOMENTS,
    overlay: options.Written = "source",
    render: options.Render = None,
    counterfactual: options.Tick = None,
    skill: options.Skill = None,
    seeds: options.Seeds = 3,
    sensing: options.Level = None,
    recovery_share: options.Share = None,
    inexact: options.Inexact = False,
    out: options.Out = None,
    force: options.Force = False,
    as_json: options.AsJson = False,
) -> None:
    """Draw a logged episode again, tell it in words, or ask what a skill would have made of it.

    Pictures are drawn from the logged states, at any size; nothing is run again for them.
    """
    manner = _manner(camera, size, every, count, overlay, render)
    folder = _episode_folder(episode)
    record = read_episode(folder)
    targets = _Targets(video, strip, rerun)
    if counterfactual is not None or skill is not None:
        if counterfactual is None or skill is None:
            raise ConfigError("--counterfactual TICK and --skill NAME go together; give both")
        if targets.files or text or render:
            raise ConfigError(
                "--counterfactual draws into its folder; leave out --video, --strip, --rerun, "
                "--text and --render"
            )
        from zetta.runtime.cli.replay_counterfactual import Wish  # late: pictures need no policy

        wish = Wish(counterfactual, skill, seeds, sensing, recovery_share, inexact, out, force)
        _ask(folder, record, wish, manner, as_json)
        return
    if not targets.files and (text or (record.poses is None and is_arm(record.header.sim))):
        _tell(folder, record, as_json)
        return
    if record.poses is None and (video or strip or not targets.files):
        raise ConfigError(
            f"{episode} holds no poses, so it cannot be drawn again; --text tells it in words"
        )
    if not targets.files:
        targets = _Targets(Path(f"{episode.resolve().name}.mp4"), None, None)
    _refuse_existing(targets.files, force)
    film = _written(record, manner, targets, view)
    written = [str(path.resolve()) for path in targets.files]
    if as_json:
        told = None if film is None else to_json(film)
        output.emit({"episode": str(episode), "written": written, "film": told, **_facts(record)})
        return
    output.answer(_description(record))
    for path in written:
        output.answer(f"look at {path}")


def _ask(folder: Path, record: LoggedEpisode, wish: Wish, manner: Manner, as_json: bool) -> None:
    """Branch an episode; exit 1 where a branch could not be run."""
    from zetta.runtime.cli.counterfactual_answer import tell
    from zetta.runtime.cli.replay_counterfactual import ask

    answer = ask(folder, record, wish, manner)
    if as_json:
        output.emit({"episode": str(folder), **answer.to_json(), **_facts(record)})
    else:
        output.answer(_description(record))
        tell(answer)
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
        choose_cameras(env.spec, manner.cameras),
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


def _written(record: LoggedEpisode, manner: Manner, targets: _Targets, view: bool) -> Film | None:
    """Write what is wanted."""
    if view and targets.rerun is None:
        raise ConfigError("--view opens what --rerun FILE.rrd writes; give both")
    if targets.rerun is not None:
        from zetta.runtime.cli.replay_rerun import check_rerun  # late: an extra package

        check_rerun(view)
    if record.poses is None:
        output.note("this log holds no poses: the recording has no pictures")
        _recording(record, None, manner, targets.rerun, view)
        return None
    with drawing(record, manner.render) as env:
        film = _draw(record, env, manner, targets.video, targets.strip)
        _recording(record, env, manner, targets.rerun, view)
    return film


def _recording(
    record: LoggedEpisode, env: Env | None, manner: Manner, target: Path | None, view: bool
) -> None:
    if target is None:
        return
    from zetta.runtime.cli.replay_rerun import open_viewer, write_rerun

    cameras = () if env is None else choose_cameras(env.spec, manner.cameras)
    count = 0 if env is None else len(moments(record, manner.every))
    with output.progress("recording", count) as advance:
        write_rerun(
            target, record, env, cameras, manner.size, manner.every, lambda n: advance(n, "")
        )
    if view:
        open_viewer(target)


def _draw(
    record: LoggedEpisode, env: Env, manner: Manner, video: Path | None, strip: Path | None
) -> Film | None:
    chosen, size = choose_cameras(env.spec, manner.cameras), manner.size
    if strip is not None:
        write_strip(strip, env, record, chosen, manner.count, size=size)
    if video is None:
        return None
    with output.progress("video", len(moments(record, manner.every))) as advance:
        return _film(record, env, manner, video, lambda n: advance(n, ""))


def _environment(record: LoggedEpisode, render: str | None) -> Env:
    """Return the episode's environment, reset to its scene: a pose does not hold the fixtures."""
    header = record.header
    output.note(choose_graphics(header.sim))
    task = header.scene.task
    simulator = find_simulator(header.sim)
    env = simulator.make(task.suite, task.index, render or header.run.render)
    env.reset(header.scene)
    changed = changed_versions(header.spec, env.spec)
    if changed:
        output.note(f"this episode was logged with other versions: {changed}")
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


def _refuse_existing(paths: Sequence[Path], force: bool) -> None:
    for path in paths:
        if path.exists() and not (force and path.is_file()):
            raise ConfigError(f"{path} exists already; choose another file, or add --force")
        if not path.absolute().parent.is_dir():
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
