"""Positions read off a picture: what each reader can and cannot do."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from test_cli_eval import answered

from zetta.primitives.localize.table import Table, table_in
from zetta.primitives.overlays_sheet import Sheet
from zetta.primitives.projection import project
from zetta.runtime.cli.bench_overlays import Reading, figures_of
from zetta.runtime.cli.grid_reader import (
    Crossing,
    continued,
    crossings_shown,
    linear_map,
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
    table = table_in(observation)
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


def test_a_hidden_crossing_is_where_its_lines_go_on_to() -> None:
    straight = tuple(
        Crossing(i, j, (100.0 + 50.0 * j + 5.0 * i, 80.0 + 40.0 * i + 6.0 * j))
        for i in range(3)
        for j in range(3)
    )
    hidden = straight[4]
    known = {(c.column, c.row): c.at for c in continued(straight[:4] + straight[5:])}
    assert known[hidden.column, hidden.row] == pytest.approx(hidden.at)
    assert len(known) == 9
    assert continued(straight[:2]) == straight[:2], "a line with one crossing has no direction"
    assert continued(()) == ()


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
    truth = np.array([(-0.13, -0.07), (0.02, 0.16), (0.11, -0.12), (-0.04, 0.03), (0.1, 0.2)])
    places, _ = project(np.column_stack([truth, np.full(5, table.height)]), sheet.camera)
    linear = linear_map(places, truth)
    errors: dict[str, list[float]] = {"grid": [], "linear": [], "exact": []}
    for at, xy in zip(places, truth, strict=True):
        read = {
            "grid": read_with_grid(at, shown),
            "linear": read_linearly(at, linear),
            "exact": read_exactly(at, table, sheet.camera),
        }
        for name, taken in read.items():
            assert taken is not None
            errors[name].append(math.dist(taken, xy))
    assert max(errors["exact"]) < 1e-9
    assert max(errors["grid"]) < 0.006  # crossings are whole pixels
    assert max(errors["grid"]) < np.median(errors["linear"])


def test_figures_count_what_lies_outside_the_grid_apart() -> None:
    rng = np.random.default_rng(0)
    truths = [tuple(xy) for xy in rng.uniform(-0.2, 0.2, (40, 2)).tolist()]
    spots = [
        Reading("spot", (100 * x, 100 * y * (1 + x)), (x, y), (x + 0.002, y), (x, y))
        for x, y in truths
    ]
    things = [replace(spot, what="table") for spot in spots]
    outside = [replace(thing, grid=None) for thing in things[:10]]
    figures = {f.name: f for f in figures_of("s", spots + things + outside)}
    assert figures["s_table_places"].value == 50
    assert figures["s_table_in_the_grid"].value == pytest.approx(0.8)
    grid = figures["s_table_grid_p50"]
    assert grid.value == pytest.approx(0.2)
    assert grid.baseline is not None
    assert 0.2 < grid.baseline < 3.0, "a picture with perspective is not read by a linear map"
    assert grid.ratio == pytest.approx(grid.baseline / 0.2)
    assert grid.met is True
    assert figures["s_table_calibrated_p90"].value == pytest.approx(0.0)
    assert not any("raised" in name for name in figures)


def test_bench_overlays_reads_the_toy(capfd: pytest.CaptureFixture[str]) -> None:
    asked = ["bench", "overlays", "--sim", "toy", "--suite", "toy_pick", "--tasks", "0"]
    answer = answered(capfd, *asked, "--scenes", "3")
    figures = {figure["name"]: figure for figure in answer["figures"]}
    assert figures["toy_pick_table_places"]["value"] == 12
    grid = figures["toy_pick_table_grid_p50"]
    assert 0.1 < grid["value"] < 2.0
    assert grid["ratio"] == pytest.approx(grid["baseline"] / grid["value"])
    again = answered(capfd, *asked, "--scenes", "3")
    assert again["figures"] == answer["figures"], "the noise is drawn from the scene"
