"""Which of several equal things a sentence means."""

from __future__ import annotations

import math

import pytest

from zetta.primitives.localize.relations import View, choose
from zetta.primitives.localize.sightings import Sighting
from zetta.primitives.roles import Relation
from zetta.runtime.core import read_only


def thing(
    name: str,
    x: float,
    y: float,
    z: float = 0.02,
    size: tuple[float, float, float] = (0.1, 0.1, 0.04),
) -> Sighting:
    """Return a thing standing straight at a place."""
    return Sighting(name, read_only([x, y, z]), read_only(size), 0.0, 0.9)


PLATE = thing("plate", 0.1, 0.2, 0.01, (0.16, 0.16, 0.02))
RAMEKIN = thing("ramekin", -0.1, 0.2, 0.02, (0.08, 0.08, 0.04))
STOVE = thing("stove", -0.3, -0.2, 0.03, (0.2, 0.2, 0.06))
DRAWER = thing("inside of top drawer", 0.2, -0.3, 0.15, (0.16, 0.16, 0.0))
CABINET = thing("cabinet", 0.3, -0.3, 0.12, (0.3, 0.2, 0.24))
ANCHORS = {s.name: [s] for s in (PLATE, RAMEKIN, STOVE, DRAWER, CABINET)}

BETWEEN = thing("black bowl", 0.01, 0.21)
BY_RAMEKIN = thing("black bowl", -0.1, 0.32)
ON_STOVE = thing("black bowl", -0.28, -0.19, 0.08)
IN_DRAWER = thing("black bowl", 0.2, -0.3, 0.17)
ON_CABINET = thing("black bowl", 0.3, -0.28, 0.26)
ON_RAMEKIN = thing("black bowl", -0.1, 0.2, 0.05)
CENTER = thing("black bowl", 0.02, -0.01)
BOWLS = [BETWEEN, BY_RAMEKIN, ON_STOVE, IN_DRAWER, ON_CABINET, CENTER]


@pytest.mark.parametrize(
    ("relation", "meant"),
    [
        (Relation("between", ("plate", "ramekin")), BETWEEN),
        (Relation("next to", ("ramekin",)), BETWEEN),
        (Relation("on", ("stove",)), ON_STOVE),
        (Relation("in", ("inside of top drawer",)), IN_DRAWER),
        (Relation("on", ("cabinet",)), ON_CABINET),
        (Relation("center"), CENTER),
        (Relation("left"), IN_DRAWER),
        (Relation("right"), BY_RAMEKIN),
        (Relation("back"), ON_STOVE),
        (Relation("front"), ON_CABINET),
        (Relation("right of", ("ramekin",)), BY_RAMEKIN),
        (Relation("behind", ("plate",)), BETWEEN),
    ],
    ids=str,
)
def test_relation_picks_out_the_one_it_describes(relation: Relation, meant: Sighting) -> None:
    choice = choose(BOWLS, relation, ANCHORS)

    assert choice is not None
    assert choice.best is meant
    assert choice.margin > 0.005


def test_next_to_is_not_on_top_of() -> None:
    choice = choose([ON_RAMEKIN, BY_RAMEKIN], Relation("next to", ("ramekin",)), ANCHORS)
    stacked = choose([ON_RAMEKIN, BY_RAMEKIN], Relation("on", ("ramekin",)), ANCHORS)

    assert choice is not None
    assert choice.best is BY_RAMEKIN
    assert stacked is not None
    assert stacked.best is ON_RAMEKIN


def test_negated_relation_picks_the_other() -> None:
    relation = Relation("between", ("plate", "ramekin"), negated=True)
    choice = choose([BETWEEN, CENTER], relation, ANCHORS)

    assert choice is not None
    assert choice.best is CENTER


def test_middle_lies_between_along_the_row() -> None:
    # The three bowls of a kitchen scene: neither axis alone separates them.
    row = [thing("black bowl", 0.1, 0.15), thing("black bowl", -0.05, 0.2)]
    row.append(thing("black bowl", -0.15, 0.05))
    choice = choose(row, Relation("middle"))

    assert choice is not None
    assert choice.best is row[1]


def test_onlooker_may_stand_elsewhere() -> None:
    pair = [thing("block", 0.0, -0.1), thing("block", 0.0, 0.1)]
    from_the_robot = View(left=(0.0, 1.0), front=(-1.0, 0.0))
    one, other = choose(pair, Relation("left")), choose(pair, Relation("left"), view=from_the_robot)

    assert one is not None
    assert other is not None
    assert (one.best, other.best) == (pair[0], pair[1])
    assert one.margin == pytest.approx(0.2)


def test_thing_is_never_its_own_anchor() -> None:
    near, far = thing("cube", 0.0, 0.0), thing("cube", 0.3, 0.0)
    middle = thing("cube", 0.1, 0.0)
    cubes = [near, middle, far]
    choice = choose(cubes, Relation("next to", ("cube",)), {"cube": cubes})

    assert choice is not None
    assert choice.best is not far


def test_only_candidate_is_certain_and_no_candidate_is_no_choice() -> None:
    choice = choose([CENTER], Relation("on", ("stove",)), ANCHORS)

    assert choice is not None
    assert choice.best is CENTER
    assert choice.margin == math.inf
    assert choose([], None) is None


def test_unseen_anchor_leaves_a_guess_without_margin() -> None:
    low, high = thing("black bowl", 0.0, 0.0), thing("black bowl", 0.2, 0.0, 0.08)
    on = choose([low, high], Relation("on", ("cookie box",)))
    beside = choose([low, high], Relation("next to", ("cookie box",)), ground=low.bottom)

    assert on is not None
    assert beside is not None
    assert (on.margin, beside.margin) == (0.0, 0.0)


@pytest.mark.parametrize(("raised", "meant"), [(0.01, False), (0.03, True), (0.25, False)])
def test_on_a_hidden_thing_is_what_stands_a_little_above_the_ground(
    raised: float, meant: bool
) -> None:
    low, other = thing("black bowl", 0.0, 0.0), thing("black bowl", 0.2, 0.0, 0.02 + raised)
    choice = choose([low, other], Relation("on", ("cookie box",)), ground=low.bottom)

    assert choice is not None
    assert (choice.margin > 0.0) is meant
    assert not meant or choice.best is other
