from __future__ import annotations

import math

import numpy as np
import pytest

from zetta.primitives.grasps import (
    PANDA,
    PIN_FINGERS,
    Grasp,
    Surroundings,
    candidates,
    choose,
    top_of,
    width_of,
)
from zetta.primitives.motions_frames import half_turn, travel_of
from zetta.primitives.motions_reach import Reach
from zetta.runtime.core import Array, Estimate, HeightGrid

TABLE = 0.9


def thing(
    x: float = 0.0,
    y: float = 0.0,
    size: tuple[float, float, float] = (0.05, 0.05, 0.1),
    yaw: float = 0.0,
) -> Estimate:
    position = np.array([x, y, TABLE + size[2] / 2.0])
    return Estimate("object", position, np.array(size), yaw, 1.0, 0.0, "oracle")


def grid(*things: Estimate) -> HeightGrid:
    """Return the heights of a table with upright boxes on it, 60 cm square."""
    heights = np.full((60, 60), TABLE)
    centres = -0.3 + 0.01 * (np.arange(60) + 0.5)
    x, y = centres[:, None], centres[None, :]
    for box in things:
        c, s = math.cos(box.yaw), math.sin(box.yaw)
        dx, dy = x - box.position[0], y - box.position[1]
        inside = np.abs(c * dx + s * dy) <= box.extent[0] / 2.0
        inside &= np.abs(c * dy - s * dx) <= box.extent[1] / 2.0
        heights[inside] = np.maximum(heights[inside], top_of(box))
    return HeightGrid(np.array([-0.3, -0.3]), 0.01, heights, 0.0)


def best(box: Estimate, *others: Estimate, **options: object) -> Grasp:
    around = Surroundings(grid(box, *others), box)
    grasp = choose(box, around, PANDA, **options)  # type: ignore[arg-type]
    assert grasp is not None
    return grasp


def test_a_lone_can_is_taken_without_turning_the_hand_below_its_top_and_over_the_ground() -> None:
    can = thing(0.1, -0.05, (0.06, 0.06, 0.1))
    grasp = best(can)

    assert grasp.yaw == 0.0
    assert not grasp.rim
    assert grasp.blocked == 0.0
    np.testing.assert_allclose(grasp.point[:2], [0.1, -0.05])
    assert TABLE + PANDA.finger_below < grasp.point[2] < top_of(can)


@pytest.mark.parametrize("yaw_deg", [-80, -40, 20, 65])
def test_a_long_box_is_taken_across_its_narrow_side(yaw_deg: float) -> None:
    box = thing(size=(0.04, 0.16, 0.05), yaw=math.radians(yaw_deg))
    grasp = best(box)

    assert grasp.width == pytest.approx(0.04, abs=0.006)
    assert width_of(box, grasp.travel) == pytest.approx(grasp.width)


def test_a_hand_turns_away_from_a_neighbour_that_its_fingers_would_meet() -> None:
    can = thing(size=(0.06, 0.06, 0.1))
    alone, beside = best(can), best(can, thing(0.0, 0.075, (0.06, 0.06, 0.1)))

    assert alone.blocked == beside.blocked == 0.0
    assert abs(beside.yaw) > math.radians(25), "the fingers travel past the neighbour"


def test_a_high_neighbour_is_minded_also_where_only_the_hand_would_meet_it() -> None:
    low, high = (thing(0.0, 0.10, (0.04, 0.04, height)) for height in (0.05, 0.2))
    can = thing(size=(0.05, 0.05, 0.05))

    assert best(can, low).yaw == 0.0
    assert best(can, high).yaw != 0.0
    assert best(can, high).blocked == 0.0


def test_what_hangs_over_a_thing_is_no_part_of_it() -> None:
    bowl = thing(size=(0.107, 0.107, 0.05))
    shelf = thing(0.06, 0.0, (0.05, 0.2, 0.2))
    grasp = best(bowl, shelf)
    hand = Surroundings(grid(bowl, shelf), bowl).under_hand(grasp, PANDA)

    assert grasp.blocked <= 0.002
    assert hand < grasp.point[2] + PANDA.hand_above + 0.002


@pytest.mark.parametrize(
    ("size", "inside", "depth"),
    [((0.107, 0.107, 0.05), 0.008, 0.025), ((0.15, 0.15, 0.02), 0.004, 0.008)],
)
def test_bowls_and_plates_are_taken_by_the_rim(
    size: tuple[float, float, float], inside: float, depth: float
) -> None:
    bowl = thing(0.05, 0.02, size)
    grasp = best(bowl)
    offset = (grasp.point - bowl.position)[:2]

    assert grasp.rim
    assert np.linalg.norm(offset) == pytest.approx(size[0] / 2.0 - inside)
    assert abs(offset @ grasp.travel[:2]) == pytest.approx(np.linalg.norm(offset))
    assert top_of(bowl) - grasp.point[2] == pytest.approx(depth)


def test_the_rim_of_a_tilted_bowl_is_taken_as_low_as_it_is_seen() -> None:
    bowl = thing(size=(0.107, 0.107, 0.09))
    scene = grid(bowl)
    scene.heights[:, 30:][scene.heights[:, 30:] > TABLE] = TABLE + 0.05  # the left half is low
    around = Surroundings(scene, bowl)
    high = Grasp(np.array([0.0, -0.045, top_of(bowl) - 0.025]), 0.0, 0.0, -1)
    low = Grasp(np.array([0.0, 0.045, top_of(bowl) - 0.025]), 0.0, 0.0, 1)

    assert around.on_rim(high) is high
    assert around.on_rim(low).point[2] == pytest.approx(TABLE + 0.05 - 0.025)


def test_a_manner_that_failed_is_not_the_first_choice_again() -> None:
    bowl = thing(size=(0.107, 0.107, 0.05))
    first = best(bowl)
    second = best(bowl, failed=[first.manner])

    assert second.manner != first.manner
    assert best(bowl, failed=[first.manner, second.manner]).manner not in (
        first.manner,
        second.manner,
    )


def test_what_is_too_wide_each_way_and_narrow_one_way_is_told_apart() -> None:
    assert all(g.rim for g in candidates(thing(size=(0.10, 0.12, 0.04)), PANDA))
    assert not any(g.rim for g in candidates(thing(size=(0.03, 0.20, 0.04)), PANDA))


def test_the_rim_that_the_arm_reaches_is_preferred() -> None:
    bowl = thing(0.0, 0.0, (0.2, 0.2, 0.05))
    shoulder = np.array([0.0, -0.60, TABLE + 0.3])
    reach = Reach(shoulder, shoulder + 0.5, shoulder, 0.68, 0.5, 0.0, 0.2)

    assert reach.beyond(np.array([0.0, 0.1, TABLE])) > reach.beyond(np.array([0.0, -0.1, TABLE]))
    assert best(bowl).side == 1
    assert best(bowl, reach=reach).point[1] < 0.0


def test_unseen_ground_and_a_missing_grid_count_as_free() -> None:
    can = thing(size=(0.05, 0.05, 0.1))
    scene = grid(can)
    scene.heights[:] = np.nan

    for around in (Surroundings(None, can), Surroundings(scene, can)):
        grasp = choose(can, around, PANDA)
        assert grasp is not None
        assert grasp.blocked == 0.0
        assert around.corridor(np.zeros(3), np.ones(3), 0.05) == -math.inf


def test_the_way_passes_over_what_stands_between() -> None:
    can, wall = thing(0.2, 0.0), thing(0.0, 0.0, (0.02, 0.4, 0.25))
    around = Surroundings(grid(can, wall), can)
    start: Array = np.array([-0.2, 0.0, 1.2])

    assert around.way_over(start, can.position, PANDA, 0.03) == pytest.approx(
        TABLE + 0.25 + PANDA.finger_below + 0.03
    )
    assert around.way_over(start, start + 0.1, PANDA, 0.03) < TABLE + 0.1


def test_what_is_held_is_no_obstacle_to_itself() -> None:
    plate, held = thing(0.2, 0.0, (0.15, 0.15, 0.02)), thing(-0.1, 0.0, (0.04, 0.04, 0.3))
    scene = grid(plate, held)
    place = np.array([0.2, 0.0, TABLE])

    seen = Surroundings(scene, plate).corridor(held.position, place, 0.03)
    known = Surroundings(scene, plate, held=(held.position, 0.03))

    assert seen == pytest.approx(TABLE + 0.3)
    assert known.corridor(held.position, place, 0.03) == pytest.approx(TABLE)


@pytest.mark.parametrize("hand", [PANDA, PIN_FINGERS])
def test_fingers_closed_on_a_grasp_enclose_the_thing(hand: object) -> None:
    for yaw_deg in range(-90, 90, 13):
        box = thing(0.03, 0.07, (0.045, 0.06, 0.08), math.radians(yaw_deg))
        for grasp in candidates(box, hand):  # type: ignore[arg-type]
            offset = grasp.point - box.position
            assert grasp.width <= 0.071
            assert abs(offset @ travel_of(grasp.yaw)) < 1e-9, "centred between the fingers"
            assert -math.pi / 2 <= half_turn(grasp.yaw) <= math.pi / 2


def test_the_arm_over_its_own_way_is_no_obstacle() -> None:
    box = thing(0.35, 0.0)
    heights = np.zeros((80, 80))
    heights[20:40, 38:42] = 0.5  # the forearm, seen from above
    heights[60, 40] = 0.3
    grid = HeightGrid(np.array([-0.4, -0.4]), 0.01, heights, 0.0)
    shoulder, elbow, wrist = np.array([[-0.4, 0.0, 0.3], [-0.2, 0.0, 0.5], [0.0, 0.0, 0.45]])
    reach = Reach(shoulder, wrist, elbow, 0.68, 0.5, 0.0, 0.2)
    start, end = np.array([-0.15, 0.0, 0.1]), np.array([0.3, 0.0, 0.1])

    assert Surroundings(grid, box).corridor(start, end, 0.02) == 0.5
    assert Surroundings(grid, box, reach=reach).corridor(start, end, 0.02) == 0.3
