"""The campaigns whose figures are published: their records are whole, and the proof fits."""

from __future__ import annotations

from pathlib import Path

import pytest

from zetta.skills.evolve.campaign import STAGES, Campaign, read_manifest
from zetta.skills.package import load_skill
from zetta.skills.promotions import read_evidence

CAMPAIGNS = sorted((Path(__file__).parents[1] / "results" / "campaigns").iterdir())


@pytest.mark.parametrize("folder", CAMPAIGNS, ids=lambda path: path.name)
def test_every_record_is_unchanged_and_chained(folder: Path) -> None:
    manifest = read_manifest(folder)
    campaign = Campaign(folder, manifest)
    begun = [n for n in range(manifest.generations) if campaign.has(n, "development")]
    assert begun, "nothing was run"
    for number in begun:
        for stage in STAGES:
            assert campaign.read(number, stage).stage == stage


def test_the_promoted_package_is_the_one_that_was_judged() -> None:
    proofs = sorted(path for folder in CAMPAIGNS for path in folder.glob("*/promotion.json"))
    assert proofs
    for path in proofs:
        evidence = read_evidence(path)
        package = next((path.parent / "package").iterdir())
        assert evidence.verdict == "PROMOTE"
        assert load_skill(package).digest == evidence.candidate
        assert evidence.report is not None
        assert evidence.report.low > 0.0
