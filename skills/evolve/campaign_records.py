"""All records of a campaign that lie on disk, read and checked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

from zetta.runtime.errors import ConfigError, SpecMismatch
from zetta.skills.evolve.campaign import STAGES, Campaign, Manifest, Stage, read_manifest
from zetta.skills.evolve.generation_records import (
    Branched,
    Candidate,
    Development,
    Diagnosed,
    GateStage,
    Judged,
    Reported,
    Screened,
    Shadowed,
    Skipped,
)
from zetta.skills.evolve.plans import GatePlan, find_plan

T = TypeVar("T")
KINDS: Final[Mapping[Stage, type]] = {
    "development": Development,
    "diagnosis": Diagnosed,
    "branches": Branched,
    "candidate": Candidate,
    "screen": Screened,
    "shadow": Shadowed,
    "arms": GateStage,
    "no_harm": GateStage,
    "confirmation": GateStage,
    "controls": GateStage,
    "verdict": Judged,
    "report": Reported,
}


@dataclass(frozen=True, slots=True)
class GenerationRead:
    """The records of one generation."""

    number: int
    stages: Mapping[Stage, object]
    """Those that exist, in order; a `Skipped` where a stage was not reached."""

    @property
    def complete(self) -> bool:
        """Whether every stage has its record."""
        return len(self.stages) == len(STAGES)

    def get(self, stage: Stage, kind: type[T]) -> T | None:
        """Return what a stage found; None where it has no such record."""
        found = self.stages.get(stage)
        return found if isinstance(found, kind) else None


@dataclass(frozen=True, slots=True)
class CampaignRead:
    """The records of one campaign."""

    name: str
    manifest: Manifest
    plan: GatePlan | None
    """None where nobody kept it and it is not the default one."""
    generations: tuple[GenerationRead, ...]
    """Those that have begun."""


def read_campaign(folder: Path) -> CampaignRead:
    """Read whatever a campaign has written so far.

    Raises:
        ConfigError: there is no campaign, or a record is damaged.
    """
    manifest = read_manifest(folder)
    campaign = Campaign(folder, manifest)
    generations = [_read(campaign, number) for number in range(manifest.generations)]
    return CampaignRead(
        name=folder.resolve().name,
        manifest=manifest,
        plan=find_plan(folder, manifest.plan),
        generations=tuple(each for each in generations if each.stages),
    )


def read_what_stands(folder: Path) -> tuple[CampaignRead, tuple[str, ...]]:
    """Read a campaign up to the first record that its chain of hashes does not vouch for.

    Returns:
        What stands, and what is wrong with the rest; nothing is wrong with a whole campaign.

    Raises:
        ConfigError: there is no campaign, or its manifest is damaged.
    """
    manifest = read_manifest(folder)
    campaign = Campaign(folder, manifest)
    generations: list[GenerationRead] = []
    broken: list[str] = []
    for number in range(manifest.generations):
        stages: dict[Stage, object] = {}
        try:
            for stage, content in _stages(campaign, number):
                stages[stage] = content
        except (ConfigError, SpecMismatch) as error:
            broken.append(f"{error}; it and what comes after it is left out")
        orphans = [] if broken else _orphans(campaign, number, stages)
        if orphans:
            missing = next(stage for stage in STAGES if stage not in stages)
            broken.append(
                f"generation {number} has a record of {', '.join(orphans)} and none of {missing} "
                "before it: a record was taken away; what comes after it is left out"
            )
        if stages:
            generations.append(GenerationRead(number, stages))
        if broken:
            break
    plan = find_plan(folder, manifest.plan)
    return CampaignRead(folder.resolve().name, manifest, plan, tuple(generations)), tuple(broken)


def _read(campaign: Campaign, number: int) -> GenerationRead:
    return GenerationRead(number, dict(_stages(campaign, number)))


def _stages(campaign: Campaign, number: int) -> Iterator[tuple[Stage, object]]:
    """Yield the records of a generation up to the first that is missing.

    Raises:
        ConfigError, SpecMismatch: a record is damaged; those before it were yielded.
    """
    for stage in STAGES:
        if not campaign.has(number, stage):
            break
        skipped = campaign.is_skipped(number, stage)
        yield stage, campaign.content(number, stage, Skipped if skipped else KINDS[stage])


def _orphans(campaign: Campaign, number: int, stages: Mapping[Stage, object]) -> list[Stage]:
    return [s for s in STAGES if s not in stages and campaign.has(number, s)]
