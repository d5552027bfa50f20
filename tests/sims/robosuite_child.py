"""Run inside robosuite's environment: what can only be asked there, of all thirteen tasks, as JSON.

Nothing of pytest is there. Each answer is a boolean that the test expects to be true.
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace

import numpy as np

from zetta.runtime.core import Init, Scene
from zetta.sims.robosuite.env import RobosuiteEnv
from zetta.sims.robosuite.simulator import RobosuiteSimulator

TICKS = 6


def main() -> None:
    """Look at every task and print what was found."""
    ours, sys.stdout = sys.stdout, sys.stderr
    simulator = RobosuiteSimulator()
    found = {
        f"{suite}/{index}": examined(simulator, suite, index)
        for suite, count in simulator.suites().items()
        for index in range(count)
    }
    ours.write(json.dumps(found) + "\n")


def examined(simulator: RobosuiteSimulator, suite: str, index: int) -> dict[str, bool]:
    """Return what holds for one task."""
    env = simulator.make(suite, index)
    assert isinstance(env, RobosuiteEnv)
    scene = Scene(simulator.task(suite, index), Init(1))
    rows = list(np.random.default_rng(5).uniform(-1, 1, (2 * TICKS, env.spec.action.size)))
    step = env.reset(scene)
    start = env.pose().tobytes()
    first = [after(env, row) for row in rows[:TICKS]]
    frozen = env.snapshot()
    onward = [after(env, row) for row in rows[TICKS:]]
    end = env.snapshot()
    env.reset(replace(scene, layout=Init(2)))
    elsewhere = env.pose().tobytes()
    env.restore(frozen)
    restored = [after(env, row) for row in rows[TICKS:]]
    answers = {
        "begins unsolved": not step.success,
        "other scenes start elsewhere": elsewhere != start,
        "a snapshot continues bit-exactly": restored == onward and env.snapshot() == end,
        "nothing was drawn": env._renderer is None,
    }
    env.reset(scene)
    answers["a reset forgets every history"] = env.pose().tobytes() == start
    answers["physics are robosuite's own"] = first == [plain(env, row) for row in rows[:TICKS]]
    env.close()
    return answers


def after(env: RobosuiteEnv, row: np.ndarray) -> bytes:
    """Step, and return what the joints came to."""
    env.step(row)
    return bytes(env.inner.sim.data.qpos.tobytes())


def plain(env: RobosuiteEnv, row: np.ndarray) -> bytes:
    """Step robosuite itself, without what this package does after a step."""
    env.inner.step(env._arms.engine_row(row))
    return bytes(env.inner.sim.data.qpos.tobytes())


if __name__ == "__main__":
    main()
