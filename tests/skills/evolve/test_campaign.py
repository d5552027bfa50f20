"""Campaigns on disk: sealed, written once, chained, and resumed at the first missing stage."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from zetta.runtime.errors import ConfigError, GateError
from zetta.skills.evolve.campaign import (
    BLOCKS,
    MANIFEST,
    STAGES,
    Campaign,
    Manifest,
    manifest_key,
    read_manifest,
)
from zetta.skills.evolve.plans import Budget

HASH = "c" * 64
MADE = Manifest(
    sim="toy",
    suite="toy_pick",
    tasks=(0, 1),
    policy="toy/reach",
    bundle="none",
    bundle_digest="",
    author="search",
    generations=3,
    rollouts=600,
    plan="p" * 64,
    sensing="oracle",
    render_profile="fast",
    key=manifest_key(["a test"]),
    versions={"zetta": "0.1.0"},
)


def until(campaign: Campaign, last: str, generation: int = 0) -> None:
    """Write records up to and with the stage `last`."""
    for stage in STAGES:
        content = {"digest": HASH} if stage == "candidate" else {"of": stage}
        campaign.write(generation, stage, content)
        if stage == last:
            return


def test_a_campaign_is_opened_again_with_its_manifest_and_no_other(tmp_path: Path) -> None:
    Campaign(tmp_path, MADE)

    assert read_manifest(tmp_path) == MADE
    Campaign(tmp_path, MADE)
    with pytest.raises(ConfigError, match=r"another policy \(policy: 'toy/reach', now 'other'\)"):
        Campaign(tmp_path, replace(MADE, policy="other"))
    with pytest.raises(ConfigError, match="another tasks and rollouts"):
        Campaign(tmp_path, replace(MADE, tasks=(0,), rollouts=1))


def test_it_goes_on_at_the_first_stage_without_a_record(tmp_path: Path) -> None:
    until(Campaign(tmp_path, MADE), "screen")
    again = Campaign(tmp_path, MADE)

    assert again.next_stage(0) == "shadow"
    assert again.content(0, "diagnosis", dict) == {"of": "diagnosis"}
    assert again.next_stage(1) == "development"


def test_a_stage_is_written_once_and_in_its_turn(tmp_path: Path) -> None:
    campaign = Campaign(tmp_path, MADE)
    campaign.write(0, "development", {"n": 1})

    with pytest.raises(GateError, match="'development' of generation 0 is not next; 'diagnosis'"):
        campaign.write(0, "development", {"n": 2})
    with pytest.raises(GateError, match="is not next"):
        campaign.write(0, "verdict", {})
    assert campaign.content(0, "development", dict) == {"n": 1}


def test_a_changed_record_is_noticed_and_so_is_one_made_from_another(tmp_path: Path) -> None:
    campaign = Campaign(tmp_path, MADE)
    until(campaign, "candidate")
    path = tmp_path / "000" / "diagnosis.json"
    plain = json.loads(path.read_text())
    path.write_text(json.dumps({**plain, "content": {"of": "wishes"}}))

    with pytest.raises(ConfigError, match="changed after it was written"):
        campaign.read(0, "diagnosis")
    path.unlink()
    other = Campaign(tmp_path, MADE)
    other.write(0, "diagnosis", {"of": "wishes"})
    with pytest.raises(ConfigError, match="made from other records"):
        campaign.read(0, "branches")


def test_generations_are_chained(tmp_path: Path) -> None:
    campaign = Campaign(tmp_path, MADE)
    until(campaign, "report")

    assert campaign.next_stage(0) is None
    first = campaign.write(1, "development", {})
    assert first.inputs == {"report": campaign.read(0, "report").digest}
    assert campaign.read(0, "development").inputs == {"manifest": MADE.digest}


def test_blocks_share_no_scene_and_are_the_same_every_time(tmp_path: Path) -> None:
    campaign = Campaign(tmp_path, MADE)
    until(campaign, "candidate")
    seeds = []
    for block in BLOCKS:
        candidate = HASH if block in ("regression", "confirmation", "report") else ""
        seeds += campaign.seeds(0, block, Budget().no_harm, candidate)
        assert campaign.seeds(0, block, 5, candidate) == seeds[-Budget().no_harm :][:5]

    assert len(set(seeds)) == len(seeds)
    assert all(0 <= seed < 2**62 for seed in seeds)
    elsewhere = Campaign(tmp_path / "other", replace(MADE, key=manifest_key(["another"])))
    assert elsewhere.seeds(0, "development", 1) != campaign.seeds(0, "development", 1)


def test_scenes_of_the_sealed_block_are_revealed_after_the_candidate(tmp_path: Path) -> None:
    campaign = Campaign(tmp_path, MADE)
    with pytest.raises(GateError, match="after the candidate's hash is committed"):
        campaign.seeds(0, "confirmation", 31, HASH)
    until(campaign, "candidate")

    with pytest.raises(GateError, match="not of none"):
        campaign.seeds(0, "confirmation", 31)
    with pytest.raises(GateError, match="not of dddd"):
        campaign.seeds(0, "confirmation", 31, "d" * 64)
    assert len(campaign.seeds(0, "confirmation", 31, HASH)) == 31


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"sim": 3}'])
def test_a_damaged_manifest_is_said_in_one_line(text: str, tmp_path: Path) -> None:
    (tmp_path / MANIFEST).write_text(text)

    with pytest.raises(ConfigError, match=MANIFEST):
        Campaign(tmp_path, MADE)
