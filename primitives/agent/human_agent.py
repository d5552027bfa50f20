"""The agent that is a person at a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from zetta.primitives.agent.records import Answer, Picture, Turn


class HumanAgent:
    """Asks a person for the commands of each turn: one line, `;` between commands."""

    name = "human"
    looks = True

    def __init__(
        self,
        ask: Callable[[str], str],
        tell: Callable[[str], None],
        grammar: str = "",
        show: Callable[[Sequence[Picture]], str] = lambda pictures: "",
    ) -> None:
        """Take how a person is asked and told.

        Args:
            ask: shows a prompt and returns a line; raises EOFError at the end of the input.
            tell: shows text.
            grammar: shown when it is asked for.
            show: puts pictures where a person sees them; returns where that is.
        """
        self._ask, self._tell, self._grammar, self._show = ask, tell, grammar, show

    def begin(self, instruction: str, arms: tuple[str, ...]) -> None:
        """Say what is to be done."""
        self._tell(f"task: {instruction}")
        self._tell("commands, several with ';' between them; ? shows them all, quit leaves")

    def decide(self, turn: Turn) -> Answer:
        """Show what came of the last commands and read the next ones."""
        for line in (*_news(turn), self._show(turn.pictures)):
            if line:
                self._tell(line)
        while True:
            try:
                line = self._ask(f"{turn.index + 1}> ").strip()
            except EOFError:
                return Answer((), leave="the input ended")
            if line.lower() in ("quit", "exit"):
                return Answer((), leave="the person left")
            if line.lower() not in ("", "?", "help"):
                return Answer(tuple(part.strip() for part in line.split(";") if part.strip()))
            self._tell(self._grammar)

    def close(self) -> None:
        """Need nothing."""


def _news(turn: Turn) -> Iterable[str]:
    results: Sequence[str] = [result.summary for result in turn.results]
    return (*results, *turn.remarks, turn.state)
