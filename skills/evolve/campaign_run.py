"""A whole campaign: generation after generation, each from the bundle that the last one left."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from zetta.skills.bundles import load_bundle
from zetta.skills.evolve.authors import Rejection
from zetta.skills.evolve.campaign import Campaign
from zetta.skills.evolve.generation import Generation, Setting
from zetta.skills.evolve.generation_records import Candidate, Judged
from zetta.skills.evolve.ledger import Ledger
from zetta.skills.evolve.promotion_stage import offer


@dataclass(frozen=True, slots=True)
class CampaignResult:
    """What came of a campaign."""

    generations: tuple[Judged, ...]
    bundle: str
    """The last parent: a name, or a folder."""
    stopped: str = ""
    """Why there were fewer generations than planned."""

    @property
    def promoted(self) -> int:
        """Number of skills that got through the gate."""
        return sum(each.verdict.decision == "PROMOTE" for each in self.generations)


def run_campaign(
    setting: Setting, after: Callable[[int, Judged], None] = lambda number, judged: None
) -> CampaignResult:
    """Run a campaign, or what is left of one.

    Args:
        setting: of the campaign.
        after: told of every generation that ended.

    Raises:
        GateError: the gate may not open any more.
        InfraError: the machinery failed; run it again to go on.
    """
    campaign = setting.campaign
    manifest = campaign.manifest
    parent, ledger = manifest.bundle, Ledger(manifest.digest[:12])
    rejected: tuple[Rejection, ...] = ()
    judged: list[Judged] = []
    for number in range(manifest.generations):
        begun = campaign.has(number, "development")  # what was begun is finished
        if not begun and setting.world.spent()[0] >= manifest.rollouts:
            return CampaignResult(
                tuple(judged), parent, f"the budget of {manifest.rollouts} rollouts is used up"
            )
        found = Generation(setting, number, parent, ledger, rejected).run()
        ledger = found.ledger
        judged.append(found)
        candidate = candidate_of(campaign, number)
        if found.verdict.decision == "PROMOTE" and candidate is not None:
            offer(campaign, number, candidate, found, load_bundle(parent).digest, setting.command)
        after(number, found)
        if found.verdict.decision == "PROMOTE":
            parent = str(campaign.folder / found.bundle)
        else:
            rejected += _rejections(campaign, number, found)
    return CampaignResult(tuple(judged), parent)


def candidate_of(campaign: Campaign, number: int) -> Candidate | None:
    """Return the candidate of a generation; None when there was none."""
    if not campaign.has(number, "candidate") or campaign.is_skipped(number, "candidate"):
        return None
    return campaign.content(number, "candidate", Candidate)


def _rejections(campaign: Campaign, number: int, judged: Judged) -> tuple[Rejection, ...]:
    candidate = candidate_of(campaign, number)
    if candidate is None:
        return ()
    stages = judged.verdict.stages
    stage = stages[-1].stage if stages else "before the gate"
    return (
        Rejection(
            candidate.hypothesis, stage, judged.verdict.reason, candidate.draft, candidate.judged
        ),
    )
