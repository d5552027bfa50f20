"""Branch replay: an episode continued from a snapshot, with and without a change.

Three continuations are compared, each with several policy seeds: *unchanged* (the policy goes on,
with other luck where its chance comes draw by draw), *fresh sample* (the policy begins anew, with
another seed) and *recovery* (a skill drives, then the policy begins anew). Whether they support a
diagnosis is decided in `zetta.skills.evolve.branch_support`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, Protocol, TypeAlias

from zetta.runtime.core import Array, EnvSpec, EpisodeResult, EpisodeSink, Scene, Step, Tick
from zetta.runtime.errors import ConfigError, InfraError
from zetta.runtime.loop import POLICY, Episode
from zetta.runtime.skill_arbiter import SKILL_PREFIX
from zetta.runtime.snapshots import EpisodeSnapshot

ChangeKind: TypeAlias = Literal["unchanged", "fresh sample", "recovery"]

TRIES: Final = 2
"""How often a continuation is run when the machinery fails: once, and once more."""


@dataclass(frozen=True, slots=True)
class Change:
    """What is done otherwise in a branch."""

    kind: ChangeKind
    skill: str = ""
    """Of a recovery."""

    def __post_init__(self) -> None:
        if (self.kind == "recovery") != bool(self.skill):
            raise ConfigError(
                f"got the change {self.kind!r} with the skill {self.skill!r}; a recovery names its "
                "skill, and nothing else does"
            )


UNCHANGED: Final = Change("unchanged")
FRESH_SAMPLE: Final = Change("fresh sample")


@dataclass(frozen=True, slots=True)
class Continuation:
    """One continuation of a snapshot: one JSON record."""

    snapshot: str
    """SHA-256 of the snapshot."""
    at: int
    """Tick from which something was changed."""
    change: Change
    seed: int
    success: bool | None
    """None after an error of the machinery: it is no score."""
    ticks: int = 0
    """How many were run from `at` on, or from the snapshot where the end came first."""
    recovery_ticks: int = 0
    """Those that the ordered skill drove; 0 when its precondition never held."""
    trace: str = ""
    """SHA-256 of all actions and who gave them: equal traces are one and the same run."""
    error: str = ""


class OrderedArbiter(Protocol):
    """Hands the robot to a skill when it is told to."""

    def order(self, skill: str, patience_s: float = 2.0) -> None:
        """Start `skill` at the next tick at which its precondition holds."""
        ...


@dataclass(frozen=True, slots=True)
class Prepared:
    """An episode that has not begun, and its arbiter where skills can be ordered."""

    episode: Episode
    arbiter: OrderedArbiter | None = None


class BranchFactory(Protocol):
    """Puts the episode of a snapshot together again."""

    def __call__(self, skill: str, sinks: Sequence[EpisodeSink]) -> Prepared:
        """Return it; with the name of a `skill` its arbiter can be told to start that one.

        Raises:
            ZettaError: it cannot be put together.
        """
        ...


class _Trace:
    """A sink that keeps who did what as one hash."""

    def __init__(self, skill: str) -> None:
        self._hash = hashlib.sha256()
        self._source = SKILL_PREFIX + skill
        self.ordered = 0

    def begin(self, scene: Scene, spec: EnvSpec, instruction: str, step: Step) -> None:
        pass

    def tick(self, tick: Tick, step: Step, pose: Array | None) -> None:
        self._hash.update(tick.source.encode() + tick.action.tobytes())
        self.ordered += tick.source == self._source

    def end(self, result: EpisodeResult, pose: Array | None) -> None:
        pass

    @property
    def digest(self) -> str:
        return self._hash.hexdigest()


def branch(
    snapshot: EpisodeSnapshot,
    change: Change,
    seeds: Sequence[int],
    factory: BranchFactory,
    at: int | None = None,
) -> tuple[Continuation, ...]:
    """Continue a snapshot once for each seed.

    Args:
        snapshot: taken before something went wrong.
        change: what is done otherwise.
        seeds: of the policy, from `at` on; each once.
        factory: puts the episode together again.
        at: the tick of the change, at or after the snapshot; the snapshot's own by default. Until
            then the episode goes on as it was. Where a skill drives at that tick, the change
            waits until the policy drives.

    Raises:
        ConfigError: no seeds or one given twice, `at` before the snapshot, or a recovery that
            cannot be ordered.
        SpecMismatch: the factory makes another episode.
    """
    at = snapshot.tick if at is None else at
    if not seeds or len(set(seeds)) < len(seeds):
        raise ConfigError(f"got the seeds {list(seeds)}; expected at least one, and each once")
    if at < snapshot.tick:
        raise ConfigError(
            f"the change is at tick {at} and the snapshot of tick {snapshot.tick}; take an earlier "
            "snapshot"
        )
    name = snapshot.digest
    return tuple(_continued(name, snapshot, change, seed, factory, at) for seed in seeds)


def _continued(
    name: str,
    snapshot: EpisodeSnapshot,
    change: Change,
    seed: int,
    factory: BranchFactory,
    at: int,
) -> Continuation:
    error = ""
    for _ in range(TRIES):
        trace = _Trace(change.skill)
        try:
            result = _run(factory(change.skill, [trace]), snapshot, change, seed, at)
        except InfraError as failure:
            error = f"{type(failure).__name__}: {failure}"
            continue
        done = result.ticks - (at if result.ticks > at else snapshot.tick)
        return Continuation(
            name, at, change, seed, result.success, done, trace.ordered, trace.digest
        )
    return Continuation(name, at, change, seed, None, error=error)


def _run(
    prepared: Prepared, snapshot: EpisodeSnapshot, change: Change, seed: int, at: int
) -> EpisodeResult:
    episode, changed = prepared.episode, False
    with episode:
        episode.restore(snapshot)
        while episode.result is None:
            if not changed and episode.index >= at and episode.source == POLICY:
                _apply(prepared, change, seed)
                changed = True
            episode.tick()
    return episode.result


def _apply(prepared: Prepared, change: Change, seed: int) -> None:
    prepared.episode.reseed(seed, anew=change.kind == "fresh sample")
    if change.kind == "recovery":
        if prepared.arbiter is None:
            raise ConfigError(
                f"the recovery {change.skill!r} cannot be ordered: the factory gave no arbiter"
            )
        prepared.arbiter.order(change.skill)
