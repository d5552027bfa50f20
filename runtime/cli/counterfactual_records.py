"""What comes of a counterfactual: how exact it is, and what each branch came to."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from zetta.runtime.cli.counterfactual_request import Branch
from zetta.runtime.core import Array, EnvSpec, EpisodeResult, Recovery, Scene, Step, Tick
from zetta.runtime.episode_log import HEADER, LoggedEpisode, read_episode
from zetta.runtime.errors import SpecMismatch
from zetta.runtime.skill_arbiter import ORDER


@dataclass(frozen=True, slots=True)
class Exactness:
    """How well the episode came out again, up to the tick of the branch."""

    ticks: int
    """How many were compared, from the reset on."""
    first: int | None = None
    """The first that differs."""
    action: float = 0.0
    """Largest difference of an action."""
    state: float = 0.0
    """Largest difference of what was logged to draw the world: metres, radians, or the like."""

    @property
    def equal(self) -> bool:
        """Every action and every state is that of the log, bit for bit."""
        return self.first is None

    def __str__(self) -> str:
        if self.equal:
            return f"{self.ticks} ticks repeated, every action and state equal to the log"
        return (
            f"from tick {self.first} on it differs from the log, actions by up to "
            f"{self.action:.3g} and states by up to {self.state:.3g}"
        )


@dataclass(frozen=True, slots=True)
class Continuation:
    """One branch, run to its end."""

    branch: Branch
    seed: int
    """Of the policy, from the tick of the branch on; the first one is that of the episode."""
    success: bool | None
    """None after an error of the machinery: it is no score."""
    reason: str = ""
    ticks: int = 0
    """Of the whole episode."""
    sources: Mapping[str, int] = field(default_factory=dict)
    """Who drove how many ticks from the tick of the branch on."""
    differs_at: int | None = None
    """First tick that is not that of the log; None where all are, to the end."""
    ending: str = ""
    """How the recovery that was ordered ended."""
    log: str = ""
    trace: str = ""
    """SHA-256 of all actions and who gave them: equal traces are one and the same run."""
    error: str = ""


@dataclass(slots=True)
class Recorded:
    """A sink that keeps what happened."""

    settled: Step | None = None
    moments: list[tuple[Tick, Step, Array | None]] = field(default_factory=list)

    def begin(self, scene: Scene, spec: EnvSpec, instruction: str, step: Step) -> None:
        """Keep the settled scene."""
        self.settled = step

    def tick(self, tick: Tick, step: Step, pose: Array | None) -> None:
        """Keep one tick."""
        self.moments.append((tick, step, pose))

    def end(self, result: EpisodeResult, pose: Array | None) -> None:
        """Need nothing more."""


def compare(
    record: LoggedEpisode,
    moments: Sequence[tuple[Tick, Step, Array | None]],
    pose: Array | None,
) -> Exactness:
    """Compare ticks that were run again with the log, from its first one on.

    `pose` is that of the moment after them.

    Raises:
        SpecMismatch: the states are not of the same world.
    """
    first: int | None = None
    action = state = 0.0
    poses = [pose for _, _, pose in moments] + [pose]
    for index in range(len(moments) + 1):
        apart = _apart(None if record.poses is None else record.poses[index], poses[index])
        wide = 0.0
        if index < len(moments):
            wide = _apart(record.ticks[index].action, moments[index][0].action)
        if first is None and (apart > 0.0 or wide > 0.0):
            first = index
        action, state = max(action, wide), max(state, apart)
    return Exactness(len(moments), first, action, state)


def _apart(one: Array | None, other: Array | None) -> float:
    """Return the largest difference; what was not logged is not compared."""
    if one is None or other is None:
        return 0.0
    if one.shape != other.shape:
        raise SpecMismatch(
            f"the log has states of the shape {one.shape} and this simulator {other.shape}; it is "
            "another version of the simulator or of its model"
        )
    return float(np.max(np.abs(one - other), initial=0.0))


def continuation_of(
    branch: Branch, seed: int, log: Path, record: LoggedEpisode, tick: int
) -> Continuation:
    """Return what the log of a branch tells.

    Raises:
        ConfigError: there is no such log.
    """
    told = read_episode(log)
    result = told.header.result
    actions = [(t.source, t.action.tobytes()) for t in told.ticks]
    logged = [(t.source, t.action.tobytes()) for t in record.ticks]
    pairs = zip(actions, logged, strict=False)
    differs = next((i for i, (new, old) in enumerate(pairs) if new != old), None)
    if differs is None and len(actions) != len(logged):
        differs = min(len(actions), len(logged))
    ordered = ordered_of(result.recoveries)
    return Continuation(
        branch=branch,
        seed=seed,
        success=result.success,
        reason=result.reason,
        ticks=result.ticks,
        sources=dict(Counter(t.source for t in told.ticks[tick:])),
        differs_at=differs,
        ending="" if ordered is None else ordered.ending,
        log=str(log),
        trace=_trace(actions),
    )


def _trace(actions: Sequence[tuple[str, bytes]]) -> str:
    digest = hashlib.sha256()
    for source, action in actions:
        digest.update(source.encode() + action)
    return digest.hexdigest()


def is_whole(log: Path) -> bool:
    """Say whether a branch was logged to its end."""
    return (log / HEADER).exists() and read_episode(log).header.complete


def ordered_of(recoveries: Sequence[Recovery]) -> Recovery | None:
    """Return the recovery that was ordered."""
    return next((each for each in recoveries if each.critic == ORDER), None)
