"""The table is found in depth, whatever stands on it, and never asked of a simulator."""

from __future__ import annotations

import numpy as np
import pytest

from zetta.primitives.localize.sensor_noise import as_sensed
from zetta.primitives.localize.table import declared_table, seen_table, table_in
from zetta.runtime.core import HeightGrid, Init, Scene
from zetta.sims.toy import ToySimulator
from zetta.sims.toy_tasks import TABLE_HALF, TABLE_Z


def grid_of(heights: np.ndarray) -> HeightGrid:
    return HeightGrid(np.array([-0.3, -0.4]), 0.01, heights, 0.0)


def cluttered(noise: float = 0.0) -> np.ndarray:
    """Return heights of a table at 0.9 m, a floor beside it, a wide box, and holes."""
    rng = np.random.default_rng(0)
    heights = np.full((60, 80), 0.9) + noise * rng.standard_normal((60, 80))
    heights[:, 60:] = 0.2
    heights[5:30, 5:35] = 1.0
    heights[40:45, 10:20] = np.nan
    heights[50:52, 10:12] = 0.7
    return heights


@pytest.mark.parametrize("noise", [0.0, 0.003])
def test_the_table_is_the_largest_level_surface(noise: float) -> None:
    table = seen_table(grid_of(cluttered(noise)))
    assert table is not None
    assert table.height == pytest.approx(0.9, abs=0.001)
    assert table.source == "depth"
    assert table.low == pytest.approx((-0.3, -0.4))
    assert table.high == pytest.approx((0.3, 0.2))


def test_without_depth_or_a_level_surface_there_is_none() -> None:
    assert seen_table(None) is None
    assert seen_table(grid_of(np.full((60, 80), np.nan))) is None
    slope = np.arange(4800).reshape(60, 80) * 0.05
    assert seen_table(grid_of(slope)) is None


def test_a_declared_table_lies_about_the_place_where_the_hand_works() -> None:
    table = declared_table(0.75, np.array([0.43, -0.02, 0.9]))
    assert (table.height, table.source) == (0.75, "declared")
    assert (table.low, table.high) == ((-0.1, -0.5), (0.9, 0.5))


@pytest.mark.parametrize("suite", ["toy_pick", "toy_distractors", "toy_two_arm"])
def test_the_table_of_the_toy_is_found(suite: str) -> None:
    simulator = ToySimulator()
    env = simulator.make(suite, 0)
    env.reset(Scene(simulator.task(suite, 0), Init(1)))
    table = table_in(env.observe(("front",), depth=True))
    assert table is not None
    assert table.height == pytest.approx(TABLE_Z, abs=1e-3)
    for axis in (0, 1):
        assert -table.low[axis] == pytest.approx(TABLE_HALF[axis], abs=0.051)
        assert table.high[axis] == pytest.approx(TABLE_HALF[axis], abs=0.051)


def test_noise_of_depth_moves_the_table_by_less_than_two_millimetres() -> None:
    simulator = ToySimulator()
    env = simulator.make("toy_pick", 0, "full")
    env.reset(Scene(simulator.task("toy_pick", 0), Init(0)))
    table = table_in(as_sensed(env.observe(("front",), depth=True)))
    assert table is not None
    assert table.height == pytest.approx(TABLE_Z, abs=0.002)


def test_without_depth_there_is_no_table_in_what_was_sensed() -> None:
    simulator = ToySimulator()
    env = simulator.make("toy_pick", 0)
    env.reset(Scene(simulator.task("toy_pick", 0), Init(0)))
    assert table_in(env.observe(("front",))) is None
