"""Whatever is commanded, hands stay in the workspace and nothing but explained errors appears."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from toy_commands import bench

from zetta.primitives import commands as c
from zetta.runtime.core import Sampled
from zetta.runtime.errors import ZettaError
from zetta.runtime.workspace import Box

ROOM = Box((-0.15, -0.2, 0.44), (0.15, 0.25, 0.70))
SLACK = 0.01
THINGS = ("red cube", "blue cube", "green plate", "yellow plate", "cube", "fish", "top drawer", "")


def number(rng: random.Random, most: float) -> float:
    """Return a number within bounds, rarely outside of them or no number at all."""
    odd = rng.random()
    if odd < 0.02:
        return rng.choice([math.nan, math.inf, 10.0 * most])
    return rng.uniform(-most, most) if odd < 0.8 else rng.choice([-most, 0.0, most])


def free_motion(rng: random.Random, arm: str) -> c.ArmCommand:
    """Return a command that names no thing."""
    frame = rng.choice(c.FRAMES)
    match rng.randrange(6):
        case 0 | 1:
            x, y, z = (number(rng, c.MOVE_MOST) for _ in range(3))
            return c.Move((x, y, z), frame, until_contact=rng.random() < 0.3, arm=arm)
        case 2:
            angle = math.radians(number(rng, c.TURN_MOST_DEG))
            return c.Rotate(rng.choice(c.TURNS), angle, frame, arm=arm)
        case 3:
            return c.Point(rng.choice(c.DIRECTIONS), arm)
        case 4:
            return c.Gripper(rng.choice([0.0, 1.0, 0.5, rng.random(), 1.5]), arm)
        case _:
            return c.Home(arm)


def with_thing(rng: random.Random, arm: str) -> c.ArmCommand:
    """Return a command that names a thing, which there may be or not."""
    thing, other = rng.choice(THINGS), rng.choice(THINGS)
    match rng.randrange(8):
        case 0:
            return c.GoAbove(thing, arm)
        case 1:
            return c.GoToGrasp(thing, arm)
        case 2 | 3:
            return c.Pick(thing, arm)
        case 4 | 5:
            return c.Place(thing, rng.choice(["on", "in"]), arm)
        case 6:
            return c.Push(thing, other, arm)
        case _:
            kind = rng.choice([c.Open, c.Close, c.TurnKnob])
            return kind(thing, arm=arm)


def command(rng: random.Random, arms: tuple[str, ...]) -> c.Command:
    """Return any command."""
    if rng.random() < 0.1:
        return rng.choice(
            [
                c.Wait(0.2), c.Wait(99.0), c.Done(), c.RunPolicy(5), c.RunSkill("regrasp"),
                c.BaseMove("x", 0.1), c.BaseTurn(0.3),
            ]
        )  # fmt: skip
    first, second = (
        (free_motion if rng.random() < 0.6 else with_thing)(rng, rng.choice(arms)) for _ in range(2)
    )
    return c.Both(first, second) if len(arms) > 1 and rng.random() < 0.4 else first


def fuzz(suite: str, index: int, count: int, seed: int) -> None:
    rng = random.Random(seed)
    made = bench(suite, index, Sampled(), seed, workspace=ROOM)
    arms = (*made.env.spec.arms, "", "third")
    for _ in range(count):
        one = command(rng, arms)
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
