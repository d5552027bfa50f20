"""A person at a terminal who gives commands: a prompt with completion and a history."""

from __future__ import annotations

import atexit
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from PIL import Image

from zetta.primitives.agent.records import Picture
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


_folder: list[Path] = []


def keep_pictures(pictures: Sequence[Picture]) -> str:
    """Write the newest pictures of a drive over the last ones; return where they are.

    They are for looking at while one drives, and go with the command.
    """
    if not pictures:
        return ""
    if not _folder:
        _folder.append(Path(tempfile.mkdtemp(prefix="zetta-drive-")))
        atexit.register(shutil.rmtree, _folder[0], ignore_errors=True)
    for picture in pictures:
        Image.fromarray(picture.image).save(_folder[0] / f"{picture.name}.png")
    names = ", ".join(picture.name for picture in pictures)
    return f"pictures ({names}): {_folder[0]}"


def _plain(prompt: str) -> str:
    sys.stderr.write(prompt)
    sys.stderr.flush()
    line = sys.stdin.readline()
    if not line:
        raise EOFError
    return line.rstrip("\n")
