"""What a drive needs of the robot and its surroundings, and what it keeps of each turn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from zetta.primitives.agent.records import Answer, Picture
from zetta.primitives.agent.verifier import Verification
from zetta.primitives.command_results import CommandResult
from zetta.primitives.commands import Parsed
from zetta.primitives.motions import Steps
from zetta.runtime.core import Proprio


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why the commands of a turn were not begun."""

    index: int
    """Which of them it is."""
    reason: str
    """What is wrong, and the nearest that would do."""


@dataclass(frozen=True, slots=True)
class View:
    """What is seen and felt at the beginning of a turn."""

    state: str
    pictures: tuple[Picture, ...] = ()


@dataclass(frozen=True, slots=True)
class TurnRecord:
    """One turn as it is logged: what was shown, what was decided, what came of it."""

    index: int
    tick: int
    """The first tick of the turn, counted from the first one of the drive."""
    state: str
    remarks: tuple[str, ...]
    answer: Answer
    results: tuple[CommandResult, ...]
    refusals: tuple[str, ...]
    """What was wrong with the answer; the agent is told in the next turn."""
    thought_ticks: int
    """Ticks for which the arm held while the agent thought."""
    ahead: bool = False
    """It was decided while the last motion still ran."""
    verification: Verification | None = None
    """What the evidence said of a `done`."""


class Cockpit(Protocol):
    """What a drive needs of the robot and its surroundings."""

    @property
    def arms(self) -> tuple[str, ...]:
        """Names of the arms."""
        ...

    def begin(self, proprio: Proprio) -> None:
        """Note where the arms and the things are before anything moves."""
        ...

    def read(self, line: str) -> Parsed:
        """Understand a line of text.

        Raises:
            ConfigError: it is no command.
        """
        ...

    def text(self, command: Parsed) -> str:
        """Return a command as text."""
        ...

    def check(self, commands: Sequence[Parsed], proprio: Proprio) -> Refusal | None:
        """Check the commands of a turn together, before anything moves."""
        ...

    def predictable(self, command: Parsed) -> bool:
        """Say whether the dry run knows where this command will end."""
        ...

    def run(self, command: Parsed) -> Steps[CommandResult]:
        """Carry out one command."""
        ...

    def hold(self) -> Steps[None]:
        """Stay where the arms are for one tick."""
        ...

    def view(self, pictures: bool, proprio: Proprio) -> View:
        """Return what an agent is shown."""
        ...

    def verify(self) -> Verification:
        """Look whether the instruction was carried out."""
        ...
