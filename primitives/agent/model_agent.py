"""An agent that is a language model: prompt out, one JSON object back, bounded in every way."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from zetta.primitives.agent.model_options import ModelOptions
from zetta.primitives.agent.patience import Patience
from zetta.primitives.agent.prices import Price
from zetta.primitives.agent.prompt import (
    PICTURES,
    Message,
    plain_turn_text,
    repair_messages,
    standing_prompt,
    turn_message,
)
from zetta.primitives.agent.records import Answer, Limits, Spent, Turn
from zetta.primitives.agent.reply import Reply, ReplyProblem, read_reply
from zetta.runtime.core import Clock
from zetta.runtime.errors import ConfigError
from zetta.runtime.model_addresses import ModelAddress, require_client
from zetta.runtime.prompt_pictures import PictureLimits

if TYPE_CHECKING:
    from zetta.primitives.agent.model_client import ModelClient

RAW_MOST: Final = 20_000
"""Characters of an unreadable reply that are kept for the log."""


def no_demonstrations(turn: Turn) -> Sequence[Message]:
    """Show none."""
    return ()


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """What a model is told and may cost."""

    grammar: str
    """The command grammar in words, as it stands in the prompt."""
    turn_text: Callable[[Turn], str] = plain_turn_text
    demonstrations: Callable[[Turn], Sequence[Message]] = no_demonstrations
    """Called once in an episode, with its first turn; what it returns stands before every turn."""
    commands_per_turn: int = Limits().commands_per_turn
    repairs: int = 2
    """How often in a turn an unreadable reply is sent back."""
    pictures: PictureLimits = PICTURES
    """`count` 0 shows none."""
    options: ModelOptions = field(default_factory=ModelOptions)
    patience: Patience = field(default_factory=Patience)
    prices: Mapping[str, Price] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.grammar.strip():
            raise ConfigError("the grammar of the commands is empty; nobody could obey it")
        if self.repairs < 0:
            raise ConfigError(f"got {self.repairs} repairs; expected 0 or more")
        if self.commands_per_turn < 1:
            raise ConfigError(f"got {self.commands_per_turn} commands per turn; expected 1 or more")


class ModelAgent:
    """Asks a language model in each turn; an `Agent`. `decide` may run in a thread of its own."""

    def __init__(
        self,
        address: ModelAddress,
        settings: ModelSettings,
        clock: Clock | None = None,
        tell: Callable[[str], None] = lambda text: None,
    ) -> None:
        """Choose a model; nothing is sent.

        Args:
            address: who is asked.
            settings: what it is told and may cost.
            clock: for waiting and for the seconds spent; the wall's where None.
            tell: told in a sentence why it waits for a server.

        Raises:
            ConfigError: the package `pydantic-ai-slim` is missing.
        """
        require_client("an agent that is a language model")
        from zetta.primitives.agent.model_client import ModelClient

        self._address, self._settings = address, settings
        self._client: ModelClient = ModelClient(
            address, settings.options, settings.patience, settings.prices, clock, tell
        )
        self._standing: tuple[Message, ...] = ()
        self._shown: tuple[Message, ...] | None = None
        self._remarks: dict[int, tuple[str, ...]] = {}

    @property
    def name(self) -> str:
        """The model's name."""
        return self._address.model

    @property
    def looks(self) -> bool:
        """Whether it is shown pictures."""
        return self._settings.pictures.count > 0

    @property
    def priced(self) -> bool:
        """Whether its dollars are counted; a limit in dollars means nothing otherwise."""
        return self._client.priced

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of its costs should know: unknown prices, guessed tokens, left-out options.

        Complete once an episode is over.
        """
        return self._client.notes

    def check(self) -> None:
        """Refuse a model that cannot be asked, before a robot is touched; nothing is sent.

        Raises:
            ConfigError: no such model, or its key or its package is missing.
        """
        self._client.check()

    def begin(self, instruction: str, arms: tuple[str, ...]) -> None:
        """Forget the last episode.

        Raises:
            ConfigError: there is nothing to do.
        """
        if not instruction.strip():
            raise ConfigError("the task has no instruction; a language model needs one")
        settings = self._settings
        text = standing_prompt(settings.grammar, arms, settings.commands_per_turn)
        self._standing = (Message("system", (text,)),)
        self._shown, self._remarks = None, {}

    def decide(self, turn: Turn) -> Answer:
        """Return the next commands, or the trouble with the model's last reply.

        Raises:
            InfraError: the model cannot be reached within the patience, or `close` ended it.
            ConfigError: the model is unknown, or the server refuses who asks or what.
        """
        messages = [*self._prefix(turn), self._message(turn)]
        spent, text, problem = Spent(), "", ""
        for _ in range(self._settings.repairs + 1):
            said = self._client.ask(messages)
            spent = spent.plus(said.spent)
            text, problem = said.text, said.problem
            try:
                return self._answer(read_reply(text, self._commands_most(turn)), spent, turn)
            except ReplyProblem as error:
                # That it was cut says more than that its JSON does not end.
                problem = problem or str(error)
            messages += repair_messages(text, problem)
        times = self._settings.repairs + 1
        trouble = f"the reply could not be used {times} times, at last because {problem}"
        return Answer((), spent=spent, trouble=trouble, raw=text[:RAW_MOST])

    def close(self) -> None:
        """End a decision that runs and free everything; calling it again does nothing."""
        self._client.close()

    def _prefix(self, turn: Turn) -> tuple[Message, ...]:
        """Return what stands before every turn of the episode, always the same."""
        if self._shown is None:
            self._shown = tuple(self._settings.demonstrations(turn))
        return (*self._standing, *self._shown)

    def _message(self, turn: Turn) -> Message:
        # By turn: an answer that was asked for ahead of time may have been thrown away.
        before = self._remarks.get(turn.index - 1, ())
        mine = tuple(remark for remark in before if remark not in turn.remarks)
        told = replace(turn, remarks=(*turn.remarks, *mine))
        return turn_message(self._settings.turn_text(told), told.pictures, self._settings.pictures)

    def _commands_most(self, turn: Turn) -> int:
        most = self._settings.commands_per_turn
        return min(most, turn.commands_left) if turn.commands_left > 0 else most

    def _answer(self, reply: Reply, spent: Spent, turn: Turn) -> Answer:
        self._remarks[turn.index] = reply.remarks
        return Answer(
            reply.commands, reply.scene, reply.progress, reply.memory, reply.plan, spent,
            remarks=reply.remarks,
        )  # fmt: skip
