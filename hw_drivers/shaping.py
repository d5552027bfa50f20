"""Steps that keep speed, acceleration and jerk, each sent only with a proven way to rest.

A *course* is the present velocity and acceleration of what is sent, together with a complete plan
that ends at rest and keeps every limit. A new step is taken only with a new such plan; where none
is found, the next step of the old one is taken. So whatever is asked, the sequence keeps its limits
and can always stop inside them: the proof needs only that plans are checked, not that the search is
clever.

Everything is counted by ticks: velocity is displacement per tick, acceleration its change from tick
to tick, jerk the change of that. These are the finite differences of what is sent, so the limits
hold for exactly what a reader of the log can compute.

Why not Ruckig: its plans keep limits by axis, but the speed of the hand is a norm (a diagonal was
1.73 times too fast); it knows neither walls nor keep-out boxes nor rotations, so its plans would
have to be sampled and checked in the same way; and a velocity limit that falls on the way makes it
turn back. It is faster (4 us against some 200), which a tick of 50 ms does not need.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Final, TypeAlias

import numpy as np

from zetta.hw_drivers.arm_limits import Rates
from zetta.runtime.core import Array

Room: TypeAlias = Callable[[Array], str]
"""Given displacements from the present, shape (N, D), says what they run into; empty if nothing."""

LONGEST: Final = 256
"""Ticks of the longest plan that is tried."""
SHARES: Final = (1.0, 0.5, 0.2, 0.05)
"""Shares of the way that are tried in turn where the whole cannot be gone."""
ON_THE_WAY: Final = "on the way there within limits"
TRIES_AGAINST_WALLS: Final = 3
"""Plans that keep the rates and run into something before the search gives up."""
SLACK: Final = 1e-9
"""Relative rounding that a limit may be exceeded by."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Steps from the present to rest. Shapes (N, D); the last row stands still."""

    velocity: Array
    acceleration: Array

    def after_first(self) -> Plan:
        """Return what is left when the first step was taken; rest goes on for ever."""
        if len(self.velocity) <= 1:
            return self
        return Plan(self.velocity[1:], self.acceleration[1:])


@dataclass(frozen=True, slots=True)
class Course:
    """How a sequence moves at present, and the proven way to rest from here."""

    velocity: Array
    """Displacement of the last tick. Shape (D,)."""
    acceleration: Array
    """Its change against the tick before. Shape (D,)."""
    plan: Plan
    aims: bool = False
    """The plan leads all the way to what was asked for; else only to rest."""

    @property
    def rests(self) -> bool:
        """It stands still, and would at the next tick."""
        return not self.velocity.any() and not self.acceleration.any()

    def coast(self) -> Course:
        """Return the course one tick later, along the proven plan."""
        plan = self.plan
        return Course(plan.velocity[0], plan.acceleration[0], plan.after_first(), self.aims)

    def on(self, plan: Plan, aims: bool) -> Course:
        """Return the course one tick later, along another proven plan."""
        return Course(self.velocity, self.acceleration, plan, aims).coast()


def at_rest(size: int) -> Course:
    """Return the course of something that stands still in `size` dimensions."""
    zero = np.zeros(size)
    return Course(zero, zero, Plan(np.zeros((1, size)), np.zeros((1, size))))


class Shaper:
    """Plans for one thing that moves: a point, a rotation, or the joints of an arm."""

    def __init__(self, rates: Rates, tick: float, overshoot: float) -> None:
        """Take limits: of the norm where each is one number, else of each dimension."""
        self._by_norm = rates.velocity.size == 1
        self._overshoot = overshoot
        self._velocity = rates.velocity * tick
        self._acceleration = rates.acceleration * tick**2
        self._jerk = rates.jerk * tick**3
        self._limits = np.array([self._velocity, self._acceleration, self._jerk])  # (3, 1 or D)
        for ticks in LENGTHS:  # now, not in the middle of a motion
            _weights(ticks)

    def advance(
        self, course: Course, way: Array, factor: float, room: Room, same: bool
    ) -> tuple[Course, str]:
        """Return the course one tick later towards `way`, and what keeps it from being there.

        Args:
            course: the present one.
            way: displacement from here to where it shall be at the next tick. Shape (D,).
            factor: share of the velocity limit.
            room: what displacements run into.
            same: whether `way` leads where it led at the last tick.
        """
        if same and course.aims and not course.rests:
            return course.coast(), ON_THE_WAY
        ceiling = self._ceiling(course, factor)
        exact = self._exact(course, way, ceiling, room)
        if not isinstance(exact, str):
            return exact, ""
        for share in SHARES:
            for plan in self._plans(course, share * way, ceiling, room):
                return course.on(plan, aims=share == 1.0), exact
        return self.brake(course, factor, room), exact

    def brake(self, course: Course, factor: float, room: Room) -> Course:
        """Return the course one tick later on the shortest plan to rest that is proven."""
        ceiling = self._ceiling(course, factor)
        for plan in self._plans(course, None, ceiling, room):
            if len(plan.velocity) < len(course.plan.velocity):
                return course.on(plan, aims=False)
        return course.coast()

    def _exact(self, course: Course, way: Array, ceiling: Array, room: Room) -> Course | str:
        """Return the course that makes the whole way in one tick, or what forbids it."""
        velocity, acceleration = way, way - course.velocity
        if not self._size(velocity, self._velocity) <= ceiling[0]:
            return "speed limit"
        if not self._size(acceleration, self._acceleration) <= 1.0 + SLACK:
            return "acceleration limit"
        if not self._size(acceleration - course.acceleration, self._jerk) <= 1.0 + SLACK:
            return "jerk limit"
        step = Course(velocity, acceleration, course.plan)

        def ahead(way_on: Array) -> str:
            return room(np.vstack([way, way + way_on]))

        for plan in self._plans(step, None, ceiling[1:], ahead):
            beyond = np.abs(plan.velocity.sum(axis=0))
            far = np.sqrt(beyond @ beyond) if self._by_norm else beyond.max()
            if far > self._overshoot:
                return "it would overshoot if it had to stop there"
            return Course(velocity, acceleration, plan)
        return "there would be no way to stop within limits"

    def _plans(
        self, course: Course, way: Array | None, ceiling: Array, room: Room
    ) -> Iterator[Plan]:
        """Yield the shortest plan to rest that is proven, `way` from here or anywhere, if any."""
        start = [course.velocity, course.acceleration]
        known = np.array(start if way is None else [*start, way])  # (2 or 3, D)
        stopped = 0
        for ticks in self._lengths(course, way):
            plan, ways = self._proven(known, ticks, ceiling)
            if plan is None:
                continue
            if not room(ways):
                yield plan
                return
            stopped += 1
            if stopped >= TRIES_AGAINST_WALLS:
                return

    def _lengths(self, course: Course, way: Array | None) -> Iterator[int]:
        """Yield the lengths worth trying: shorter ones cannot keep the limits."""
        speed = self._size(course.velocity, self._acceleration)
        pull = self._size(course.acceleration, self._jerk)
        least = max(1.0, speed, pull)
        if way is not None:
            least = max(2.0, least, self._size(way, self._velocity))
            if course.rests:  # from rest to rest no plan beats full jerk in four equal parts
                least = max(least, (32.0 * self._size(way, self._jerk)) ** (1.0 / 3.0) - 2.0)
        if least > LONGEST:
            return
        yield from (n for n in LENGTHS if n >= least)

    def _proven(self, known: Array, ticks: int, ceiling: Array) -> tuple[Plan | None, Array]:
        """Return the plan of least jerk if it keeps every rate, and its displacements.

        `known` is velocity, acceleration, and the way if there is one. `ceiling` is the share of
        the velocity limit by tick; its last number holds for ever.
        """
        rows = _weights(ticks)[len(known) - 2] @ known  # (4, N, D): way, velocity, ...
        if self._by_norm:
            sizes = np.sqrt((rows[1:] ** 2).sum(axis=2)) / self._limits
        else:
            sizes = (np.abs(rows[1:]) / self._limits[:, None, :]).max(axis=2)  # (3, N)
        allowed = np.full(ticks + 1, ceiling[-1])
        allowed[: len(ceiling)] = ceiling[: len(allowed)]
        if sizes[1:].max() > 1.0 + SLACK or (sizes[0] > allowed).any():
            return None, rows[0]
        # Not a number compares false: what is no plan must not pass for one.
        if not np.isfinite(sizes).all():
            return None, rows[0]
        rows[1, -2:] = 0.0  # to the last bit: rest is rest
        rows[2, -1] = 0.0
        return Plan(rows[1], rows[2]), rows[0]

    def _ceiling(self, course: Course, factor: float) -> Array:
        """Return the share of the velocity limit by tick: what the plan has already, or `factor`.

        A driver with a lower factor inherits speed; it may lose it along the plan, not keep it.
        """
        planned = course.plan.velocity
        if self._by_norm:
            sizes = np.sqrt((planned * planned).sum(axis=1)) / self._velocity[0]
        else:
            sizes = (np.abs(planned) / self._velocity).max(axis=1)
        return np.append(np.maximum(sizes, factor), factor) * (1.0 + SLACK)

    def _size(self, row: Array, limit: Array) -> float:
        """Return a row as a share of its limit."""
        if self._by_norm:
            return float(np.sqrt(row @ row) / limit[0])
        return float((np.abs(row) / limit).max())


def _some_lengths() -> tuple[int, ...]:
    """Return the numbers of ticks that are tried: all short ones, fewer of the long ones."""
    lengths = list(range(1, 11))
    while lengths[-1] < LONGEST:
        lengths.append(min(LONGEST, math.ceil(lengths[-1] * 1.08)))
    return tuple(lengths)


LENGTHS: Final = _some_lengths()


@cache
def _weights(ticks: int) -> tuple[Array, Array]:
    """Return the plans of `ticks` steps as linear maps of what is known.

    Minimises the sum of squared jerks, the one back to zero included, under the condition that the
    velocity ends at zero and, for the second map, that the way is gone. Shapes
    (4, ticks + 1, 2) for known velocity and acceleration, and (4, ticks + 1, 3) for those and the
    way; the four are displacement, velocity, acceleration and jerk at each tick.
    """
    change = np.eye(ticks + 1, ticks) - np.eye(ticks + 1, ticks, k=-1)
    flat = np.linalg.inv(change.T @ change)
    ends = np.vstack([np.ones(ticks), np.arange(ticks, 0.0, -1.0)])  # velocity, way
    wanted = np.array([[-1.0, 0.0, 0.0], [-float(ticks), 0.0, 1.0]])
    maps = []
    for conditions in (1, 2 if ticks > 1 else 1):
        bound, goal = ends[:conditions], wanted[:conditions]
        free = np.zeros((ticks, 3))
        free[:, 1] = flat[:, 0]  # without conditions, from the present acceleration alone
        pull = np.linalg.solve(bound @ flat @ bound.T, goal - bound @ free)
        acceleration = np.vstack([free + flat @ bound.T @ pull, np.zeros(3)])
        present = np.array([[0.0, 1.0, 0.0]])
        jerk = np.diff(np.vstack([present, acceleration]), axis=0)
        velocity = np.cumsum(acceleration, axis=0) + np.array([1.0, 0.0, 0.0])
        maps.append(np.array([np.cumsum(velocity, axis=0), velocity, acceleration, jerk]))
    return np.ascontiguousarray(maps[0][:, :, :2]), maps[1]
