"""Reads a page of the documentation as what it is: commands, programs, files and what they print.

A comment before a block says how it is to be taken; without one a shell block and a program are
run, and a file's content is read.

    <!-- run: WORDS -->    is run: `slow`, `libero`; `exit=N`; `terminal=TEXT`, which stays, and has
                           begun when it prints TEXT; `with=PATH` of the checkout lies there
    <!-- needs: WHAT -->   cannot be run by a test; the real command line reads its commands
    <!-- file: NAME -->    is saved by the reader under NAME, in the folder where they type
    <!-- part: WHAT -->    is a piece of a program or file; what it imports exists
    <!-- output -->        is what a command printed
"""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT: Final = Path(__file__).parents[2]
OWN_RUNNER: Final = {"deploy.md": "tests/deploy carries it out on two computers"}
"""Pages whose blocks another test runs."""
SHELL: Final = ("", "sh", "bash")
DATA: Final = ("toml", "json", "yaml")
LANGUAGES: Final = (*SHELL, *DATA, "python", "text")
ANNOTATION: Final = re.compile(
    r"^\s*<!-- (run|needs|file|part|output)(?:: (.+?))? -->\s*$", re.DOTALL
)
RUN_WORD: Final = re.compile(r"slow|libero|exit=\d+|terminal=\S+|with=\S+")


class PageError(AssertionError):
    """A page is written in a way that no test could carry out."""


@dataclass(frozen=True, slots=True)
class Block:
    """One block of code."""

    page: str
    line: int
    """Where it begins, from 1."""
    language: str
    text: str
    kind: str = ""
    """Of its annotation; empty without one."""
    said: str = ""
    """What the annotation says behind its colon."""

    @property
    def where(self) -> str:
        """Name its place, as an editor opens it."""
        return f"docs/{self.page}:{self.line}"

    @property
    def words(self) -> tuple[str, ...]:
        """Return the words of a `run`."""
        return tuple(self.said.split()) if self.kind == "run" else ()

    @property
    def is_shell(self) -> bool:
        """Say whether it is typed into a shell, by a test or a reader."""
        return self.language in SHELL and self.kind in ("", "run", "needs", "part")

    @property
    def is_run(self) -> bool:
        """Say whether a test runs it."""
        return self.language in (*SHELL, "python") and self.kind in ("", "run")

    @property
    def slow(self) -> bool:
        """Say whether it is left out where a test has to be short."""
        return any(word in ("slow", "libero") for word in self.words)

    def value(self, name: str) -> str:
        """Return what stands behind `name=`; empty when nothing does."""
        return next((w.partition("=")[2] for w in self.words if w.startswith(f"{name}=")), "")

    def values(self, name: str) -> tuple[str, ...]:
        """Return everything that stands behind a `name=`."""
        return tuple(w.partition("=")[2] for w in self.words if w.startswith(f"{name}="))


def pages() -> tuple[Path, ...]:
    """Return every page that is written by hand, and the README."""
    return (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))


def blocks_of(page: Path) -> tuple[Block, ...]:
    """Return the blocks of a page in their order.

    Raises:
        PageError: an annotation stands before nothing, is unknown, or contradicts its block.
    """
    tokens = parsed(page.read_text(encoding="utf-8"))
    found, noted = [], None
    for token in tokens:
        if token.type == "html_block" and (mark := ANNOTATION.match(token.content)):
            if noted is not None:
                raise PageError(f"{page.name}: {noted.group(0).strip()} stands before no block")
            noted = mark
        elif token.type in ("fence", "code_block"):
            found.append(_checked(_block(page, token, noted)))
            noted = None
        elif noted is not None and token.type not in _BETWEEN:
            raise PageError(f"{page.name}: {noted.group(0).strip()} stands before no block")
    return tuple(found)


def parsed(text: str) -> list[Token]:
    """Return the tokens of a page."""
    return MarkdownIt("commonmark").enable("table").parse(text)


def spans_of(page: Path) -> tuple[tuple[int, str], ...]:
    """Return what stands as code within the sentences of a page, with its line."""
    tokens = (t for t in parsed(page.read_text(encoding="utf-8")) if t.type == "inline" and t.map)
    return tuple(
        (token.map[0] + 1, child.content)
        for token in tokens
        if token.map
        for child in token.children or ()
        if child.type == "code_inline"
    )


_BETWEEN: Final = ("list_item_close", "bullet_list_close", "ordered_list_close", "html_block")


def _block(page: Path, token: Token, noted: re.Match[str] | None) -> Block:
    assert token.map is not None
    language = (token.info.split() or [""])[0]
    kind, said = (noted.group(1), noted.group(2) or "") if noted else ("", "")
    first = token.map[0] + 1
    return Block(page.name, first, language, textwrap.dedent(token.content), kind, said)


def _checked(block: Block) -> Block:
    """Refuse a block that no test would look at as its annotation says."""
    if block.language not in LANGUAGES:
        raise PageError(f"{block.where}: {block.language!r} is none of {', '.join(LANGUAGES[1:])}")
    strange = [word for word in block.words if not RUN_WORD.fullmatch(word)]
    if strange:
        raise PageError(f"{block.where}: unknown word {strange[0]!r}")
    if block.kind in ("needs", "file", "part") and not block.said:
        raise PageError(f"{block.where}: say what, as in <!-- {block.kind}: … -->")
    if block.kind == "run" and not block.is_run:
        raise PageError(f"{block.where}: nothing runs {block.language}")
    if block.language == "text" and block.kind not in ("", "output", "file"):
        raise PageError(f"{block.where}: text is what a command printed, or a file")
    return block
