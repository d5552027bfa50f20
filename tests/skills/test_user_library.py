"""The user's library: versions that never change, a pointer, a history, and quarantine."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from zetta.runtime.errors import ConfigError
from zetta.skills.bundle_folders import Member, read_bundle, write_bundle
from zetta.skills.bundles import library_state, load_bundle, pinned
from zetta.skills.calibrated import CalibrationRecord, read_calibration, write_calibration
from zetta.skills.library_history import Author
from zetta.skills.package_files import read_files
from zetta.skills.promotions import (
    PromotionEvidence,
    ReportEstimate,
    StageCounts,
    check_proof,
    evidence_text,
    parse_evidence,
)
from zetta.skills.quarantine import EpisodePair, HarmLimit, harms_of, quarantine_harmful
from zetta.skills.shelf import library_folder
from zetta.skills.template import write_template
from zetta.skills.user_library import UserLibrary

ME = Author("ada", "zetta skills promote")


def member(name: str, evidence: PromotionEvidence | None = None) -> Member:
    return Member(read_files(library_folder() / name), evidence)


def proof(package: str) -> PromotionEvidence:
    return PromotionEvidence(
        campaign="c" * 64,
        candidate=package,
        verdict="PROMOTE",
        stages=(StageCounts("parent", "pass", 40, 12, 1),),
        report=ReportEstimate(50, 0, -0.1, 0.3),  # a whole number, as a hand would write it
        suites=("toy_pick",),
        policy="toy/reach",
        sensing="oracle",
        versions={"zetta": "0.1.0"},
        command="zetta evolve",
    )


def filled(folder: Path, names: Sequence[str] = ("regrasp", "reseat")) -> UserLibrary:
    library = UserLibrary(folder)
    for name in names:
        library.promote(member(name), ME)
    return library


def test_promoted_skills_are_the_bundle_library_in_the_order_of_promotion(tmp_path: Path) -> None:
    library = filled(tmp_path, ("reseat", "regrasp"))
    loaded = load_bundle("library", library=tmp_path)

    assert [p.name for p in loaded.packages] == ["reseat", "regrasp"]
    assert loaded.digest == library.bundle(library.current())[0].bundle
    assert loaded.digest == load_bundle("reseat+regrasp").digest
    assert load_bundle(str(tmp_path)).digest == loaded.digest
    assert load_bundle(str(library.path(library.current()))).digest == loaded.digest


def test_rolling_back_moves_the_pointer_and_twice_goes_back_two(tmp_path: Path) -> None:
    library = filled(tmp_path, ("regrasp", "reseat", "restage"))
    first, second, third = (change.version for change in library.history())
    assert library.rollback("", ME).version == second
    assert library.rollback("", ME).version == first
    with pytest.raises(ConfigError, match="no version before"):
        library.rollback("", ME)
    library.rollback(third[:8], ME)
    assert library.current() == third
    assert set(library.versions()) == {first, second, third}


def test_undoing_a_retirement_brings_the_skill_back(tmp_path: Path) -> None:
    library = filled(tmp_path)
    both = library.current()
    library.retire("reseat", ME, "not needed")
    assert library.current() == library.history()[0].version  # the same bytes, the same version
    assert library.rollback("", ME).version == both


def test_a_version_that_was_changed_is_refused(tmp_path: Path) -> None:
    library = filled(tmp_path)
    page = library.path(library.current()) / "regrasp" / "SKILL.md"
    page.write_text(page.read_text(encoding="utf-8") + "more\n", encoding="utf-8")

    with pytest.raises(ConfigError, match=r"changed after it was written: regrasp"):
        load_bundle("library", library=tmp_path)
    with pytest.raises(ConfigError, match="changed after it was written"):
        filled(tmp_path, ("restage",))


def test_a_change_of_manifest_and_files_alike_is_refused_by_the_name(tmp_path: Path) -> None:
    library = filled(tmp_path)
    folder = library.path(library.current())
    write_bundle(tmp_path / "other", [member("restage")])
    (folder / "bundle.json").write_bytes((tmp_path / "other" / "bundle.json").read_bytes())
    (tmp_path / "other" / "restage").rename(folder / "restage")
    with pytest.raises(ConfigError, match="holds the version"):
        library.bundle(library.current())


def test_a_skill_in_quarantine_is_left_out_at_once_with_a_notice(tmp_path: Path) -> None:
    library = filled(tmp_path)
    before = library_state("none+library", tmp_path)
    library.quarantine("regrasp", ME, "it knocked a cup over")
    loaded = load_bundle("library", library=tmp_path)

    assert [p.name for p in loaded.packages] == ["reseat"]
    assert loaded.notices == (
        "the skill 'regrasp' is in quarantine and left out: it knocked a cup over",
    )
    assert library_state("none+library", tmp_path) != before
    with pytest.raises(ConfigError, match="in quarantine already"):
        library.quarantine("regrasp", ME, "again")
    library.retire("regrasp", ME, "gone")
    with pytest.raises(ConfigError, match="is quarantined"):
        library.promote(member("regrasp"), ME)
    library.rollback("", ME)
    assert len(load_bundle("library", library=tmp_path).packages) == 1  # also after a rollback
    library.release("regrasp", ME, "it was the cat")
    assert len(load_bundle("library", library=tmp_path).packages) == 2


def test_a_pinned_bundle_stays_when_the_pointer_moves(tmp_path: Path) -> None:
    library = filled(tmp_path)
    name = pinned("sham:starter+library", tmp_path)
    assert name == f"sham:starter+library@{library.current()[:12]}"
    word = pinned("library", tmp_path)
    library.retire("reseat", ME, "x")
    assert len(load_bundle(word, library=tmp_path).packages) == 2
    assert pinned("starter", tmp_path) == "starter"


def test_the_calibration_of_another_union_is_refused(tmp_path: Path) -> None:
    library = filled(tmp_path / "library", ("regrasp",))
    loaded = load_bundle("library", library=library.folder)
    record = CalibrationRecord("library", loaded.digest, "toy/reach", "", 0.1, 0.1, 9, 9, {}, {})
    write_calibration(tmp_path / "calibration.json", record)
    read_calibration(tmp_path / "calibration.json", loaded)
    library.promote(member("reseat"), ME)
    with pytest.raises(ConfigError, match="calibrate again"):
        read_calibration(
            tmp_path / "calibration.json", load_bundle("library", library=library.folder)
        )


def test_evidence_lies_beside_the_package_whose_hash_stays(tmp_path: Path) -> None:
    library = UserLibrary(tmp_path)
    judged = member("regrasp").part.package
    library.promote(member("regrasp", proof(judged)), ME)
    (part,) = read_bundle(library.path(library.current()))[0].skills
    beside = library.path(library.current()) / "regrasp.evidence.json"

    assert part.package == judged
    assert part.proven
    assert json.loads(beside.read_text(encoding="utf-8"))["verdict"] == "PROMOTE"
    beside.write_text(beside.read_text().replace("ada", "eve").replace("toy_pick", "libero"))
    with pytest.raises(ConfigError, match="its hash does not fit"):
        library.bundle(library.current())


def test_the_same_skill_with_proof_is_another_version(tmp_path: Path) -> None:
    library = filled(tmp_path, ("regrasp",))
    assert library.history()[0].unproven
    change = library.promote(member("regrasp", proof(member("regrasp").part.package)), ME)
    assert not change.unproven
    assert len(library.versions()) == 2
    with pytest.raises(ConfigError, match="in the library already"):
        library.promote(member("regrasp", proof(member("regrasp").part.package)), ME)


def test_evidence_of_other_bytes_or_another_verdict_proves_nothing() -> None:
    evidence = proof("a" * 64)
    check_proof(evidence, "regrasp", "a" * 64)
    with pytest.raises(ConfigError, match="what was judged is what is promoted"):
        check_proof(evidence, "regrasp", "b" * 64)
    with pytest.raises(ConfigError, match="the gate said SIMPLIFY"):
        check_proof(replace(evidence, verdict="SIMPLIFY"), "regrasp", "a" * 64)
    assert parse_evidence(evidence_text(evidence), "x").digest == evidence.digest
    with pytest.raises(ConfigError, match="x is no evidence"):
        parse_evidence('{"verdict": "YES"}', "x")


def test_two_commands_do_not_change_a_library_at_once(tmp_path: Path) -> None:
    library = filled(tmp_path, ("regrasp",))
    with library._held(), pytest.raises(ConfigError, match="another command"):
        UserLibrary(tmp_path).retire("regrasp", ME, "x")


def test_an_interrupted_change_is_repeated_without_harm(tmp_path: Path) -> None:
    library = filled(tmp_path)
    first, second = (change.version for change in library.history())
    (tmp_path / "current").write_text(first + "\n")  # recorded, and not carried out
    library.promote(member("reseat"), ME)
    assert library.current() == second
    assert library.before() == first


def test_what_is_missing_is_said_in_a_sentence(tmp_path: Path) -> None:
    library = UserLibrary(tmp_path / "none")
    with pytest.raises(ConfigError, match="is empty; put a skill into it"):
        load_bundle("library", library=library.folder)
    with pytest.raises(ConfigError, match="no library is known"):
        load_bundle("library")
    filled(tmp_path)
    with pytest.raises(ConfigError, match="no skill 'regrap'; did you mean 'regrasp'"):
        UserLibrary(tmp_path).retire("regrap", ME, "x")
    with pytest.raises(ConfigError, match="'abc' is no version"):
        UserLibrary(tmp_path).resolve("abc")
    (tmp_path / "current").write_text("f" * 64)
    with pytest.raises(ConfigError, match="rollback --to"):
        UserLibrary(tmp_path).current()


def test_only_skills_that_intervened_bear_harm() -> None:
    pairs = [
        EpisodePair(True, False, ("regrasp", "reseat")),
        EpisodePair(True, False, ()),
        EpisodePair(True, True, ("reseat",)),
        EpisodePair(False, True, ("regrasp",)),
    ]
    found = {each.skill: (each.episodes, each.harms) for each in harms_of(pairs)}
    assert found == {"regrasp": (2, 1), "reseat": (2, 1)}


def test_harm_beyond_the_limit_quarantines_and_less_does_not(tmp_path: Path) -> None:
    library = filled(tmp_path)
    found = harms_of([EpisodePair(True, False, ("regrasp", "stranger")),
                      *[EpisodePair(True, True, ("regrasp",))] * 30])  # fmt: skip
    assert quarantine_harmful(library, found, HarmLimit(most=1), ME) == ()
    (change,) = quarantine_harmful(library, found, HarmLimit(), ME)
    assert change.skill == "regrasp"
    assert change.why == "broke 1 of the 31 scenes in which it intervened"
    assert quarantine_harmful(library, found, HarmLimit(), ME) == ()


def test_a_skill_that_does_not_check_can_still_be_compared(tmp_path: Path) -> None:
    from zetta.skills.bundle_differences import compare

    package = write_template("own-skill", tmp_path)
    first = dict(read_files(package).contents)
    path = package / "params.toml"
    path.write_text(path.read_text().replace("default = ", "default = 1", 1))
    found = compare(first, dict(read_files(package).contents), "a", "b")
    assert found.paths == ("params.toml",)
    assert [n.field for n in found.numbers] == ["default"]
    assert "--- a/params.toml" in found.text
