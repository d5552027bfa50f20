from __future__ import annotations

import numpy as np
import pytest
from toy_episodes import SIM, by, reach, world

from zetta.runtime.core import Array, Camera, Init, Observation, Scene
from zetta.sims.toy_render import COLOURS


def projected(camera: Camera, point: Array) -> tuple[float, float, float]:
    """Return column, row and depth of a world point."""
    T = camera.T_world_cam
    local = T[:3, :3].T @ (point - T[:3, 3])
    u, v, w = camera.intrinsics @ local
    return float(u / w), float(v / w), float(local[2])


def coloured(seen: Observation, camera: str, colour: str) -> Array:
    """Return row and column of every pixel whose chroma is that of `colour`. Shape (n, 2)."""
    picture = seen.images[camera].astype(float)
    chroma = picture / np.maximum(picture.max(axis=-1, keepdims=True), 1.0)
    wanted = np.array(COLOURS[colour]) / max(COLOURS[colour])
    return np.argwhere((np.abs(chroma - wanted).max(axis=-1) < 0.05) & (picture.max(axis=-1) > 60))


@pytest.mark.parametrize("k", range(5))
def test_calibration_projects_every_thing_onto_its_own_pixels(k: int) -> None:
    env = world("toy_distractors", 0, Init(k))
    seen = env.observe(["front"], depth=True)
    for thing in env.toy.things:
        centre = env.truth().objects[thing.name][:3]
        u, v, depth = projected(seen.cameras["front"], centre)
        spots = coloured(seen, "front", thing.colour) + 0.5
        assert len(spots) >= 9
        assert np.abs(spots - [v, u]).max(axis=1).min() <= 0.5
        middle = (spots.min(axis=0) + spots.max(axis=0)) / 2.0
        assert np.abs(middle - [v, u]).max() < 1.5
        measured = float(seen.depth["front"][int(v), int(u)])
        assert depth - 2.0 * max(thing.radius, thing.half_height) < measured < depth


def test_wrist_camera_moves_with_the_arm_and_sees_what_is_below() -> None:
    env = world()
    place = env.truth().objects["red_cube"][:3]
    reach(env, place + by(0.0, 0.0, 0.09))
    seen = env.observe(["wrist"], depth=True)
    u, v, _ = projected(seen.cameras["wrist"], place)
    spots = coloured(seen, "wrist", "red") + 0.5
    assert len(spots) > 30
    assert np.abs(spots - [v, u]).max(axis=1).min() <= 0.5
    assert np.abs(spots.mean(axis=0) - [v, u]).max() < 3.0


def test_points_of_the_depth_picture_lie_on_the_table_or_above() -> None:
    env = world()
    seen = env.observe(["front"], depth=True)
    depth, camera = seen.depth["front"], seen.cameras["front"]
    rows, columns = np.indices(depth.shape)
    k = camera.intrinsics
    x = (columns + 0.5 - k[0, 2]) / k[0, 0] * depth
    y = (rows + 0.5 - k[1, 2]) / k[1, 1] * depth
    local = np.stack([x, y, depth], axis=-1)
    heights = (local @ camera.T_world_cam[:3, :3].T + camera.T_world_cam[:3, 3])[..., 2]
    assert np.abs(heights - 0.4).min() < 1e-6
    assert (np.abs(heights - 0.4) < 1e-5).mean() > 0.4
    assert heights.min() > -1e-5


def test_pictures_are_upright_and_not_mirrored() -> None:
    env = world("toy_stack")
    objects = env.truth().objects
    seen = env.observe(["front"])
    # The camera faces the robot: the robot's left (+y) is on the right, far (+x) is at the bottom.
    red, blue = (coloured(seen, "front", c).mean(axis=0) for c in ("red", "blue"))
    assert objects["blue_cube"][0] > objects["red_cube"][0]
    assert blue[0] > red[0]
    assert objects["blue_cube"][1] > objects["red_cube"][1]
    assert blue[1] > red[1]


def test_a_near_thing_hides_a_far_one() -> None:
    env = world("toy_stack")
    pose = env.pose().copy()
    pose[10:13] = pose[14:17] + by(0.05, 0.0, 0.05)  # red between blue and the camera
    before = len(coloured(env.observe(["front"]), "front", "blue"))
    env.show(pose)
    after = len(coloured(env.observe(["front"]), "front", "blue"))
    assert after < before


def test_the_full_setting_draws_the_same_view_larger() -> None:
    small, large = (SIM.make("toy_pick", 0, render) for render in ("fast", "full"))
    looks = []
    for env in (small, large):
        env.reset(Scene(env.toy.task, Init(0)))
        looks.append(env.observe(["front"], depth=True))
    assert small.spec.render_profile != large.spec.render_profile
    assert looks[1].images["front"].shape == (96, 128, 3)
    coarse = looks[1].depth["front"].reshape(48, 2, 64, 2).mean(axis=(1, 3))
    assert np.median(np.abs(coarse - looks[0].depth["front"])) < 1e-3


def test_show_draws_until_the_next_step() -> None:
    env = world()
    start, first = env.pose(), env.observe(["front"])
    reach(env, np.array([0.1, 0.1, 0.5]), ticks=10)
    now = env.observe(["front"])
    env.show(start)
    shown = env.observe(["front"])
    np.testing.assert_array_equal(shown.images["front"], first.images["front"])
    assert shown.proprio.t == first.proprio.t
    env.step(np.zeros(7))
    assert env.observe(["front"]).proprio.t > now.proprio.t
