"""The words of a drive: what an agent is shown in a turn, what it answers, what it may spend."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from zetta.primitives.command_results import CommandResult
from zetta.runtime.core import Image


@dataclass(frozen=True, slots=True)
class Picture:
    """A view as an agent is shown it: upright, with the overlays that were asked for."""

    name: str
    image: Image
    """Shape (height, width, 3), uint8 RGB."""
    caption: str = ""
    """What it shows, and what is drawn into it."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What one drive may spend; whatever is spent first ends it."""

    turns: int = 45
    commands_per_turn: int = 4
    tokens: int = 0
    """Tokens of requests and replies; 0 for no limit."""
    dollars: float = 0.0
    """0 for no limit."""
    wall_s: float = 0.0
    """0 for no limit."""
    idle_turns: int = 6
    """Turns in a row without a completed command, after which the agent is given up; 0 for never.
    """


@dataclass(frozen=True, slots=True)
class Spent:
    """What a decision cost, or all of them together."""

    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    dollars: float = 0.0
    seconds: float = 0.0
    """Time that the agent thought."""

    def plus(self, other: Spent) -> Spent:
        """Return the sum."""
        return Spent(
            self.requests + other.requests,
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.dollars + other.dollars,
            self.seconds + other.seconds,
        )


@dataclass(frozen=True, slots=True)
class Turn:
    """What an agent is shown before it decides."""

    index: int
    """From 0."""
    instruction: str
    state: str
    """The arms in words and numbers: positions in cm, where the hand points, the gripper."""
    results: tuple[CommandResult, ...] = ()
    """What came of the commands of the turn before, in order."""
    remarks: tuple[str, ...] = ()
    """What was wrong with the last answer: unreadable, a command that was refused in the dry run,
    a `done` without evidence."""
    pictures: tuple[Picture, ...] = ()
    memory: str = ""
    """What the agent wrote down for itself."""
    history: tuple[str, ...] = ()
    """One line for each earlier turn, oldest first."""
    turns_left: int = 0
    commands_left: int = 0
    """Commands that one answer may hold."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What an agent decides in one turn."""

    commands: tuple[str, ...]
    """Lines of the command grammar, in the order in which they are to be carried out."""
    scene: str = ""
    progress: str = ""
    memory: str = ""
    """Replaces what was written down before; empty keeps it."""
    plan: str = ""
    spent: Spent = field(default_factory=Spent)
    remarks: tuple[str, ...] = ()
    """What was left out of an answer that was read, such as commands beyond the allowed number."""
    trouble: str = ""
    """Why there is no answer, where a model's reply could not be read in spite of repair."""
    raw: str = ""
    """The reply as it came; empty where it was read."""
    leave: str = ""
    """Why the agent drives no more, where it goes away without saying `done`; ends the drive."""


class Agent(Protocol):
    """Decides what the robot does next, in text."""

    @property
    def name(self) -> str:
        """Name, as sources of ticks give it after `agent:`."""
        ...

    @property
    def looks(self) -> bool:
        """Whether it wants pictures; without, none are rendered."""
        ...

    def begin(self, instruction: str, arms: tuple[str, ...]) -> None:
        """Forget the last episode.

        Raises:
            ConfigError: it cannot do such a task.
        """
        ...

    def decide(self, turn: Turn) -> Answer:
        """Return the next commands; it may take its time, the robot holds meanwhile.

        Raises:
            InfraError: the model behind it cannot be reached.
        """
        ...

    def close(self) -> None:
        """Free everything; calling it again does nothing."""
        ...
