"""What the report of a campaign shows, ready to be laid out: numbers with their nulls, and words.

Nothing here is computed; `campaign_report` fills it from a campaign's records.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from zetta.runtime.success_rates import upper_bound, wilson
from zetta.skills.evolve.campaign import Manifest
from zetta.skills.evolve.gate_run import Trial
from zetta.skills.evolve.generation_records import SkillUse


@dataclass(frozen=True, slots=True)
class Rate:
    """Successes over runs."""

    successes: int
    runs: int

    @property
    def value(self) -> float:
        """Share of successes; NaN without runs."""
        return self.successes / self.runs if self.runs else float("nan")

    @property
    def low(self) -> float:
        """Lower 95 % bound (Wilson)."""
        return wilson(self.successes, self.runs)[0]

    @property
    def high(self) -> float:
        """Upper 95 % bound (Wilson)."""
        return wilson(self.successes, self.runs)[1]


@dataclass(frozen=True, slots=True)
class FunnelRow:
    """One stage of one generation."""

    stage: str
    outcome: str
    reason: str
    counts: str
    """What was counted; empty where nothing was."""
    null: str
    """What the same stage says where there is nothing to find."""
    alpha: float | None = None
    """Risk of a false promotion that was spent here."""


@dataclass(frozen=True, slots=True)
class SupportRow:
    """One recovery program in branch replay."""

    program: str
    finding: str
    reason: str
    snapshots: int
    recovered: Rate
    unchanged: Rate
    fresh: Rate
    p_unchanged: float
    p_fresh: float
    p_null: float
    """Of the fresh sample against the unchanged policy, where nothing was recovered."""


@dataclass(frozen=True, slots=True)
class TaskRow:
    """One task of one generation."""

    task: str
    development: Rate
    """The parent's."""
    arms: Mapping[str, Rate]
    """On the report block, by arm; empty where there was none."""


@dataclass(frozen=True, slots=True)
class ArmRow:
    """One arm on the report block, and who drove."""

    arm: str
    rate: Rate
    skill_share: float
    ticks: int
    """Of all episodes; 0 where it was not kept."""
    uses: tuple[SkillUse, ...]


@dataclass(frozen=True, slots=True)
class BlockRow:
    """A block of pairs: what happened where the candidate intervened, and where it did not."""

    block: str
    pairs: int
    intervened: int
    """Pairs in which it did (or, against a control, either did)."""
    wins: int
    """Among these: only the candidate succeeded."""
    harms: int
    """Among these: only the other arm succeeded."""
    quiet: int
    """The other pairs."""
    run: int
    """Quiet pairs whose second arm is run all the same."""
    equal: int
    """How many of these were equal, action for action."""

    @property
    def noise(self) -> float:
        """Upper 95 % bound of the share of quiet pairs that differ all the same (exact)."""
        return upper_bound(self.run - self.equal, self.run)


@dataclass(frozen=True, slots=True)
class CostRow:
    """What a stage took, and what was planned."""

    stage: str
    rollouts: int
    planned: int | None
    """At most; None where the plan is not known or names none."""
    cpu_s: float
    wall_s: float
    forecast_s: float | None
    """Planned rollouts at the wall seconds of one in the development block."""


@dataclass(frozen=True, slots=True)
class ProposedSkill:
    """What the author handed in."""

    name: str
    digest: str
    hypothesis: str
    files: Mapping[str, str]
    author_cost: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class StripWish:
    """A picture strip that would show something."""

    name: str
    """Of the file, without its ending."""
    log: str
    """Folder of the episode below the campaign's; with poses."""
    at: int | None
    """Tick in the middle; None for the whole episode."""
    caption: str


@dataclass(frozen=True, slots=True)
class GenerationReport:
    """One generation."""

    number: int
    complete: bool
    decision: str
    """Empty while there is none."""
    reason: str
    about: str
    """What the diagnosis says the generation is about."""
    funnel: tuple[FunnelRow, ...]
    support: tuple[SupportRow, ...]
    development: Rate
    tasks: tuple[TaskRow, ...]
    arms: tuple[ArmRow, ...]
    gain: tuple[float, float, float] | None
    """Candidate minus parent on the report block, and its 95 % bounds (paired, Newcombe)."""
    blocks: tuple[BlockRow, ...]
    costs: tuple[CostRow, ...]
    candidate: ProposedSkill | None
    strips: tuple[StripWish, ...]
    shown: Trial | None
    """A failed scene that the promoted candidate solved, and its parent did not."""


@dataclass(frozen=True, slots=True)
class OpeningRow:
    """One gate that was opened."""

    number: int
    candidate: str
    alpha: float
    decision: str
    wins: int
    harms: int
    pairs: int


@dataclass(frozen=True, slots=True)
class CampaignReport:
    """A whole campaign, as far as it has come."""

    name: str
    manifest: Manifest
    complete: bool
    key: str
    """Of scenes and seeds; only its hash until the campaign is complete."""
    generations: tuple[GenerationReport, ...]
    openings: tuple[OpeningRow, ...]
    alpha: float | None
    """Planned risk of any false promotion; None where the plan is not known."""
    floor: BlockRow
    """All quiet pairs of the campaign: what nothing against nothing gives."""
    costs: tuple[CostRow, ...] = field(default_factory=tuple)
    """Sums over generations, by stage."""

    @property
    def alpha_spent(self) -> float:
        """Risk of any false promotion so far, at most."""
        return sum(each.alpha for each in self.openings)

    @property
    def promoted(self) -> int:
        """Number of promotions."""
        return sum(each.decision == "PROMOTE" for each in self.generations)

    @property
    def rejected(self) -> tuple[GenerationReport, ...]:
        """Generations that ended without a promotion."""
        return tuple(e for e in self.generations if e.decision not in ("", "PROMOTE"))
