"""Instructions turned into roles: what is moved, where it goes, which part is worked.

The grammar knows verbs, prepositions and pronouns, and no list of things: "put the blorp on the
red plate" has an object. A compound instruction becomes several errands, in order.
"""

from __future__ import annotations

from zetta.primitives.roles_grammar import errands
from zetta.primitives.roles_records import (
    ROLES,
    VERBS,
    Errand,
    Phrase,
    Placement,
    Relation,
    RelationKind,
    Role,
    Roles,
    Verb,
)
from zetta.runtime.errors import ConfigError

__all__ = [
    "ROLES",
    "VERBS",
    "Errand",
    "Phrase",
    "Placement",
    "Relation",
    "RelationKind",
    "Role",
    "Roles",
    "Verb",
    "parse_instruction",
]


def roles_or_none(text: str) -> Roles | None:
    """Return the roles of an instruction; None where it is not understood.

    Skills that need roles are then left out, and the policy drives as before.
    """
    try:
        return parse_instruction(text)
    except ConfigError:
        return None


def parse_instruction(text: str) -> Roles:
    """Return the roles an instruction names.

    Args:
        text: an English imperative of one or several errands; case, articles, punctuation and
            politeness do not matter.

    Raises:
        ConfigError: no errand can be read out of it.

    >>> roles = parse_instruction("Open the top drawer and put the bowl inside")
    >>> [step.verb for step in roles.steps], str(roles.part)
    (['open', 'place'], 'handle of top drawer')
    >>> str(roles.object), str(roles.receptacle), roles.placement
    ('bowl', 'inside of top drawer', 'in')
    """
    steps = errands(text)
    if not steps:
        raise ConfigError(
            f"the instruction {text!r} names nothing to do that is understood; say it like "
            "'put the black bowl on the plate', 'open the top drawer' or 'turn on the stove'"
        )
    return Roles(text, steps)
