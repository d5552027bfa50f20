"""What the dashboard reads of campaigns and of the skill library."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.skills.evolve.made_campaign import HOSTILE, made
from zetta.runtime.cli.dashboard_campaigns import CampaignPages
from zetta.runtime.cli.dashboard_library import LibraryPages
from zetta.runtime.cli.evolve_strips import PICTURES
from zetta.runtime.cli.main import main
from zetta.runtime.errors import ConfigError
from zetta.skills.package import load_skill
from zetta.skills.promotions import PROMOTION, offered_by, read_evidence

COMMITTED = Path(__file__).parents[3] / "results" / "campaigns"


def test_the_funnel_of_a_promotion_goes_from_failures_to_a_verdict() -> None:
    page = CampaignPages().page(COMMITTED / "tiny-lan")
    (own,) = page["generations"]

    assert page["decisions"] == ["PROMOTE"]
    assert [(each["name"], each["passed"], each["of"]) for each in own["stations"]] == [
        ("failures", 30, 50), ("clusters", 2, 30), ("recoveries", 3, 8), ("candidate", 1, 1),
    ]  # fmt: skip
    assert [(each["size"], each["target"]) for each in own["clusters"]] == [
        (30, True), (17, False), (9, False),
    ]  # fmt: skip
    stages = [row["stage"] for row in own["funnel"]]
    assert stages[:5] == ["development", "diagnosis", "branches", "screen", "shadow"]
    assert stages[-1] == "report"


def test_every_statistic_of_a_gate_stands_beside_its_null() -> None:
    for folder in sorted(COMMITTED.iterdir()):
        for own in CampaignPages().page(folder)["generations"]:
            for row in own["funnel"]:
                if row["pairs"] is not None or row["stage"] in ("branches", "shadow", "report"):
                    assert row["null"], (folder.name, row["stage"])
            arms = {each["arm"] for each in own["arms"]}
            assert not arms or {"sham", "random"} <= arms


def test_pairs_of_a_stage_are_those_of_the_record() -> None:
    (own,) = CampaignPages().page(COMMITTED / "tiny-lan")["generations"]
    rows = {row["stage"]: row["pairs"] for row in own["funnel"]}

    assert (rows["no_harm"]["wins"], rows["no_harm"]["harms"]) == (32, 0)
    assert rows["development"] is None


def test_a_running_campaign_is_plain_json_and_keeps_its_key_to_itself(tmp_path: Path) -> None:
    campaign = made(tmp_path)
    page = CampaignPages().page(tmp_path)

    text = json.dumps(page, allow_nan=False)
    assert campaign.manifest.key not in text
    assert page["decisions"] == ["PROMOTE", "running"]
    assert HOSTILE in json.loads(text)["generations"][0]["candidate"]["hypothesis"]


def test_a_page_is_made_again_when_a_record_is_new(tmp_path: Path) -> None:
    made(tmp_path)
    pages = CampaignPages()
    first = pages.page(tmp_path)
    assert pages.page(tmp_path) is first

    name = first["strips"][0]["name"]
    assert pages.picture(tmp_path, name) is None
    (tmp_path / PICTURES).mkdir()
    (tmp_path / PICTURES / f"{name}.png").write_bytes(b"png")
    assert pages.page(tmp_path) is not first
    assert pages.picture(tmp_path, name) == tmp_path / PICTURES / f"{name}.png"
    assert pages.picture(tmp_path, "../manifest") is None


def test_a_damaged_campaign_says_so_in_the_list(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text("{", encoding="utf-8")

    assert "manifest" in str(CampaignPages().summary(tmp_path)["error"])
    with pytest.raises(ConfigError):
        CampaignPages().page(tmp_path)


# ------------------------------------------------------------------------------ the library


def promoted_library(folder: Path, *also: str) -> LibraryPages:
    """Promote the skill of a committed campaign, then others on somebody's word."""
    words = ["skills", "promote", str(COMMITTED / "tiny-lan"), "--library", str(folder), "--json"]
    _run(words)
    for name in also:
        _run(["skills", "promote", name, "--unproven", "--library", str(folder), "--json"])
    return LibraryPages(folder)


def _run(words: list[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(words)
    assert left.value.code == 0


def test_a_promoted_skill_is_shown_with_its_evidence(tmp_path: Path) -> None:
    page = promoted_library(tmp_path / "library", "regrasp").page()
    newest, oldest = page["versions"]

    assert newest["current"]
    assert not oldest["current"]
    assert page["before"] == oldest["version"]
    (proven,) = oldest["skills"]
    offer = offered_by(COMMITTED / "tiny-lan")
    assert offer is not None
    assert proven["hash"] == load_skill(offer[0]).digest
    evidence = read_evidence(next((COMMITTED / "tiny-lan").glob(f"*/{PROMOTION}")))
    assert proven["evidence"]["report"]["pairs"] == evidence.report.pairs
    assert [each["standing"] for each in newest["skills"]] == ["proven", "unproven"]
    json.dumps(page, allow_nan=False)


def test_rolling_back_is_what_the_command_does(tmp_path: Path) -> None:
    pages = promoted_library(tmp_path / "library", "regrasp")
    before = pages.page()["before"]
    change = pages.rollback(str(before), "it harms")

    after = pages.page()
    assert after["current"] == before == change["version"]
    assert after["changes"][0]["action"] == "rollback"
    assert after["changes"][0]["why"] == "it harms"
    with pytest.raises(ConfigError, match="in use already"):
        pages.rollback(str(before), "")


def test_an_empty_library_and_what_ships(tmp_path: Path) -> None:
    page = LibraryPages(tmp_path / "library").page()

    assert page["current"] is None
    assert page["before"] is None
    shipped = {each["name"]: each for each in page["shipped"]}
    assert shipped["regrasp"]["bundles"] == ["starter"]
    assert not (tmp_path / "library").exists()
