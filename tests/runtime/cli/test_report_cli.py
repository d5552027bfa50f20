"""`zetta report` as somebody types it: over runs and evaluations, whole and broken."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.report_page import check_page
from tests.runtime.reporting.made_outcomes import CALLED
from zetta.runtime.cli.main import main
from zetta.runtime.records import to_json

Said = tuple[int, str, str]
Typed = Callable[..., Said]
HOSTILE = "<script>alert('x')</script>"


@pytest.fixture
def typed(capsys: pytest.CaptureFixture[str]) -> Typed:
    def run(*words: object) -> Said:
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main([str(word) for word in words])
        assert isinstance(ended.value.code, int)
        said = capsys.readouterr()
        return ended.value.code, said.out, said.err

    return run


@pytest.fixture(scope="module")
def toy_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("toy") / "run"
    words = ["run", "--sim", "toy", "--episodes", "2", "--bundle", "starter", "--no-video"]
    with pytest.raises(SystemExit) as ended:
        main([*words, "--out", str(out)])
    assert ended.value.code == 0
    return out


@pytest.fixture
def run(toy_run: Path, tmp_path: Path) -> Path:
    """A run that has been moved since it was made."""
    return Path(shutil.copytree(toy_run, tmp_path / "moved"))


def answer_of(folder: Path) -> dict[str, Any]:
    plain: dict[str, Any] = json.loads((folder / "run.json").read_text())
    return plain


def changed(folder: Path, change: Callable[[dict[str, Any]], None]) -> None:
    plain = answer_of(folder)
    change(plain)
    (folder / "run.json").write_text(json.dumps(plain))


def test_a_run_is_reported_with_the_numbers_of_its_answer(run: Path, typed: Typed) -> None:
    code, said, notes = typed("report", run, "--json")
    answer, told = answer_of(run), json.loads(said)
    page = check_page((run / "report.html").read_text())
    arm = told["arms"]["moved"]

    assert code == 0, notes
    assert told["report"] == str(run / "report.html")
    assert [arm[k] for k in ("successes", "n", "interval")] == [
        answer[k] for k in ("successes", "n", "interval")
    ]
    assert arm["interventions"] == sum(e["interventions"] for e in answer["episodes"])
    assert told["strips"] == 2
    assert (told["alarms"], told["missing"], told["oracle"]) == ([], [], False)
    assert f"{answer['successes']}/{answer['n']}" in page.words
    assert "Sensing: vision" in page.words
    assert answer["policy"]["digest"] in page.words
    assert answer["command"] in page.words


def test_the_same_run_gives_the_same_page(run: Path, typed: Typed) -> None:
    typed("report", run)
    first = (run / "report.html").read_bytes()
    code, _, notes = typed("report", run)

    assert code == 0
    assert "replacing the report" in notes
    assert (run / "report.html").read_bytes() == first


def test_a_file_that_is_no_report_is_never_replaced(run: Path, typed: Typed) -> None:
    mine = run.parent / "mine.html"
    mine.write_text("my own page")
    code, _, said = typed("report", run, "--out", mine)

    assert code == 1
    assert "exists already and is no report" in said
    assert mine.read_text() == "my own page"
    (run / "report.html").write_text("mine as well")
    assert typed("report", run)[0] == 1
    assert (run / "report.html").read_text() == "mine as well"


def test_out_is_a_file_or_a_folder(run: Path, typed: Typed) -> None:
    assert typed("report", run, "--out", run.parent / "new" / "page.html")[0] == 0
    assert typed("report", run, "--out", run.parent / "folder")[0] == 0
    assert (run.parent / "new" / "page.html").is_file()
    assert (run.parent / "folder" / "report.html").is_file()
    assert not (run / "report.html").exists()


def test_what_episodes_say_is_text(run: Path, typed: Typed) -> None:
    def change(plain: dict[str, Any]) -> None:
        plain["command"] = HOSTILE
        plain["versions"] = {HOSTILE: HOSTILE}
        for each in plain["episodes"]:
            each["instruction"] = each["detail"] = HOSTILE
            each["recoveries"] = [to_json(CALLED) | {"reason": HOSTILE, "skill": HOSTILE}]

    changed(run, change)
    assert typed("report", run)[0] == 0
    text = (run / "report.html").read_text()

    assert "<script" not in text
    assert check_page(text).words.count(HOSTILE) >= 6


def test_an_error_of_machinery_stands_apart(run: Path, typed: Typed) -> None:
    changed(run, lambda plain: plain["episodes"][0].update(error="Timeout: no answer") or plain)
    code, said, _ = typed("report", run, "--json")
    arm = json.loads(said)["arms"]["moved"]
    page = check_page((run / "report.html").read_text())

    assert code == 0
    assert (arm["n"], arm["errors"]) == (1, 1)
    assert "Infrastructure errors" in page.words
    assert "Timeout: no answer" in page.words
    assert "run.json says 2/2, its episodes say 1/1" in page.words


@pytest.mark.parametrize("content", [None, "{torn", "[]", '{"episodes": 3}'])
def test_without_its_answer_a_run_is_read_from_its_logs(
    run: Path, typed: Typed, content: str | None
) -> None:
    whole = json.loads(typed("report", run, "--json", "--out", run.parent / "whole")[1])
    (run / "run.json").unlink()
    if content is not None:
        (run / "run.json").write_text(content)
    code, said, _ = typed("report", run, "--json")
    told = json.loads(said)

    assert code == 0
    assert any("run.json" in each for each in told["missing"])
    assert told["arms"]["moved"]["suites"] == whole["arms"]["moved"]["suites"]
    assert told["arms"]["moved"]["sources"] == whole["arms"]["moved"]["sources"]
    assert told["strips"] == 2


def test_episodes_that_are_torn_are_counted_and_said(run: Path, typed: Typed) -> None:
    changed(run, lambda plain: plain["episodes"].append({"suite": "toy_pick"}))
    (run / "episodes" / ".002.partial-abc").mkdir()
    told = json.loads(typed("report", run, "--json")[1])

    assert told["arms"]["moved"]["n"] == 2
    assert "1 episode of run.json cannot be read" in told["missing"]
    assert any("episode 002 was not finished" in each for each in told["missing"])


def test_nothing_that_can_be_read_is_one_sentence(tmp_path: Path, typed: Typed) -> None:
    (tmp_path / "run.json").write_text("nonsense")
    code, out, said = typed("report", tmp_path)
    assert (code, out) == (1, "")
    assert said.count("error:") == 1
    assert "nothing of the run" in said

    (tmp_path / "empty").mkdir()
    code, _, said = typed("report", tmp_path / "empty")
    assert code == 1
    assert "holds no run, no evaluation and no campaign" in said
    code, _, said = typed("report", tmp_path / "nowhere")
    assert code == 1
    assert "there is no folder" in said
    assert typed("report")[0] == 2


def test_an_answer_cannot_name_pictures_outside_of_its_run(run: Path, typed: Typed) -> None:
    outside = run.parent / "outside"
    shutil.copytree(run / "episodes" / "000", outside)

    def change(plain: dict[str, Any]) -> None:
        plain["episodes"][0]["log"] = f"{plain['folder']}/../outside"
        plain["episodes"][1]["log"] = str(outside)

    changed(run, change)
    assert json.loads(typed("report", run, "--json")[1])["strips"] == 0


def test_missing_strips_are_drawn_again_when_asked(run: Path, typed: Typed) -> None:
    for strip in run.glob("episodes/*/strip.png"):
        strip.unlink()
    without = json.loads(typed("report", run, "--json")[1])
    words = check_page((run / "report.html").read_text()).words
    drawn = json.loads(typed("report", run, "--json", "--draw", "--strips", "1")[1])

    assert without["strips"] == 0
    assert "2 of the chosen have no picture strip; --draw draws" in words
    assert drawn["strips"] == 1
    assert not list(run.glob("episodes/*/strip.png"))


def test_runs_are_paired_on_the_scenes_that_they_share(
    run: Path, tmp_path: Path, typed: Typed
) -> None:
    other = Path(shutil.copytree(run, tmp_path / "other"))

    def change(plain: dict[str, Any]) -> None:
        plain["episodes"][0].update(success=False, reason="truncated")
        plain["episodes"].append(plain["episodes"][1] | {"init": 7})

    changed(other, change)
    code, said, notes = typed("report", run, other, "--json", "--out", tmp_path / "both.html")
    told = json.loads(said)
    (pair,) = told["comparisons"]

    assert code == 0, notes
    assert (pair["baseline"], pair["arm"], pair["pairs"]) == ("moved", "other", 2)
    assert (pair["both"], pair["wins"], pair["harms"], pair["neither"]) == (1, 0, 1, 0)
    assert any("1 of other and 0 of moved have no partner" in each for each in told["missing"])
    check_page((tmp_path / "both.html").read_text())


def test_pairs_of_different_worlds_are_said_at_the_top(
    run: Path, tmp_path: Path, typed: Typed
) -> None:
    other = Path(shutil.copytree(run, tmp_path / "other"))
    changed(other, lambda plain: plain["episodes"][0].update(scene_digest="0" * 64))
    told = json.loads(typed("report", run, other, "--json", "--out", tmp_path / "both.html")[1])

    assert any("compare different worlds" in each for each in told["alarms"])


def test_only_runs_are_put_side_by_side(run: Path, typed: Typed, tmp_path: Path) -> None:
    results = Path(__file__).parents[3] / "results" / "eval" / "profiles"
    code, _, said = typed("report", run, results, "--out", tmp_path / "x.html")
    assert code == 1
    assert "is an evaluation: report it alone" in said
    code, _, said = typed("report", run, run, "--out", tmp_path / "x.html")
    assert code == 1
    assert "named twice" in said


def test_an_evaluation_is_continued_beside_its_report(tmp_path: Path, typed: Typed) -> None:
    out = tmp_path / "eval"
    words = (
        "eval", "--sim", "toy", "--suites", "toy_pick", "--tasks", "0", "--inits", "0-1",
        "--out", out, "--json",
    )  # fmt: skip
    code, said, notes = typed(*words)
    assert code == 0, notes
    evaluated = json.loads(said)
    told = json.loads(typed("report", out, "--json")[1])

    assert told["arms"] == evaluated["arms"]
    assert typed(*words, "--resume")[0] == 0
    check_page((out / "report.html").read_text())


def test_without_a_browser_one_sentence_says_how_to_print(
    run: Path, typed: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("zetta.runtime.cli.report_pdf.BROWSERS", ("no-such-browser",))
    code, _, said = typed("report", run, "--pdf", run / "report.pdf")

    assert code == 1
    assert "open" in said
    assert "print it to PDF" in said
    assert (run / "report.html").exists()
