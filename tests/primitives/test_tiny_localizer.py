"""What the tiny localiser does around its networks: geometry, clusters, names, refusals."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tiny_localizer_shards import intrinsics, looking_down, write_shard

from zetta.primitives.localize.tiny import geometry, outline, vocabulary
from zetta.primitives.localize.tiny.data import read_shard
from zetta.primitives.localize.tiny.instances import Instance, Votes, instances
from zetta.primitives.localize.tiny.manifest import Calibration, read_manifest
from zetta.primitives.localize.tiny.parts import Placed, Thing, part_sightings
from zetta.primitives.localize.tiny.serve import WEIGHTS_FOLDER, load, named
from zetta.runtime.core import Camera, Observation, Proprio, read_only
from zetta.runtime.errors import ConfigError, SpecMismatch


def camera() -> Camera:
    return Camera("agentview", read_only(intrinsics()), read_only(looking_down()))


def observation(size: int = geometry.PICTURE) -> Observation:
    rng = np.random.default_rng(0)
    return Observation(
        Proprio(0.0, ()),
        "",
        {"agentview": rng.integers(0, 255, (size, size, 3)).astype(np.uint8)},
        {"agentview": np.full((size, size), 1.0, np.float32)},
        {"agentview": camera()},
    )


# --------------------------------------------------------------------------- geometry


def test_unprojected_points_project_back_to_the_middle_of_their_pixels() -> None:
    depth = np.random.default_rng(0).uniform(0.5, 1.5, (20, 256)).astype(np.float32)
    points = geometry.unproject(depth, camera(), first_row=50)
    pose = looking_down()
    seen = (points.astype(np.float64) - pose[:3, 3]) @ pose[:3, :3]
    pixels = seen @ intrinsics().T
    assert np.allclose(seen[..., 2], depth, atol=1e-5)
    expected = np.stack(np.meshgrid(np.arange(256) + 0.5, np.arange(50, 70) + 0.5), -1)
    assert np.allclose(pixels[..., :2] / pixels[..., 2:], expected, atol=1e-2)


def test_planes_hold_color_and_height_above_the_ground() -> None:
    seen = geometry.view(*_picture(), camera())
    planes = geometry.planes(seen)
    assert planes.shape == (6, 192, 256)
    assert planes.dtype == np.float32
    assert seen.ground == pytest.approx(0.0, abs=1e-5)
    assert np.abs(planes[5]).max() < 1e-4  # everything lies on the ground
    assert planes[:3].min() >= -geometry.GRAY
    assert planes[:3].max() <= 1 - geometry.GRAY


def test_a_crop_shows_the_same_metres_from_near_and_from_far() -> None:
    picture = np.zeros((192, 256, 3), np.uint8)
    mask = np.zeros((96, 128), bool)
    for depth, half in ((1.0, 20), (0.5, 40)):
        center = np.array([0.0, 0.0, 1.0 - depth])
        row, column = 128 - geometry.TOP, 128
        picture[:] = 0
        picture[row - half : row + half, column - half : column + half] = 255
        mask[:] = picture[1::2, 1::2, 0] > 0
        image = geometry.crop(picture, mask, center, camera())
        assert image.shape == (32, 32, 4)
        # 2 * half pixels at this depth are 0.129 m of the window of 0.17 m.
        side = 2 * half / 309.0 * depth / geometry.WINDOW * 32
        assert (image[..., 0] > 127).sum() == pytest.approx(side**2, rel=0.1)
        assert (image[..., 3] > 0).sum() == pytest.approx(side**2, rel=0.15)


def test_a_crop_beyond_the_picture_is_black() -> None:
    picture = np.full((192, 256, 3), 255, np.uint8)
    image = geometry.crop(picture, np.ones((96, 128), bool), np.array([9.0, 9.0, 0.0]), camera())
    assert image.max() == 0


def _picture() -> tuple[np.ndarray, np.ndarray]:
    seen = observation()
    return seen.images["agentview"], seen.depth["agentview"]


# --------------------------------------------------------------------------- instances


def votes_of(things: list[tuple[tuple[float, ...], tuple[float, ...], int]]) -> Votes:
    """Return noisy votes for things given as centre, extent and number of pixels."""
    rng = np.random.default_rng(1)
    centers = np.concatenate([np.array(c) + rng.normal(0, 0.002, (n, 3)) for c, _, n in things])
    extents = np.concatenate([np.array(e) + rng.normal(0, 0.002, (n, 3)) for _, e, n in things])
    count = len(centers)
    return Votes(
        pixels=np.arange(count),
        points=centers.astype(np.float32),
        centers=centers.astype(np.float32),
        extents=extents.astype(np.float32),
        turns=np.tile(np.array([0.0, 1.0], np.float32), (count, 1)),
        parts=np.repeat(centers[:, None], vocabulary.MOST_PARTS, 1).astype(np.float32),
        weights=np.ones(count, np.float32),
    )


def test_every_thing_is_one_instance_at_its_middle() -> None:
    things = [
        ((0.0, 0.0, 0.02), (0.04, 0.08, 0.02), 40),
        ((0.2, 0.1, 0.05), (0.06, 0.06, 0.1), 200),
        ((0.2, -0.1, 0.05), (0.06, 0.06, 0.1), 90),
    ]
    found = instances(votes_of(things))
    assert [len(one.members) for one in found] == [200, 90, 40]
    for one, (center, extent, _) in zip(found, [things[1], things[2], things[0]], strict=True):
        assert np.allclose(one.center, center, atol=1e-3)
        assert np.allclose(one.extent, extent, atol=1e-3)
        assert one.yaw == pytest.approx(np.pi / 4)


def test_a_plate_on_a_stove_is_not_taken_for_the_stove() -> None:
    stove = ((0.0, 0.0, 0.92), (0.30, 0.19, 0.07), 900)
    plate = ((0.05, 0.0, 0.94), (0.137, 0.138, 0.019), 300)
    found = instances(votes_of([stove, plate]))
    assert [len(one.members) for one in found] == [900, 300]


def test_few_stray_votes_are_no_thing() -> None:
    assert instances(votes_of([((0.0, 0.0, 0.0), (0.05, 0.05, 0.05), 3)])) == []


@pytest.mark.parametrize("turn", [0.0, 0.4, 1.3, -1.1])
def test_the_yaw_of_a_box_comes_from_its_outline_and_not_from_votes(turn: float) -> None:
    x, y = np.meshgrid(np.linspace(-0.02, 0.02, 9), np.linspace(-0.04, 0.04, 17))
    own = np.column_stack([x.ravel(), y.ravel()])
    rotation = np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
    points = np.column_stack([own @ rotation.T, np.zeros(len(own))]).astype(np.float32)
    found = outline.yaw(points, np.array([0.04, 0.08, 0.02]), voted=turn + 1.0)
    assert abs(np.cos(found - turn)) > 0.999


def test_too_few_points_leave_the_yaw_to_the_votes() -> None:
    assert outline.yaw(np.zeros((3, 3), np.float32), np.array([0.04, 0.08, 0.02]), 0.7) == 0.7


# --------------------------------------------------------------------------- names and parts


def test_every_part_belongs_to_one_thing_and_has_a_size() -> None:
    parts = [part for parts in vocabulary.PARTS.values() for part in parts]
    assert len(parts) == len(set(parts))
    assert set(parts) == set(vocabulary.EXTENTS)
    assert set(vocabulary.PARTS) <= set(vocabulary.THINGS)
    assert max(map(len, vocabulary.PARTS.values())) == vocabulary.MOST_PARTS


def test_every_alias_leads_to_a_known_name() -> None:
    for alias, name in vocabulary.ALIASES.items():
        assert vocabulary.known(alias) == name
        assert vocabulary.known(name) == name


def test_the_crop_decides_between_look_alikes_and_the_pixels_break_ties() -> None:
    even = np.log(np.array([[0.5, 0.5]], np.float32))
    first, second = (np.log(np.array([row], np.float32)) for row in ([0.9, 0.1], [0.1, 0.9]))
    calibration = Calibration()
    assert named(even, second, calibration).argmax() == 1
    assert named(first, second, calibration).argmax() == 1
    assert named(first, even, calibration).argmax() == 0
    assert named(first, second, calibration).sum() == pytest.approx(1.0)


def thing(name: str, yaw: float, points: np.ndarray, parts: dict[str, np.ndarray]) -> Thing:
    """Return a fixture of which all pixels agree."""
    voted = np.zeros((3, vocabulary.MOST_PARTS, 3), np.float32)
    for part, position in parts.items():
        voted[:, vocabulary.PARTS[name].index(part)] = position
    one = Instance(
        members=np.arange(3),
        center=np.zeros(3),
        extent=np.array([0.255, 0.19, 0.22]),
        yaw=yaw,
        clear_yaw=1.0,
        weight=1.0,
    )
    cloud = points.astype(np.float32)
    return Thing(name, 0.9, one, cloud, cloud, voted)


TURN, TOP = 0.3, 1.127
OUT = np.array([np.sin(TURN), -np.cos(TURN), 0.0])


def cabinet_cloud(opened: float, hidden: float = -1.0) -> np.ndarray:
    """Return points of a turned cabinet's top and of the bar of its top drawer.

    Args:
        opened: how far the drawer is out, metres.
        hidden: along its first axis nothing below this is seen, metres.
    """
    first = np.array([np.cos(TURN), np.sin(TURN), 0.0])
    x, y = np.meshgrid(np.arange(-0.1275, 0.128, 0.005), np.arange(-0.0955, 0.096, 0.005))
    face = x.reshape(-1, 1) * first + y.reshape(-1, 1) * OUT + [0, 0, TOP]
    bar = np.linspace(-0.04, 0.04, 15)[:, None] * first
    bar = bar + (0.005 + opened + 0.1125 + 0.0075) * OUT + [0, 0, TOP - 0.038]
    return np.concatenate([face[(x > hidden).ravel()], bar])


def seen_cabinet(cloud: np.ndarray, yaw: float) -> dict[str, Placed]:
    """Return the parts of a cabinet whose votes are a little wrong."""
    parts = {"top of cabinet": np.array([0.012, -0.009, TOP])}
    for level, floor in (("top", 1.061), ("middle", 0.992), ("bottom", 0.922)):
        parts[f"inside of {level} drawer"] = 0.03 * OUT + [0.012, -0.009, floor]
        parts[f"handle of {level} drawer"] = 0.10 * OUT + [0.012, -0.009, floor + 0.025]
    return part_sightings(thing("cabinet", yaw, cloud, parts))


@pytest.mark.parametrize("yaw", [TURN - 0.35, TURN + 0.35, TURN + 0.35 - np.pi])
@pytest.mark.parametrize("opened", [0.0, 0.13])
def test_a_cabinet_and_its_open_drawer_are_measured_from_their_points(
    yaw: float, opened: float
) -> None:
    found = seen_cabinet(cabinet_cloud(opened), yaw)
    assert np.allclose(found["top of cabinet"].position, [0, 0, TOP], atol=3e-3)
    inside = (0.005 + opened) * OUT + [0, 0, 1.061]
    assert np.allclose(found["inside of top drawer"].position, inside, atol=4e-3)
    handle = found["handle of top drawer"]
    assert (handle.position - inside) @ OUT == pytest.approx(0.1125, abs=2e-3)
    assert np.cos(handle.yaw) * OUT[0] + np.sin(handle.yaw) * OUT[1] > 0.999
    # The bar of the bottom drawer is not seen, and its votes tell of no open drawer.
    assert found["inside of bottom drawer"].position @ OUT == pytest.approx(0.005, abs=4e-3)


def test_a_cabinet_half_beyond_the_picture_is_measured_from_the_side_that_is_seen() -> None:
    found = seen_cabinet(cabinet_cloud(0.0, hidden=-0.05), TURN)
    assert np.allclose(found["top of cabinet"].position, [0, 0, TOP], atol=6e-3)


def test_the_yaw_of_a_knob_is_across_its_ridge() -> None:
    rng = np.random.default_rng(0)
    turn = 0.7
    along = np.array([np.cos(turn), np.sin(turn), 0.0])
    ridge = rng.uniform(-0.045, 0.045, (200, 1)) * along + [0.0, 0.0, 0.02]
    ridge[:, :2] += rng.normal(0, 0.004, (200, 2))
    found = part_sightings(thing("stove", 0.0, ridge, {}))
    assert abs(np.cos(found["knob of stove"].yaw - turn)) < 0.05


# --------------------------------------------------------------------------- files


def test_a_shard_is_read_as_it_was_written(tmp_path: Path) -> None:
    shard = read_shard(write_shard(tmp_path / "made_up-0"))
    assert len(shard) == 4
    assert vocabulary.THINGS[shard.things[0, 0]] == "milk"
    picture, depth = shard.whole(1)
    assert picture.shape == (256, 256, 3)
    assert np.array_equal(picture[geometry.TOP : geometry.BOTTOM], shard.pictures[1])
    assert depth[geometry.TOP] == pytest.approx(1.0)


def test_a_shard_of_another_layout_is_refused(tmp_path: Path) -> None:
    folder = write_shard(tmp_path / "made_up-0")
    head = json.loads((folder / "shard.json").read_text())
    (folder / "shard.json").write_text(json.dumps({**head, "rows": [0, 192]}))
    with pytest.raises(ConfigError, match="draw it again"):
        read_shard(folder)


# --------------------------------------------------------------------------- the shipped weights


def test_the_shipped_weights_are_those_of_the_manifest() -> None:
    manifest = read_manifest(WEIGHTS_FOLDER)
    assert manifest.render_profile == "fast"
    assert manifest.things == vocabulary.THINGS
    assert load().manifest == manifest


def test_weights_that_were_changed_are_refused(tmp_path: Path) -> None:
    for file in WEIGHTS_FOLDER.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    changed = tmp_path / "heads.onnx"
    changed.write_bytes(changed.read_bytes() + b"0")
    with pytest.raises(ConfigError, match=r"heads\.onnx is damaged"):
        load(tmp_path)


def test_pictures_of_another_profile_are_refused() -> None:
    with pytest.raises(SpecMismatch, match="'full'"):
        load(render_profile="full")


def test_pictures_of_another_size_are_refused() -> None:
    with pytest.raises(SpecMismatch, match="256x256 pixels and was given 128x128"):
        load().find(observation(128), ("milk",))


def test_a_picture_without_depth_is_refused() -> None:
    seen = replace(observation(), depth={})
    with pytest.raises(SpecMismatch, match="depth=True"):
        load().find(seen, ("milk",))


def test_unknown_names_are_absent_and_cost_no_look() -> None:
    assert load().find(replace(observation(), depth={}), ("spaceship",)) == ()


def test_nothing_is_found_in_noise() -> None:
    asked = (*vocabulary.THINGS, *vocabulary.EXTENTS)
    assert load().find(observation(), asked) == ()


def test_a_look_is_deterministic() -> None:
    finder, seen = load(), observation()
    first, second = finder.look(seen), finder.look(seen)
    assert [t.name for t in first] == [t.name for t in second]
