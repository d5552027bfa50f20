"""`zetta replay --counterfactual`: what would have come of it, had a skill started at a tick?"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from zetta.runtime.cli import output
from zetta.runtime.cli.counterfactual import Brancher
from zetta.runtime.cli.counterfactual_answer import Answer
from zetta.runtime.cli.counterfactual_pictures import SideBySide
from zetta.runtime.cli.counterfactual_records import (
    Continuation,
    Exactness,
    continuation_of,
    is_whole,
)
from zetta.runtime.cli.counterfactual_request import (
    BRANCHES,
    Branch,
    Question,
    question_of,
    spec_of,
)
from zetta.runtime.cli.graphics import choose_graphics
from zetta.runtime.episode_log import LoggedEpisode, read_episode
from zetta.runtime.errors import ConfigError, InfraError, SpecMismatch, ZettaError
from zetta.runtime.pictures import Film, choose_cameras
from zetta.runtime.records import from_json, read_object, to_json

if TYPE_CHECKING:
    from zetta.runtime.cli.replay import Manner

QUESTION, ANSWER, LOGS = "question.json", "counterfactual.json", "branches"
FILM, STRIP = "side-by-side.mp4", "side-by-side.png"


@dataclass(frozen=True, slots=True)
class Wish:
    """What a user asks."""

    tick: int
    skill: str
    seeds: int
    """Continuations of each branch."""
    sensing: str | None
    share: float | None
    """Of the step budget, for skills; None is that of the episode."""
    inexact: bool
    """Go on where the episode does not come out again as it was."""
    out: Path | None
    force: bool
    """Draw pictures anew that are there."""


@dataclass(frozen=True, slots=True)
class _Asked:
    """`question.json`."""

    question: Question
    exactness: Exactness


def ask(folder: Path, record: LoggedEpisode, wish: Wish, manner: Manner) -> Answer:
    """Run both branches of an episode and draw them; what a folder holds already is kept.

    Raises:
        ConfigError: the question cannot be asked, the episode does not come out again, or the skill
            does not start at the tick.
        InfraError: the simulator is not usable here, or the folder cannot be written.
    """
    if wish.seeds < 1:
        raise ConfigError(f"got --seeds {wish.seeds}; each branch is run at least once")
    question = question_of(folder, record, wish.tick, wish.skill, wish.sensing, wish.share)
    spec = spec_of(record, question)
    out = output.run_folder("counterfactual", wish.out, resume=True)
    before = _asked_before(out, question)
    output.note(choose_graphics(spec.sim))
    plan = _plan(out, spec.policy_seed, wish.seeds)
    with output.progress("counterfactual", len(plan) + 1) as advance:
        told = _Told(advance, before is not None)
        with closing(Brancher(question, record, spec, told.tick)) as brancher:
            try:
                exactness = _exactness(brancher, before, plan, wish, out, question)
            except ZettaError:
                if not (out / QUESTION).exists():
                    output.discard_folder(out)
                raise
            continuations = _run(brancher, plan, record, question, told, out)
            answer = Answer(question, exactness, continuations, out, command=output.command_line())
            answer = _with_pictures(answer, brancher, manner, wish.force)
    _save(out / ANSWER, answer.to_json())
    return answer


# --------------------------------------------------------------------------- carrying it out


class _Told:
    """Shows which tick of which branch is run."""

    def __init__(self, advance: output.Advance, resumed: bool) -> None:
        self._advance, self._finished = advance, 0
        self._what = "what is missing" if resumed else "the episode, up to the tick"

    def tick(self, tick: int) -> None:
        self._advance(self._finished, f"{self._what}, tick {tick}")

    def next(self, finished: int, what: str) -> None:
        self._finished, self._what = finished, what
        self._advance(finished, what)


@dataclass(frozen=True, slots=True)
class _Planned:
    """One continuation."""

    branch: Branch
    own: bool
    """With the episode's own luck."""
    seed: int
    log: Path


def _plan(out: Path, seed: int, count: int) -> list[_Planned]:
    return [
        _Planned(branch, i == 0, seed + i, out / LOGS / f"{branch.replace(' ', '-')}-{i}")
        for i in range(count)
        for branch in BRANCHES
    ]


def _exactness(
    brancher: Brancher,
    before: _Asked | None,
    plan: Sequence[_Planned],
    wish: Wish,
    out: Path,
    question: Question,
) -> Exactness:
    """Go to the tick, where anything is left to run, and refuse what does not come out again."""
    if before is not None and all(is_whole(each.log) for each in plan):
        exactness = before.exactness
    else:
        exactness = brancher.begin()
    if not exactness.equal and not wish.inexact:
        raise ConfigError(
            f"this episode does not come out again as it was logged: {exactness}. The simulator, "
            "the policy or the machine is another one, or the policy draws by chance; --inexact "
            "branches what comes out now, and says so"
        )
    if before is None:
        brancher.check_skill()
        _save(out / QUESTION, to_json(_Asked(question, exactness)))
    return exactness


def _run(
    brancher: Brancher,
    plan: Sequence[_Planned],
    record: LoggedEpisode,
    question: Question,
    told: _Told,
    out: Path,
) -> tuple[Continuation, ...]:
    found = []
    for unfinished in (out / LOGS).glob(".*partial*"):  # what a killed one left
        shutil.rmtree(unfinished)
    try:
        for number, each in enumerate(plan, start=1):
            told.next(number, f"{each.branch}, seed {each.seed}")
            if is_whole(each.log):
                found.append(
                    continuation_of(each.branch, each.seed, each.log, record, question.tick)
                )
                continue
            shutil.rmtree(each.log, ignore_errors=True)
            found.append(brancher.run(each.branch, None if each.own else each.seed, each.log))
    except KeyboardInterrupt:
        output.note(f"stopped; finished branches are kept: the same again with --out {out}")
        raise
    told.next(len(plan) + 1, "")
    return tuple(found)


def _with_pictures(answer: Answer, brancher: Brancher, manner: Manner, anew: bool) -> Answer:
    """Draw the two branches with the episode's own luck; a picture that fails costs nothing."""
    out, asked = answer.folder, answer.question
    film, strip = out / FILM, out / STRIP
    shown = [answer.of(branch)[0] for branch in BRANCHES]
    if any(each.success is None for each in shown):
        return answer
    if not anew and film.exists() and strip.exists():
        return replace(answer, pictures=(str(film), str(strip)), film=_film_before(out))
    try:
        env = brancher.env()
        cameras = choose_cameras(env.spec, manner.cameras)
        logs = [(answer.name_of(each.branch), read_episode(Path(each.log))) for each in shown]
        both = SideBySide(env, logs, cameras, manner.size)
        title = (
            f"{logs[0][1].header.instruction}   |   above as it was, below with {asked.skill} from "
            f"tick {asked.tick}   |   one scene, not evidence"
        )
        both.write_strip(strip, title, asked.tick, manner.count)
        count = len(both.axis(asked.tick, manner.every))
        with output.progress("video", count) as advance:
            drawn = both.write_film(
                film, asked.tick, manner.every, manner.overlay, lambda n: advance(n, "")
            )
    except (InfraError, SpecMismatch) as error:
        output.note(f"no picture of the branches: {error}")
        return answer
    return replace(answer, film=drawn, pictures=(str(film), str(strip)))


# --------------------------------------------------------------------------- the folder


def _asked_before(out: Path, question: Question) -> _Asked | None:
    """Return what the folder was made for; None for an empty one.

    Raises:
        ConfigError: it was made for something else.
    """
    path = out / QUESTION
    try:
        asked = from_json(_Asked, json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        strange = [each.name for each in out.iterdir() if not each.name.startswith(".")]
        if strange:
            raise ConfigError(
                f"{out} already holds {strange[0]!r}, which is of no counterfactual; choose a new "
                "folder with --out"
            ) from None
        return None
    except (OSError, ValueError, ZettaError) as error:
        raise ConfigError(f"{path} cannot be read: {error}; choose a new --out") from error
    if asked.question != question:
        mine, theirs = asdict(question), asdict(asked.question)
        apart = ", ".join(name for name in mine if mine[name] != theirs[name])
        raise ConfigError(
            f"{out} answers another question (another {apart}); choose a new folder with --out"
        )
    return asked


def _film_before(out: Path) -> Film | None:
    try:
        return from_json(Film, read_object(out / ANSWER).get("film"))
    except ZettaError:
        return None


def _save(path: Path, plain: object) -> None:
    """Write JSON whole or not at all.

    Raises:
        InfraError: it cannot be written.
    """
    fresh = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        fresh.write_text(json.dumps(plain, indent=1, allow_nan=False) + "\n", encoding="utf-8")
        fresh.replace(path)
    except OSError as error:
        raise InfraError(f"cannot write {path}: {error.strerror}") from error
