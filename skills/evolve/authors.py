"""What an author is told and what it hands back: one interface for search, models and people.

An author sees instructions, sensed signals and how branches ended. It sees no scene, no seed and
no simulator truth, and it never judges: what it writes is a draft, whoever wrote it.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from zetta.runtime.core import Sensing, Tick
from zetta.skills.evolve.branches import Continuation
from zetta.skills.evolve.diagnosis import ClusterDiagnosis
from zetta.skills.package import SkillPackage

FIRST_EDITS, LAST_EDITS = 120, 20
"""Statements that a candidate may write in the first generation, and in the last."""


@dataclass(frozen=True, slots=True)
class WatchedEpisode:
    """An episode as an author sees it."""

    name: str
    """A number within the brief; it tells nothing about the scene."""
    instruction: str
    success: bool
    control_hz: float
    max_steps: int
    ticks: tuple[Tick, ...]
    """With the signals of the campaign's sensing level and below, and nothing of truth."""
    missing: str = ""
    """First milestone that was missed; empty for a success."""
    divergence: int | None = None
    """Tick at which a failure left the band of successes, where that is known."""


@dataclass(frozen=True, slots=True)
class ProgramTrial:
    """One recovery program, begun at one tick of one failure."""

    program: str
    """Name in `recovery_programs`; `unchanged` and `fresh sample` are the controls."""
    episode: str
    """Name of the failure in the brief."""
    at: int
    max_steps: int
    runs: tuple[Continuation, ...]


@dataclass(frozen=True, slots=True)
class Rejection:
    """A draft that did not get through: what an author may know of it."""

    hypothesis: str
    stage: str
    reason: str
    digest: str
    """Of its files: an equal draft is refused."""
    judged: str = ""
    """The same after calibration; one that is equal to that is refused too."""


@dataclass(frozen=True, slots=True)
class Brief:
    """Everything that an author is told."""

    cluster: ClusterDiagnosis
    failures: tuple[WatchedEpisode, ...]
    """Those of the cluster."""
    other_failures: tuple[WatchedEpisode, ...]
    successes: tuple[WatchedEpisode, ...]
    trials: tuple[ProgramTrial, ...]
    parent: tuple[SkillPackage, ...]
    """Skills that are deployed already."""
    sensing: Sensing
    edits: int
    """Statements that the draft may write."""
    generation: int = 0
    seed: int = 0
    """Of the author's own draws; it has nothing to do with scenes."""
    rejected: tuple[Rejection, ...] = ()
    strips: tuple[Path, ...] = ()
    """Pictures of failures around their divergence."""


@dataclass(frozen=True, slots=True)
class Draft:
    """What an author wrote: a skill package that nobody has checked yet."""

    name: str
    """A new skill, or one of the parent's that gets other numbers."""
    files: Mapping[str, str]
    """Text by path inside the package."""
    hypothesis: str
    """What goes wrong and why this helps, in one sentence."""
    cost: Mapping[str, float] = field(default_factory=dict)
    """What writing it took, such as seconds, tokens or euros."""

    @property
    def digest(self) -> str:
        """Hash of its programs and numbers, whatever it is called and however it is described."""
        kept = {p: t for p, t in self.files.items() if p in ("critic.py", "recovery.py")}
        kept["params.toml"] = self.files.get("params.toml", "")
        kept = {path: text.replace(self.name, "SKILL") for path, text in kept.items()}
        return hashlib.sha256(json.dumps(kept, sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class NoDraft:
    """An author that has nothing to propose says why."""

    reason: str
    cost: Mapping[str, float] = field(default_factory=dict)


class Author(Protocol):
    """Writes one candidate at a time."""

    name: str

    def propose(self, brief: Brief) -> Draft | NoDraft:
        """Return one draft: a new critic with its recovery, or new numbers of one skill.

        Raises:
            InfraError: the author's machinery failed; the campaign may be resumed.
        """
        ...


def edit_budget(generation: int, generations: int) -> int:
    """Return how many statements a candidate may write: cosine from many to few.

    >>> edit_budget(0, 3), edit_budget(1, 3), edit_budget(2, 3)
    (120, 70, 20)
    """
    share = generation / max(1, generations - 1)
    width = FIRST_EDITS - LAST_EDITS
    return round(LAST_EDITS + width * 0.5 * (1.0 + math.cos(math.pi * min(1.0, share))))


def is_resubmission(draft: Draft, rejected: Sequence[Rejection]) -> bool:
    """Say whether a draft is one that was rejected before, perhaps under another name."""
    return any(draft.digest in (each.digest, each.judged) for each in rejected)
