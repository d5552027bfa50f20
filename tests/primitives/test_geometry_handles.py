"""Handles by depth: bars before upright fronts, drawn here by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from zetta.primitives.localize.geometry import GeometryFinder
from zetta.primitives.localize.geometry_handles import names_a_handle
from zetta.runtime.core import ArmState, Array, Camera, Observation, Proprio, read_only

SIZE, FOCAL = 240, 170.0
FRONT = 1.0
"""How far before the robot the fronts stand, metres."""
Box = tuple[float, float, float, float, float]
"""Distance ahead, least and greatest place to the left, least and greatest height, metres."""


def seen(*boxes: Box, base: tuple[float, float, float] = (0.0, 0.0, 0.0)) -> Observation:
    """Return what a camera over the middle of a robot at `base` sees of a front and of boxes."""
    grid = np.arange(SIZE) + 0.5 - SIZE / 2
    right, down = np.meshgrid(grid / FOCAL, grid / FOCAL)
    depth = np.full((SIZE, SIZE), FRONT, np.float32)
    for ahead, low, high, bottom, top in sorted(boxes, reverse=True):
        left, height = -right * ahead, EYE - down * ahead
        inside = (left > low) & (left < high) & (height > bottom) & (height < top)
        depth[inside] = ahead
    x, y, yaw = base
    turn = Rotation.from_euler("z", yaw).as_matrix()
    pose = np.eye(4)
    pose[:3, :3] = turn @ np.array([[0, 0, 1], [-1, 0, 0], [0, -1, 0]])
    pose[:3, 3] = [x, y, EYE]
    intrinsics = np.array([[FOCAL, 0, SIZE / 2], [0, FOCAL, SIZE / 2], [0, 0, 1.0]])
    arm = ArmState(
        read_only([x, y, 3.0]), read_only([1.0, 0.0, 0.0, 0.0]), read_only(np.zeros(7)), 0.08
    )
    return Observation(
        Proprio(0.0, (arm,), read_only([x, y, yaw])),
        "open the drawer",
        {"eye": np.full((SIZE, SIZE, 3), 200, np.uint8)},
        {"eye": depth},
        {"eye": Camera("eye", read_only(intrinsics), read_only(pose))},
    )


EYE = 0.6


def level(left: float, height: float, ahead: float = FRONT - 0.05) -> Box:
    return ahead, left - 0.06, left + 0.06, height - 0.012, height + 0.012


def upright(left: float, height: float) -> Box:
    return FRONT - 0.05, left - 0.012, left + 0.012, height - 0.1, height + 0.1


def found(observation: Observation, name: str) -> Array | None:
    sightings = GeometryFinder().find(observation, [name])
    assert len(sightings) <= 1
    return sightings[0].position if sightings else None


@pytest.mark.parametrize(
    ("word", "left", "height"),
    [
        ("left drawer", 0.3, 0.7),
        ("right drawer", -0.3, 0.8),
        ("top drawer", 0.3, 0.7),
        ("bottom drawer", 0.3, 0.3),
        ("middle drawer", 0.3, 0.5),
    ],
)
@pytest.mark.parametrize("base", [(0.0, 0.0, 0.0), (3.0, -1.0, math.pi / 2)])
def test_words_tell_drawers_apart_wherever_the_robot_stands(
    word: str, left: float, height: float, base: tuple[float, float, float]
) -> None:
    bars = [level(0.3, h) for h in (0.3, 0.5, 0.7)] + [level(-0.33, h) for h in (0.6, 0.8)]
    place = found(seen(*bars, base=base), f"handle of {word}")
    assert place is not None
    x, y, yaw = base
    own = Rotation.from_euler("z", -yaw).apply(place - [x, y, 0.0])
    expected = [FRONT - 0.05, 0.3 if left > 0 else -0.33, height]
    np.testing.assert_allclose(own, expected, atol=0.02)


def test_a_drawer_has_a_level_handle_and_a_door_an_upright_one() -> None:
    both = seen(level(0.2, 0.5), upright(-0.2, 0.6))
    drawer, door = (found(both, f"handle of {kind}") for kind in ("drawer", "cabinet"))
    assert drawer is not None
    assert door is not None
    np.testing.assert_allclose(drawer[1], 0.2, atol=0.02)
    np.testing.assert_allclose(door[1], -0.2, atol=0.02)


def test_the_first_axis_of_a_handle_points_out_of_its_front() -> None:
    (sighting,) = GeometryFinder().find(seen(level(0.2, 0.5)), ["handle of drawer"])
    assert math.cos(sighting.yaw) < -0.99
    assert sighting.extent[1] > 3 * sighting.extent[2]


def test_what_is_no_bar_is_no_handle() -> None:
    plate = (FRONT - 0.05, -0.1, 0.1, 0.4, 0.6)
    ledge = (FRONT - 0.05, -0.65, 0.65, 0.70, 0.74)
    assert found(seen(plate, ledge), "handle of drawer") is None


def test_of_an_open_drawer_the_front_tells_where_its_handle_is() -> None:
    drawer = (FRONT - 0.28, 0.18, 0.46, 0.30, 0.50)
    place = found(seen(drawer), "handle of left drawer")
    assert place is not None
    np.testing.assert_allclose(place, [FRONT - 0.28 - 0.045, 0.32, 0.41], atol=0.03)
    assert found(seen(drawer), "handle of right drawer") is None


def test_other_names_are_left_to_the_rest_of_the_finder() -> None:
    assert names_a_handle("handle of left cabinet door")
    assert not names_a_handle("handle of the world")
    assert not names_a_handle("red cube")
