"""Scripted experts: which operation reaches which goal predicate.

An expert reads simulator truth. It makes demonstrations and helps diagnosis; it is never a policy.
"""

from __future__ import annotations

from collections.abc import Generator

import numpy as np

from zetta.runtime.core import Action, Array, Outcome, Sense
from zetta.runtime.errors import ConfigError
from zetta.sims.libero.expert_grasps import GripStyle
from zetta.sims.libero.expert_motions import Arm, Intent, Phase, PickPlace, Place, Steps
from zetta.sims.libero.world import Goal, World

ROUNDS = 3
"""How often the list of unmet predicates is gone through."""


class Expert:
    """Reaches the goal of the task that `world` shows."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._intent = Intent()
        self._arm = Arm(world, self._intent)

    @property
    def phase(self) -> Phase:
        """What the hand is doing."""
        return self._intent.phase

    @property
    def focus(self) -> Array:
        """The point the hand is heading for, world frame. Shape (3,)."""
        return self._intent.focus

    @property
    def destination(self) -> Array | None:
        """Where the object in question shall rest, world frame, or None. Shape (3,)."""
        return self._intent.destination

    def motion(self) -> Generator[Action, Sense, Outcome]:
        """Drive until all predicates hold.

        Raises:
            ConfigError: a predicate of the goal has no operation.
        """
        goals = order(self.world)
        for _ in range(ROUNDS):
            for goal in goals:
                if not self.world.holds(goal):
                    yield from self._operation(goal)
            if self.world.success():
                return Outcome(True)
        unmet = ", ".join(str(g) for g in goals if not self.world.holds(g))
        return Outcome(False, f"not reached: {unmet}")

    def _operation(self, goal: Goal) -> Steps:
        if goal.predicate in ("in", "on"):
            place = placing(self.world, goal)
            return PickPlace(self._arm, goal.subject, grip_style(goal.subject), place).steps()
        raise ConfigError(f"no scripted expert reaches '{goal}'; pick a task of in/on goals")


def order(world: World) -> tuple[Goal, ...]:
    """Return the goal predicates in the order in which they are best reached."""
    first = {"turnon": 0, "turnoff": 0, "open": 0, "in": 1, "on": 1, "close": 2}
    return tuple(sorted(world.goals, key=lambda g: first.get(g.predicate, 1)))


def grip_style(name: str) -> GripStyle:
    """Return how deep an object of this name is taken."""
    if "plate" in name:
        return GripStyle(rim_inside=0.004, rim_depth=0.008, rim_only=True)
    return GripStyle()


def placing(world: World, goal: Goal) -> Place:
    """Return where the subject of an `in` or `on` predicate shall rest."""
    if world.is_region(goal.target):
        return Place(lambda: _on_region(world, goal), by_origin=goal.predicate == "on")
    return Place(lambda: _on_object(world, goal), by_origin=True)


def _on_object(world: World, goal: Goal) -> Array:
    """Return the rest point on another object: over its origin, which the predicate looks at."""
    spot = world.position(goal.target)
    height = world.surface(float(spot[0]), float(spot[1]), goal.subject)
    return np.array([spot[0], spot[1], height])


def _on_region(world: World, goal: Goal) -> Array:
    region = world.region(goal.target)
    if goal.predicate == "in":
        return np.asarray(region.center + np.array([0.0, 0.0, 0.04]))
    spot = region.center
    return np.array([spot[0], spot[1], world.surface(float(spot[0]), float(spot[1]), goal.subject)])
