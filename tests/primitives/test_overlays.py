"""What is drawn for an agent: each overlay alone, against pictures that somebody looked at."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from overlay_scenes import (
    GOLDEN,
    NAMES,
    SIZE,
    TABLE,
    around,
    camera,
    drawn,
    found,
    looking,
    picture,
)
from PIL import Image as Pillow

from zetta.primitives.overlays import (
    NO_OVERLAYS,
    OVERLAY_NAMES,
    Overlays,
    draw_overlays,
    parse_overlays,
)
from zetta.primitives.overlays_grid import crossings, grid_lines
from zetta.primitives.projection import project
from zetta.runtime.core import Camera
from zetta.runtime.errors import ConfigError

MEAN_DIFFERENCE = 0.6
"""Fonts are drawn a little otherwise from one library version to the next; of 255."""


def changed(image: np.ndarray, factor: int = 1) -> np.ndarray:
    """Return by how much each pixel differs from the plain picture. Shape (height, width)."""
    plain = picture().repeat(factor, axis=0).repeat(factor, axis=1)
    return np.abs(image.astype(int) - plain).max(axis=-1)


@pytest.mark.parametrize("name", NAMES)
def test_an_overlay_looks_as_it_did_when_somebody_last_looked(name: str) -> None:
    image = drawn(name).image
    path = GOLDEN / f"overlay_{name}.png"
    golden = np.asarray(Pillow.open(path).convert("RGB"))

    assert path.stat().st_size < 20_000
    assert image.shape == golden.shape
    difference = np.abs(image.astype(int) - golden).mean()
    assert difference < MEAN_DIFFERENCE, "see tests/primitives/overlay_scenes.py"
    assert (changed(golden) > 40).mean() > 0.0005, "this golden picture shows nothing"


@pytest.mark.parametrize("name", OVERLAY_NAMES)
def test_each_overlay_can_be_left_out(name: str) -> None:
    without = replace(Overlays(), **{name: False})
    image = draw_overlays(picture(), camera(), around(), without, longest_side=max(SIZE)).image
    assert not np.array_equal(image, drawn("all").image)


def test_without_overlays_the_picture_is_only_enlarged() -> None:
    image = draw_overlays(picture(), camera(), around(), NO_OVERLAYS).image
    assert image.shape == (2 * SIZE[1], 2 * SIZE[0], 3)
    assert changed(image, 2).max() <= 1


def test_large_pictures_are_not_enlarged() -> None:
    large = np.zeros((480, 640, 3), dtype=np.uint8)
    assert draw_overlays(large, camera(), around()).image.shape == (480, 640, 3)


def test_the_picture_that_was_given_is_left_alone() -> None:
    image = picture()
    draw_overlays(image, camera(), around())
    assert np.array_equal(image, picture())


@pytest.mark.parametrize("longest", [256, 512, 1024])
def test_grid_lines_cross_where_the_calibration_says(longest: int) -> None:
    image = draw_overlays(
        picture(), camera(), around(), parse_overlays("grid"), longest_side=longest
    ).image
    factor = longest // max(SIZE)
    marked = changed(image, factor) > 25
    points = crossings(TABLE).reshape(-1, 3)
    places, _ = project(points, camera())
    checked = 0
    for column, row in places * factor:
        c, r = int(column), int(row)
        if not (2 <= c < marked.shape[1] - 2 and 2 <= r < marked.shape[0] - 2):
            continue
        assert marked[r - 1 : r + 2, c - 1 : c + 2].any()
        checked += 1
    assert checked > 20


def test_lines_are_where_multiples_of_the_spacing_are() -> None:
    values = {(line.axis, round(line.value, 3)) for line in grid_lines(TABLE, 0.1)}
    assert values == {(axis, round(0.1 * i, 3)) for axis in (0, 1) for i in range(-2, 3)}
    halves = {round(line.value, 3) for line in grid_lines(TABLE, 0.1, 0.05)}
    assert halves == {-0.25, -0.15, -0.05, 0.05, 0.15, 0.25}


def test_the_grid_goes_behind_what_stands_before_the_table() -> None:
    depth = np.full((SIZE[1], SIZE[0]), 5.0, dtype=np.float32)
    depth[:, : SIZE[0] // 2] = 0.3
    image = draw_overlays(
        picture(), camera(), around(), parse_overlays("fine_grid"), depth, max(SIZE)
    ).image
    lines = changed(image) > 5
    assert not lines[:, : SIZE[0] // 2 - 3].any()
    assert lines[:, SIZE[0] // 2 :].any()


def test_holes_in_the_depth_hide_nothing() -> None:
    depth = np.zeros((SIZE[1], SIZE[0]), dtype=np.float32)
    depth[::2] = np.nan
    image = draw_overlays(picture(), camera(), around(), None, depth, max(SIZE)).image
    assert np.array_equal(image, drawn("all").image)


def test_a_camera_that_looks_away_gets_nothing_drawn_in() -> None:
    away = Camera("away", camera().intrinsics, looking((0.75, 0.1, 1.0), (2.0, 0.1, 1.2)))
    result = draw_overlays(picture(), away, around(), None, longest_side=max(SIZE))
    assert changed(result.image).max() <= 1
    assert (result.marks, result.rulers, result.hand) == ((), 0, False)


def test_a_camera_amid_the_table_draws_nothing_that_is_behind_it() -> None:
    # Half of the grid is behind the camera; unclipped it would turn up in the sky.
    low = Camera("low", camera().intrinsics, looking((0.0, 0.0, 0.5), (-0.3, 0.0, 0.45)))
    image = draw_overlays(
        picture(), low, around(), parse_overlays("grid,fine_grid"), longest_side=max(SIZE)
    ).image
    lines = changed(image) > 20
    assert lines[SIZE[1] // 2 :].any()
    # The far edge of the table is 10 cm below the eye and 25 cm away; numbers stand beyond it.
    ((_, far),), _ = project(np.array([TABLE.low[0], 0.0, TABLE.height]), low)
    assert not lines[: int(far) - 20].any()


def test_marks_are_numbered_in_the_order_given_and_only_those_seen_are_told() -> None:
    away = replace(found()["plate"], position=np.array([5.0, 5.0, 0.4]))
    things = {"red mug": found()["red mug"], "far plate": away, "can": found()["small can"]}
    result = draw_overlays(picture(), camera(), replace(around(), estimates=things))
    assert [mark.legend for mark in result.marks] == [
        "1 red mug (x 5.0, y -15.0, z 45.0 cm)",
        "3 can (x 11.0, y 13.0, z 44.0 cm)",
    ]


def test_a_place_a_hair_below_zero_is_told_as_zero() -> None:
    thing = replace(found()["plate"], position=np.array([-1e-5, 0.0, 0.4]))
    result = draw_overlays(picture(), camera(), replace(around(), estimates={"plate": thing}))
    assert result.marks[0].legend == "1 plate (x 0.0, y 0.0, z 40.0 cm)"


def test_names_of_overlays_are_read_and_written() -> None:
    assert parse_overlays(" GRID, fine-grid ,ruler").names == ("grid", "fine_grid", "ruler")
    assert parse_overlays("none").names == ()
    assert parse_overlays("all").names == OVERLAY_NAMES


@pytest.mark.parametrize("text", ["grids", "grid,crosss", "", ",", "all,grid"])
def test_an_unknown_overlay_is_refused_with_what_there_is(text: str) -> None:
    with pytest.raises(ConfigError, match="overlay"):
        parse_overlays(text)
