"""Prepositional phrases: where things stand, and where they are to go."""

from __future__ import annotations

import re
from dataclasses import dataclass

from zetta.primitives.roles_names import DIRECTIONS, noun, place_in, place_on, place_under
from zetta.primitives.roles_records import Phrase, Placement, Relation, RelationKind

_SIDES: dict[str, RelationKind] = {
    "left": "left of", "right": "right of", "front": "front of", "back": "behind",
    "rear": "behind",
}  # fmt: skip
_SIDE = r"(?P<side>left|right|front|back|rear)(?: hand)?(?: side)?"
_SURFACE, _MIDDLE = r"(?:the )?(?:table|desk|counter)", r"(?:center|centre|middle)"
_CENTER = rf"(?:{_SURFACE} {_MIDDLE}|(?:the )?{_MIDDLE} of {_SURFACE})"
_PATTERNS: tuple[tuple[str, RelationKind | None, str], ...] = (
    # (pattern, relation or None for the side that was matched, flags)
    (rf"(?:from|at|in|on|near) {_CENTER}(?=$| )", "center", "u"),
    (rf"(?:to|on|at|by|from)(?: the)? {_SIDE} of(?= )", None, ""),
    (r"in front of(?= )", "front of", ""),
    (rf"{_SIDE} of(?= )", None, ""),
    (rf"(?:to|toward|towards)(?: the)? {_SIDE}(?=$| (?!\w))", None, "u"),
    (
        r"(?:to|on|at|in|from)(?: the)? (?P<word>left|right|front|back|rear|middle|center|centre)"
        r"(?: hand)?(?: side)?(?=$| (?:on|in|into|onto|to|from|at|inside|not)\b)",
        None,
        "u",
    ),
    (r"not between(?= )", "between", "n"),
    (r"not on(?= )", "on", "n"),
    (r"not in(?= )", "in", "n"),
    (r"not next to(?= )", "next to", "n"),
    (r"between(?= )", "between", ""),
    (r"(?:(?:closest|nearest|next|close|near|adjacent) to)(?= |$)", "next to", ""),
    (r"(?:nearest|beside|alongside|near|by)(?= |$)", "next to", ""),
    (r"(?:behind)(?= |$)", "behind", ""),
    (r"from (?:the )?(?:on )?top of(?= )", "on", "s"),
    (r"(?:from|out of|off of|off)(?: the)? inside(?: of)?(?= )", "in", "s"),
    (r"(?:out of)(?= )", "in", "s"),
    (r"(?:from|off of|off)(?= )", "on", "s"),
    (r"(?:onto|on to|on|to)(?: the)? top of(?= )", "on", "t"),
    (r"(?:on top|atop)(?= |$)", "on", "t"),
    (r"(?:onto|on to)(?= |$)", "on", "d"),
    (r"(?:upon|over|on)(?= |$)", "on", ""),
    (r"(?:into|in to|to the inside of)(?= |$)", "in", "d"),
    (r"(?:inside of|inside|within|in)(?= |$)", "in", ""),
    (r"(?:underneath|under|beneath|below)(?= |$)", "under", ""),
    (r"(?:toward|towards|to)(?= )", "on", "d"),
)
_COMPILED = tuple((re.compile(pattern), kind, flags) for pattern, kind, flags in _PATTERNS)


@dataclass(frozen=True, slots=True)
class Tail:
    """One prepositional phrase."""

    kind: RelationKind
    object: str
    """The noun phrase as it was said; empty for "on the left" and for a bare "inside"."""
    unary: bool = False
    """It says which of several twins, without naming another thing."""
    directed: bool = False
    """It can only say where something goes: "into", "onto", "to"."""
    source: bool = False
    """It says where something is taken from."""
    negated: bool = False
    on_top: bool = False


@dataclass(frozen=True, slots=True)
class Place:
    """Where something goes."""

    phrase: Phrase
    placement: Placement
    whole: str
    """The thing that was named, of which the phrase may be a part."""


def mention(text: str) -> Phrase:
    """Return the phrase of a noun phrase without prepositions.

    >>> str(mention("the left moka pot"))
    'moka pot (left)'
    """
    name, direction = noun(text)
    return Phrase(name, Relation(_unary(direction)) if direction else None)


def tails(text: str) -> tuple[str, list[Tail]]:
    """Split a noun phrase from the prepositional phrases behind it.

    >>> head, [tail] = tails("the black bowl on the wooden cabinet")
    >>> head, tail.kind, tail.object
    ('the black bowl', 'on', 'the wooden cabinet')
    """
    starts: list[tuple[int, int, RelationKind, str, str]] = []
    position = 0
    while position < len(text):
        found = _match(text, position)
        if found is not None:
            end, kind, flags, said = found
            starts.append((position, end, kind, flags, said))
            position = max(end, position + 1)
        # The next word.
        space = text.find(" ", position)
        position = len(text) if space < 0 else space + 1
    head = text[: starts[0][0]].strip() if starts else text.strip()
    edges = [*(start[0] for start in starts[1:]), len(text)][: len(starts)]
    return head, [
        _tail(kind, flags, said, text[end:edge].strip())
        for (_, end, kind, flags, said), edge in zip(starts, edges, strict=True)
    ]


def _match(text: str, position: int) -> tuple[int, RelationKind, str, str] | None:
    for pattern, kind, flags in _COMPILED:
        match = pattern.match(text, position)
        if match is None:
            continue
        groups = match.groupdict()
        if kind is None and (word := groups.get("side") or groups.get("word")):
            kind = _unary(DIRECTIONS[word]) if "u" in flags else _SIDES[word]
        return match.end(), kind or "next to", flags, match.group(0)
    return None


def _tail(kind: RelationKind, flags: str, said: str, following: str) -> Tail:
    return Tail(
        kind,
        "" if "u" in flags else following,
        unary="u" in flags,
        directed="d" in flags or (said.startswith("to ") and kind != "center"),
        source="s" in flags,
        negated="n" in flags,
        on_top="t" in flags,
    )


def _unary(direction: str) -> RelationKind:
    kinds: dict[str, RelationKind] = {
        "left": "left", "right": "right", "front": "front", "back": "back", "middle": "middle",
    }  # fmt: skip
    return kinds[direction]


def destination(tail: Tail) -> Place:
    """Return where something goes that is put `tail`."""
    said = mention(tail.object)
    name = said.name
    if tail.kind in _SIDE_NAMES:
        return Place(Phrase(f"{_SIDE_NAMES[tail.kind]} of {name}"), "beside", name)
    # "the front of the stove", "the top of the drawer": the part is a place of its own.
    part, _, whole = name.partition(" of ")
    if whole and part == "top":
        return Place(Phrase(place_on(whole, on_top=True)), "on", whole)
    if whole and part == "inside":
        return Place(Phrase(place_in(whole)), "in", whole)
    if whole and part in ("left", "right", "front", "back"):
        return Place(said, "beside", whole)
    if tail.kind == "under":
        return Place(replace_name(said, place_under(name)), "under", name)
    if tail.kind in ("next to", "between"):
        return Place(said, "beside", name)
    if name.endswith(("compartment of caddy", "tray", "basket")) and tail.kind == "on":
        return Place(replace_name(said, place_in(name)), "in", name)
    if tail.kind == "in":
        return Place(replace_name(said, place_in(name)), "in", name)
    place = place_on(name, tail.on_top)
    return Place(replace_name(said, place), "in" if place.startswith("inside") else "on", name)


def destination_of_plain(tail: Tail, container: str | None) -> Place | None:
    """Return where something goes that is put "inside", "on it" or "to the right"."""
    if container is None:
        return None
    if tail.unary:
        if tail.kind not in ("left", "right", "front", "back"):
            return None
        return Place(Phrase(f"{tail.kind} of {container}"), "beside", container)
    if tail.kind in ("on", "in", "under"):
        return destination(Tail(tail.kind, container, on_top=tail.on_top))
    return destination(Tail(tail.kind, container))


def replace_name(phrase: Phrase, name: str) -> Phrase:
    """Return `phrase` under another name."""
    return Phrase(name, phrase.relation)


_SIDE_NAMES: dict[RelationKind, str] = {
    "left of": "left", "right of": "right", "front of": "front", "behind": "back",
}  # fmt: skip
