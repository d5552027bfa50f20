"""`zetta critics triggers`: when skills intervened in logged episodes, for the control `random`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from zetta.runtime.cli import output
from zetta.runtime.cli.replay_critics import logged_episodes
from zetta.runtime.episode_log import LoggedEpisode
from zetta.runtime.errors import ConfigError
from zetta.skills.random_triggers import Episode, Trigger, triggers_text


def command(
    logs: Annotated[list[Path], typer.Argument(help="Run folders, or folders of episodes.")],
    out: Annotated[Path, typer.Option(help="File to write.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Write down when and with which skill a bundle intervened, episode by episode.

    The control `random` draws its interventions from the file that lies in the skill library.
    """
    episodes = [_triggers(path, episode) for path, episode in logged_episodes(logs)]
    count = sum(len(triggers) for triggers in episodes)
    if not count:
        raise ConfigError(
            f"no skill drove in these {len(episodes)} episodes; give logs of runs with a bundle"
        )
    out.write_text(triggers_text(episodes), encoding="utf-8")
    if as_json:
        output.emit({"episodes": len(episodes), "interventions": count, "file": str(out)})
    else:
        output.answer(f"{count} interventions of {len(episodes)} episodes are in {out}")


def _triggers(path: Path, episode: LoggedEpisode) -> Episode:
    result = episode.header.result
    options = episode.header.run.options
    if options.get("shadow") == "yes" or ":" in episode.header.run.bundle_digest:
        raise ConfigError(f"{path} is a shadow run or a control; give runs of a bundle itself")
    most = result.scene.task.max_steps
    return tuple(Trigger(r.tick / most, r.skill) for r in result.recoveries)
