"""What a campaign needs from whoever knows simulators, policies and bundles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from zetta.runtime.core import Sensing
from zetta.runtime.episode_log import LoggedEpisode
from zetta.skills.evolve.branches import Change, Continuation
from zetta.skills.evolve.gate_run import Arena, Trial, TrialOutcome
from zetta.skills.evolve.generation_records import ArmReport, Developed

CHECKED: Final = 10
"""One in so many quiet pairs is run all the same."""


@dataclass(frozen=True, slots=True)
class BranchWish:
    """One continuation that is wanted."""

    episode: Developed
    at: int
    change: Change
    seed: int


class World(Protocol):
    """Runs episodes, each once, and keeps what came of them."""

    sensing: Sensing
    control_hz: float

    def begin(self, parent: str, logs: Path) -> None:
        """Say which bundle is the parent from now on, and where logs of its episodes go."""
        ...

    def develop(self, trials: Sequence[Trial]) -> tuple[Developed, ...]:
        """Run the parent with every signal, and log each episode."""
        ...

    def read(self, episode: Developed) -> LoggedEpisode:
        """Return the log of a developed episode, made again where it was lost."""
        ...

    def branch(self, wishes: Sequence[BranchWish], skills: Path) -> tuple[Continuation, ...]:
        """Continue failures; `skills` holds the recoveries that are ordered."""
        ...

    def arena(self, candidate: Path) -> Arena:
        """Return where the arms of a candidate are run."""
        ...

    def watch_only(self, candidate: Path, trials: Sequence[Trial]) -> list[TrialOutcome]:
        """Run trials with the candidate's critics on and its skills held back."""
        ...

    def record_moments(self, candidate: Path, trials: Sequence[Trial]) -> None:
        """Write when the candidate intervened in trials, for the control `random`."""
        ...

    def report(self, candidate: Path, trials: Sequence[Trial]) -> list[ArmReport]:
        """Return how every arm did on trials: parent, candidate, sham, random."""
        ...

    def spent(self) -> tuple[int, float]:
        """Return rollouts and CPU seconds so far."""
        ...


def is_checked(scene: int) -> bool:
    """Say whether a quiet pair is run all the same; it follows from the scene's seed alone.

    >>> is_checked(120), is_checked(121)
    (True, False)
    """
    return scene % CHECKED == 0
