"""Feeling what the toy feels: episodes of prescribed commands, turned into signals."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from zetta.runtime.core import Action, Array, Estimate, Init, Look, Scene, Sense, Step, read_only
from zetta.runtime.signals_source import SignalRow, Signals
from zetta.sims.toy import ToyEnv, ToySimulator
from zetta.sims.toy_faults import ToyFaults

SIM = ToySimulator()
OPEN, CLOSE = -1.0, 1.0


def world(
    suite: str = "toy_pick", index: int = 0, faults: ToyFaults | None = None
) -> tuple[ToyEnv, Scene]:
    """Return a toy environment and its first scene."""
    env = SIM.make(suite, index, faults=faults)
    return env, Scene(env.toy.task, Init(0))


def command(
    move: tuple[float, float, float] = (0.0, 0.0, 0.0),
    grip: float = OPEN,
    turn: tuple[float, float, float] = (0.0, 0.0, 0.0),
) -> Action:
    """Return a command of the toy's one arm, each number in [-1, 1]."""
    return np.array([*move, *turn, grip])


def felt(signals: Signals, env: ToyEnv, scene: Scene, rows: Iterable[Action]) -> list[SignalRow]:
    """Give commands one after the other; return the signals before the first and after each."""
    signals.begin(scene)
    step = env.reset(scene)
    said = [signals.update(0, step.proprio, None, None, "policy")]
    for row in rows:
        step = env.step(row)
        said.append(signals.update(len(said), step.proprio, row, None, "policy"))
    return said


def expert_rows(env: ToyEnv, scene: Scene) -> tuple[list[Action], list[Step]]:
    """Let the expert solve `scene`; return its commands and the steps they led to."""
    env.reset(scene)
    motion = SIM.expert(env)
    rows: list[Action] = []
    steps: list[Step] = []
    wish = next(motion)
    while not steps or not (steps[-1].terminated or steps[-1].truncated):
        assert not isinstance(wish, Look)
        rows.append(wish)
        steps.append(env.step(wish))
        try:
            wish = motion.send(Sense(steps[-1].proprio))
        except StopIteration:
            break
    return rows, steps


def column(rows: Iterable[SignalRow], name: str) -> Array:
    """Return one signal over time."""
    return np.array([row[name] for row in rows])


def estimate(role: str, place: tuple[float, float, float], t: float) -> Estimate:
    """Return a sighting of a thing of 6 cm by 6 cm by 4 cm."""
    extent = read_only([0.06, 0.06, 0.04])
    return Estimate(role, read_only(place), extent, 0.0, 0.9, t, "vision")
