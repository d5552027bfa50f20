"""A control: the recoveries of a bundle at times that have nothing to do with what happens.

The times are those at which the bundle itself intervened in other episodes, so that only the
critics' choice of the moment is taken away, not when and how often recoveries come.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np

from zetta.runtime.core import Verdict, Window
from zetta.runtime.errors import ConfigError, SpecMismatch
from zetta.runtime.skill_arbiter import SKILL_PREFIX

PATIENCE_S = 1.0
"""A trigger whose skill cannot start (its precondition fails) is repeated for so long."""


@dataclass(frozen=True, slots=True)
class Trigger:
    """One intervention of a past episode."""

    share: float
    """When, as a share of the task's step budget."""
    skill: str


Episode: TypeAlias = tuple[Trigger, ...]
"""The interventions of one episode, in order; empty where there was none."""


@dataclass(frozen=True, slots=True)
class RandomState:
    """What a `RandomMonitor` remembers."""

    ticks: tuple[int, ...]
    """When the triggers are due: another draw cannot go on."""
    tick: int
    following: int
    """Index of the trigger that comes next."""


class RandomMonitor:
    """Asks for the skills of a randomly drawn past episode, at its times."""

    def __init__(self, past: Sequence[Episode], max_steps: int, seed: Sequence[int]) -> None:
        """Draw from `past` with `seed`; equal seeds give equal triggers.

        Raises:
            ConfigError: there is no past episode.
        """
        if not past:
            raise ConfigError("there is no past episode to take the times of interventions from")
        drawn = past[int(np.random.default_rng(seed).integers(len(past)))]
        self._plan = tuple((round(t.share * max_steps), t.skill) for t in drawn)
        self.begin()

    def begin(self) -> None:
        """Start at tick 0, with the same draw."""
        self._tick = 0
        self._next = 0

    def judge(self, window: Window, driving: str) -> tuple[Verdict, ...]:
        """Return the recovery that is due, if any."""
        tick, self._tick = self._tick, self._tick + 1
        while self._next < len(self._plan):
            due, skill = self._plan[self._next]
            if tick < due:
                return ()
            over = tick > due + PATIENCE_S * window.control_hz
            if not over and driving != SKILL_PREFIX + skill:
                return (Verdict("recover", "drawn at random", "random", skill),)
            self._next += 1
        return ()

    def state(self) -> RandomState:
        """Return all that is remembered."""
        return RandomState(tuple(tick for tick, _ in self._plan), self._tick, self._next)

    def restore(self, state: RandomState) -> None:
        """Continue from `state`.

        Raises:
            SpecMismatch: it is one of another draw.
        """
        if state.ticks != self.state().ticks:
            raise SpecMismatch("the state is one of another random draw; use the same seeds")
        self._tick, self._next = state.tick, state.following


def read_triggers(path: Path) -> tuple[Episode, ...]:
    """Read the interventions of past episodes.

    Raises:
        ConfigError: there is no such file, or it holds something else.
    """
    try:
        plain = json.loads(path.read_text(encoding="utf-8"))
        return tuple(
            tuple(Trigger(float(each["share"]), str(each["skill"])) for each in episode)
            for episode in plain["episodes"]
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ConfigError(
            f"{path} holds no times of interventions ({error}); the control `random` needs those "
            "of the bundle on development scenes"
        ) from error


def triggers_text(episodes: Sequence[Episode]) -> str:
    """Return interventions as the text that `read_triggers` reads, one episode a line."""
    lines = [
        json.dumps([{"share": round(t.share, 4), "skill": t.skill} for t in episode])
        for episode in episodes
    ]
    return '{"episodes": [\n' + ",\n".join(lines) + "\n]}\n"
