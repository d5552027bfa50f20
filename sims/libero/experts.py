"""Scripted experts: which operation reaches which goal predicate.

An expert reads simulator truth. It makes demonstrations and helps diagnosis; it is never a policy.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from typing import TypeAlias

from zetta.runtime.core import Action, Array, Outcome, Sense
from zetta.runtime.errors import ConfigError
from zetta.sims.libero.expert_carrying import PickPlace
from zetta.sims.libero.expert_grasps import Grasp, Manner
from zetta.sims.libero.expert_motions import Arm, Intent, Phase, Steps
from zetta.sims.libero.expert_oven import Oven
from zetta.sims.libero.expert_parts import Door, Drawer, Knob
from zetta.sims.libero.expert_places import grip_style, placing, special_grasp
from zetta.sims.libero.world import Goal, World

ROUNDS = 3
"""How often the list of unmet predicates is gone through."""
AJAR = -0.10
"""A drawer less open than this must be opened before something is put in."""
OPEN_FOR_FILLING = -0.13
"""Less than wide open: the hand must still pass in front of the drawer."""
_RANK = {"turnon": 0, "turnoff": 0, "open": 0, "in": 1, "on": 1, "close": 2}


Habits: TypeAlias = Mapping[str, Manner]
"""Manner of taking by object."""


class Expert:
    """Reaches the goal of the task that `world` shows."""

    def __init__(self, world: World, habits: Habits | None = None) -> None:
        """`habits` say in what manner an object is usually taken; else each scene decides."""
        self.world = world
        self._habits = habits or {}
        self._intent = Intent(focus=world.ee_pos)
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
        for goal in goals:
            self._refuse_unreachable(goal)
        for _ in range(ROUNDS):
            for goal in goals:
                if not self.world.holds(goal):
                    yield from self._operation(goal)
            if self.world.success():
                return Outcome(True)
        unmet = ", ".join(str(g) for g in goals if not self.world.holds(g))
        return Outcome(False, f"not reached: {unmet}")

    def _operation(self, goal: Goal) -> Steps:
        arm = self._arm
        self._intent.destination = None
        match goal.predicate:
            case "in" | "on":
                return self._put(goal)
            case "turnon" | "turnoff":
                return Knob(arm, self._joint(goal)).turn(goal.predicate == "turnon")
            case "open":
                return Drawer(arm, self._joint(goal)).open()
            case "close" if self.world.is_region(goal.subject):
                return Drawer(arm, self._joint(goal)).shut()
            case "close":
                return Door(arm, self._joint(goal)).shut()
        raise ValueError(goal)  # refused before the motion began

    def _put(self, goal: Goal) -> Steps:
        drawer = self._shut_drawer(goal)
        if drawer is not None:
            yield from drawer.open(OPEN_FOR_FILLING)
        if Oven.serves(self.world, goal):
            return (yield from Oven(self._arm, goal).insert())
        return (yield from self._pick_place(goal).steps())

    def _pick_place(self, goal: Goal) -> PickPlace:
        return PickPlace(
            self._arm,
            goal.subject,
            grip_style(self.world, goal),
            placing(self.world, goal),
            special_grasp(self.world, goal),
            self._habits.get(goal.subject),
        )

    def choices(self) -> Iterator[tuple[str, float, Grasp]]:
        """Yield object, cost and grasp for everything that has to be carried."""
        for goal in self.world.goals:
            if goal.predicate in ("in", "on") and not special_grasp(self.world, goal):
                for cost, grasp in self._pick_place(goal).choices():
                    yield goal.subject, cost, grasp

    def _shut_drawer(self, goal: Goal) -> Drawer | None:
        """Return the drawer that must be opened before `goal` can be reached."""
        if goal.predicate != "in" or not self.world.is_drawer(goal.target):
            return None
        drawer = Drawer(self._arm, self.world.region_joints(goal.target)[0])
        return drawer if drawer.position > AJAR else None

    def _joint(self, goal: Goal) -> str:
        return self.world.region_joints(goal.subject)[0]

    def _refuse_unreachable(self, goal: Goal) -> None:
        if goal.predicate not in _RANK:
            raise ConfigError(f"no expert reaches '{goal}'; known predicates: {sorted(_RANK)}")
        if goal.predicate not in ("in", "on") and not self.world.region_joints(goal.subject):
            raise ConfigError(f"'{goal}' names nothing that moves; expected a drawer, knob or door")


def order(world: World) -> tuple[Goal, ...]:
    """Return the goal predicates in the order in which they are best reached.

    Parts are opened first and shut last; of several objects the low ones go first, so that the
    hand does not pass over tall ones that are already in place; of equal ones the farther first.
    """
    return tuple(sorted(world.goals, key=lambda goal: _precedence(world, goal)))


def _precedence(world: World, goal: Goal) -> tuple[int, float, float]:
    rank = _RANK.get(goal.predicate, 1)
    if goal.subject not in world.movables:
        return rank, 0.0, 0.0
    low, high = world.bounds(goal.subject)
    return rank, round(float((high - low)[2]), 2), -float(world.position(goal.subject)[0])
