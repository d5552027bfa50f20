"""`zetta skills diagnose` as a user meets it, on the toy world."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from zetta.runtime.cli import main as cli
from zetta.runtime.cli.bench_diagnosis import purity
from zetta.runtime.records import from_json
from zetta.skills.evolve.diagnosis import Diagnosis

RUN = (
    "run", "--sim", "toy", "--suite", "toy_swap", "--init", "sampled", "--sensing", "oracle",
    "--bundle", "starter", "--shadow", "--json",
)  # fmt: skip


def leave(*args: str) -> int:
    with pytest.raises(SystemExit) as left:
        cli.main(args)
    assert isinstance(left.value.code, int)
    return left.value.code


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return shadow logs: policy seed 1 reaches well, seed 2 beside the thing."""
    folder = tmp_path_factory.mktemp("logs")
    for name, seed, count in (("solved", "1", "6"), ("failed", "2", "5")):
        out = str(folder / name)
        assert leave(*RUN, "--policy-seed", seed, "--episodes", count, "--out", out) == 0
    return folder


def test_shadow_logs_are_diagnosed_with_evidence(
    logs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "found"
    assert leave("skills", "diagnose", str(logs), "--out", str(out), "--json") == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["successes"], len(answer["failures"]), answer["errors"]) == (6, 5, [])
    assert {each["missing"] for each in answer["failures"]} == {"grasped"}
    kept = json.loads((out / "diagnosis.json").read_text())
    assert from_json(Diagnosis, kept).pooled == answer["pooled"]
    for number, failure in enumerate(answer["failures"]):
        evidence = json.loads((out / "failures" / f"{number:03d}.json").read_text())
        assert evidence["failure"] == failure
        ticks = [row["tick"] for row in evidence["rows"]]
        assert failure["divergence"] in ticks
        assert not any("oracle" in name for row in evidence["rows"] for name in row["signals"])
        assert (out / "failures" / f"{number:03d}.png").stat().st_size > 1000


def test_people_get_a_table(logs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert leave("skills", "diagnose", str(logs)) == 0
    said = capsys.readouterr()
    assert said.out.startswith("5 failures against 6 successes; 0 errors of the machinery apart\n")
    assert "first missing" in said.out or "5 failures are pooled" in said.out


@pytest.mark.parametrize(
    ("part", "sentence"),
    [
        ("solved", "there is no failure among 6 episodes"),
        ("failed", "there is no success among 5 episodes"),
        ("nowhere", "no episode log lies below"),
    ],
)
def test_what_cannot_be_diagnosed_is_one_sentence(
    logs: Path, part: str, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert leave("skills", "diagnose", str(logs / part)) == 1
    assert sentence in capsys.readouterr().err


def test_logs_without_truth_and_with_errors(
    logs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = tmp_path / "logs"
    shutil.copytree(logs, broken)
    first = min(path.parent for path in (broken / "failed").rglob("episode.json"))
    header = json.loads((first / "episode.json").read_text())
    header["complete"], header["result"]["reason"] = False, "error"
    (first / "episode.json").write_text(json.dumps(header))
    assert leave("skills", "diagnose", str(broken), "--json") == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["errors"], len(answer["failures"])) == ([str(first)], 4)
    last = max(path.parent for path in (broken / "failed").rglob("episode.json"))
    (last / "truth.parquet").unlink()
    assert leave("skills", "diagnose", str(broken)) == 1
    assert "holds no simulator truth" in capsys.readouterr().err


def test_faults_are_planted_in_the_toy_alone(capsys: pytest.CaptureFixture[str]) -> None:
    assert leave("bench", "diagnosis", "--sim", "libero") == 1
    assert "add --sim toy" in capsys.readouterr().err


def test_purity_counts_the_commonest_fault_of_each_group() -> None:
    assert purity(["a", "a", "b", "b"], [0, 0, 1, 1]) == 1.0
    assert purity(["a", "a", "b", "b"], [-1, -1, -1, -1]) == 0.5
