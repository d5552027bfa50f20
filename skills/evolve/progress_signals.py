"""What progress looks like: numbers of hand, thing and target that do not depend on the scene."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from zetta.runtime.core import Array
from zetta.skills.evolve.milestones import (
    Goal,
    Habits,
    Progress,
    goals_of,
    nearest_hand,
    progress_of,
    target_offset,
    track,
)
from zetta.skills.evolve.observed import ObservedEpisode

SETTLE: Final[dict[str, float]] = {
    "hand_to_item_xy": 0.01,
    "hand_above_item": 0.01,
    "approach_item": 0.10,
    "item_to_target_xy": 0.01,
    "approach_target": 0.10,
    "item_raised": 0.01,
    "item_speed": 0.05,
    "item_moved_xy": 0.01,
    "joint_moved": 0.02,
    "opening": 0.004,
    "opening_speed": 0.04,
    "told_to_close": 0.25,
    "told_for": 0.1,
    "hand_speed": 0.10,
    "others_moved": 0.01,
    "phase_age": 0.5,
}
"""Differences that are too small to mean anything, in metres, m/s, radians or seconds."""

TOLD_S: Final = 1.0
"""Fingers obey a command within this time; how long it stands after that means nothing."""


@dataclass(frozen=True, slots=True)
class Course:
    """How one episode went, tick by tick."""

    episode: ObservedEpisode
    goals: tuple[Goal, ...]
    progress: Progress
    phases: npt.NDArray[np.int64]
    """Which milestone is awaited before each action. Shape (T,)."""
    values: Array
    """Columns in the order of `SETTLE`; 0 where a column has no meaning. Shape (T, columns)."""

    @property
    def kind(self) -> tuple[tuple[str, ...], ...]:
        """What its milestones are called: courses of one kind can be compared."""
        return tuple(goal.milestones for goal in self.goals)


def course_of(episode: ObservedEpisode, habits: Habits) -> Course:
    """Return the course of an episode.

    Raises:
        ConfigError: its goals are of no known kind.
    """
    goals = goals_of(episode)
    progress = progress_of(episode, goals, habits)
    phases = progress.phases(episode.ticks)
    of_goal = [i for i, goal in enumerate(goals) for _ in goal.milestones]
    values = np.zeros((episode.ticks, len(SETTLE)))
    for i, goal in enumerate(goals):
        rows = np.array([of_goal[phase] == i for phase in phases])
        if rows.any():
            values[rows] = _columns(episode, goal, goals, habits)[rows]
    values[:, -1] = _ages(phases) / episode.control_hz
    return Course(episode, goals, progress, phases, values)


def _columns(episode: ObservedEpisode, goal: Goal, goals: Sequence[Goal], habits: Habits) -> Array:
    """Return every column but the age, as seen from one goal. Shape (T, columns)."""
    hz = episode.control_hz
    places = track(episode, goal.item)[:-1]
    apart, opening, closing = nearest_hand(episode, places)
    across = np.linalg.norm(apart[:, :2], axis=1)
    to_target = np.zeros(episode.ticks)
    habit = habits.get((episode.task, goal.text))
    if goal.kind == "place" and habit is not None:
        offsets = np.array([target_offset(truth, goal) for truth in episode.truths[:-1]])
        to_target = np.linalg.norm(offsets - habit.offset, axis=1)
    joint = np.zeros(episode.ticks)
    if goal.joint is not None:
        joint = np.array([truth.joints[goal.joint] for truth in episode.truths[:-1]])
    found = {
        "hand_to_item_xy": across,
        "hand_above_item": apart[:, 2],
        "approach_item": -_rate(np.linalg.norm(apart, axis=1), hz),
        "item_to_target_xy": to_target,
        "approach_target": -_rate(to_target, hz),
        "item_raised": places[:, 2] - places[0, 2],
        "item_speed": np.linalg.norm(_rate(places, hz), axis=1),
        "item_moved_xy": np.linalg.norm(places[:, :2] - places[0, :2], axis=1),
        "joint_moved": np.abs(joint - joint[0]),
        "opening": opening,
        "opening_speed": _rate(opening, hz),
        "told_to_close": closing,
        "told_for": np.minimum(_ages(closing) / hz, TOLD_S),
        "hand_speed": np.linalg.norm(_rate(apart + places, hz), axis=1),
        "others_moved": _others_moved(episode, {g.item for g in goals}),
        "phase_age": np.zeros(episode.ticks),
    }
    return np.stack([found[name] for name in SETTLE], axis=1)


def _rate(values: Array, hz: float) -> Array:
    return np.asarray(np.diff(values, axis=0, prepend=values[:1]) * hz)


def _others_moved(episode: ObservedEpisode, items: set[str]) -> Array:
    """Return how far the most displaced thing that no goal moves is from its start. Shape (T,)."""
    others = [name for name in episode.truths[0].objects if name not in items]
    moved = [
        np.linalg.norm(track(episode, name)[:-1] - track(episode, name)[0], axis=1)
        for name in others
    ]
    return np.asarray(np.max(moved, axis=0)) if moved else np.zeros(episode.ticks)


def _ages(values: npt.NDArray[Any]) -> Array:
    """Return for how many ticks each value has lasted. Shape (T,)."""
    began = np.zeros(len(values))
    starts = np.flatnonzero(np.diff(values, prepend=np.nan) != 0)
    began[starts] = starts
    return np.asarray(np.arange(len(values)) - np.maximum.accumulate(began))
