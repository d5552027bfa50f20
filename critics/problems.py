"""What is wrong with a program, and reading one so that no text whatever can do harm."""

from __future__ import annotations

import ast
import io
import tokenize
import unicodedata
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from zetta.runtime.errors import ConfigError, ScreenError

MAX_BYTES: Final = 16 * 1024
"""Longest program, UTF-8."""

PLAIN: Final = frozenset("\n\t" + "".join(map(chr, range(32, 127))))
INVISIBLE: Final = ("Cc", "Cf", "Zl", "Zp")
"""Control and format characters: they make a text look other than it reads."""
MAX_TREE_DEPTH: Final = 100
"""Deeper than any program that obeys the limits of expressions and blocks."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong with a program.

    >>> print(Problem(3, "loops are not part of the language", "critic.py"))
    critic.py:3: loops are not part of the language
    """

    line: int
    reason: str
    path: str = ""

    def __str__(self) -> str:
        return f"{self.path or 'program'}:{self.line}: {self.reason}"


class Refused(Exception):
    """Ends the check of one statement; an empty reason was already told elsewhere."""

    def __init__(self, node: ast.AST | int, reason: str = "") -> None:
        super().__init__(reason)
        self.line = node if isinstance(node, int) else getattr(node, "lineno", 1)
        self.reason = reason


def in_order(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """Return each problem once, by line."""
    return tuple(sorted(dict.fromkeys(problems), key=lambda problem: problem.line))


def raise_problems(problems: Iterable[Problem]) -> None:
    """Do nothing when there is no problem.

    Raises:
        ScreenError: all problems, a line each.
    """
    lines = [str(problem) for problem in problems]
    if lines:
        raise ScreenError("\n".join(lines))


def read_program(path: Path) -> bytes:
    """Return the bytes of a program file, at most one more than a program may have.

    Raises:
        ConfigError: no such file, a folder, or not readable.
    """
    if path.is_dir():
        raise ConfigError(f"{path} is a folder; name the program file in it")
    if not path.exists():
        raise ConfigError(f"there is no file {path}")
    if not path.is_file():
        raise ConfigError(f"{path} is no regular file; a program is a text file")
    try:
        with path.open("rb") as file:
            return file.read(MAX_BYTES + 1)
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from error


def parse_program(source: str | bytes) -> ast.Module:
    """Return the tree of a program: its text is short, plain and Python.

    Raises:
        Refused: it is not.
    """
    text = _plain_text(source)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # doubtful escapes and the like: not our business
            tree = ast.parse(text)
    except SyntaxError as error:
        raise Refused(error.lineno or 1, f"this is no Python: {error.msg}") from None
    except (MemoryError, RecursionError):
        # Python names no line; what nests so deeply is long.
        lines = [len(line) for line in text.split("\n")]
        line = lines.index(max(lines)) + 1
        raise Refused(line, "this is nested too deeply to be read") from None
    except (ValueError, OverflowError) as error:
        raise Refused(1, f"this is no Python: {error}") from None
    _refuse_deep_trees(tree)
    if not text.isascii():
        _refuse_foreign_names(text)
    return tree


def _plain_text(source: str | bytes) -> str:
    raw = source if isinstance(source, bytes) else source.encode("utf-8", "surrogatepass")
    if b"\0" in raw:
        raise Refused(
            raw[: raw.index(b"\0")].count(b"\n") + 1, "there is a NUL byte; this is no text"
        )
    if len(raw) > MAX_BYTES:
        raise Refused(1, f"the program is longer than {MAX_BYTES} bytes ({MAX_BYTES // 1024} KiB)")
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Refused(
            raw[: error.start].count(b"\n") + 1, "this is no UTF-8; save the file as UTF-8"
        ) from None
    text = text.replace("\r\n", "\n")
    for at, character in enumerate(text):
        if character not in PLAIN and unicodedata.category(character) in INVISIBLE:
            line = text.count("\n", 0, at) + 1
            raise Refused(line, f"the invisible character U+{ord(character):04X} is not allowed")
    return text


def _refuse_deep_trees(tree: ast.Module) -> None:
    """Refuse what would exhaust the stack of whoever walks the tree by recursion."""
    level: list[tuple[ast.AST, int]] = [(node, node.lineno) for node in tree.body]
    for _ in range(MAX_TREE_DEPTH):
        level = [
            (child, getattr(child, "lineno", line))
            for node, line in level
            for child in ast.iter_child_nodes(node)
        ]
        if not level:
            return
    raise Refused(level[0][1], "this is nested too deeply")


def _refuse_foreign_names(text: str) -> None:
    """Refuse names beyond ASCII: Python folds some of them into names that look different."""
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.NAME and not token.string.isascii():
                raise Refused(token.start[0], f"the name {token.string!r} is not plain ASCII")
    except (tokenize.TokenError, SyntaxError):
        raise Refused(1, "this is no Python: it cannot be split into words") from None
