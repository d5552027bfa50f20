"""The toy's scripted expert: reads truth, tries again after a slip or a miss."""

from __future__ import annotations

from collections.abc import Generator
from typing import Protocol, TypeAlias

import numpy as np

from zetta.runtime.core import Action, Array, EnvSpec, Look, Motion, Outcome, Sense, Truth
from zetta.sims.toy_physics import OPENING_MAX, STEP_M
from zetta.sims.toy_state import arm_rows, thing_rows
from zetta.sims.toy_tasks import TABLE_Z, On, ToyTask

_Part: TypeAlias = Generator[Action | Look, Sense, bool]
OPEN, CLOSE = -1.0, 1.0
CLEARANCE = 0.12
"""Height above the table at which things are carried, metres."""
NEAR = 0.004
"""A waypoint is reached within this distance, metres."""


class _Readable(Protocol):
    """The environment as the expert reads it."""

    toy: ToyTask

    @property
    def spec(self) -> EnvSpec: ...

    def pose(self) -> Array: ...

    def truth(self) -> Truth: ...


def expert_motion(env: _Readable, noise: float, seed: int) -> Motion:
    """Solve the environment's task; ends when every goal holds.

    Args:
        env: The environment to read.
        noise: Standard deviation of what is added to each translation command, in [-1, 1] units.
        seed: Seed of the noise.
    """
    driver = _Driver(env, noise, np.random.default_rng(seed))
    for _ in range(12):
        goal = driver.open_goal()
        if goal is None:
            return Outcome(True)
        yield from driver.pursue(goal)
    return Outcome(driver.open_goal() is None, "the goal did not hold after twelve attempts")


class _Driver:
    def __init__(self, env: _Readable, noise: float, rng: np.random.Generator) -> None:
        self._env = env
        self._noise = noise
        self._rng = rng

    def open_goal(self) -> On | None:
        held = self._env.truth().predicates
        return next((goal for goal in self._env.toy.goals if not held[str(goal)]), None)

    def pursue(self, goal: On) -> _Part:
        toy = self._env.toy
        item, target = toy.index_of(goal.item), toy.index_of(goal.target)
        spot = self._place(target)
        giver = self._reaching(self._place(item))
        taker = self._reaching(spot)
        if giver != taker and not self._reaches(giver, spot):
            # Out of this arm's reach: hand it over on the strip that both arms reach.
            spot, target = np.array([0.0, 0.0, TABLE_Z]), -1
        if not (yield from self._pick(giver, item)):
            return False
        base = TABLE_Z if target < 0 else self._place(target)[2] + toy.things[target].half_height
        return (yield from self._put(giver, item, spot, base))

    def _pick(self, arm: int, item: int) -> _Part:
        x, y, z = self._place(item)
        yield from self._go(arm, np.array([x, y, TABLE_Z + CLEARANCE]), OPEN)
        while arm_rows(self._env.toy, self._env.pose())[arm, 7] < 0.9 * OPENING_MAX:
            yield from self._hold(arm, OPEN, 1)
        yield from self._go(arm, np.array([x, y, z]), OPEN)
        yield from self._hold(arm, CLOSE, 14)
        yield from self._go(arm, np.array([x, y, TABLE_Z + CLEARANCE]), CLOSE)
        return self._carries(arm, item)

    def _put(self, arm: int, item: int, spot: Array, base: float) -> _Part:
        offset = self._place(item) - self._site(arm)
        above = np.array([spot[0], spot[1], TABLE_Z + CLEARANCE]) - [*offset[:2], 0.0]
        yield from self._go(arm, above, CLOSE)
        height = base + self._env.toy.things[item].half_height + 0.002 - offset[2]
        if self._carries(arm, item):
            yield from self._go(arm, np.array([above[0], above[1], height]), CLOSE)
        yield from self._hold(arm, OPEN, 12)
        yield from self._go(arm, np.array([above[0], above[1], TABLE_Z + CLEARANCE]), OPEN)
        if len(self._env.toy.arms) > 1:
            yield from self._go(arm, np.array(self._env.toy.arms[arm].home), OPEN)
        return True

    def _go(self, arm: int, goal: Array, grip: float) -> _Part:
        for _ in range(60):
            error = goal - self._site(arm)
            if np.abs(error).max() < NEAR + 0.05 * self._noise:
                return True
            yield self._action(arm, self._toward(arm, goal), grip)
        return False

    def _hold(self, arm: int, grip: float, ticks: int) -> _Part:
        spot = self._site(arm)
        for _ in range(ticks):
            yield self._action(arm, self._toward(arm, spot), grip)
        return True

    def _toward(self, arm: int, goal: Array) -> Array:
        return np.clip((goal - self._site(arm)) / STEP_M * 0.7, -1.0, 1.0)

    def _action(self, arm: int, move: Array, grip: float) -> Action:
        rows = np.zeros((len(self._env.toy.arms), 7))
        rows[:, 6] = OPEN
        noise = self._rng.normal(0.0, 1.0, 3) * self._noise
        rows[arm, :3] = np.clip(move + noise, -1.0, 1.0)
        rows[arm, 6] = grip
        return rows.reshape(-1)  # (7 * arms,)

    def _site(self, arm: int) -> Array:
        return arm_rows(self._env.toy, self._env.pose())[arm, :3]

    def _place(self, thing: int) -> Array:
        return thing_rows(self._env.toy, self._env.pose())[thing, :3]

    def _carries(self, arm: int, item: int) -> bool:
        return bool(np.linalg.norm(self._place(item) - self._site(arm)) < 0.05)

    def _reaches(self, arm: int, spot: Array) -> bool:
        plan = self._env.toy.arms[arm]
        return bool(plan.low[1] <= spot[1] <= plan.high[1])

    def _reaching(self, spot: Array) -> int:
        """Return the arm whose home is nearest to `spot`."""
        homes = [abs(plan.home[1] - spot[1]) for plan in self._env.toy.arms]
        return int(np.argmin(homes))
