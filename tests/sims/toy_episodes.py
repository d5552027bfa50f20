"""Driving the toy in tests."""

from __future__ import annotations

import numpy as np

from zetta.runtime.core import Action, Array, Init, Layout, Look, Scene, Sense, Step
from zetta.sims.toy import ToyEnv, ToySimulator
from zetta.sims.toy_faults import ToyFaults

SIM = ToySimulator()
TASKS = [(suite, index) for suite, count in SIM.suites().items() for index in range(count)]
REST = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, -1.0])


def world(
    suite: str = "toy_pick",
    index: int = 0,
    layout: Layout | None = None,
    seed: int = 0,
    faults: ToyFaults | None = None,
) -> ToyEnv:
    """Return a toy environment, reset."""
    env = SIM.make(suite, index, faults=faults)
    env.reset(Scene(env.toy.task, layout or Init(0), seed))
    return env


def solve(env: ToyEnv, noise: float = 0.0, seed: int = 0) -> tuple[list[Action], list[Step]]:
    """Let the expert drive; return its actions and the steps they led to."""
    motion = SIM.expert(env, noise, seed)
    actions: list[Action] = []
    steps: list[Step] = []
    wish = next(motion)
    while not steps or not (steps[-1].terminated or steps[-1].truncated):
        assert not isinstance(wish, Look)
        actions.append(wish)
        steps.append(env.step(wish))
        try:
            wish = motion.send(Sense(steps[-1].proprio))
        except StopIteration:
            break
    return actions, steps


def by(x: float, y: float, z: float) -> Array:
    """Return an offset in metres."""
    return np.array([x, y, z])


def reach(env: ToyEnv, goal: Array, grip: float = -1.0, ticks: int = 40) -> Step:
    """Drive the first arm towards `goal` for `ticks`."""
    step = None
    for _ in range(ticks):
        row = np.zeros(env.spec.action.size)
        site = env.observe().proprio.arms[0].ee_pos
        row[:3] = np.clip((goal - site) / 0.05 * 0.7, -1.0, 1.0)
        row[6] = grip
        step = env.step(row)
    assert step is not None
    return step


def openings(steps: list[Step]) -> Array:
    """Return the first gripper's opening over time, metres."""
    return np.array([step.proprio.arms[0].gripper_opening for step in steps])
