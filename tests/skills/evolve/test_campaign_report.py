"""What a report says of a campaign follows from its records."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest

from tests.skills.evolve.made_campaign import MANIFEST, TASK, made, promoted, rejected
from zetta.runtime.errors import ConfigError
from zetta.skills.evolve.campaign import Campaign
from zetta.skills.evolve.campaign_records import read_campaign
from zetta.skills.evolve.campaign_report import campaign_report
from zetta.skills.evolve.gate_run import Trial
from zetta.skills.evolve.plans import Budget, find_plan, keep_plan, plan_gate
from zetta.skills.evolve.report_views import CampaignReport, Rate


def report_of(folder: Path) -> CampaignReport:
    return campaign_report(read_campaign(folder))


@pytest.fixture
def report(tmp_path: Path) -> CampaignReport:
    made(tmp_path)
    return report_of(tmp_path)


def test_noise_floor_counts_quiet_pairs_that_were_really_run(report: CampaignReport) -> None:
    floor = report.floor

    assert (floor.pairs, floor.quiet, floor.run, floor.equal) == (7, 3, 2, 1)
    assert 0.9 < floor.noise < 1.0


def test_an_unfinished_campaign_keeps_its_key_to_itself(report: CampaignReport) -> None:
    assert not report.complete
    assert report.key == hashlib.sha256(MANIFEST.key.encode()).hexdigest()
    assert [each.decision for each in report.generations] == ["PROMOTE", ""]


def test_a_finished_campaign_tells_its_key_and_why_candidates_fell(tmp_path: Path) -> None:
    rejected(made(tmp_path), 1, "shadow replay: too late")
    report = report_of(tmp_path)

    assert report.complete
    assert report.key == MANIFEST.key
    assert [(each.number, each.reason) for each in report.rejected] == [
        (1, "shadow replay: too late")
    ]
    assert report.rejected[0].candidate is not None


def test_a_campaign_whose_rollouts_are_used_up_is_complete(tmp_path: Path) -> None:
    enough, short = tmp_path / "enough", tmp_path / "short"
    promoted(Campaign(enough, replace(MANIFEST, rollouts=53)))
    promoted(Campaign(short, replace(MANIFEST, rollouts=54)))

    assert report_of(enough).complete
    assert not report_of(short).complete


def test_gate_stages_stand_beside_their_nulls(report: CampaignReport) -> None:
    rows = {row.stage: row for row in report.generations[0].funnel}

    assert "0.2" in rows["same_scene"].null
    assert "boundary" in rows["parent"].null
    assert rows["parent"].alpha == 0.03
    assert report.alpha_spent == 0.03
    assert "one fixed tick" in rows["shadow"].null


def test_tasks_arms_and_costs_come_from_the_records(report: CampaignReport) -> None:
    first = report.generations[0]
    (task,) = first.tasks
    costs = {row.stage: row for row in first.costs}

    assert (task.task, task.development) == (TASK, Rate(2, 4))
    assert task.arms["candidate"] == Rate(4, 4)
    assert first.arms[1].uses[0].ticks == 25
    assert costs["development"].planned == 60
    assert costs["branches"].forecast_s == 400.0  # 200 rollouts at 2 s
    assert [row.rollouts for row in report.costs if row.stage == "development"] == [8]


def test_a_promotion_is_shown_on_a_scene_that_its_parent_failed(report: CampaignReport) -> None:
    first, second = report.generations

    assert first.shown == Trial(0, 7, 0)
    assert first.strips[-1].log == "000/shown"
    assert first.strips[0].name == "000-001"  # the medoid comes first
    assert second.shown is None


def test_a_changed_record_is_refused(tmp_path: Path) -> None:
    made(tmp_path)
    path = tmp_path / "000" / "verdict.json"
    path.write_text(path.read_text().replace("PROMOTE", "REJECT"))

    with pytest.raises(ConfigError, match="was changed after it was written"):
        read_campaign(tmp_path)


def test_a_plan_is_found_only_where_its_digest_fits(tmp_path: Path) -> None:
    plan = plan_gate(budget=Budget(development=12))

    assert find_plan(tmp_path, plan.digest) is None
    keep_plan(tmp_path, plan)
    assert find_plan(tmp_path, plan.digest) == plan
    assert find_plan(tmp_path, "0" * 64) is None
