"""The report of a campaign as a page: whole, safe, and never in the way of a campaign."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import pytest

from tests.report_page import Page, check_page
from tests.skills.evolve.made_campaign import HOSTILE, made
from zetta.runtime.cli.evolve_episodes import Errand, EvolvingEpisodes, sent_on
from zetta.runtime.cli.evolve_report import keep_report, write_report
from zetta.runtime.cli.evolve_rollouts import Nobody
from zetta.runtime.cli.evolve_strips import keep_strips
from zetta.runtime.cli.main import main
from zetta.runtime.core import RunSpec, Sampled
from zetta.runtime.errors import ConfigError
from zetta.runtime.reporting.page import PAGE


def typed(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    capsys.readouterr()
    with pytest.raises(SystemExit) as ended:
        main(["evolve", *words])
    assert isinstance(ended.value.code, int)
    said = capsys.readouterr()
    return ended.value.code, said.out, said.err


def test_an_unfinished_campaign_without_logs_has_a_report(tmp_path: Path) -> None:
    made(tmp_path)
    page = Page(write_report(tmp_path).read_text())

    assert "Generation 1 running" in page.words
    assert "1 of 2 were equal, action for action" in page.words
    assert "5 strips are left out: their logs are gone" in page.words
    assert "hash of the key of scenes" in page.words


def test_what_authors_write_is_text_and_nothing_else(tmp_path: Path) -> None:
    made(tmp_path)
    text = write_report(tmp_path).read_text()
    page = Page(text)

    assert HOSTILE in page.words
    assert "<script" not in text
    assert "script" not in page.seen


def test_a_report_needs_nothing_from_elsewhere(tmp_path: Path) -> None:
    made(tmp_path)
    text = write_report(tmp_path).read_text()

    assert "http://" not in text
    assert "https://" not in text
    check_page(text)
    assert write_report(tmp_path).read_text() == text


def test_a_report_that_cannot_be_written_is_a_note(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made(tmp_path)
    (tmp_path / PAGE).mkdir()
    keep_report(tmp_path)

    assert "the report was not written" in capsys.readouterr().err


def test_a_logged_episode_is_drawn_around_a_tick_and_embedded(tmp_path: Path) -> None:
    made(tmp_path)
    log = tmp_path / "000" / "logs" / "001"
    spec = RunSpec("toy", "toy_pick", 0, Sampled(), seed=1, policy="toy/reach-exact")
    with closing(EvolvingEpisodes()) as here:
        here.run(sent_on(spec, Errand(log=str(log))), Nobody())
    keep_strips(tmp_path)
    page = Page(write_report(tmp_path).read_text())

    assert (tmp_path / "pictures" / "000-001.png").exists()
    assert len([each for each in page.sources if each.startswith("data:image/jpeg")]) >= 1
    assert "failure 001 of generation 0" in page.words


def test_a_folder_without_a_campaign_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ConfigError, match=r"manifest\.json cannot be read"):
        write_report(tmp_path)
    code, _, said = typed(capsys, "--report", str(tmp_path))

    assert code == 1
    assert "manifest.json cannot be read" in said


def test_a_toy_campaign_writes_its_report_and_writes_it_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "campaign"
    words = (
        "--sim", "toy", "--suite", "toy_pick", "--tasks", "0", "--policy", "toy/reach-exact",
        "--sensing", "oracle", "--development", "2", "--seed", "s", "--out", str(out),
    )  # fmt: skip
    code, said, notes = typed(capsys, *words, "--json")
    path = out / PAGE

    assert code == 0, notes
    assert json.loads(said)["report"] == str(path)
    assert "there is nothing to learn from" in Page(path.read_text()).words
    path.unlink()
    code, said, _ = typed(capsys, "--report", str(out), "--json")
    assert code == 0
    assert json.loads(said) == {"report": str(path)}
    assert path.exists()


def test_verdicts_that_are_known_are_told_once_when_a_campaign_is_gone_on_with(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = (
        "--sim", "toy", "--suite", "toy_pick", "--tasks", "0", "--policy", "toy/reach-exact",
        "--sensing", "oracle", "--development", "2", "--seed", "s", "--out", str(tmp_path),
        "--generations", "2",
    )  # fmt: skip
    _, said, notes = typed(capsys, *words)
    assert notes.count("generation 0: REJECT") == 1  # as soon as it is known
    assert notes.count("generation 1: REJECT") == 0  # the answer follows
    assert said.count(": REJECT") == 2

    _, said, notes = typed(capsys, *words)
    assert notes.count(": REJECT") == 0
    assert said.count(": REJECT") == 2
