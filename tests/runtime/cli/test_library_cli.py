"""`zetta skills promote`, `retire`, `rollback`, … as a user meets them."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from zetta.runtime.cli import main as cli
from zetta.skills.bundles import load_bundle
from zetta.skills.calibrated import CalibrationRecord, write_calibration
from zetta.skills.package import load_skill
from zetta.skills.promotions import PromotionEvidence, evidence_text, read_evidence
from zetta.skills.shelf import library_folder
from zetta.skills.template import write_template


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let the library and keys lie in a folder of the test, and start in an empty folder."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    return tmp_path


def leave(*args: str) -> int:
    """Run `zetta` and return its exit code."""
    with pytest.raises(SystemExit) as left:
        cli.main(args)
    return int(left.value.code or 0)


def answer(capfd: pytest.CaptureFixture[str], *args: str, code: int = 0) -> dict[str, Any]:
    """Run `zetta … --json` and return its object."""
    capfd.readouterr()
    assert leave(*args, "--json") == code
    found: dict[str, Any] = json.loads(capfd.readouterr().out)
    return found


def refused(capfd: pytest.CaptureFixture[str], *args: str) -> str:
    """Run a command that fails, and return its sentence."""
    sentence: str = answer(capfd, *args, code=1)["error"]["message"]
    return sentence


def evidence(package: Path, campaign: str = "c" * 64) -> PromotionEvidence:
    return PromotionEvidence(
        campaign=campaign,
        candidate=load_skill(package).digest,
        verdict="PROMOTE",
        stages=(),
        report=None,
        suites=("toy_pick",),
        policy="toy/reach",
        sensing="oracle",
        versions={},
        command="zetta evolve",
    )


def test_from_promotion_to_a_run_and_back(capfd: pytest.CaptureFixture[str], home: Path) -> None:
    first = answer(capfd, "skills", "promote", "regrasp", "--unproven", "--why", "a try")
    second = answer(capfd, "skills", "promote", "reseat", "--unproven")
    listed = answer(capfd, "skills", "list")["library"]

    assert first["library"] == str(home / "data" / "zetta" / "library")
    assert first["unproven"]
    assert any("calibrate again" in note for note in second["notes"])
    assert [(s["name"], s["standing"]) for s in listed["skills"]] == [
        ("regrasp", "unproven"), ("reseat", "unproven"),
    ]  # fmt: skip
    run = answer(
        capfd, "run", "--sim", "toy", "--bundle", "library", "--sensing", "oracle", "--no-video"
    )
    (log,) = (Path(episode["log"]) for episode in run["episodes"])
    assert (
        json.loads((log / "episode.json").read_text())["run"]["bundle_digest"] == (second["bundle"])
    )
    answer(capfd, "skills", "retire", "reseat", "--why", "not needed")
    assert answer(capfd, "skills", "rollback")["version"] == second["version"]
    actions = [c["action"] for c in answer(capfd, "skills", "history")["changes"]]
    assert actions == ["promote", "promote", "retire", "rollback"]
    leave("skills", "history")
    assert "promote (unproven)" in capfd.readouterr().out


def test_without_proof_a_skill_is_refused(capfd: pytest.CaptureFixture[str]) -> None:
    assert "--unproven" in refused(capfd, "skills", "promote", "regrasp")
    Path("other.json").write_text(evidence_text(evidence(library_folder() / "reseat")))
    told = refused(capfd, "skills", "promote", "regrasp", "--evidence", "other.json")
    assert "what was judged is what is promoted" in told
    told = refused(capfd, "skills", "promote", "regrasp", "--evidence", "missing.json")
    assert "missing.json cannot be read" in told
    assert answer(capfd, "skills", "list")["library"]["version"] is None


def test_a_package_that_does_not_check_is_refused(capfd: pytest.CaptureFixture[str]) -> None:
    package = write_template("own-skill", Path("skills"))
    (package / "critic.py").write_text("import os\n", encoding="utf-8")
    assert "critic.py:1" in refused(capfd, "skills", "promote", str(package), "--unproven")


PROVEN = Path(__file__).parents[3] / "results" / "campaigns" / "tiny-lan"
SKILL = "keeps-away-regrasp"


def test_a_campaign_brings_package_and_proof(capfd: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(PROVEN, "campaign")
    promoted = answer(capfd, "skills", "promote", "campaign")

    assert (promoted["skill"], promoted["unproven"]) == (SKILL, False)
    proof = read_evidence(Path("campaign/000/promotion.json"))
    assert promoted["evidence"] == proof.digest
    assert answer(capfd, "skills", "list")["library"]["skills"][0]["standing"] == "proven"


def test_a_campaign_that_promoted_nothing_has_nothing_to_offer(
    capfd: pytest.CaptureFixture[str],
) -> None:
    shutil.copytree(PROVEN, "campaign")
    Path("campaign/000/promotion.json").unlink()
    assert "has promoted nothing" in refused(capfd, "skills", "promote", "campaign")


def test_evidence_of_another_campaign_is_refused(capfd: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(PROVEN, "campaign")
    record = Path("campaign/000/promotion.json")
    record.write_text(evidence_text(replace(read_evidence(record), campaign="d" * 64)))
    assert "two campaigns were mixed" in refused(capfd, "skills", "promote", "campaign")


def test_a_package_that_was_exchanged_is_refused_with_and_without_its_evidence(
    capfd: pytest.CaptureFixture[str],
) -> None:
    shutil.copytree(PROVEN, "campaign")
    package = Path("campaign/000/package") / SKILL
    params = package / "params.toml"
    params.write_text(params.read_text().replace("default = 0.1\n", "default = 0.12\n", 1))
    assert "what was judged is what is promoted" in refused(capfd, "skills", "promote", "campaign")

    record = Path("campaign/000/promotion.json")
    forged = replace(read_evidence(record), candidate=load_skill(package).digest)
    record.write_text(evidence_text(forged))
    assert "was changed: generation 0 judged" in refused(capfd, "skills", "promote", "campaign")


def test_a_verdict_that_is_none_promotes_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(PROVEN, "campaign")
    verdict = Path("campaign/000/verdict.json")
    verdict.write_text(verdict.read_text().replace("PROMOTE", "REJECT"))
    assert "verdict" in refused(capfd, "skills", "promote", "campaign")


def test_a_promoted_skill_is_signed_and_the_original_is_not(
    capfd: pytest.CaptureFixture[str],
) -> None:
    package = write_template("own-skill", Path("skills"))
    assert "no key" in refused(capfd, "skills", "promote", str(package), "--unproven", "--sign")
    answer(capfd, "skills", "keygen")
    answer(capfd, "skills", "promote", str(package), "--unproven", "--sign")
    (held,) = answer(capfd, "skills", "list")["library"]["skills"]

    assert held["signed"].startswith("signed by")
    assert not (package / "signature.json").exists()
    assert answer(capfd, "skills", "show", "own-skill")["signed"] == held["signed"]
    assert answer(capfd, "skills", "test", "own-skill")["passed"]
    assert "no skill 'own-skill'" in refused(capfd, "skills", "sign", "own-skill")


def test_a_difference_shows_numbers_and_text(capfd: pytest.CaptureFixture[str]) -> None:
    package = write_template("own-skill", Path("skills"))
    first = answer(capfd, "skills", "promote", str(package), "--unproven")["version"]
    numbers = package / "params.toml"
    text = numbers.read_text()
    old = text.split("default = ")[1].split("\n")[0]
    numbers.write_text(text.replace(f"default = {old}", f"default = {old}1", 1))
    answer(capfd, "skills", "promote", str(package), "--unproven")
    found = answer(capfd, "skills", "diff", first[:10], "current")

    assert found["files"] == ["own-skill/params.toml"]
    assert found["parameters"][0]["field"] == "default"
    assert leave("skills", "diff", first[:10], "current") == 0
    assert "parameter" in capfd.readouterr().out
    assert answer(capfd, "skills", "diff", "regrasp", "regrasp")["same"]


def test_a_quarantined_skill_is_left_out_and_listed(capfd: pytest.CaptureFixture[str]) -> None:
    answer(capfd, "skills", "promote", "regrasp", "--unproven")
    assert "say which skill, and why" in refused(capfd, "skills", "quarantine", "regrasp")
    answer(capfd, "skills", "quarantine", "regrasp", "--why", "it broke a cup")
    (held,) = answer(capfd, "skills", "list")["library"]["skills"]
    assert (held["standing"], held["why"]) == ("quarantined", "it broke a cup")
    leave("run", "--sim", "toy", "--bundle", "library", "--no-video")
    assert "in quarantine and left out" in capfd.readouterr().err
    answer(capfd, "skills", "release", "regrasp", "--why", "the cup was cracked")


def test_harm_in_an_evaluation_quarantines(capfd: pytest.CaptureFixture[str]) -> None:
    answer(capfd, "skills", "promote", "restage", "--unproven")
    answer(
        capfd, "eval", "--sim", "toy", "--suites", "toy_pick", "--tasks", "0", "--inits", "0-3",
        "--arms", "none,library", "--sensing", "oracle", "--out", "out",
    )  # fmt: skip
    (shard,) = Path("out").glob("*/episodes-*.jsonl")
    lines = [json.loads(line) for line in shard.read_text().splitlines()]
    for line in lines[1:]:  # as if the skill had broken what the bare policy solves
        line["record"]["success"] = line["arm"] == "none"
        if line["arm"] == "library":
            line["record"]["recoveries"] = [
                {"skill": "restage", "critic": "restage", "reason": "", "tick": 3}
            ]
    shard.write_text("".join(json.dumps(line) + "\n" for line in lines))
    found = answer(capfd, "skills", "quarantine", "--from", "out")

    assert found["skills"] == [{"name": "restage", "episodes": 4, "harms": 4, "quarantined": True}]
    told = refused(capfd, "skills", "quarantine", "--from", "out", "--arm", "other")
    assert "it has library, none" in told


def whole(folder: Path) -> dict[str, bytes]:
    """Return every file of a folder."""
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_a_library_is_distilled_into_one_folder(capfd: pytest.CaptureFixture[str]) -> None:
    package = write_template("own-skill", Path("skills"))
    Path("proof.json").write_text(evidence_text(evidence(package)))
    answer(capfd, "skills", "promote", "reseat", "--unproven")
    first = answer(capfd, "skills", "promote", str(package), "--evidence", "proof.json")
    answer(capfd, "skills", "promote", "regrasp", "--unproven")
    answer(capfd, "skills", "quarantine", "regrasp", "--why", "it broke a cup")
    found = answer(capfd, "skills", "distill", "library", "--out", "carried")

    assert [(s["name"], s["proven"]) for s in found["skills"]] == [
        ("reseat", False), ("own-skill", True),
    ]  # fmt: skip
    assert found["bundle"] == load_bundle("carried").digest == first["bundle"]
    assert "in quarantine" in found["notices"][0]
    answer(capfd, "skills", "distill", "library", "--out", "again")
    assert whole(Path("again")) == whole(Path("carried"))
    version = first["version"][:8]
    answer(capfd, "skills", "distill", "library", "--version", version, "--out", "older")
    assert whole(Path("older")) == whole(Path("carried"))
    answer(capfd, "skills", "distill", "carried", "--out", "copied")
    assert whole(Path("copied")) == whole(Path("carried"))
    page = Path("copied/reseat/SKILL.md")
    page.write_text(page.read_text() + "more")
    assert "was changed" in refused(capfd, "run", "--sim", "toy", "--bundle", "copied")


def test_thresholds_go_along_when_they_are_of_these_critics(
    capfd: pytest.CaptureFixture[str],
) -> None:
    write_template("own-skill", Path("skills"))
    for name, digest in (("other", "0" * 64), ("right", load_bundle("skills").digest)):
        record = CalibrationRecord("skills", digest, "toy/reach", "", 0.1, 0.1, 9, 9, {}, {})
        write_calibration(Path(f"{name}.json"), record)
    asked = ("skills", "distill", "skills", "--out", "out", "--calibration")
    assert "calibrate again" in refused(capfd, *asked, "other.json")
    assert answer(capfd, *asked, "right.json")["calibration"]
    assert Path("out/calibration.json").read_bytes() == Path("right.json").read_bytes()
    answer(
        capfd, "run", "--sim", "toy", "--bundle", "out", "--calibration", "out/calibration.json",
        "--no-video",
    )  # fmt: skip
    assert "exists already" in refused(capfd, *asked, "right.json")
    assert "no folder" in refused(capfd, "skills", "distill", "starter", "--out", "x")
    assert "no version" in refused(
        capfd, "skills", "distill", "skills", "--version", "abcd", "--out", "x"
    )


def test_errors_say_what_to_do(capfd: pytest.CaptureFixture[str]) -> None:
    assert "is empty; put a skill into it" in refused(
        capfd, "run", "--sim", "toy", "--bundle", "library"
    )
    Path("file").write_text("")
    assert "is a file" in refused(capfd, "skills", "history", "--library", "file")
    assert "no version before" in refused(capfd, "skills", "rollback")
