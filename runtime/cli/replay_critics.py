"""`zetta critics replay`: what critics say about logged episodes, against what they said live."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer

from zetta.critics.monitor import CriticMonitor
from zetta.critics.shadow import replay_verdicts
from zetta.primitives.robot import Robot
from zetta.primitives.roles import roles_or_none
from zetta.runtime.cli import output
from zetta.runtime.cli.home import home_library
from zetta.runtime.episode_log import HEADER, LoggedEpisode, read_episode
from zetta.runtime.errors import ConfigError
from zetta.skills.bundles import LoadedBundle, load_bundle
from zetta.skills.compiled import compile_skill


@dataclass(frozen=True, slots=True)
class Comparison:
    """One logged episode, judged again."""

    log: str
    ticks: int
    verdicts: int
    """Ticks at which anything was said in the replay."""
    first: int | None
    """The first of them."""
    same_bundle: bool
    """The log is of the same critics, so the verdicts must be equal."""
    differs_at: int | None
    """First tick whose verdicts are not those of the log; None when all are equal."""


def command(
    logs: Annotated[list[Path], typer.Argument(help="Run folders, or folders of episodes.")],
    bundle: Annotated[str, typer.Option(help="Whose critics: starter, or a folder.")] = "starter",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Let critics judge logged episodes again; exit 1 where a log of theirs says otherwise."""
    loaded = load_bundle(bundle, library=home_library())
    compared = [_compare(path, episode, loaded) for path, episode in logged_episodes(logs)]
    own = [each for each in compared if each.same_bundle]
    wrong = [each for each in own if each.differs_at is not None]
    if as_json:
        output.emit({"episodes": [asdict(each) for each in compared], "differing": len(wrong)})
    else:
        fired = sum(each.verdicts > 0 for each in compared)
        output.answer(
            f"{len(compared)} episodes, {sum(each.ticks for each in compared)} ticks: critics "
            f"spoke in {fired} episodes, at {sum(each.verdicts for each in compared)} ticks"
        )
        output.answer(
            f"{len(own)} of them were run under these critics; in {len(own) - len(wrong)} every "
            "verdict is equal"
        )
        for each in wrong:
            output.answer(f"{each.log} differs at tick {each.differs_at}")
    if wrong:
        raise typer.Exit(1)


def logged_episodes(folders: Sequence[Path]) -> Iterator[tuple[Path, LoggedEpisode]]:
    """Yield every episode log below some folders, in the order of their names.

    Raises:
        ConfigError: there is none.
    """
    paths = sorted({path.parent for folder in folders for path in folder.rglob(HEADER)})
    if not paths:
        raise ConfigError(f"no episode log lies below {', '.join(map(str, folders))}")
    for path in paths:
        yield path, read_episode(path)


def _compare(path: Path, episode: LoggedEpisode, bundle: LoadedBundle) -> Comparison:
    header = episode.header
    check_signals_logged(path, episode, bundle)
    again = replay_verdicts(
        episode.ticks,
        monitor_of(bundle, header.instruction, header.spec.control_hz),
        header.spec.control_hz,
        header.result.stop,
    )
    live = [tick.verdicts for tick in episode.ticks]
    if header.result.stop is not None:
        live.append(header.result.stop.verdicts)
    pairs = zip(again, live, strict=True)
    return Comparison(
        log=str(path),
        ticks=len(episode.ticks),
        verdicts=sum(bool(said) for said in again),
        first=next((k for k, said in enumerate(again) if said), None),
        same_bundle=header.run.bundle_digest == bundle.digest,
        differs_at=next((k for k, (new, old) in enumerate(pairs) if new != old), None),
    )


def check_signals_logged(path: Path, episode: LoggedEpisode, bundle: LoadedBundle) -> None:
    """Refuse a log that lacks what critics read: they would be silent for want of it.

    Raises:
        ConfigError: a signal is missing.
    """
    logged = set(episode.ticks[0].signals) if episode.ticks else bundle.signals
    missing = sorted(bundle.signals - logged)
    if missing:
        some = ", ".join(missing[:4]) + (" ..." if missing[4:] else "")
        raise ConfigError(
            f"{path} lacks {some}, which critics of {bundle.name!r} read; "
            f"run it again with --bundle {bundle.name} --shadow, or with --signals"
        )


def monitor_of(bundle: LoadedBundle, instruction: str, control_hz: float) -> CriticMonitor:
    """Return the monitor that a run of `bundle` has for an instruction."""
    roles = roles_or_none(instruction)
    skills = [
        compile_skill(
            package, bundle.parameters.get(package.name), control_hz=control_hz, robot=_nobody
        )
        for package in bundle.packages
        if package.fits(roles)
    ]
    watchers = [watcher.compile(control_hz) for watcher in bundle.watchers]
    return CriticMonitor([*watchers, *(skill.critic for skill in skills)])


def _nobody() -> Robot:
    raise AssertionError("a replay starts no recovery")
