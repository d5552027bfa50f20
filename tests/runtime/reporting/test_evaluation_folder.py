"""Evaluations on disk: the committed ones say what they said, broken ones say what is missing."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.report_page import check_page
from zetta.runtime.errors import ConfigError
from zetta.runtime.evaluation_answers import tables_json
from zetta.runtime.evaluation_reports import RESULTS_FILE
from zetta.runtime.reporting.evaluation_folder import plan_files, read_evaluation
from zetta.runtime.reporting.outcome_document import outcome_document
from zetta.runtime.reporting.outcomes import tables_of
from zetta.runtime.reporting.page import render

RESULTS = Path(__file__).parents[3] / "results"
PLANS = [plan for name in ("eval", "transfer") for plan in (RESULTS / name).glob("*/*/plan.json")]
EVERY = sorted(plan.parents[1] for plan in PLANS)
SMALL = RESULTS / "eval" / "full-swap"


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    return Path(shutil.copytree(SMALL, tmp_path / "copied"))


def shard(folder: Path) -> Path:
    return next(plan_files(folder)[0].parent.glob("episodes-*.jsonl"))


@pytest.mark.parametrize("folder", EVERY, ids=lambda folder: folder.name)
def test_a_committed_evaluation_counts_again_to_what_it_said(folder: Path) -> None:
    read = read_evaluation(folder)
    assert read.alarms == ()
    if not (folder / RESULTS_FILE).exists():
        assert any(RESULTS_FILE in each for each in read.missing)
        return
    said = json.loads((folder / RESULTS_FILE).read_text())
    again = json.loads(json.dumps(tables_json(tables_of(read))))

    assert read.missing == ()
    assert len(read.episodes) == said["episodes"] == read.expected
    assert again["arms"] == said["arms"]
    assert again["comparisons"] == said["comparisons"]


@pytest.mark.parametrize("name", ["full-swap", "profiles", "shuffled-assist"])
def test_the_page_of_a_committed_evaluation_needs_nothing(name: str) -> None:
    page = check_page(render(outcome_document(read_evaluation(RESULTS / "eval" / name), 5)))

    assert "Sensing: vision" in page.words


def test_an_unfinished_evaluation_says_how_much_is_missing(copied: Path) -> None:
    path = shard(copied)
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:11]) + b'{"torn')
    (copied / RESULTS_FILE).unlink()
    read = read_evaluation(copied)

    assert len(read.episodes) == 10
    assert read.alarms == ()
    assert any("10 of 60 planned episodes" in each for each in read.missing)
    assert any("middle of a line" in each for each in read.missing)
    assert "results.json was not written" in render(outcome_document(read, 0))


def test_a_result_that_was_changed_is_said_at_the_top(copied: Path) -> None:
    said = json.loads((copied / RESULTS_FILE).read_text())
    said["arms"]["starter"]["successes"] += 5
    (copied / RESULTS_FILE).write_text(json.dumps(said))
    text = render(outcome_document(read_evaluation(copied), 0))

    assert "results.json says 47/60 for starter, the episodes say 42/60" in check_page(text).words
    assert text.index("Do not trust") < text.index('class="lead"')


def test_arms_that_did_not_start_alike_are_said(tmp_path: Path) -> None:
    copied = Path(shutil.copytree(RESULTS / "eval" / "profiles", tmp_path / "copied"))
    path = shard(copied)
    head, first, *lines = path.read_text().splitlines()
    row = json.loads(first)
    row["record"]["scene_digest"] = "0" * 64
    path.write_text("\n".join([head, json.dumps(row), *lines]) + "\n")

    assert any("started differently" in each for each in read_evaluation(copied).alarms)


def test_lines_that_are_no_rows_are_counted(copied: Path) -> None:
    path = shard(copied)
    head, *lines = path.read_text().splitlines()
    path.write_text("\n".join([head, "nonsense", '{"key": 3}', *lines[2:]]) + "\n")
    read = read_evaluation(copied)

    assert any("2 lines of" in each for each in read.alarms)
    assert len(read.episodes) == 58


def test_a_shard_of_another_plan_is_left_out(copied: Path) -> None:
    path = shard(copied)
    _, *lines = path.read_text().splitlines()
    path.write_text("\n".join(['{"plan": "another"}', *lines]) + "\n")
    read = read_evaluation(copied)

    assert read.episodes == ()
    assert any("another plan" in each for each in read.alarms)


def test_a_plan_that_cannot_be_read_is_one_sentence(copied: Path) -> None:
    plan_files(copied)[0].write_text('{"sim": "libero"}')
    with pytest.raises(ConfigError, match="is no plan of an evaluation"):
        read_evaluation(copied)
