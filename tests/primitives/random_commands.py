"""Random commands for tests: most can be carried out, some cannot, a few are nonsense."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

from zetta.primitives import commands as c


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


def with_thing(rng: random.Random, arm: str, things: Sequence[str]) -> c.ArmCommand:
    """Return a command that names a thing, which there may be or not."""
    thing, other = rng.choice(things), rng.choice(things)
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


def command(rng: random.Random, arms: Sequence[str], things: Sequence[str]) -> c.Command:
    """Return any command."""
    if rng.random() < 0.1:
        return rng.choice(
            [
                c.Wait(0.2), c.Wait(99.0), c.Done(), c.RunPolicy(5), c.RunSkill("regrasp"),
                c.BaseMove("x", 0.1), c.BaseTurn(0.3),
            ]
        )  # fmt: skip
    first, second = (_of_one_arm(rng, rng.choice(arms), things) for _ in range(2))
    return c.Both(first, second) if len(arms) > 1 and rng.random() < 0.4 else first


def _of_one_arm(rng: random.Random, arm: str, things: Sequence[str]) -> c.ArmCommand:
    return free_motion(rng, arm) if rng.random() < 0.6 else with_thing(rng, arm, things)
