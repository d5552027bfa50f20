"""A person at a terminal who gives commands: a prompt with completion and a history."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

from zetta.runtime.cli import output
from zetta.runtime.cli.home import data_home


def teller(text: str) -> None:
    """Show text on stderr, because stdout is kept for the answer."""
    output.note(text)


def asker(words: Sequence[str] = ()) -> Callable[[str], str]:
    """Return what reads a line: with completion of `words` at a terminal, plain elsewhere.

    The reader raises EOFError at the end of the input.
    """
    if not (sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()):
        return _plain
    from prompt_toolkit import PromptSession
    from prompt_toolkit.completion import WordCompleter
    from prompt_toolkit.history import FileHistory
    from prompt_toolkit.output import create_output

    folder = data_home()
    folder.mkdir(parents=True, exist_ok=True)
    session: PromptSession[str] = PromptSession(
        history=FileHistory(str(folder / "drive-history")),
        completer=WordCompleter(list(words), ignore_case=True, sentence=False),
        output=create_output(stdout=sys.stderr),
    )
    return session.prompt


def _plain(prompt: str) -> str:
    sys.stderr.write(prompt)
    sys.stderr.flush()
    line = sys.stdin.readline()
    if not line:
        raise EOFError
    return line.rstrip("\n")
