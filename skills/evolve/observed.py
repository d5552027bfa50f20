"""Logged episodes as diagnosis sees them, simulator truth included.

This is the one place of evolution that opens simulator truth: for labels and diagnosis. What is
learnt from it names ticks, milestones and groups; no critic, author or prompt gets the file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from zetta.runtime.core import ActionSpec, Array, Tick, Truth
from zetta.runtime.episode_log import EpisodeHeader, LoggedEpisode, read_truth
from zetta.runtime.errors import ConfigError

SHORTEST = 4
"""An episode of fewer ticks says nothing about how it went."""


@dataclass(frozen=True, slots=True)
class ObservedEpisode:
    """One episode that was carried out, with what was true at each of its T ticks."""

    name: str
    """Where its log lies."""
    task: str
    """Suite and number, such as `toy_pick/0`."""
    instruction: str
    """The task's own."""
    control_hz: float
    success: bool
    hands: Array
    """Position of every hand before each action, world frame, metres. Shape (T, arms, 3)."""
    openings: Array
    """Finger opening of every hand, metres. Shape (T, arms)."""
    closing: Array
    """Whether the action closes that hand, 1 or 0. Shape (T, arms)."""
    truths: tuple[Truth, ...]
    """Before each action, and at the end; T + 1 of them."""
    signals: Mapping[str, Array]
    """By name, each of shape (T,); NaN where unknown."""

    @property
    def ticks(self) -> int:
        """Number of ticks T."""
        return len(self.hands)


def observe_log(folder: Path, logged: LoggedEpisode) -> ObservedEpisode:
    """Return a log together with its truth.

    Raises:
        ConfigError: the log holds no truth, is cut short, or is too short.
    """
    return observe(str(folder), logged.header, logged.ticks, read_truth(folder))


def observe(
    name: str, header: EpisodeHeader, ticks: Sequence[Tick], truths: Sequence[Truth | None]
) -> ObservedEpisode:
    """Return an episode as diagnosis sees it.

    Args:
        name: what the episode is called in the diagnosis.
        header: what was run and what came of it.
        ticks: one for each action.
        truths: of the settled scene and after each action.

    Raises:
        ConfigError: truth is missing for a tick, or there are too few ticks.
    """
    known = tuple(truth for truth in truths if truth is not None)
    if len(known) != len(ticks) + 1:
        raise ConfigError(
            f"{name} holds simulator truth for {len(known)} moments, expected {len(ticks) + 1}; "
            "diagnose episodes of a simulator that tells truth at every tick"
        )
    if len(ticks) < SHORTEST:
        raise ConfigError(
            f"{name} has {len(ticks)} ticks, expected at least {SHORTEST}; leave this log out"
        )
    # The task's own instruction and goal count, not what a control experiment told the policy.
    task = header.scene.task
    names = ticks[-1].signals.keys()
    return ObservedEpisode(
        name=name,
        task=f"{task.suite}/{task.index}",
        instruction=task.instruction,
        control_hz=header.spec.control_hz,
        success=header.result.success,
        hands=np.array([[arm.ee_pos for arm in tick.proprio.arms] for tick in ticks]),
        openings=np.array([[a.gripper_opening for a in tick.proprio.arms] for tick in ticks]),
        closing=_closing(ticks, header.spec.action, len(header.spec.arms)),
        truths=known,
        signals={
            each: np.array([tick.signals.get(each, np.nan) for tick in ticks])
            for each in sorted(names)
        },
    )


def _closing(ticks: Sequence[Tick], spec: ActionSpec, arms: int) -> Array:
    """Return whether each action closes each hand; the gripper is the last of an arm's numbers."""
    rows = np.array([tick.action for tick in ticks]).reshape(len(ticks), arms, -1)  # (T, arms, N)
    half = (spec.gripper_open + spec.gripper_close) / 2.0
    beyond = (rows[:, :, -1] - half) * np.sign(spec.gripper_close - spec.gripper_open) > 0.0
    return np.asarray(beyond, dtype=np.float64)
