"""How far an episode got: the milestones of its goals, read from logged simulator truth.

A goal that moves a thing (`on red_cube green_plate`) has six milestones: the hand reached it, the
fingers have it, it is raised, it is at its target, it is let go, the goal holds. A goal that works
a part (`open wooden_cabinet_1_top_region`, `turnon flat_stove_1`) has two: the joint moved, the
goal holds. Where the thing belongs is learnt from successes, because truth tells where a cabinet
stands, and not where the region on it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from zetta.primitives.roles import Roles, roles_or_none
from zetta.runtime.core import Array, Truth
from zetta.runtime.errors import ConfigError
from zetta.skills.evolve.observed import ObservedEpisode

CARRIED_M: Final = 0.05
"""Distance from the grip site to the origin of what is held, where no success shows it."""
REACH_MARGIN_M: Final = 0.05
"""The hand is at a thing when it is no further from it than while carrying it, by this margin."""
LOSS_MARGIN_M: Final = 0.09
"""What is further off than while it is carried, by this margin, is not held."""
LIFTED_M: Final = 0.02
EMPTY_M: Final = 0.0025
"""Fingers closed beyond this hold nothing; see `GripperLimits`."""
CLOSED_M: Final = 0.002
"""Fingers have closed when they are this much narrower than their widest."""
REST_M_S: Final = 0.005
REST_TICKS: Final = 3
OPENED_M: Final = 0.005
"""Fingers that open by this much have let go."""
JOINT_MOVED: Final = 0.01
"""A part is worked when its joint moved by this much, in metres or radians."""
PLACE_RADIUS_M: Final = 0.03
"""A thing within this distance of where successes leave it is at its target."""

Kind: TypeAlias = Literal["place", "part"]
PLACE_MILESTONES: Final = ("reached", "grasped", "lifted", "at target", "released", "done")
PART_MILESTONES: Final = ("moved", "done")
_PLACING: Final = frozenset({"on", "in"})
_WORKING: Final = frozenset({"open", "close", "turnon", "turnoff"})
Flags: TypeAlias = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Goal:
    """One goal predicate, bound to the things of its scene."""

    text: str
    kind: Kind
    item: str
    """The thing that is moved, or the fixture whose part is worked."""
    target: str | None = None
    """The thing it goes to; None for a place on the table and for parts."""
    joint: str | None = None

    @property
    def milestones(self) -> tuple[str, ...]:
        """Names of its milestones, in order."""
        return PLACE_MILESTONES if self.kind == "place" else PART_MILESTONES


@dataclass(frozen=True, slots=True)
class Habit:
    """How successes handle a thing: how they hold it and where they leave it."""

    offset: Array
    """Where it ends in the frame of its target (yaw only), horizontally, metres. Shape (2,)."""
    radius: float
    """How near to that is at the target, metres."""
    carried: float = CARRIED_M
    """Distance from the hand to its origin while it is carried, metres: a bottle is held by its
    neck, a bowl by its rim."""


Habits: TypeAlias = Mapping[tuple[str, str], Habit]
"""By task and text of the goal."""


@dataclass(frozen=True, slots=True)
class Milestone:
    """One step on the way to a goal."""

    name: str
    goal: str
    tick: int | None
    """First tick before which it held; the number of ticks where only the end shows it. None when
    it never did."""


@dataclass(frozen=True, slots=True)
class Progress:
    """The milestones of an episode, goal after goal."""

    milestones: tuple[Milestone, ...]

    @property
    def missing(self) -> Milestone | None:
        """The first milestone that was never met; None when all were."""
        return next((each for each in self.milestones if each.tick is None), None)

    def phases(self, ticks: int) -> npt.NDArray[np.int64]:
        """Return which milestone is awaited before each action, by its place. Shape (ticks,).

        A milestone that was met early does not count before those in front of it.
        """
        met = [ticks if each.tick is None else each.tick for each in self.milestones]
        reached = np.maximum.accumulate(np.array(met))
        awaited = (np.arange(ticks)[:, None] >= reached[None, :]).sum(axis=1)  # (T,)
        return np.asarray(np.minimum(awaited, len(met) - 1), dtype=np.int64)


# ---------------------------------------------------------------------------- goals


def goals_of(episode: ObservedEpisode) -> tuple[Goal, ...]:
    """Return the goals of an episode in the order in which its instruction names them.

    Raises:
        ConfigError: there is no goal, or one of an unknown kind.
    """
    truth = episode.truths[0]
    if not truth.predicates:
        raise ConfigError(
            f"{episode.name} has no goal predicate, so it has no milestones; diagnose tasks whose "
            "simulator tells its goals"
        )
    goals = [_bound(text, truth, episode.name) for text in truth.predicates]
    roles = roles_or_none(episode.instruction)
    if roles is not None and len(goals) > 1:
        goals.sort(key=lambda goal: _place_in(roles, goal))
    return tuple(goals)


def _bound(text: str, truth: Truth, name: str) -> Goal:
    verb, *words = text.split()
    if verb in _PLACING and len(words) == 2 and words[0] in truth.objects:
        return Goal(text, "place", words[0], _owner(words[1], truth))
    if verb in _WORKING and len(words) == 1:
        owner = _owner(words[0], truth)
        joint = _joint(words[0], truth)
        if owner is not None and joint is not None:
            return Goal(text, "part", owner, joint=joint)
    raise ConfigError(
        f"the goal {text!r} of {name} is of no known kind; known are 'on' and 'in' with a thing "
        "of the scene and its target, and 'open', 'close', 'turnon', 'turnoff' with a part that "
        "has a joint; leave these logs out"
    )


def _owner(region: str, truth: Truth) -> str | None:
    """Return the thing that a region is on: the longest name that the region's begins with."""
    names = [n for n in truth.objects if region == n or region.startswith(f"{n}_")]
    return max(names, key=len, default=None)


def _joint(region: str, truth: Truth) -> str | None:
    """Return the joint that shares the longest beginning with a region, words counted."""

    def shared(joint: str) -> int:
        pairs = zip(region.split("_"), joint.split("_"), strict=False)
        return next((i for i, (a, b) in enumerate(pairs) if a != b), min(_words(region, joint)))

    owner = _owner(region, truth)
    own = [j for j in truth.joints if owner is not None and j.startswith(f"{owner}_")]
    return max(own, key=shared, default=None)


def _words(*names: str) -> list[int]:
    return [len(name.split("_")) for name in names]


def _place_in(roles: Roles, goal: Goal) -> int:
    """Return which errand a goal belongs to: the one whose phrase shares most words with it."""
    own = set(goal.text.split()[1].split("_"))
    shares = [
        max((len(own & set(str(p).split())) for p in step.phrases.values()), default=0)
        for step in roles.steps
    ]
    return int(np.argmax(shares))


# ---------------------------------------------------------------------------- habits


def learn_habits(successes: Sequence[ObservedEpisode]) -> Habits:
    """Return how successes handle what their goals move."""
    seen: dict[tuple[str, str], list[tuple[Array, float]]] = {}
    for episode in successes:
        for goal in goals_of(episode):
            if goal.kind == "place":
                end = target_offset(episode.truths[-1], goal)
                seen.setdefault((episode.task, goal.text), []).append((end, _carry(episode, goal)))
    habits = {}
    for key, each in seen.items():
        ends, carried = np.array([end for end, _ in each]), np.array([far for _, far in each])
        middle = np.median(ends, axis=0)
        widest = float(np.linalg.norm(ends - middle, axis=1).max())
        known = carried[np.isfinite(carried)]
        habits[key] = Habit(
            middle,
            max(PLACE_RADIUS_M, widest),
            float(np.median(known)) if len(known) else CARRIED_M,
        )
    return habits


def _carry(episode: ObservedEpisode, goal: Goal) -> float:
    """Return the median distance from the hand to a raised thing; NaN if it never was raised."""
    positions = track(episode, goal.item)
    apart, opening, _ = nearest_hand(episode, positions[:-1])
    raised = positions[:-1, 2] - positions[0, 2] >= LIFTED_M
    carried = raised & (opening <= np.maximum.accumulate(opening) - CLOSED_M)
    distance = np.linalg.norm(apart, axis=1)[carried]
    return float(np.median(distance)) if len(distance) else float("nan")


def target_offset(truth: Truth, goal: Goal) -> Array:
    """Return where the item is in the frame of its target, horizontally, metres. Shape (2,)."""
    item = truth.objects[goal.item]
    if goal.target is None:
        return np.array(item[:2])
    target = truth.objects[goal.target]
    x, y, z, w = target[3:7]
    yaw = np.arctan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z))
    c, s = np.cos(yaw), np.sin(yaw)
    return np.array([[c, s], [-s, c]]) @ (item[:2] - target[:2])


# ---------------------------------------------------------------------------- progress


def progress_of(
    episode: ObservedEpisode,
    goals: Sequence[Goal],
    habits: Habits,
) -> Progress:
    """Return the milestones of an episode.

    A goal that holds needs nothing before it: what was skipped is met with it, as when a thing is
    pushed to its target. Without a habit, "at target" is met when the thing is let go.
    """
    met: list[Milestone] = []
    for goal in goals:
        if goal.kind == "place":
            ticks = _carrying(episode, goal, habits.get((episode.task, goal.text)))
        else:
            ticks = [_first(_joint_moved(episode, goal))]
        done = _first(np.array([truth.predicates[goal.text] for truth in episode.truths]))
        if done is not None:
            ticks = [done if tick is None else min(tick, done) for tick in ticks]
        names = goal.milestones
        met += [Milestone(n, goal.text, t) for n, t in zip(names, [*ticks, done], strict=True)]
    return Progress(tuple(met))


def nearest_hand(episode: ObservedEpisode, positions: Array) -> tuple[Array, Array, Array]:
    """Return how a thing's nearest hand is to it.

    Args:
        episode: of T ticks.
        positions: of the thing, before each action. Shape (T, 3).

    Returns:
        The vectors from thing to hand, shape (T, 3), that hand's opening, shape (T,), both in
        metres, and whether it is told to close, shape (T,).
    """
    apart = episode.hands - positions[:, None]  # (T, arms, 3)
    near = np.linalg.norm(apart, axis=2).argmin(axis=1)
    rows = np.arange(len(near))
    return apart[rows, near], episode.openings[rows, near], episode.closing[rows, near]


def track(episode: ObservedEpisode, name: str) -> Array:
    """Return where a thing is at every moment, metres. Shape (T + 1, 3)."""
    return np.array([truth.objects[name][:3] for truth in episode.truths])


def _carrying(episode: ObservedEpisode, goal: Goal, habit: Habit | None) -> list[int | None]:
    positions = track(episode, goal.item)
    apart, opening, _ = nearest_hand(episode, positions[:-1])
    distance = np.linalg.norm(apart, axis=1)
    carried = CARRIED_M if habit is None else habit.carried
    near, held = distance <= carried + REACH_MARGIN_M, distance <= carried + LOSS_MARGIN_M
    raised = positions[:-1, 2] - positions[0, 2] >= LIFTED_M
    reached = _first(near)
    # What is raised in the hand was grasped, even if the fingers were never seen at rest.
    gripped = _gripping(opening, episode.control_hz)
    grasped = _first((near & gripped) | (held & raised & gripped), reached)
    lifted = _first(held & raised, grasped)
    if habit is None:
        let_go = _let_go(opening, held, lifted)
        return [reached, grasped, lifted, let_go, let_go]
    offsets = np.array([target_offset(truth, goal) for truth in episode.truths[:-1]])
    there = _first(np.linalg.norm(offsets - habit.offset, axis=1) <= habit.radius, lifted)
    return [reached, grasped, lifted, there, _let_go(opening, held, there)]


def _gripping(opening: Array, control_hz: float) -> Flags:
    """Tell where fingers have closed, rest, and are not shut."""
    still = np.abs(np.diff(opening, prepend=opening[0])) * control_hz < REST_M_S
    resting = np.convolve(still, np.ones(REST_TICKS))[: len(still)] >= REST_TICKS
    closed = opening <= np.maximum.accumulate(opening) - CLOSED_M
    return np.asarray(resting & closed & (opening > EMPTY_M))


def _let_go(opening: Array, held: Flags, since: int | None) -> int | None:
    if since is None:
        return None
    narrowest = np.full(len(opening), np.inf)
    narrowest[since:] = np.minimum.accumulate(opening[since:])
    return _first((opening >= narrowest + OPENED_M) | ~held, since)


def _joint_moved(episode: ObservedEpisode, goal: Goal) -> Flags:
    assert goal.joint is not None
    values = np.array([truth.joints[goal.joint] for truth in episode.truths])
    return np.asarray(np.abs(values - values[0]) >= JOINT_MOVED)


def _first(flags: Flags, since: int | None = 0) -> int | None:
    """Return the first true place at or after `since`; None without one."""
    if since is None:
        return None
    found = np.flatnonzero(flags[since:])
    return since + int(found[0]) if len(found) else None
