"""Evidence that an instruction was carried out, from estimates made by hand."""

from __future__ import annotations

import numpy as np
import pytest

from zetta.primitives.agent.verifier import Seen, Verification, Verifier
from zetta.primitives.roles import parse_instruction
from zetta.runtime.core import ArmState, Estimate, HeightGrid, Proprio

FAR = (0.0, 0.4, 0.5)


def seen(
    role: str,
    position: tuple[float, float, float],
    extent: tuple[float, float, float] = (0.1, 0.1, 0.05),
    yaw: float = 0.0,
    confidence: float = 0.9,
) -> Estimate:
    return Estimate(role, np.array(position), np.array(extent), yaw, confidence, 0.0, "vision")


def look(estimates: list[Estimate], heights: HeightGrid | None = None) -> Seen:
    return Seen({one.role: one for one in estimates}, heights)


def felt(hand: tuple[float, float, float] = FAR, opening: float = 0.03) -> Proprio:
    arm = ArmState(np.array(hand), np.array([1.0, 0.0, 0.0, 0.0]), np.zeros(7), opening)
    return Proprio(0.0, (arm,))


def judged(
    instruction: str,
    before: list[Estimate],
    after: list[Estimate],
    hand: tuple[float, float, float] = FAR,
    opening: float = 0.03,
) -> Verification:
    """Return the verdict where the first errand sees `before` and then `after`."""
    sights = [before, after]
    errands = parse_instruction(instruction).steps[:1]
    verifier = Verifier(errands, lambda k: look(sights.pop(0)))
    verifier.begin()
    return verifier.verify(felt(hand, opening))


BOWL, PLATE = "put the bowl on the plate", seen("receptacle", (0.2, 0.0, 0.01), (0.2, 0.2, 0.02))
START = [seen("object", (0.0, 0.0, 0.025)), PLATE]


def test_a_thing_over_the_outline_of_its_place_is_there() -> None:
    verdict = judged(BOWL, START, [seen("object", (0.21, 0.02, 0.04)), PLATE])
    assert verdict.verified is True
    assert verdict.missing == ()


@pytest.mark.parametrize(
    ("at", "why"),
    [
        ((0.0, 0.0, 0.025), "lies 10.0 cm beside the plate"),
        ((0.2, 0.0, 0.15), "cm over the plate"),
    ],
)
def test_a_thing_elsewhere_is_denied_with_the_distance(
    at: tuple[float, float, float], why: str
) -> None:
    verdict = judged(BOWL, START, [seen("object", at), PLATE])
    assert verdict.verified is False
    assert why in verdict.missing[0]
    assert verdict.missing[0].startswith("errand 1 is not done")


def test_a_thing_that_the_hand_has_not_let_go_is_not_placed() -> None:
    verdict = judged(BOWL, START, [seen("object", (0.2, 0.0, 0.04)), PLATE], (0.2, 0.0, 0.06))
    assert verdict.verified is False
    assert "still at the hand" in verdict.missing[0]


def test_an_open_hand_beside_a_thing_does_not_hold_it() -> None:
    after = [seen("object", (0.2, 0.0, 0.04)), PLATE]
    assert judged(BOWL, START, after, (0.2, 0.0, 0.06), opening=0.078).verified is True


@pytest.mark.parametrize(
    "after", [[PLATE], [seen("object", (0.2, 0.0, 0.04), confidence=0.1), PLATE]]
)
def test_what_is_not_seen_is_neither_affirmed_nor_denied(after: list[Estimate]) -> None:
    verdict = judged(BOWL, START, after)
    assert verdict.verified is None
    assert verdict.missing == ()


def test_a_place_that_its_load_hides_is_where_it_was() -> None:
    assert judged(BOWL, START, [seen("object", (0.2, 0.0, 0.04))]).verified is True


def test_the_outline_of_a_turned_place_is_turned() -> None:
    long = seen("receptacle", (0.0, 0.0, 0.01), (0.4, 0.1, 0.02), yaw=np.pi / 2.0)
    before = [seen("object", (0.3, 0.3, 0.025)), long]
    assert judged(BOWL, before, [seen("object", (0.0, 0.18, 0.04)), long]).verified is True
    assert judged(BOWL, before, [seen("object", (0.18, 0.0, 0.04)), long]).verified is False


@pytest.mark.parametrize(("moved", "expected"), [(0.12, True), (0.01, False)])
def test_a_drawer_is_open_when_its_handle_came_out(moved: float, expected: bool) -> None:
    before = seen("part", (0.0, 0.0, 0.2), (0.02, 0.1, 0.02), yaw=0.0)
    after = seen("part", (moved, 0.0, 0.2), (0.02, 0.1, 0.02), yaw=0.0)
    assert judged("open the top drawer", [before], [after]).verified is expected
    assert judged("close the top drawer", [after], [before]).verified is expected


def test_a_knob_that_did_not_turn_cannot_be_judged_but_one_that_did_can() -> None:
    before = seen("part", (0.0, 0.0, 0.1), yaw=0.0)
    assert judged("turn on the stove", [before], [before]).verified is None
    turned = seen("part", (0.0, 0.0, 0.1), yaw=1.0)
    assert judged("turn on the stove", [before], [turned]).verified is True


def test_a_thing_is_picked_when_it_is_higher_than_before() -> None:
    before = seen("object", (0.0, 0.0, 0.025))
    assert judged("pick up the bowl", [before], [seen("object", (0.0, 0.0, 0.2))]).verified is True
    assert judged("pick up the bowl", [before], [before]).verified is False


def test_one_errand_denied_denies_the_whole_instruction() -> None:
    errands = parse_instruction("put both the soup and the milk in the basket").steps
    basket = seen("receptacle", (0.2, 0.0, 0.05), (0.2, 0.2, 0.1))
    at = {"start": (0.0, 0.0, 0.025), "in": (0.2, 0.0, 0.03)}
    sights = [[at["start"], at["start"]], [at["in"], at["start"]]]
    order = iter([(0, 0), (0, 1), (1, 0), (1, 1)])

    def locate(k: int) -> Seen:
        when, which = next(order)
        return look([seen("object", sights[when][which]), basket])

    verifier = Verifier(errands, locate)
    verifier.begin()
    verdict = verifier.verify(felt())
    assert [finding.fulfilled for finding in verdict.findings] == [True, False]
    assert verdict.verified is False
    assert verdict.missing[0].startswith("errand 2")


# --------------------------------------------------------------------------- hidden things


def ground(*boxes: tuple[tuple[float, float, float], tuple[float, float, float]]) -> HeightGrid:
    """Return heights over a metre square in which boxes stand, given by middle and extent."""
    axis = -0.5 + (np.arange(100) + 0.5) * 0.01
    heights = np.zeros((100, 100))
    for middle, extent in boxes:
        inside = (np.abs(axis[:, None] - middle[0]) < extent[0] / 2.0) & (
            np.abs(axis[None, :] - middle[1]) < extent[1] / 2.0
        )
        heights[inside] = middle[2] + extent[2] / 2.0
    return HeightGrid(np.array([-0.5, -0.5]), 0.01, heights, 0.0)


CAN = ((-0.2, 0.0, 0.05), (0.08, 0.08, 0.10))
BASKET = seen("receptacle", (0.2, 0.0, 0.04), (0.2, 0.2, 0.08))


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        (ground(((0.2, 0.0, 0.05), (0.08, 0.08, 0.10))), True),
        (ground(), None),  # gone, but not there
        (ground(CAN, ((0.2, 0.0, 0.05), (0.08, 0.08, 0.10))), None),  # something else is there
    ],
)
def test_a_hidden_thing_is_judged_by_what_depth_shows(
    after: HeightGrid, expected: bool | None
) -> None:
    errands = parse_instruction("put the can in the basket").steps
    sights = [look([seen("object", *CAN), BASKET], ground(CAN)), look([BASKET], after)]
    verifier = Verifier(errands, lambda k: sights.pop(0))
    verifier.begin()
    assert verifier.verify(felt()).verified is expected
