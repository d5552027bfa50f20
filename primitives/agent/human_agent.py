"""The agent that is a person at a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from zetta.primitives.agent.records import Answer, Turn


class HumanAgent:
    """Asks a person for the commands of each turn: one line, `;` between commands."""

    name = "human"
    looks = False

    def __init__(self, ask: Callable[[str], str], tell: Callable[[str], None]) -> None:
        """Take how a person is asked and told.

        Args:
            ask: shows a prompt and returns a line; raises EOFError at the end of the input.
            tell: shows text.
        """
        self._ask, self._tell = ask, tell

    def begin(self, instruction: str, arms: tuple[str, ...]) -> None:
        """Say what is to be done."""
        self._tell(f"task: {instruction}")
        self._tell("commands, several with ';' between them; 'done' ends, '?' shows the grammar")

    def decide(self, turn: Turn) -> Answer:
        """Show what came of the last commands and read the next ones."""
        for line in _news(turn):
            self._tell(line)
        try:
            line = self._ask(f"{turn.index + 1}> ")
        except EOFError:
            return Answer(("done",), progress="the input is over")
        return Answer(tuple(part.strip() for part in line.split(";") if part.strip()))

    def close(self) -> None:
        """Need nothing."""


def _news(turn: Turn) -> Iterable[str]:
    results: Sequence[str] = [result.summary for result in turn.results]
    return (*results, *turn.remarks, turn.state)
