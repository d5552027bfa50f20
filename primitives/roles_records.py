"""The words of an understood instruction: errands, their roles and the phrases that fill them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

Verb: TypeAlias = Literal[
    "pick", "place", "push", "open", "close", "turn_on", "turn_off", "press", "pull"
]
VERBS: tuple[Verb, ...] = get_args(Verb)
Placement: TypeAlias = Literal["on", "in", "beside", "under", "at"]
RelationKind: TypeAlias = Literal[
    "next to", "between", "on", "in", "under", "left of", "right of", "front of", "behind",
    "left", "right", "front", "back", "middle", "center",
]  # fmt: skip
RELATION_KINDS: tuple[RelationKind, ...] = get_args(RelationKind)
Role: TypeAlias = Literal["object", "receptacle", "part"]
ROLES: tuple[Role, ...] = get_args(Role)


@dataclass(frozen=True, slots=True)
class Relation:
    """Which one of several equal things is meant."""

    kind: RelationKind
    anchors: tuple[str, ...] = ()
    """Canonical names of the things it is related to; none for "left", "middle" and their kind."""
    negated: bool = False
    """The one for which it does not hold."""

    def __str__(self) -> str:
        text = " ".join((self.kind, " and ".join(self.anchors))).strip()
        return f"not {text}" if self.negated else text


@dataclass(frozen=True, slots=True)
class Phrase:
    """A thing as an instruction names it."""

    name: str
    """Canonical noun phrase in lower case."""
    relation: Relation | None = None

    def __str__(self) -> str:
        return self.name if self.relation is None else f"{self.name} ({self.relation})"


@dataclass(frozen=True, slots=True)
class Errand:
    """One thing to do."""

    verb: Verb
    object: Phrase | None = None
    """What is moved."""
    receptacle: Phrase | None = None
    """Where it goes."""
    part: Phrase | None = None
    """The handle, knob or button that is worked."""
    placement: Placement | None = None
    """How the object lies at the receptacle in the end."""

    @property
    def phrases(self) -> Mapping[Role, Phrase]:
        """Return the phrase of every role that is named."""
        return _named(self.object, self.receptacle, self.part)


@dataclass(frozen=True, slots=True)
class Roles:
    """An instruction understood."""

    instruction: str
    """The sentence as it was given."""
    steps: tuple[Errand, ...]
    """Single errands in the order in which they are to be done; at least one."""

    @property
    def verb(self) -> Verb:
        """Return what the first errand does."""
        return self.steps[0].verb

    @property
    def object(self) -> Phrase | None:
        """Return what is moved: the object of the first errand that has one."""
        return self._carrying.object

    @property
    def receptacle(self) -> Phrase | None:
        """Return where that object goes."""
        return self._carrying.receptacle

    @property
    def placement(self) -> Placement | None:
        """Return how that object lies in the end."""
        return self._carrying.placement

    @property
    def part(self) -> Phrase | None:
        """Return the first part that is worked in any errand."""
        return next((step.part for step in self.steps if step.part is not None), None)

    @property
    def phrases(self) -> Mapping[Role, Phrase]:
        """Return the phrase of every role that is named."""
        return _named(self.object, self.receptacle, self.part)

    def verbs_about(self, roles: Collection[str]) -> frozenset[Verb]:
        """Return what the errands do from which roles come: the first that names each of them.

        Args:
            roles: that matter; without any, every errand counts.

        >>> close, open_ = Errand("close", part=Phrase("box")), Errand("open", part=Phrase("door"))
        >>> sorted(Roles("", (close, open_)).verbs_about(["part"]))
        ['close']
        """
        if not roles:
            return frozenset(step.verb for step in self.steps)
        named = ((step for step in self.steps if role in step.phrases) for role in roles)
        return frozenset(step.verb for steps in named for step in tuple(steps)[:1])

    @property
    def _carrying(self) -> Errand:
        return next((step for step in self.steps if step.object is not None), self.steps[0])


def _named(
    item: Phrase | None, receptacle: Phrase | None, part: Phrase | None
) -> Mapping[Role, Phrase]:
    pairs: tuple[tuple[Role, Phrase | None], ...] = (
        ("object", item), ("receptacle", receptacle), ("part", part),
    )  # fmt: skip
    return {role: phrase for role, phrase in pairs if phrase is not None}
