"""Whatever is commanded, hands stay in the workspace and nothing but explained errors appears."""

from __future__ import annotations

import random

import numpy as np
import pytest
from random_commands import command
from toy_commands import bench

from zetta.runtime.core import Sampled
from zetta.runtime.errors import ZettaError
from zetta.runtime.workspace import Box

ROOM = Box((-0.15, -0.2, 0.44), (0.15, 0.25, 0.70))
SLACK = 0.01
THINGS = ("red cube", "blue cube", "green plate", "yellow plate", "cube", "fish", "top drawer", "")


def fuzz(suite: str, index: int, count: int, seed: int) -> None:
    rng = random.Random(seed)
    made = bench(suite, index, Sampled(), seed, workspace=ROOM)
    arms = (*made.env.spec.arms, "", "third")
    for _ in range(count):
        one = command(rng, arms, THINGS)
        felt = len(made.felt)
        try:
            result = made.do(one)
        except ZettaError:
            continue
        assert result.detail, one
        assert result.ticks == len(made.felt) - felt <= 600, one
        for proprio in made.felt[felt:]:
            for arm in proprio.arms:
                outside = arm.ee_pos - ROOM.nearest(arm.ee_pos)
                assert float(np.abs(outside).max()) <= SLACK, (one, arm.ee_pos)


@pytest.mark.parametrize(("suite", "seed"), [("toy_pick", 0), ("toy_swap", 1), ("toy_two_arm", 2)])
def test_no_command_leaves_the_workspace(suite: str, seed: int) -> None:
    fuzz(suite, 0, 100, seed)


@pytest.mark.slow
@pytest.mark.parametrize("suite", ["toy_pick", "toy_swap", "toy_two_arm", "toy_distractors"])
@pytest.mark.parametrize("seed", range(10, 20))
def test_no_command_leaves_the_workspace_in_many_scenes(suite: str, seed: int) -> None:
    fuzz(suite, seed % 3, 100, seed)
