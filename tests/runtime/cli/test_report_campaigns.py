"""`zetta report` over campaigns: the committed ones, and ones that somebody changed."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.report_page import check_page, table
from tests.skills.evolve.made_campaign import made
from zetta.runtime.cli.report_campaign import campaign_document
from zetta.runtime.errors import ConfigError
from zetta.runtime.reporting.document import Plot, RateCell
from zetta.runtime.reporting.page import render
from zetta.runtime.success_rates import mcnemar, newcombe_paired
from zetta.skills.evolve.campaign_records import read_campaign, read_what_stands
from zetta.skills.evolve.evidence import tally

CAMPAIGNS = Path(__file__).parents[3] / "results" / "campaigns"
PROMOTED = CAMPAIGNS / "tiny-lan"


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    return Path(shutil.copytree(PROMOTED, tmp_path / "copied"))


def stage(folder: Path, name: str) -> dict[str, Any]:
    plain: dict[str, Any] = json.loads((folder / "000" / f"{name}.json").read_text())
    return plain


@pytest.mark.parametrize("folder", sorted(CAMPAIGNS.iterdir()), ids=lambda folder: folder.name)
def test_a_committed_campaign_has_a_whole_report(folder: Path) -> None:
    document, numbers = campaign_document(folder)
    page = check_page(render(document))
    campaign = numbers["campaign"]
    assert isinstance(campaign, dict)

    assert document.alarms == ()
    assert campaign["broken"] == []
    assert "fit their hashes." in page.words
    for number, said in enumerate(campaign["generations"]):
        assert f"Generation {number}" in page.words
        verdict = json.loads((folder / f"{number:03d}" / "verdict.json").read_text())["content"]
        assert said["decision"] in page.words
        if "verdict" in verdict:
            assert said["decision"] == verdict["verdict"]["decision"]
            assert verdict["verdict"]["reason"] in page.words


def test_the_published_gain_is_that_of_the_report_block() -> None:
    document, numbers = campaign_document(PROMOTED)
    reported = stage(PROMOTED, "report")["content"]
    verdicts = table(document, "Verdicts")
    tasks = table(document, "Success by task")
    campaign = numbers["campaign"]
    assert isinstance(campaign, dict)

    assert campaign["generations"][0]["gain"] == [
        reported[name] for name in ("gain", "gain_low", "gain_high")
    ]
    assert verdicts.rows[0][4] == f"{100 * reported['gain']:+.1f}"
    for arm in reported["arms"]:
        column = next(
            i for i, name in enumerate(tasks.columns) if name.endswith(arm["arm"]) and i > 1
        )
        rate = tasks.total[column]
        assert isinstance(rate, RateCell)
        assert (rate.successes, rate.runs) == (arm["successes"], arm["runs"])
    assert "sham 10/20, random 12/20" in check_page(render(document)).words


def test_the_arms_of_the_gate_are_counted_as_the_verdict_counts() -> None:
    document, _ = campaign_document(PROMOTED)
    found = table(document, "against each opponent of the gate")
    judged = {
        e["stage"]: e["counts"] for e in stage(PROMOTED, "verdict")["content"]["verdict"]["stages"]
    }

    for row, name in zip(
        found.rows, ("same_scene", "no_harm", "parent", "sham", "random"), strict=True
    ):
        counts = judged[name]
        test = mcnemar(counts["wins"], counts["harms"])
        gain, _ = newcombe_paired(*(counts[k] for k in ("both", "wins", "harms", "neither")))
        assert row[1:6] == tuple(
            str(counts[k]) for k in ("pairs", "both", "wins", "harms", "neither")
        )
        assert row[7] == f"{100 * gain:+.1f}"
        assert row[10] == f"{test.p_two_sided:.3g}"
    assert "null" in found.columns[9]


def test_the_way_to_the_boundary_is_drawn_up_to_the_stop() -> None:
    document, _ = campaign_document(PROMOTED)
    plot = next(b for b in document.blocks() if isinstance(b, Plot) and "Boundary" in b.alt)

    assert "against parent: 7 of 7 won" in plot.alt
    assert "Boundary: 7 of 7, 8 of 9, 10 of 12" in plot.alt


def test_the_stopped_block_holds_more_pairs_than_the_verdict_looked_at() -> None:
    """Else the test above could not fail."""
    last = read_campaign(PROMOTED).generations[0].stages["controls"]

    assert tally(last.evidence.parent).pairs == 16  # type: ignore[attr-defined]


def test_equal_campaigns_give_equal_pages(copied: Path) -> None:
    first = render(campaign_document(copied)[0])

    assert render(campaign_document(copied)[0]) == first


def changed_number(folder: Path) -> None:
    path = folder / "000" / "report.json"
    path.write_text(path.read_text().replace('"gain": 0.5', '"gain": 0.9'))


def changed_manifest(folder: Path) -> None:
    path = folder / "manifest.json"
    path.write_text(path.read_text().replace('"author": "search"', '"author": "human"'))


def other_record(folder: Path) -> None:
    other = CAMPAIGNS / "tiny-shuffled-swap" / "000" / "shadow.json"
    shutil.copy(other, folder / "000" / "shadow.json")


def no_record(folder: Path) -> None:
    (folder / "000" / "shadow.json").unlink()


def torn_record(folder: Path) -> None:
    path = folder / "000" / "verdict.json"
    path.write_text(path.read_text()[:200])


@pytest.mark.parametrize(
    ("breaks", "said", "kept"),
    [
        (changed_number, "was changed after it was written", 11),
        (changed_manifest, "was made from other records", 0),
        (other_record, "was made from other records", 5),
        (no_record, "a record was taken away", 5),
        (torn_record, "is no JSON", 10),
    ],
)
def test_a_broken_chain_is_said_in_red_at_the_top_and_nothing_after_it_is_shown(
    copied: Path, breaks: Callable[[Path], None], said: str, kept: int
) -> None:
    breaks(copied)
    document, numbers = campaign_document(copied)
    text = render(document)
    page = check_page(text)
    campaign = numbers["campaign"]
    assert isinstance(campaign, dict)

    assert said in document.alarms[0]
    assert campaign["records"] == kept
    assert campaign["generations"] == [] or campaign["generations"][0]["gain"] is None
    assert text.index('<div class="error"') < text.index("<h2")
    assert said in page.words


def test_what_stands_of_a_whole_campaign_is_all_of_it() -> None:
    assert read_what_stands(PROMOTED) == (read_campaign(PROMOTED), ())


def test_an_unfinished_campaign_says_where_it_stands(tmp_path: Path) -> None:
    made(tmp_path)
    document, _ = campaign_document(tmp_path)

    assert any("generation 1 stands after" in each for each in document.missing)


def test_a_plan_that_is_not_there_is_said(copied: Path) -> None:
    (copied / "plan.json").write_text("{}")
    document, _ = campaign_document(copied)

    assert any("no boundary can be shown" in each for each in document.missing) == (
        read_campaign(copied).plan is None
    )


def test_a_folder_without_a_manifest_is_no_campaign(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"manifest\.json cannot be read"):
        campaign_document(tmp_path)


def test_without_the_extra_one_sentence_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ConfigError, match=r"needs matplotlib; .*zetta\[report\]"):
        campaign_document(PROMOTED)
