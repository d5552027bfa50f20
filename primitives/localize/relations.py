"""Which one of several equal things a sentence means: "next to the ramekin", "on the left".

Every relation is a cost in metres for each candidate; the cheapest one is meant, and the margin is
how much cheaper it is than the runner-up.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from zetta.primitives.localize.sightings import Sighting
from zetta.primitives.roles_records import Relation, RelationKind
from zetta.runtime.core import Array

_STACKED = 0.5
"""Cost in metres of being on a thing for what should be next to it."""
_RAISED = 0.015
"""What is higher than the ground by this much stands on something, metres."""
_WRONG_SIDE = 0.5
"""Cost in metres of lying on the other side."""


@dataclass(frozen=True, slots=True)
class View:
    """What left, front and centre mean. World frame.

    The default is the onlooker of LIBERO, who faces the robot: its front is the robot's far side.
    """

    left: tuple[float, float] = (0.0, -1.0)
    """Horizontal unit vector to the onlooker's left."""
    front: tuple[float, float] = (1.0, 0.0)
    """Horizontal unit vector towards the onlooker."""
    center: tuple[float, float] = (0.0, 0.0)
    """Middle of the table, metres."""

    def toward(self, side: str) -> Array:
        """Return the horizontal unit vector of "left", "right", "front" or "back". Shape (2,)."""
        left, front = np.array(self.left), np.array(self.front)
        return {"left": left, "right": -left, "front": front, "back": -front}[side]


@dataclass(frozen=True, slots=True)
class Choice:
    """The candidate that is meant."""

    best: Sighting
    margin: float
    """How much worse the second best is, metres; infinite for the only one, 0 for a guess."""
    inferred: bool = False
    """What the relation names is not seen; it was concluded from heights that it is there."""


Anchors = Mapping[str, Sequence[Sighting]]
"""Sightings of each thing a relation names."""


def choose(
    candidates: Sequence[Sighting],
    relation: Relation | None,
    anchors: Anchors | None = None,
    view: View | None = None,
    ground: float = math.inf,
) -> Choice | None:
    """Return the candidate that `relation` means, or None when there is no candidate.

    Where a relation cannot be judged, because what it names is not seen, "on" means the one that
    stands on something which it hides: it is raised over the `ground`, the height on which things
    stand, and by no more than it is wide. Otherwise the most confident one is returned, and the
    margin is 0.
    """
    if not candidates:
        return None
    if relation is None:
        return Choice(candidates[0], math.inf) if len(candidates) == 1 else _guess(candidates)
    cost = costs(candidates, relation, anchors or {}, view or View())
    if cost is None and relation.kind == "on" and not relation.negated and ground < math.inf:
        raised = [c for c in candidates if _hides_what_carries_it(c, ground)]
        if len(raised) == 1:
            return Choice(raised[0], raised[0].bottom - ground, inferred=True)
        return Choice(_guess(candidates).best, 0.0)
    if len(candidates) == 1:
        return Choice(candidates[0], math.inf)
    if cost is None:
        return Choice(_guess(candidates).best, 0.0)
    order = np.argsort(cost)
    return Choice(candidates[int(order[0])], float(cost[order[1]] - cost[order[0]]))


def _guess(candidates: Sequence[Sighting]) -> Choice:
    return Choice(max(candidates, key=lambda c: c.confidence), 0.0)


def _hides_what_carries_it(candidate: Sighting, ground: float) -> bool:
    return _RAISED < candidate.bottom - ground <= float(candidate.extent[:2].max())


def costs(
    candidates: Sequence[Sighting], relation: Relation, anchors: Anchors, view: View
) -> Array | None:
    """Return how badly each candidate fits, in metres, or None when an anchor is not seen.

    A candidate is never its own anchor. Shape (candidates,).
    """
    kind = relation.kind
    if kind in ("left", "right", "front", "back"):
        cost = np.array([-float(c.position[:2] @ view.toward(kind)) for c in candidates])
    elif kind == "center":
        cost = np.array([math.dist(c.position[:2], view.center) for c in candidates])
    elif kind == "middle":
        cost = _from_the_middle(candidates)
    else:
        seen = [anchors.get(name, ()) for name in relation.anchors]
        if not seen or not all(seen):
            return None
        if kind == "between":
            cost = np.array([_between(c, seen) for c in candidates])
        else:
            cost = np.array([_nearest(c, seen[0], kind, view) for c in candidates])
    return -cost if relation.negated else cost


def _from_the_middle(candidates: Sequence[Sighting]) -> Array:
    """Return the distance from the median along the line on which the candidates lie."""
    spots = np.array([c.position[:2] for c in candidates])
    centred = spots - spots.mean(axis=0)
    along = centred @ np.linalg.svd(centred)[2][0]
    return np.asarray(np.abs(along - np.median(along)))


def _between(candidate: Sighting, ends: Sequence[Sequence[Sighting]]) -> float:
    first, second = ends[0], ends[-1]
    costs = [
        _detour(candidate, a, b) for a in first for b in second if a is not b and a is not candidate
    ]
    return min(costs, default=math.inf)


def _detour(candidate: Sighting, a: Sighting, b: Sighting) -> float:
    """Return by how much the way from a to b grows by passing the candidate."""
    to_a, to_b = _flat(candidate, a), _flat(candidate, b)
    return to_a + to_b - _flat(a, b) + 0.25 * abs(to_a - to_b)


def _nearest(
    candidate: Sighting, anchors: Sequence[Sighting], kind: RelationKind, view: View
) -> float:
    cost = _COSTS[kind]
    own = [cost(candidate, anchor, view) for anchor in anchors if anchor is not candidate]
    return min(own, default=math.inf)


def _next_to(candidate: Sighting, anchor: Sighting, view: View) -> float:
    stacked = outside(candidate, anchor) == 0.0 and candidate.bottom > anchor.position[2]
    return _flat(candidate, anchor) + _STACKED * stacked


def _on(candidate: Sighting, anchor: Sighting, view: View) -> float:
    # A bowl sinks into a ramekin and a pot stands below the knob of its stove.
    low, high = float(anchor.position[2]), anchor.top
    gap = max(0.0, low - candidate.bottom) + max(0.0, candidate.bottom - high)
    return outside(candidate, anchor) + gap + 0.1 * _flat(candidate, anchor)


def _in(candidate: Sighting, anchor: Sighting, view: View) -> float:
    # A place inside is flat: things rest on it.
    high = max(anchor.top, anchor.bottom + 0.05)
    low = anchor.bottom - 0.02
    gap = max(0.0, low - candidate.bottom) + max(0.0, candidate.bottom - high)
    return outside(candidate, anchor) + gap + 0.1 * _flat(candidate, anchor)


def _under(candidate: Sighting, anchor: Sighting, view: View) -> float:
    over = max(0.0, candidate.top - anchor.top)
    return outside(candidate, anchor) + over + 0.1 * _flat(candidate, anchor)


def _beside(side: str) -> Callable[[Sighting, Sighting, View], float]:
    def cost(candidate: Sighting, anchor: Sighting, view: View) -> float:
        offset = candidate.position[:2] - anchor.position[:2]
        along = float(offset @ view.toward(side))
        across = math.sqrt(max(0.0, float(offset @ offset) - along * along))
        return across + 0.5 * abs(along) + _WRONG_SIDE * (along <= 0.0)

    return cost


_COSTS: Mapping[RelationKind, Callable[[Sighting, Sighting, View], float]] = {
    "next to": _next_to,
    "on": _on,
    "in": _in,
    "under": _under,
    "left of": _beside("left"),
    "right of": _beside("right"),
    "front of": _beside("front"),
    "behind": _beside("back"),
}


def outside(candidate: Sighting, anchor: Sighting) -> float:
    """Return how far the candidate's centre lies outside the anchor's footprint, metres."""
    offset = candidate.position[:2] - anchor.position[:2]
    c, s = math.cos(anchor.yaw), math.sin(anchor.yaw)
    own = np.abs([c * offset[0] + s * offset[1], c * offset[1] - s * offset[0]])
    return float(np.linalg.norm(np.maximum(own - anchor.extent[:2] / 2.0, 0.0)))


def _flat(a: Sighting, b: Sighting) -> float:
    return float(np.hypot(*(a.position[:2] - b.position[:2])))
