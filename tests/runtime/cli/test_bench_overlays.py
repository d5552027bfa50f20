"""Positions read off a picture: what each reader can and cannot do."""

from __future__ import annotations

import math

import numpy as np
import pytest
from test_cli_eval import answered

from zetta.primitives.localize.heights import height_grid
from zetta.primitives.localize.table import Table, seen_table
from zetta.primitives.overlays_sheet import Sheet
from zetta.primitives.projection import project
from zetta.runtime.cli.bench_overlays import Reading, figures_of
from zetta.runtime.cli.grid_reader import (
    Crossing,
    best_linear_map,
    corner_map,
    crossings_shown,
    read_exactly,
    read_linearly,
    read_with_grid,
)
from zetta.runtime.core import Init, Observation, Scene
from zetta.sims.toy import ToySimulator

SQUARE = tuple(
    Crossing(i, j, (100.0 + 50.0 * j + 5.0 * i, 80.0 + 40.0 * i + 6.0 * i * j))
    for i in range(3)
    for j in range(3)
)
"""A grid seen from somewhere, a little bent."""


@pytest.fixture(scope="module")
def seen() -> tuple[Observation, Table, Sheet]:
    simulator = ToySimulator()
    env = simulator.make("toy_pick", 0)
    env.reset(Scene(simulator.task("toy_pick", 0), Init(2)))
    observation = env.observe(("front",), depth=True)
    table = seen_table(height_grid(observation))
    assert table is not None
    return observation, table, Sheet(observation.images["front"], observation.cameras["front"])


@pytest.mark.parametrize("crossing", SQUARE)
def test_a_crossing_reads_as_its_own_number(crossing: Crossing) -> None:
    read = read_with_grid(np.array(crossing.at), SQUARE)
    assert read is not None
    assert read == pytest.approx(crossing.xy, abs=1e-9)


def test_between_crossings_a_reader_interpolates_and_beyond_them_goes_on() -> None:
    middle = np.mean([c.at for c in SQUARE if c.column < 2 and c.row < 2], axis=0)
    assert read_with_grid(middle, SQUARE) == pytest.approx((0.05, 0.05), abs=1e-6)
    beyond = read_with_grid(np.array([98.0, 64.0]), SQUARE)
    assert beyond is not None
    assert beyond[0] == pytest.approx(-0.04, abs=0.005)


def test_without_a_whole_cell_nothing_is_read() -> None:
    assert read_with_grid(np.array([100.0, 80.0]), SQUARE[:3]) is None
    assert read_with_grid(np.array([100.0, 80.0]), ()) is None


def test_crossings_are_taken_from_drawn_pixels(seen: tuple[Observation, Table, Sheet]) -> None:
    observation, table, sheet = seen
    shown = crossings_shown(observation, "front", table)
    assert len(shown) >= 12
    for crossing in shown:
        ((column, row),), _ = project(np.array([*crossing.xy, table.height]), sheet.camera)
        assert abs(crossing.at[0] - column) < 1.6
        assert abs(crossing.at[1] - row) < 1.6


def test_what_is_hidden_behind_things_is_not_read(seen: tuple[Observation, Table, Sheet]) -> None:
    observation, table, _ = seen
    before = crossings_shown(observation, "front", table)
    near = observation.depth["front"].copy()
    near[:, :32] = 0.2
    hidden = Observation(
        observation.proprio, "", observation.images, {"front": near}, observation.cameras
    )
    after = crossings_shown(hidden, "front", table)
    assert 0 < len(after) < len(before)
    assert all(crossing.at[0] > 250.0 for crossing in after)


def test_readers_without_noise_are_as_good_as_they_can_be(
    seen: tuple[Observation, Table, Sheet],
) -> None:
    observation, table, sheet = seen
    shown = crossings_shown(observation, "front", table)
    linear = best_linear_map(table, sheet.camera, sheet.size)
    corners = corner_map(table, sheet.camera)
    errors: dict[str, list[float]] = {"grid": [], "linear": [], "corners": [], "exact": []}
    for x, y in ((-0.13, -0.07), (0.02, 0.16), (0.11, -0.12), (-0.04, 0.03)):
        (at,), _ = project(np.array([x, y, table.height]), sheet.camera)
        read = {
            "grid": read_with_grid(at, shown),
            "linear": read_linearly(at, linear),
            "corners": read_linearly(at, corners),
            "exact": read_exactly(at, table, sheet.camera),
        }
        for name, xy in read.items():
            assert xy is not None
            errors[name].append(math.dist(xy, (x, y)))
    assert max(errors["exact"]) < 1e-9
    assert max(errors["grid"]) < 0.006  # crossings are whole pixels
    assert max(errors["grid"]) < np.median(errors["linear"]) < np.median(errors["corners"])


def test_figures_count_what_lies_outside_the_grid_apart() -> None:
    inside = Reading(True, 0.01, 0.04, 0.02, 0.005)
    outside = Reading(True, math.nan, 0.04, 0.02, 0.005)
    figures = {f.name: f for f in figures_of("s", [inside, inside, outside])}
    assert figures["s_table_things"].value == 3
    assert figures["s_table_in_the_grid"].value == pytest.approx(2 / 3)
    assert figures["s_table_grid_p50"].ratio == pytest.approx(4.0)
    assert figures["s_table_grid_p50"].met is True
    assert not any("raised" in name for name in figures)


def test_bench_overlays_reads_the_toy(capfd: pytest.CaptureFixture[str]) -> None:
    asked = ["bench", "overlays", "--sim", "toy", "--suite", "toy_pick", "--tasks", "0"]
    answer = answered(capfd, *asked, "--scenes", "3")
    figures = {figure["name"]: figure for figure in answer["figures"]}
    assert figures["toy_pick_table_things"]["value"] == 12
    assert figures["toy_pick_table_grid_p50"]["met"] is True
    again = answered(capfd, *asked, "--scenes", "3")
    assert again["figures"] == answer["figures"], "the noise is drawn from the scene"
