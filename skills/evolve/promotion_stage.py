"""What a promoted generation leaves for a library: the package that was judged, and the proof."""

from __future__ import annotations

import shutil
from pathlib import Path

from zetta.runtime.errors import ConfigError
from zetta.skills.bundle_folders import parts_digest
from zetta.skills.bundles import load_bundle
from zetta.skills.evolve.campaign import Campaign, read_manifest
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

    Raises:
        ConfigError: the candidate was changed after it was committed.
    """
    folder = campaign.folder / f"{number:03d}"
    check_committed(campaign.folder / judged.bundle, candidate)
    shutil.rmtree(folder / OFFERED, ignore_errors=True)
    package = folder / OFFERED / candidate.name
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


def check_committed(bundle: Path, candidate: Candidate) -> None:
    """Refuse a bundle that is not the one whose hash was committed.

    Raises:
        ConfigError: it was changed since.
    """
    found = load_bundle(str(bundle)).digest
    if found != candidate.digest:
        raise ConfigError(
            f"{bundle} was changed after its hash was committed ({candidate.digest[:12]}, now "
            f"{found[:12]}); delete the folder, and the campaign writes the committed files again"
        )


def check_offer(folder: Path, evidence: PromotionEvidence, record: Path) -> None:
    """Refuse what a campaign's own records do not say: its verdict, and on which package.

    Args:
        folder: of the campaign.
        evidence: that it offers.
        record: the file of the evidence, in a generation's folder.

    Raises:
        ConfigError: the records say something else, or are damaged.
    """
    campaign = Campaign(folder, read_manifest(folder))
    if evidence.campaign != campaign.manifest.digest:
        raise ConfigError(
            f"the evidence in {folder} is of the campaign {evidence.campaign[:12]} and this one "
            f"is {campaign.manifest.digest[:12]}; files of two campaigns were mixed"
        )
    number = int(record.parent.name)
    if campaign.is_skipped(number, "verdict"):
        raise ConfigError(f"{record} says PROMOTE and generation {number} has no verdict")
    judged = campaign.content(number, "verdict", Judged)
    candidate = campaign.content(number, "candidate", Candidate)
    known = candidate.package or _alone(candidate, evidence)
    if judged.verdict.decision != "PROMOTE" or evidence.candidate != known:
        raise ConfigError(
            f"{record} was changed: generation {number} judged {judged.verdict.decision} on the "
            f"package {known[:12]}, and it says {evidence.verdict} on {evidence.candidate[:12]}; "
            "run the campaign's command again, which writes it anew"
        )


def _alone(candidate: Candidate, evidence: PromotionEvidence) -> str:
    """Return the package of a record that names only its bundle: of a bundle without a parent."""
    alone = parts_digest([(candidate.name, evidence.candidate)])
    return evidence.candidate if alone == candidate.digest else candidate.digest


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
