"""Lines and points of the world land where the calibration says, and nowhere else."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from overlay_scenes import SIZE, camera

from zetta.primitives.localize.clouds import world_points
from zetta.primitives.projection import NEAR, enlarged, place_of, project, segment
from zetta.runtime.core import Camera, Init, Scene
from zetta.sims.toy import ToySimulator

AHEAD = Camera("c", np.array([[100.0, 0, 50], [0, 100.0, 50], [0, 0, 1]]), np.eye(4))
"""Stands at the origin and looks along world z."""
coordinate = st.floats(-2.0, 2.0, allow_nan=False)
point = st.tuples(coordinate, coordinate, coordinate).map(np.array)


def test_projection_undoes_what_depth_pictures_are_turned_into_points_with() -> None:
    simulator = ToySimulator()
    env = simulator.make("toy_distractors", 0)
    env.reset(Scene(simulator.task("toy_distractors", 0), Init(0)))
    seen = env.observe(("front", "wrist"), depth=True)
    for name, depth in seen.depth.items():
        points = world_points(depth, seen.cameras[name]).reshape(-1, 3)
        places, depths = project(points, seen.cameras[name])
        rows, columns = np.indices(depth.shape)

        assert np.abs(places[:, 0] - columns.ravel() - 0.5).max() < 1e-6
        assert np.abs(places[:, 1] - rows.ravel() - 0.5).max() < 1e-6
        assert depths == pytest.approx(depth.ravel(), abs=1e-6)


@pytest.mark.parametrize("k", range(4))
def test_things_of_the_toy_are_projected_into_the_middle_of_their_pixels(k: int) -> None:
    simulator = ToySimulator()
    env = simulator.make("toy_distractors", 0, "full")
    env.reset(Scene(simulator.task("toy_distractors", 0), Init(k)))
    seen = env.observe(("front",), depth=True)
    points = world_points(seen.depth["front"], seen.cameras["front"])
    for thing in env.landmarks():  # type: ignore[attr-defined]
        if not thing.name.endswith("plate"):
            continue  # only what is flat and round is seen whole, with its middle in the middle
        near = np.linalg.norm(points[..., :2] - thing.position[:2], axis=-1) < 0.06
        own = near & (np.abs(points[..., 2] - thing.position[2] - thing.extent[2] / 2) < 0.002)
        rows, columns = np.nonzero(own)
        top = thing.position + np.array([0.0, 0.0, thing.extent[2] / 2.0])
        ((column, row),), _ = project(top, seen.cameras["front"])
        # A circle seen at a slant has its middle a little before that of its outline.
        assert column == pytest.approx((columns.min() + columns.max() + 1) / 2.0, abs=1.0)
        assert row == pytest.approx((rows.min() + rows.max() + 1) / 2.0, abs=1.0)


def test_the_calibration_grows_with_the_picture() -> None:
    points = np.array([[0.1, -0.2, 0.4], [0.0, 0.05, 0.5]])
    before, _ = project(points, camera())
    after, _ = project(points, enlarged(camera(), 3))
    assert after == pytest.approx(3.0 * before)


@given(point, point)
def test_a_segment_stays_inside_the_picture_and_on_its_line(a: np.ndarray, b: np.ndarray) -> None:
    found = segment(a, b, camera(), SIZE)
    if found is None:
        return
    for column, row in (found.start, found.end):
        assert -1e-6 <= column <= SIZE[0] + 1e-6
        assert -1e-6 <= row <= SIZE[1] + 1e-6
    places, depths = found.at(np.linspace(0.0, 1.0, 5))
    assert (depths > NEAR - 1e-9).all()
    k, pose = camera().intrinsics, camera().T_world_cam
    flat = np.column_stack([places, np.ones(5)]) @ np.linalg.inv(k).T
    world = (flat * depths[:, None]) @ pose[:3, :3].T + pose[:3, 3]
    along = (b - a) / max(np.linalg.norm(b - a), 1e-9)
    off = world - a - np.outer((world - a) @ along, along)
    assert np.abs(off).max() < 1e-5


@given(point, point)
def test_what_is_seen_of_a_line_is_all_found(a: np.ndarray, b: np.ndarray) -> None:
    shares = np.linspace(0.0, 1.0, 200)[:, None]
    points = a + shares * (b - a)
    inside = [place_of(p, camera(), SIZE) is not None for p in points]
    assert segment(a, b, camera(), SIZE) is not None or sum(inside) <= 1


def test_a_line_from_behind_the_camera_is_cut_and_not_mirrored() -> None:
    # Through the picture from the left to far behind on the right.
    found = segment(np.array([-0.1, 0.0, 1.0]), np.array([3.0, 0.0, -5.0]), AHEAD, (100, 100))
    assert found is not None
    assert found.start == pytest.approx((40.0, 50.0))
    assert found.end == pytest.approx((100.0, 50.0))


def test_a_line_behind_the_camera_is_not_drawn() -> None:
    assert segment(np.array([0.0, 0, -1]), np.array([1.0, 0, -2]), AHEAD, (100, 100)) is None
    assert place_of(np.array([0.0, 0.0, -1.0]), AHEAD, (100, 100)) is None


def test_a_line_beside_the_picture_is_not_drawn() -> None:
    assert segment(np.array([5.0, -1, 1]), np.array([5.0, 1, 1]), AHEAD, (100, 100)) is None
