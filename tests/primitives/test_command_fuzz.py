"""Whatever is commanded, hands stay in the workspace and nothing but explained errors appears."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from command_bench import Bench
from command_lines import strange_line
from random_commands import command
from toy_commands import bench
from twin_commands import twin, twin_bench

from zetta.primitives.command_grammar import parse_command
from zetta.runtime.core import Sampled
from zetta.runtime.errors import ConfigError, ZettaError
from zetta.runtime.workspace import Box
from zetta.sims.toy import ToyEnv

ROOM = Box((-0.15, -0.2, 0.44), (0.15, 0.25, 0.70))
SLACK = 0.01
THINGS = ("red cube", "blue cube", "green plate", "yellow plate", "cube", "fish", "top drawer", "")


def fuzz_lines(
    scene: Callable[[int], Bench[Any]], room: Box, lines: int, seed: int, scene_every: int = 400
) -> tuple[int, int]:
    """Carry out whatever of random lines is understood; return how many were, and the ticks."""
    rng = random.Random(seed)
    understood = ticks = 0
    made = None
    for number in range(lines):
        if made is None or number % scene_every == 0:
            made = scene(seed + number)
        try:
            parsed = parse_command(strange_line(rng), made.env.spec.arms)
        except ConfigError:
            continue
        understood += 1
        felt = len(made.felt)
        with contextlib.suppress(ZettaError):
            made.do_all([parsed], most_ticks=60)
        for proprio in made.felt[felt:]:
            for arm in proprio.arms:
                outside = arm.ee_pos - room.nearest(arm.ee_pos)
                assert float(np.abs(outside).max()) <= SLACK, (parsed, arm.ee_pos)
        ticks += len(made.felt) - felt
        made.felt.clear()
    return understood, ticks


def toy_scene(suite: str, seed: int) -> Bench[ToyEnv]:
    return bench(suite, 0, Sampled(), seed, workspace=ROOM)


def test_random_lines_move_nothing_out_of_the_workspace() -> None:
    understood, ticks = fuzz_lines(partial(toy_scene, "toy_pick"), ROOM, 800, 3)
    assert understood > 30
    assert ticks > 100


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(("suite", "seed"), [("toy_pick", 100_000), ("toy_two_arm", 200_000)])
def test_a_hundred_thousand_random_lines_move_nothing_out(suite: str, seed: int) -> None:
    understood, ticks = fuzz_lines(partial(toy_scene, suite), ROOM, 50_000, seed)
    assert understood > 2_000
    assert ticks > 5_000


def twin_lines(lines: int, seed: int) -> tuple[int, int]:
    env = twin()
    room = env.workspace(0)
    assert room is not None
    return fuzz_lines(lambda number: twin_bench(env, number, room), room, lines, seed)


def test_random_lines_move_the_twin_nowhere_outside() -> None:
    understood, ticks = twin_lines(400, 5)
    assert understood > 10
    assert ticks > 100


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_a_hundred_thousand_random_lines_move_the_twin_nowhere_outside() -> None:
    understood, ticks = twin_lines(100_000, 300_000)
    assert understood > 4_000
    assert ticks > 10_000


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
