"""`zetta skills distill EPISODE`: a draft of a skill, out of what an agent did in a success."""

from __future__ import annotations

from pathlib import Path

from zetta.primitives.agent.drive_log import read_turns
from zetta.runtime.cli import output
from zetta.runtime.episode_log import EpisodeHeader, read_episode
from zetta.runtime.errors import ConfigError, ScreenError
from zetta.skills.evolve.authors import FIRST_EDITS, Draft
from zetta.skills.evolve.distillation import Success, distilled
from zetta.skills.evolve.screen import ScreenResult, screen
from zetta.skills.package_files import RECOVERY


def distill_drive(folder: Path, out: Path, name: str, critic: str, as_json: bool) -> None:
    """Write a draft of a skill into a new folder `out`, below its name, and say so.

    Args:
        folder: of the episode.
        out: gets the package.
        name: of the skill; empty for one that lists what it does.
        critic: template of the trigger; empty for one that fits.
        as_json: print one object.

    Raises:
        ConfigError: the episode is no success, or nothing of it can be kept.
        ScreenError: the draft does not pass the screen; a line for each problem.
    """
    header = read_episode(folder).header
    if not (header.complete and header.result.success):
        raise ConfigError(f"{folder} is no success; only what succeeded is worth repeating")
    results = tuple(result for turn in read_turns(folder) for result in turn.results)
    success = Success(header.instruction, header.spec.arms, results)
    draft = distilled(success, name, critic)
    result = screen(
        draft, out.absolute(), (), (), header.run.sensing, FIRST_EDITS, secrets=_secrets(header)
    )
    if not result.passed:
        raise ScreenError(
            "the draft does not pass the screen, so nothing was written:\n"
            + "\n".join(result.problems)
        )
    _tell(draft, result, out, as_json)


def _secrets(header: EpisodeHeader) -> tuple[str | float, ...]:
    scene = header.result.scene
    return (scene.task.suite, scene.seed, header.result.scene_digest)


def _tell(draft: Draft, result: ScreenResult, out: Path, as_json: bool) -> None:
    package = out / draft.name
    if as_json:
        output.emit(
            {
                "out": str(out),
                "skill": draft.name,
                "path": str(package),
                "hash": result.digest,
                "level": result.level,
                "statements": result.statements,
                "hypothesis": draft.hypothesis,
            }
        )
        return
    recovery = draft.files[RECOVERY]
    calls = [line.strip() for line in recovery.splitlines() if "yield from" in line]
    output.answer("\n".join([f"{package}  (level {result.level})", *(f"  {c}" for c in calls)]))
    output.note("its trigger was chosen and not learnt; nothing is known of its worth yet")
    output.answer(f"measure it with: zetta evolve --author human --drafts {out}")
