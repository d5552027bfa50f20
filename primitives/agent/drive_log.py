"""The record of a drive: one line of JSON for each turn, and a summary, beside the episode's log.

While the episode runs the lines are in `.<name>.drive.jsonl` beside the folder that the log will
have; in the end they are moved into it. Pictures are not stored: they are drawn again.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from zetta.primitives.agent.cockpit import TurnRecord, View
from zetta.primitives.agent.drive import Drive
from zetta.primitives.agent.records import Spent
from zetta.primitives.agent.verifier import Verification
from zetta.runtime.core import Array, EnvSpec, EpisodeResult, Scene, Step, Tick
from zetta.runtime.errors import ConfigError, SpecMismatch
from zetta.runtime.records import from_json, to_json

TURNS: Final = "drive.jsonl"
SUMMARY: Final = "drive.json"
_ENDINGS: Final = {
    "truncated": "the control steps are used up",
    "success": "the control steps are used up",
}
"""Why a drive is over that did not end itself, by the end of its episode."""


@dataclass(frozen=True, slots=True)
class DriveSummary:
    """What one drive came to."""

    agent: str
    instruction: str
    turns: int
    commands: int
    """Commands that were carried out, completed or not."""
    completed: int
    """Those that did what they say."""
    ended: str
    verified: bool | None
    """What the evidence says in the end, without simulator truth; None where it cannot tell."""
    verification: Verification | None = None
    spent: Spent = field(default_factory=Spent)


def summary_of(drive: Drive, agent: str, instruction: str) -> DriveSummary:
    """Return what a drive came to, or has come to so far."""
    results = [result for record in drive.records for result in record.results]
    judged = drive.verification
    return DriveSummary(
        agent=agent,
        instruction=instruction,
        turns=len(drive.records),
        commands=len(results),
        completed=sum(result.completed for result in results),
        ended=drive.ended or "interrupted",
        verified=None if judged is None else judged.verified,
        verification=judged,
        spent=drive.spent,
    )


def settle(drive: Drive, result: EpisodeResult) -> None:
    """Judge a drive that its episode ended, such as by its last tick; an error says nothing."""
    if result.reason != "error":
        drive.judge(_ENDINGS.get(result.reason, result.detail or result.reason))


class DriveLog:
    """Writes each turn as soon as it is over; a sink beside the episode's own log, after it.

    Attributes:
        drive: whose summary is written in the end; set before the episode begins.
    """

    def __init__(self, folder: Path, agent: str) -> None:
        """`folder` is the one that the episode's log will have."""
        self.drive: Drive | None = None
        self._folder, self._agent = folder, agent
        self._lines = folder.parent / f".{folder.name}.{TURNS}"
        self._instruction = ""

    def keep(self, record: TurnRecord, view: View) -> None:
        """Append a turn."""
        with self._lines.open("a", encoding="utf-8") as lines:
            lines.write(json.dumps(to_json(record), allow_nan=False) + "\n")

    def begin(self, scene: Scene, spec: EnvSpec, instruction: str, step: Step) -> None:
        """Begin with an empty record."""
        self._instruction = instruction
        self._lines.parent.mkdir(parents=True, exist_ok=True)
        self._lines.write_text("", encoding="utf-8")

    def tick(self, tick: Tick, step: Step, pose: Array | None) -> None:
        """Need nothing: turns are kept, not ticks."""

    def end(self, result: EpisodeResult, pose: Array | None) -> None:
        """Put the turns and the summary into the folder of the episode."""
        if self.drive is None:
            return
        settle(self.drive, result)
        if not self._folder.is_dir():
            return
        self._lines.replace(self._folder / TURNS)
        summary = to_json(summary_of(self.drive, self._agent, self._instruction))
        text = json.dumps(summary, indent=1, allow_nan=False) + "\n"
        (self._folder / SUMMARY).write_text(text, encoding="utf-8")


def is_drive(folder: Path) -> bool:
    """Say whether a folder holds the log of a drive."""
    return (folder / TURNS).is_file()


def read_turns(folder: Path) -> tuple[TurnRecord, ...]:
    """Return the turns of a logged drive.

    Raises:
        ConfigError: there is no record of a drive, or it cannot be read.
    """
    path = folder / TURNS
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
        return tuple(from_json(TurnRecord, json.loads(line)) for line in lines)
    except (OSError, ValueError, SpecMismatch) as error:
        raise ConfigError(f"{path} is no readable record of a drive: {error}") from error


def read_summary(folder: Path) -> DriveSummary:
    """Return what a logged drive came to.

    Raises:
        ConfigError: there is no summary of a drive, or it cannot be read.
    """
    path = folder / SUMMARY
    try:
        return from_json(DriveSummary, json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, SpecMismatch) as error:
        raise ConfigError(f"{path} is no readable summary of a drive: {error}") from error
