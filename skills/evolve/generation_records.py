"""What each stage of a generation finds, as it is written to disk."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from zetta.skills.evolve.authors import ProgramTrial
from zetta.skills.evolve.branch_support import Support
from zetta.skills.evolve.calibration_stage import CalibratedNumbers
from zetta.skills.evolve.diagnosis import ClusterDiagnosis, Diagnosis
from zetta.skills.evolve.evidence import Evidence
from zetta.skills.evolve.gate_run import Trial
from zetta.skills.evolve.gates import GateVerdict
from zetta.skills.evolve.ledger import Ledger, Opening
from zetta.skills.evolve.screen import ScreenResult
from zetta.skills.evolve.shadow_stage import ShadowResult


@dataclass(frozen=True, slots=True)
class Cost:
    """What a stage took."""

    rollouts: int = 0
    cpu_s: float = 0.0
    wall_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Skipped:
    """A stage that was not reached."""

    skipped: str
    """Why."""


@dataclass(frozen=True, slots=True)
class Developed:
    """One episode of the development block."""

    name: str
    trial: Trial
    log: str
    """Folder below the campaign's."""
    success: bool | None
    """None when the machinery failed."""
    ticks: int
    scene_digest: str


@dataclass(frozen=True, slots=True)
class Development:
    """Episodes in which failures are found."""

    episodes: tuple[Developed, ...]
    cost: Cost

    def ended(self, success: bool) -> tuple[Developed, ...]:
        """Return the failures or the successes, in order."""
        return tuple(each for each in self.episodes if each.success is success)


@dataclass(frozen=True, slots=True)
class Diagnosed:
    """Why the parent fails, and which failures this generation is about."""

    target: ClusterDiagnosis
    failures: tuple[str, ...]
    """Names of the episodes in question."""
    diagnosis: Diagnosis | None
    """None when there was too little to compare; then all failures are one group."""
    note: str
    cost: Cost


@dataclass(frozen=True, slots=True)
class Branched:
    """How failures went on with and without a change."""

    trials: tuple[ProgramTrial, ...]
    support: Mapping[str, Support]
    """By recovery program."""
    supported: tuple[str, ...]
    """Programs that branches support."""
    cost: Cost


@dataclass(frozen=True, slots=True)
class Candidate:
    """What the author handed in; committed before any of its scenes is revealed."""

    name: str
    digest: str
    """Of its bundle; empty when there was no draft."""
    hypothesis: str
    files: Mapping[str, str]
    draft: str
    """Digest of programs and numbers as the author wrote them, to recognise a resubmission."""
    author_cost: Mapping[str, float]
    problem: str
    """Why there is no candidate; empty when there is one."""
    screen: ScreenResult | None
    cost: Cost = field(default_factory=Cost)
    calibration: CalibratedNumbers | None = None
    """How much stricter its critic was made than the author wrote it."""
    judged: str = ""
    """As `draft`, after calibration."""
    package: str = ""
    """Digest of its package, as `SkillPackage.digest`."""


@dataclass(frozen=True, slots=True)
class Screened:
    """The static screen, as it was passed before the candidate was committed."""

    result: ScreenResult


@dataclass(frozen=True, slots=True)
class Shadowed:
    """Shadow replay over held-out episodes."""

    result: ShadowResult
    note: str
    """About calibration."""
    cost: Cost


@dataclass(frozen=True, slots=True)
class GateStage:
    """All runs of the gate so far."""

    evidence: Evidence
    passed: bool
    opening: Opening | None
    cost: Cost


@dataclass(frozen=True, slots=True)
class Judged:
    """The verdict on a candidate, and the ledger after it."""

    verdict: GateVerdict
    ledger: Ledger
    bundle: str
    """The parent of the next generation, below the campaign's folder; or the name it began with."""
    bundle_digest: str


@dataclass(frozen=True, slots=True)
class SkillUse:
    """What one critic and its skill did in the episodes of an arm."""

    skill: str
    critic: str
    interventions: int
    episodes: int
    """In which it intervened at least once."""
    solved: int
    """How many of these ended with success."""
    ticks: int
    """That the skill drove."""


@dataclass(frozen=True, slots=True)
class ArmReport:
    """One arm on the report block."""

    arm: str
    successes: int
    runs: int
    low: float
    high: float
    """Wilson, 95 %."""
    skill_share: float
    """Share of ticks that skills drove."""
    by_task: Mapping[str, tuple[int, int]]
    """Successes and runs."""
    ticks: int = 0
    """Of all its episodes; 0 in records that did not keep it."""
    uses: tuple[SkillUse, ...] = ()
    """What each skill did, the busiest first."""


@dataclass(frozen=True, slots=True)
class Reported:
    """The block that decides nothing: its estimate is the one to publish."""

    arms: tuple[ArmReport, ...]
    gain: float
    gain_low: float
    gain_high: float
    """Candidate minus parent, paired, Newcombe 95 %."""
    cost: Cost
