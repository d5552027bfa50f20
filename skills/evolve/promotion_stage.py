"""What a promoted generation leaves for a library: the package that was judged, and the proof."""

from __future__ import annotations

import shutil
from pathlib import Path

from zetta.skills.evolve.campaign import Campaign
from zetta.skills.evolve.generation_records import Candidate, Judged, Reported
from zetta.skills.package import load_skill
from zetta.skills.promotions import (
    OFFERED,
    PROMOTION,
    PromotionEvidence,
    ReportEstimate,
    StageCounts,
    evidence_text,
)


def offer(
    campaign: Campaign,
    number: int,
    candidate: Candidate,
    judged: Judged,
    parent: str,
    command: str,
) -> Path:
    """Write the judged package and its evidence into a generation's folder and return the latter.

    `parent` is the digest of the bundle that the candidate was compared with, empty for none.
    Writing it again changes nothing.
    """
    folder = campaign.folder / f"{number:03d}"
    package = folder / OFFERED / candidate.name
    if not package.exists():
        shutil.copytree(campaign.folder / judged.bundle / candidate.name, package)
    manifest = campaign.manifest
    evidence = PromotionEvidence(
        campaign=manifest.digest,
        candidate=load_skill(package).digest,
        verdict=judged.verdict.decision,
        stages=tuple(
            StageCounts(s.stage, s.outcome, s.counts.pairs, s.counts.wins, s.counts.harms)
            for s in judged.verdict.stages
        ),
        report=_estimate(campaign, number),
        suites=(manifest.suite,),
        policy=manifest.policy,
        sensing=manifest.sensing,
        versions=dict(manifest.versions),
        command=command,
        parent=parent,
        reason=judged.verdict.reason,
        null=_controls(campaign, number),
    )
    path = folder / PROMOTION
    path.write_text(evidence_text(evidence), encoding="utf-8")
    return path


def _reported(campaign: Campaign, number: int) -> Reported | None:
    if campaign.is_skipped(number, "report"):
        return None
    return campaign.content(number, "report", Reported)


def _estimate(campaign: Campaign, number: int) -> ReportEstimate | None:
    found = _reported(campaign, number)
    if found is None:
        return None
    pairs = min(arm.runs for arm in found.arms if arm.arm in ("parent", "candidate"))
    return ReportEstimate(pairs, found.gain, found.gain_low, found.gain_high)


def _controls(campaign: Campaign, number: int) -> dict[str, float]:
    """Return the success rates of the controls on the report block."""
    found = _reported(campaign, number)
    if found is None:
        return {}
    return {a.arm: a.successes / a.runs for a in found.arms if a.arm != "candidate" and a.runs}
