"""An understood instruction said again as command lines."""

from __future__ import annotations

from zetta.primitives.roles import Errand, Phrase
from zetta.runtime.errors import ConfigError

_INSIDE = "inside of "
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
    thing, place, part = errand.object, errand.receptacle, errand.part
    if part is not None:
        return _part_line(errand.verb, part)
    if thing is None:
        return ()
    if errand.verb == "pick" or place is None:
        return (f"pick {said(thing)}",)
    if errand.verb == "push":
        return (f"push {said(thing)} to {said(place)}",)
    where = "in" if errand.placement == "in" else "on"
    name = said(Phrase(place.name.removeprefix(_INSIDE), place.relation))
    return f"pick {said(thing)}", f"place {where} {name}"


def _part_line(verb: str, part: Phrase) -> tuple[str, ...]:
    _, _, whole = part.name.partition(" of ")
    name = said(Phrase(whole or part.name, part.relation))
    match verb:
        case "open" | "pull":
            return (f"open {name}",)
        case "close" | "press":
            return (f"close {name}",)
        case "turn_on":
            return (f"turn on {name}",)
        case "turn_off":
            return (f"turn off {name}",)
        case _:
            return ()


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
