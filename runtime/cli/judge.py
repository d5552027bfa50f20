"""`zetta critics judge`: a person says whether an episode on an arm was solved."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer

from zetta.critics.problems import read_program
from zetta.runtime.cli import output
from zetta.runtime.episode_log import HEADER, JUDGEMENT, LoggedEpisode, read_episode
from zetta.runtime.errors import ConfigError
from zetta.runtime.records import from_json, to_json


@dataclass(frozen=True, slots=True)
class Judgement:
    """What somebody who saw the episode says of it."""

    success: bool
    by: str


def command(
    episodes: Annotated[list[Path], typer.Argument(help="Folders of logged episodes.")],
    success: Annotated[bool, typer.Option("--success/--failure", help="Was the task done?")],
    by: Annotated[str, typer.Option(help="Who saw it.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Say whether logged episodes were solved, where nothing else can: on an arm.

    `zetta critics calibrate` takes the judgement in place of what the log says.
    """
    if not by.strip():
        raise ConfigError("say who saw it: --by NAME")
    for folder in episodes:
        if not (folder / HEADER).exists():
            raise ConfigError(f"{folder} is no logged episode; it holds no {HEADER}")
        read_episode(folder)
    for folder in episodes:
        text = json.dumps(to_json(Judgement(success, by.strip())), indent=1)
        (folder / JUDGEMENT).write_text(text + "\n", encoding="utf-8")
    said = "solved" if success else "not solved"
    if as_json:
        output.emit({"judged": [str(folder) for folder in episodes], "success": success})
    else:
        output.answer(f"{len(episodes)} episodes are {said}, says {by.strip()}")


def judged(folder: Path, episode: LoggedEpisode) -> LoggedEpisode:
    """Return an episode with the success that somebody saw, where somebody said it.

    Raises:
        ConfigError: the judgement cannot be read.
        SpecMismatch: it is none.
    """
    path = folder / JUDGEMENT
    if not path.exists():
        return episode
    try:
        found = from_json(Judgement, json.loads(read_program(path)))
    except ValueError as error:
        raise ConfigError(f"the judgement {path} cannot be read: {error}") from error
    header = episode.header
    result = replace(header.result, success=found.success)
    return replace(episode, header=replace(header, result=result))
