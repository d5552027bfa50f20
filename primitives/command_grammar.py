"""The grammar of semantic commands: one table, from which lines are read and the help is made.

A line is one command. `parse_command` reads it, `command_text` prints it, `GRAMMAR` explains it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeGuard, get_args

from zetta.primitives.command_forms import FORMS, Form
from zetta.primitives.command_texts import ANGLE, OPENING, SHIFT, command_text
from zetta.primitives.command_words import LINE_MOST, Words, read_words
from zetta.primitives.commands import ArmCommand, Both, Command, Parsed
from zetta.runtime.errors import suggest

__all__ = ["FORMS", "GRAMMAR", "ROWS", "RULES", "Form", "Row", "command_text", "parse_command"]


def parse_command(text: str, arms: Sequence[str]) -> Parsed:
    """Understand a line.

    Args:
        text: one command, in any case, with or without units; a comment after `#` is ignored.
        arms: names of the robot's arms. With one, naming it is optional and the command does not
            carry its name; with two, every command of an arm says which.

    Raises:
        ConfigError: it is no command; one sentence says what was got and what was expected.

    >>> parsed = parse_command("Move x 25 cm until contact  # over there.", ["arm"])
    >>> command_text(parsed.command), parsed.notices
    ('move x 20 cm until contact', ('x 25 cm was clipped to 20 cm',))
    """
    words = read_words(text)
    command = _both(words, arms) if words.skip("both") else _single(words, arms)
    return Parsed(command, tuple(words.notices))


# --------------------------------------------------------------------------- whole lines


def _single(words: Words, arms: Sequence[str]) -> Command:
    arm = _arm(words, arms)
    form = _form(words, arms)
    told = " ".join(form.words)
    if arm and not form.armed:
        words.refuse(f"got the arm {arm!r}; expected {told!r} alone, which no arm does")
    if form.armed and not arms:
        words.refuse(f"got {told!r}, which an arm does; expected a robot with an arm")
    if form.armed and not arm and len(arms) > 1:
        words.refuse(f"no arm is named; expected {_listed(arms)} before {told!r}")
    command = form.read(words)
    words.end()
    return replace(command, arm=arm) if _is_armed(command) and len(arms) > 1 else command


def _both(words: Words, arms: Sequence[str]) -> Command:
    words.skip(":")
    if len(arms) < 2:
        words.refuse("'both' needs two arms; expected a command of the one arm there is")
    if words.rest.count("|") != 1:
        words.refuse(
            f"got {words.rest.count('|')} '|' after 'both:'; expected two commands with one "
            "between them"
        )
    bar = words.rest.index("|")
    commands: list[ArmCommand] = []
    for part in (words.rest[:bar], words.rest[bar + 1 :]):
        if not part:
            words.refuse("a command is missing at the '|'; expected one on each side")
        half = Words(words.line, part)
        command = _single(half, arms)
        if not _is_armed(command):
            words.refuse(f"got {command_text(command)!r} in 'both'; expected commands of arms")
        words.notices += [f"{command.arm}: {notice}" for notice in half.notices]
        commands.append(command)
    if commands[0].arm == commands[1].arm:
        words.refuse(f"'both' names the arm {commands[0].arm!r} twice; expected two arms")
    words.rest = ()
    return Both(*commands)


def _is_armed(command: Command) -> TypeGuard[ArmCommand]:
    return isinstance(command, get_args(ArmCommand))


def _arm(words: Words, arms: Sequence[str]) -> str:
    """Read which arm is meant; empty when none is named."""
    arm = _named(words.peek(), arms)
    if arm:
        words.take("an arm")
        words.skip("arm")
        return arm
    known = {form.words[0] for form in FORMS}
    if words.peek() not in known and words.peek(1) in known:
        hint = suggest(words.peek(), arms) if arms else "this robot has no arm"
        words.refuse(f"got {words.rest[0]!r}, which is no arm of this robot; {hint}")
    return ""


def _named(word: str, arms: Sequence[str]) -> str:
    """Return the arm that a word names; empty when it names none."""
    if len(arms) == 1 and word == "arm":
        return arms[0]
    exact = [arm for arm in arms if arm.lower() == word]
    if word in ("left", "right") and not exact:
        exact = [arm for arm in arms if word in arm.lower().replace("-", "_").split("_")]
    return exact[0] if len(exact) == 1 else ""


def _form(words: Words, arms: Sequence[str]) -> Form:
    """Read the words with which a command begins."""
    word = words.peek()
    found = [form for form in FORMS if form.words[0] == word]
    if not found:
        known = {form.words[0] for form in FORMS} | {"both"} | {arm.lower() for arm in arms}
        got = repr(words.rest[0]) if words.rest else "an end"
        words.refuse(f"got {got}; expected a command; {_nearest(word, known)}")
    for form in found:
        if words.skip(*form.words):
            return form
    words.take("a command")
    words.choose(f"one of these after {word!r}", [form.words[1] for form in found])
    raise AssertionError("unreachable: a second word that is known was read above")


def _nearest(word: str, known: Iterable[str]) -> str:
    """Return a hint; the whole list where nothing is near, for there is no other place to look."""
    hint = suggest(word, known)
    return hint if hint.startswith("did") else "known: " + ", ".join(sorted(known))


def _listed(names: Sequence[str]) -> str:
    return " or ".join(map(repr, names))


# --------------------------------------------------------------------------- the help


@dataclass(frozen=True, slots=True)
class Row:
    """One command, as the help tells it."""

    usage: str
    says: str
    example: str


_BOTH: Final = Row(
    "both: <command> | <command>",
    "Two arms at once, each with one of the commands that begin with an arm; it ends when both "
    "have ended.",
    "both: left move x 5 | right home",
)
_SINGLE: Final = tuple(Row(form.usage, form.says, form.example) for form in FORMS)
ROWS: Final = (*_SINGLE[:-1], _BOTH, _SINGLE[-1])
"""Every command, in the order of the help."""
RULES: Final = (
    "One command a line, in any case; the rest of a line after `#` is ignored; the units `cm`, "
    "`deg`, `ticks` and `s` may be left out.",
    "`<arm>` is the name of an arm; with one arm it may be left out, with two it is needed.",
    "`<thing>`, `<part>` and `<place>` are names as a person would say them, of letters, digits, "
    "blanks and hyphens, with a relation where several bear the name.",
    f"Numbers beyond a limit are clipped, and all are rounded to {10.0**-SHIFT.digits:g} cm, "
    f"{10.0**-ANGLE.digits:g} deg and {10.0**-OPENING.digits:g} of an opening or a second; both is "
    f"told. A line has at most {LINE_MOST} characters.",
)
GRAMMAR: Final = "".join(
    [*(f"{row.usage}\n    {row.says}\n" for row in ROWS), "\n", *(f"{rule}\n" for rule in RULES)]
)
"""The help for prompts and people, made from the table."""
