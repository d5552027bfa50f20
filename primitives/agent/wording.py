"""An understood instruction said again as command lines."""

from __future__ import annotations

from collections.abc import Mapping

from zetta.primitives.roles import ROLES, Errand, Phrase, Role, Verb
from zetta.runtime.errors import ConfigError

_INSIDE = "inside of "
_PART_VERBS: Mapping[Verb, str] = {
    "open": "open",
    "pull": "open",
    "close": "close",
    "press": "close",
    "turn_on": "turn on",
    "turn_off": "turn off",
}
_SIDES = {
    "left of": "to the left of the",
    "right of": "to the right of the",
    "front of": "in front of the",
    "behind": "behind the",
    "between": "between the",
    "next to": "next to the",
    "on": "on the",
    "in": "in the",
    "under": "under the",
}


def lines_of(errand: Errand, arm: str = "") -> tuple[str, ...]:
    """Return the commands that do an errand, in order.

    Args:
        errand: what is to be done.
        arm: name of the arm, where there are several.

    Raises:
        ConfigError: there is no command for it.

    >>> lines_of(Errand("open", part=Phrase("handle of top drawer")))
    ('open top drawer',)
    """
    lines = tuple(f"{arm} {line}".strip() for line in _lines(errand))
    if not lines:
        raise ConfigError(f"there is no command for the errand {errand.verb!r}")
    return lines


def _lines(errand: Errand) -> tuple[str, ...]:
    names = names_of(errand)
    thing, place, part = (names.get(role) for role in ROLES)
    if part is not None:
        verb = _PART_VERBS.get(errand.verb)
        return () if verb is None else (f"{verb} {part}",)
    if thing is None:
        return ()
    if errand.verb == "pick" or place is None:
        return (f"pick {thing}",)
    if errand.verb == "push":
        return (f"push {thing} to {place}",)
    return f"pick {thing}", f"place {'in' if errand.placement == 'in' else 'on'} {place}"


def names_of(errand: Errand) -> Mapping[Role, str]:
    """Return how the things of an errand are called in commands, by role.

    >>> dict(names_of(Errand("place", Phrase("bowl"), Phrase("inside of basket"), placement="in")))
    {'object': 'bowl', 'receptacle': 'basket'}
    """
    return {role: said(_bare(role, phrase)) for role, phrase in errand.phrases.items()}


def _bare(role: Role, phrase: Phrase) -> Phrase:
    """Return the thing that is named in place of its handle, its knob or its inside."""
    name = phrase.name
    if role == "receptacle":
        name = name.removeprefix(_INSIDE)
    elif role == "part":
        name = name.partition(" of ")[2] or name
    return Phrase(name, phrase.relation)


def said(phrase: Phrase) -> str:
    """Return a noun phrase that is understood as `phrase`.

    >>> from zetta.primitives.roles import Relation
    >>> said(Phrase("black bowl", Relation("between", ("plate", "ramekin"))))
    'black bowl between the plate and the ramekin'
    >>> said(Phrase("plate", Relation("left")))
    'left plate'
    """
    relation = phrase.relation
    if relation is None:
        return phrase.name
    if relation.kind == "center":
        return f"{phrase.name} from table center"
    if not relation.anchors:
        return f"{relation.kind} {phrase.name}"
    anchors = " and the ".join(a.removeprefix(_INSIDE) for a in relation.anchors)
    refused = "not " if relation.negated else ""
    return f"{phrase.name} {refused}{_SIDES[relation.kind]} {anchors}"
