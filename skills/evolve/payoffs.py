"""What an alarm is worth: estimated from logs and from branches of failures, without a new episode.

A critic is worth its rescues minus the successes that it interrupts, minus what the same recovery
would get at the alarm times of *other* episodes. The gate asks a candidate to beat such a trigger,
so what remains is for timing and for telling failures from successes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from zetta.runtime.core import Array
from zetta.skills.evolve.authors import Brief, ProgramTrial, WatchedEpisode
from zetta.skills.evolve.critic_arrays import Corpus
from zetta.skills.evolve.window_arrays import Flags, Ticks

LEAST_HARM: Final = 0.3
"""What interrupting a success costs at least, however good the recovery is."""
CONTROL_WEIGHT: Final = 0.5
"""Share of the worth of a time-matched trigger that is taken off."""
OWN_S: Final = 0.75
"""Trials of the same episode tell about moments so near, seconds."""
OTHER_S: Final = 1.5
"""Trials of another one, at the same time after its divergence, about moments so near."""
OTHER_WEIGHT: Final = 0.2
"""What a trial of another episode counts beside one of the same."""
PRIOR_RUNS: Final = 1.0
"""How many runs the success rate of all trials of a program stands for."""
CONTROLS: Final = ("unchanged", "fresh sample")


@dataclass(frozen=True, slots=True)
class PayoffTable:
    """What starting one program at each tick of each episode is worth."""

    worth: Array
    """Shape (E, T); 0 where nothing is gained or lost, and after the end."""
    failures: Flags
    """Which episodes belong to the group of failures. Shape (E,)."""

    def payoff(self, alarms: Ticks, among: Ticks) -> float:
        """Return the worth of alarms, for each failure of the group.

        Args:
            alarms: first tick of each episode at which it starts; -1 for never. Shape (E,).
            among: which episodes count. Shape (K,).
        """
        failures = int(self.failures[among].sum())
        if failures == 0 or len(among) < 2:
            return 0.0
        worth = self.worth[among]
        at = alarms[among]
        own = _picked(worth, at)
        # Everybody else's alarm times, by way of all minus one's own.
        matched = worth[:, at[at >= 0]].sum(axis=1) - own
        control = matched / (len(among) - 1)
        # A trigger that does harm is no reason to like one's own.
        return float(own.sum() - CONTROL_WEIGHT * max(0.0, float(control.sum()))) / failures


def _picked(worth: Array, at: Ticks) -> Array:
    picked = worth[np.arange(len(at)), np.maximum(at, 0)]
    return np.where(at >= 0, picked, 0.0)


class Trials:
    """How branches of the failures ended, by program."""

    def __init__(self, brief: Brief, episodes: Sequence[WatchedEpisode]) -> None:
        self._episodes = episodes
        self._hz = episodes[0].control_hz if episodes else 1.0
        self._by_name = {episode.name: k for k, episode in enumerate(episodes)}
        self._rows: dict[str, list[tuple[int, int, int, int]]] = {}
        self._lasted: dict[str, list[int]] = {}
        for trial in brief.trials:
            successes, runs = _counts(trial)
            if runs and trial.episode in self._by_name:
                row = (self._by_name[trial.episode], trial.at, successes, runs)
                self._rows.setdefault(trial.program, []).append(row)
                took = [run.ticks for run in trial.runs if run.success]
                self._lasted.setdefault(trial.program, []).extend(took)

    @property
    def programs(self) -> tuple[str, ...]:
        """Recoveries that were tried, the one that succeeded most often first."""
        tried = [name for name in self._rows if name not in CONTROLS]
        return tuple(sorted(tried, key=lambda name: (-self.rate(name), name)))

    def rate(self, program: str) -> float:
        """Return in which share of all its runs a program succeeded; 0 when it was not tried."""
        rows = self._rows.get(program, [])
        runs = sum(row[3] for row in rows)
        return sum(row[2] for row in rows) / runs if runs else 0.0

    def chances(self, program: str, episode: int, ticks: int) -> Array:
        """Return the chance of success when a program starts at each tick. Shape (ticks,)."""
        rows = self._rows.get(program, [])
        if not rows:
            return np.zeros(ticks)
        of, at, successes, runs = (np.array(column) for column in zip(*rows, strict=True))
        moments = np.arange(ticks)
        own = np.exp(-np.abs(moments[:, None] - at) / (OWN_S * self._hz)) * (of == episode)
        clocks = np.array([self._clock(k) for k in of])
        apart = (moments[:, None] - self._clock(episode)) - (at - clocks)
        other = np.exp(-np.abs(apart) / (OTHER_S * self._hz)) * (of != episode)
        weights = own + OTHER_WEIGHT * other  # (T, K)
        prior = self.rate(program)
        total = weights @ successes + PRIOR_RUNS * prior
        return np.asarray(total / (weights @ runs + PRIOR_RUNS)) * self._in_time(
            program, episode, ticks
        )

    def _in_time(self, program: str, episode: int, ticks: int) -> Array:
        """Return which share of the successes fits into what is left. Shape (ticks,)."""
        lasted = np.sort(self._lasted.get(program, []))
        left = self._episodes[episode].max_steps - np.arange(ticks)
        return np.asarray(np.searchsorted(lasted, left, side="right") / max(len(lasted), 1))

    def _clock(self, episode: int) -> float:
        """Return the tick that times are compared from: the divergence, or where one is usual."""
        known = self._episodes[episode].divergence
        if known is not None:
            return float(known)
        usual = [e.divergence for e in self._episodes if e.divergence is not None]
        return float(np.median(usual)) if usual else 0.0


def _counts(trial: ProgramTrial) -> tuple[int, int]:
    """Return successes and runs; equal traces are one run, errors of the machinery none."""
    ended = {run.trace or str(run.seed): run for run in trial.runs if run.success is not None}
    return sum(run.success is True for run in ended.values()), len(ended)


def payoff_table(
    program: str,
    trials: Trials,
    episodes: Sequence[WatchedEpisode],
    of_cluster: int,
    startable: Sequence[Flags],
) -> PayoffTable:
    """Return what starting a program is worth.

    Args:
        program: name of the recovery.
        trials: how branches ended.
        episodes: the failures of the group, then other failures, then successes.
        of_cluster: how many belong to the group.
        startable: where the precondition holds, by episode. Shape (T,) each.
    """
    longest = max((len(episode.ticks) for episode in episodes), default=1)
    worth = np.zeros((len(episodes), max(longest, 1)))
    for k, episode in enumerate(episodes):
        ticks = len(episode.ticks)
        if k < of_cluster:
            helped = trials.chances(program, k, ticks)
            # What it gains is what neither going on nor beginning anew would have gained.
            without = [trials.chances(control, k, ticks) for control in CONTROLS]
            gain = helped - np.max(without, axis=0)
        elif episode.success:
            gain = -np.maximum(LEAST_HARM, 1.0 - trials.chances(program, k, ticks))
        else:
            gain = np.zeros(ticks)
        worth[k, :ticks] = np.where(startable[k], gain, 0.0)
    return PayoffTable(worth, np.arange(len(episodes)) < of_cluster)


def first_alarms(fires: Flags, startable: Flags, corpus: Corpus) -> Ticks:
    """Return the first tick of each episode at which an alarm starts the recovery, or -1.

    Args:
        fires: what the critic says at every row of the corpus. Shape (N,).
        startable: where the recovery may start. Shape (N,).
        corpus: the episodes.

    Returns:
        Ticks. Shape (E,).
    """
    rows = np.flatnonzero(fires & startable)
    if not len(rows):
        return np.full(len(corpus.starts), -1)
    found = np.searchsorted(rows, corpus.starts)
    first = rows[np.minimum(found, len(rows) - 1)]
    inside = (found < len(rows)) & (first < corpus.starts + corpus.lengths)
    return np.where(inside, first - corpus.starts, -1)


def driven_by_policy(corpus: Corpus) -> Flags:
    """Return at which rows a recovery may interrupt: those at which the policy drives."""
    drives = corpus.columns.get("policy_drives")
    return np.ones(corpus.rows, np.bool_) if drives is None else drives > 0.5


def split_flags(flags: Flags, corpus: Corpus) -> list[Flags]:
    """Return the part of each episode. Shape (T,) each."""
    return [
        flags[start : start + length]
        for start, length in zip(corpus.starts, corpus.lengths, strict=True)
    ]
