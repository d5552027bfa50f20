"""What commands are about: a noun phrase becomes the roles of an errand, as instructions do.

Where the instruction speaks of the same thing, its own errand counts: it says where the thing goes,
so that it is taken from the right side, and its tracks are kept from command to command.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from zetta.primitives.commands import PlaceOn
from zetta.primitives.roles import Errand, Phrase, Role, parse_instruction
from zetta.primitives.roles_names import bare
from zetta.runtime.errors import ConfigError


def _read(sentence: str, thing: str) -> Errand:
    try:
        steps = parse_instruction(sentence).steps
    except ConfigError:
        steps = ()
    named = [phrase for step in steps for phrase in step.phrases.values()]
    anchors = [
        a for phrase in named if phrase.relation is not None for a in phrase.relation.anchors
    ]
    if len(steps) != 1 or not all([*(phrase.name for phrase in named), *anchors]):
        raise ConfigError(
            f"{thing!r} names no single thing; say it like 'black bowl', 'left mug' or "
            "'bowl next to the plate'"
        )
    return steps[0]


def thing_phrase(thing: str) -> Phrase:
    """Return what a noun phrase means.

    Raises:
        ConfigError: it names nothing, or several things.

    >>> str(thing_phrase("the bowl next to the plate"))
    'bowl (next to plate)'
    """
    errand = _read(f"pick up the {bare(thing)}", thing)
    if errand.object is None:
        raise ConfigError(f"{thing!r} names no thing; say it like 'black bowl'")
    return errand.object


def meant(said: Phrase, other: Phrase | None) -> bool:
    """Say whether a phrase of the instruction is what a command speaks of."""
    if other is None:
        return False
    return said == other or (said.relation is None and said.name == other.name)


def errand_for_pick(thing: str, known: Sequence[Errand]) -> Errand:
    """Return the errand of taking a thing: the instruction's own, where it has one."""
    phrase = thing_phrase(thing)
    own = next((errand for errand in known if meant(phrase, errand.object)), None)
    return own or Errand("pick", object=phrase)


def errand_for_look(thing: str, known: Sequence[Errand]) -> tuple[Errand, Role]:
    """Return the errand in which a thing plays a role, and the role."""
    phrase = thing_phrase(thing)
    for errand in known:
        for role, other in errand.phrases.items():
            if meant(phrase, other) or other.name == f"inside of {phrase.name}":
                return errand, role
    return Errand("pick", object=phrase), "object"


def errand_for_place(
    thing: str, where: PlaceOn, carried: Phrase | None, known: Sequence[Errand]
) -> Errand:
    """Return the errand of setting down what is carried; None where nobody knows what that is."""
    said = _read(f"put the thing {where} the {bare(thing)}", thing)
    if said.receptacle is None:
        raise ConfigError(f"{thing!r} names no place; say it like 'plate' or 'top drawer'")
    for errand in known:
        same = carried is None or errand.object == carried
        if same and errand.verb in ("place", "push") and meant(said.receptacle, errand.receptacle):
            return replace(errand, verb="place", placement=said.placement)
    return replace(said, object=carried)


def errand_for_part(sentence: str, part: str, known: Sequence[Errand]) -> Errand:
    """Return the errand of working a part, such as "open the top drawer"."""
    said = _read(sentence, part)
    if said.part is None:
        raise ConfigError(f"{part!r} names no part; say it like 'top drawer' or 'stove'")
    own = (e for e in known if e.verb == said.verb and meant(said.part, e.part))
    return next(own, said)


def errand_for_push(thing: str, to: str, known: Sequence[Errand]) -> Errand:
    """Return the errand of pushing a thing to a place."""
    said = _read(f"push the {bare(thing)} to the {bare(to)}", f"{thing} to {to}")
    if said.object is None or said.receptacle is None:
        raise ConfigError(f"{thing!r} to {to!r} names no thing and place")
    for errand in known:
        if meant(said.object, errand.object) and meant(said.receptacle, errand.receptacle):
            return replace(errand, verb="push")
    return said
