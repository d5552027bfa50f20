"""Reads one command line: its words, its numbers with their limits, and the names of things.

Whoever writes the line is a model or a person, so everything is bounded, and whatever is refused
is refused by a `ConfigError` of one sentence.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, NoReturn

from zetta.primitives.roles_names import bare
from zetta.primitives.roles_phrases import mention, tails
from zetta.runtime.errors import ConfigError, suggest

LINE_MOST: Final = 300
"""Characters of a line, its comment included."""
NUMBER_MOST: Final = 12
"""Characters of a number."""
_SHOWN: Final = 60
"""Characters of a line that an error repeats."""
_BLANKS: Final = " \t\r\n"
_TOKEN: Final = re.compile(r'[ \t]+|(#.*)|("[^"]*")|([:|])|([^ \t":|#]+)|(")')
_NUMBER: Final = re.compile(r"([+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+))([a-z]*)")
_NAME: Final = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_./-]*[A-Za-z0-9_/-])?")
_THING: Final = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*(?: [a-z0-9]+(?:-[a-z0-9]+)*)*")


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number of a command: its unit, its limits and how finely it is told."""

    units: tuple[str, ...]
    """Words that may follow it, the one to print first; none for a plain number."""
    low: float
    high: float
    digits: int
    """Behind the point; the rest is rounded off."""

    def told(self, value: float) -> str:
        """Return a number as it is printed.

        >>> Quantity(("cm",), -20.0, 20.0, 2).told(-3.50)
        '-3.5'
        """
        text = f"{value:.{self.digits}f}"
        text = text.rstrip("0").rstrip(".") if "." in text else text
        return "0" if text == "-0" else text


class Words:
    """The words of a line that are still to be read, and what was clipped on the way."""

    def __init__(self, line: str, words: Sequence[str]) -> None:
        self.line = line
        self.rest = tuple(words)
        """As they were written, in upper and lower case."""
        self.notices: list[str] = []

    def refuse(self, reason: str) -> NoReturn:
        """Raise one sentence that begins with the line.

        Raises:
            ConfigError: always.
        """
        raise ConfigError(f"{shown(self.line)}: {reason}")

    def peek(self, index: int = 0) -> str:
        """Return a word in lower case without reading it; empty behind the end."""
        return self.rest[index].lower() if index < len(self.rest) else ""

    def skip(self, *words: str) -> bool:
        """Read some words if they come next."""
        if tuple(word.lower() for word in self.rest[: len(words)]) != words:
            return False
        self.rest = self.rest[len(words) :]
        return True

    def take(self, expected: str) -> str:
        """Read a word as it was written.

        Args:
            expected: what it should be, for the error.

        Raises:
            ConfigError: the line ends.
        """
        if not self.rest:
            self.refuse(f"the line ends; expected {expected}")
        word, self.rest = self.rest[0], self.rest[1:]
        return word

    def choose(self, what: str, choices: Sequence[str]) -> str:
        """Read one of some words.

        Raises:
            ConfigError: it is another.
        """
        word = self.take(f"{what}: {', '.join(choices)}")
        if word.lower() not in choices:
            self.refuse(f"got {word!r}; expected {what}; {suggest(word.lower(), choices)}")
        return word.lower()

    def name(self, what: str) -> str:
        """Read a name, whose case is kept.

        Raises:
            ConfigError: it is none.
        """
        word = self.take(what)
        if not _NAME.fullmatch(word):
            self.refuse(f"got {word!r}; expected {what}, of letters, digits, '_', '-', '.' and '/'")
        return word

    def number(self, name: str, quantity: Quantity) -> float:
        """Read a number and its unit, and keep it within its limits.

        Args:
            name: what it is the number of, for notices and errors.
            quantity: unit, limits and digits.

        Raises:
            ConfigError: it is no plain number, or has another unit.
        """
        word = self.take(f"a number for {name}")
        match = _NUMBER.fullmatch(word.lower())
        if match is None or len(match[1]) > NUMBER_MOST:
            self.refuse(
                f"got {word!r}; expected a plain number for {name}, such as 12 or -3.5, of at "
                f"most {NUMBER_MOST} characters"
            )
        if match[2] and match[2] not in quantity.units:
            known = f"expected {quantity.units[0]}" if quantity.units else "it has no unit"
            self.refuse(f"got the unit {match[2]!r} for {name}; {known}")
        if not match[2] and self.peek() in quantity.units:
            self.rest = self.rest[1:]
        return self._within(name, match[1], quantity)

    def _within(self, name: str, text: str, quantity: Quantity) -> float:
        unit = f" {quantity.units[0]}" if quantity.units else ""
        value = float(text)
        limited = min(max(value, quantity.low), quantity.high)
        rounded = round(limited, quantity.digits) + 0.0  # no negative zero
        told = f"{quantity.told(rounded)}{unit}"
        if limited != value:
            self.notices.append(f"{name} {text}{unit} was clipped to {told}")
        elif rounded != value:
            self.notices.append(f"{name} {text}{unit} was rounded to {told}")
        return rounded

    def thing(self, what: str, place: bool = False) -> str:
        """Read all that is left as a noun phrase.

        Args:
            what: it names, for the error.
            place: it may be a mere place, such as "the left of the plate".

        Raises:
            ConfigError: it names nothing, or has other characters.
        """
        words, self.rest = self.rest, ()
        try:
            return noun_phrase(words, place)
        except ConfigError as error:
            self.refuse(f"{error}; expected {what}, such as 'black bowl on the plate'")

    def end(self) -> None:
        """Check that nothing is left.

        Raises:
            ConfigError: there is.
        """
        if self.rest:
            self.refuse(f"got {self.rest[0]!r} where the command should end")


def read_words(line: str) -> Words:
    """Return the words of a line, without comment, blanks and a point at the end.

    Raises:
        ConfigError: too long, empty, a control character, a quotation mark without its partner,
            or a character of another alphabet outside of quotation marks.

    >>> read_words("  Move x  5.  # a little").rest
    ('Move', 'x', '5')
    """
    if len(line) > LINE_MOST:
        raise ConfigError(
            f"{shown(line)}: the line has {len(line):,} characters; at most {LINE_MOST} are read"
        )
    text = line.strip(_BLANKS)
    strange = next((c for c in text if not (c.isprintable() or c == "\t")), "")
    if strange:
        raise ConfigError(
            f"{shown(line)}: it holds the control character U+{ord(strange):04X}; expected one "
            "command in plain text on one line"
        )
    words = [word for word in _tokens(line, text) if word]
    while words and not words[-1].strip("."):
        words.pop()
    if words and not words[-1].startswith('"'):
        words[-1] = words[-1].rstrip(".")
    if not words:
        raise ConfigError(f"{shown(line)}: it holds no command; expected one, such as 'wait'")
    return Words(line, words)


def _tokens(line: str, text: str) -> Iterable[str]:
    for match in _TOKEN.finditer(text):
        _, quoted, sign, word, alone = match.groups()
        if alone:
            raise ConfigError(f"{shown(line)}: a quotation mark has no partner; expected two")
        foreign = next((c for c in word or "" if not c.isascii()), "")
        if foreign:
            raise ConfigError(
                f"{shown(line)}: it holds the character U+{ord(foreign):04X}; expected plain "
                "English letters, digits and signs"
            )
        yield quoted or sign or word or ""


def noun_phrase(words: Sequence[str], place: bool = False) -> str:
    """Return the name of a thing in lower case, without its article.

    Args:
        words: of the name.
        place: it may be a mere place, such as "the left of the plate".

    Raises:
        ConfigError: it names nothing, or has other characters; the sentence has no end yet.

    >>> noun_phrase(["The", "black", "bowl", "on", "the", "plate"])
    'black bowl on the plate'
    """
    text = bare(" ".join(" ".join(words).lower().replace("_", " ").split()))
    if not text:
        raise ConfigError("no thing is named")
    if not _THING.fullmatch(text):
        raise ConfigError(f"got {text!r}, which is not of letters, digits, blanks and hyphens only")
    head, following = tails(text)
    if not (mention(head).name or (place and any(tail.object for tail in following))):
        raise ConfigError(f"{text!r} says where, and names no thing")
    if any(not (tail.unary or mention(tail.object).name) for tail in following):
        raise ConfigError(f"{text!r} does not say of what")
    return text


def shown(line: str) -> str:
    """Return a line as an error repeats it: quoted, cut, with control characters escaped."""
    return ascii(line if len(line) <= _SHOWN else line[:_SHOWN] + "...")
