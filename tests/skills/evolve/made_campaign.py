"""A campaign whose records were written by hand: one promotion, then a generation in the middle."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from zetta.critics.detection import Detection
from zetta.skills.evolve.branch_support import ChangeScore, ExactTest, Support
from zetta.skills.evolve.branches import ChangeKind
from zetta.skills.evolve.campaign import STAGES, Campaign, Manifest
from zetta.skills.evolve.diagnosis import ClusterDiagnosis
from zetta.skills.evolve.evidence import Evidence, PairedOutcome, Tally
from zetta.skills.evolve.gate_run import Trial
from zetta.skills.evolve.gates import GateVerdict
from zetta.skills.evolve.generation_records import (
    ArmReport,
    Branched,
    Candidate,
    Cost,
    Developed,
    Development,
    Diagnosed,
    GateStage,
    Judged,
    Reported,
    Shadowed,
    SkillUse,
    Skipped,
)
from zetta.skills.evolve.ledger import Ledger, LedgerEntry, Opening
from zetta.skills.evolve.plans import plan_gate
from zetta.skills.evolve.shadow_stage import ShadowResult
from zetta.skills.evolve.stages import Figure, StageResult

NAN = float("nan")
HOSTILE = "<script>alert('x')</script>"
TASK = "toy_pick/0"
MANIFEST = Manifest(
    sim="toy", suite="toy_pick", tasks=(0,), policy="toy/reach abc", bundle="none",
    bundle_digest="", author="search", generations=2, rollouts=1200, plan=plan_gate().digest,
    sensing="vision", render_profile="toy-fast", key="ab" * 32, options={"temperature": "0"},
)  # fmt: skip
CANDIDATE = Candidate(
    name="again", digest="c" * 64, hypothesis=f"it slips {HOSTILE}",
    files={"critic.py": f'"""{HOSTILE}"""', "recovery.py": "pass"}, draft="d" * 64,
    author_cost={"cpu_s": 1.5}, problem="", screen=None,
)  # fmt: skip


def made(folder: Path) -> Campaign:
    """Write a campaign whose first generation is complete and whose second awaits its shadow."""
    campaign = Campaign(folder, MANIFEST)
    promoted(campaign)
    for stage, record in _beginning().items():
        campaign.write(1, stage, record)
    return campaign


def promoted(campaign: Campaign) -> None:
    """Write a generation that ends with a promotion."""
    for stage, record in {**_beginning(), **_ending()}.items():
        campaign.write(0, stage, record)


def rejected(campaign: Campaign, number: int, reason: str) -> None:
    """Write what is left of a generation that ends before its gate."""
    for stage in STAGES:
        if not campaign.has(number, stage):
            campaign.write(number, stage, Skipped(reason))


def _beginning() -> dict[str, object]:
    episodes = tuple(
        Developed(f"{k:03d}", Trial(k, k, 0), f"000/logs/{k:03d}", k > 1, 50, f"s{k}")
        for k in range(4)
    )
    target = ClusterDiagnosis(-1, 2, "lifted", NAN, "", "001", NAN, (), (), {})
    return {
        "development": Development(episodes, Cost(4, 8.0, 8.0)),
        "diagnosis": Diagnosed(target, ("000", "001"), None, "pooled", Cost()),
        "branches": Branched((), {"regrasp": _support()}, ("regrasp",), Cost(9, 9.0, 9.0)),
        "candidate": CANDIDATE,
        "screen": Skipped("there is no draft to screen"),
    }


def _support() -> Support:
    kinds: tuple[ChangeKind, ...] = ("unchanged", "fresh sample", "recovery")
    scores = tuple(
        ChangeScore(kind, k, 3, (0.0, 1.0), 0, 0) for kind, k in zip(kinds, (0, 1, 3), strict=True)
    )
    test = ExactTest(0.02, 0.05, 0.01)
    return Support(
        "supported", "better", "regrasp", 3, 0.05, scores, test, test, replace(test, p=0.4)
    )


def pair(scene: int, fired: bool, baseline: bool = False, equal: bool = False) -> PairedOutcome:
    """Return a pair that the candidate wins where it intervenes."""
    return PairedOutcome(scene, f"0/{scene}", 7, baseline, fired or baseline, fired, equal)


def _ending() -> dict[str, object]:
    found = Detection(2, 0, 2, 2, 2, 0.5, None)
    result = ShadowResult(True, (), "again", found, found, found, 0.5, (), 0, 0)
    evidence = Evidence(
        same_scene=(pair(0, True), pair(1, True)),
        # Of the quiet scenes 10, 20 and 21, the first two are run all the same; one differs.
        no_harm=(pair(10, False, True, True), pair(20, False, True), pair(21, False, True, True)),
        parent=(pair(31, True), pair(32, True)),
    )
    opening = Opening(1, CANDIDATE.digest, MANIFEST.plan, 0.03, ("0/31", "0/32"))
    arms = GateStage(evidence, True, None, Cost(6, 6.0, 6.0))
    opened = replace(arms, opening=opening)
    stages = (
        StageResult("same_scene", "pass", "p = 0.1", Tally(2, 0, 2), (Figure("p", 0.1),)),
        StageResult("parent", "pass", "better", Tally(2, 0, 2)),
    )
    ledger = Ledger("made", (LedgerEntry(opening, "PROMOTE", 2, 0, 2),))
    use = SkillUse("again", "again", 3, 2, 2, 25)
    reports = tuple(
        ArmReport(arm, won, 4, 0.1, 0.9, share, {TASK: (won, 4)}, 100, uses)
        for arm, won, share, uses in (
            ("parent", 1, 0.0, ()), ("candidate", 4, 0.25, (use,)), ("sham", 1, 0.0, ()),
            ("random", 2, 0.1, ()),
        )
    )  # fmt: skip
    return {
        "shadow": Shadowed(result, "calibrated", Cost()),
        "arms": arms,
        "no_harm": arms,
        "confirmation": opened,
        "controls": opened,
        "verdict": Judged(GateVerdict("PROMOTE", "every stage passed", stages), ledger, "x", "y"),
        "report": Reported(reports, 0.75, 0.2, 0.9, Cost(16, 16.0, 16.0)),
    }
