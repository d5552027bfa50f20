"""The static screen: what a draft may be, what it must not know, and that the parent stays."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.skills.evolve.conftest import Screen
from tests.skills.evolve.drafts import (
    BODY,
    BODY_LINE,
    RECOVER_LINE,
    draft_of,
)
from zetta.runtime.errors import ConfigError
from zetta.runtime.records import from_json, to_json
from zetta.skills.bundles import load_bundle
from zetta.skills.evolve.authors import Draft, Rejection
from zetta.skills.evolve.candidates import bundle_name, write_candidate
from zetta.skills.evolve.screen import ScreenResult, ScreenRules
from zetta.skills.package import SkillPackage, load_skill
from zetta.skills.package_files import read_files


def numbers(package: SkillPackage, old: str, new: str, **files: str) -> Draft:
    """Return new numbers of a skill of the parent."""
    text = (package.folder / "params.toml").read_text(encoding="utf-8")
    assert old in text
    named = {f"{stem}.py": content for stem, content in files.items()}
    return Draft(package.name, {"params.toml": text.replace(old, new, 1), **named}, "other numbers")


def test_a_new_skill_passes_and_the_parent_is_copied_byte_for_byte(
    tmp_path: Path, parent: tuple[SkillPackage, ...], screened: Screen
) -> None:
    result = screened(draft_of())

    assert result.problems == ()
    assert (result.passed, result.change, result.level) == (True, "new skill", "proprio")
    assert result.statements == 3 + 1 + 1 + 1
    candidate = tmp_path / "candidate"
    assert sorted(p.name for p in candidate.iterdir()) == ["probe", "reseat", "unstick"]
    for package in parent:
        assert read_files(candidate / package.name).digest == package.digest
    assert load_skill(candidate / "unstick").digest == result.digest
    names = [*(p.name for p in parent), "unstick"]
    loaded = load_bundle(bundle_name(candidate, names))
    assert [p.name for p in loaded.packages] == names


def test_new_numbers_of_one_skill_pass_and_nothing_else_differs(
    tmp_path: Path, parent: tuple[SkillPackage, ...], screened: Screen
) -> None:
    result = screened(numbers(parent[0], "default = 1.0", "default = 1.2"), edits=0)

    assert result.problems == ()
    assert (result.passed, result.change, result.statements) == (True, "new numbers", 0)
    new, old = (read_files(tmp_path / f / "probe").contents for f in ("candidate", "parent"))
    assert {path for path in old if new[path] != old[path]} == {"params.toml"}


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("high = 3.0", "high = 9.0", "params.toml:1: 'stall': only the default may differ"),
        ("default = 1.0", "default = 4.0", "does not lie between"),
        ("default = 1.0", "default = 1.00", "nothing is changed"),
        ("[rise]", "[rose]", "none is added or left out"),
        ("default = 1.0", "default = 2.9", "replay/fires.json:1: "),
    ],
)
def test_new_numbers_stay_within_the_bounds_and_windows_of_the_parent(
    parent: tuple[SkillPackage, ...], screened: Screen, old: str, new: str, said: str
) -> None:
    result = screened(numbers(parent[0], old, new))
    assert not result.passed
    assert any(said in problem for problem in result.problems), result.problems


def test_a_skill_of_the_parent_may_not_be_rewritten(
    tmp_path: Path, parent: tuple[SkillPackage, ...], screened: Screen
) -> None:
    text = parent[0].critic_source.replace("p.stall", "p.stall * 2")
    draft = numbers(parent[0], "default = 1.0", "default = 1.2", critic=text)

    result = screened(draft)

    line = next(k for k, row in enumerate(text.splitlines(), 1) if "p.stall * 2" in row)
    assert result.problems[0].startswith(f"critic.py:{line}: 'probe' is a skill of the parent")
    assert not (tmp_path / "candidate").exists()


@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd", "../probe/critic.py", "replay/../critic.py", "replay/../../x.json",
        "helper.py", "__init__.py", "replay/sub/x.json", "critic.py\n", "./critic.py", "",
        "replay/x.py", "signature.json", "CRITIC.PY", "replay\\x.json", "critic.py\x00",
        "r\u0435covery.py", ".hidden", "replay/" + "x" * 300 + ".json",
    ],
)  # fmt: skip
def test_a_path_that_is_none_of_a_package_is_refused_and_nothing_is_written(
    tmp_path: Path, screened: Screen, path: str
) -> None:
    before = sorted(tmp_path.rglob("*"))
    draft = draft_of()
    result = screened(replace(draft, files={**draft.files, path: "pass"}))

    assert [p for p in result.problems if p.startswith(f"{path!r}:1: a draft holds")]
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("name", ["../up", "/tmp/x", "Probe", "a b", "", "a" * 3 + "/b", "x\n"])
def test_a_name_that_is_none_is_refused(screened: Screen, name: str) -> None:
    result = screened(replace(draft_of(), name=name))
    assert result.problems[0].startswith("SKILL.md:1: a skill cannot be named")


def test_the_language_names_file_and_line_as_inside_the_package(screened: Screen) -> None:
    result = screened(draft_of("import os\nreturn ok()", recover="while True:\n    pass"))

    assert not result.passed
    assert result.digest == ""
    assert any(p.startswith(f"critic.py:{BODY_LINE}: ") for p in result.problems)
    assert any(p.startswith(f"recovery.py:{RECOVER_LINE}: ") for p in result.problems)


def test_every_missing_file_is_named(screened: Screen) -> None:
    files = dict(draft_of().files)
    del files["recovery.py"]
    result = screened(Draft("unstick", files, "half"))
    assert result.problems[0].startswith("recovery.py:1: the file is missing")


def test_a_draft_says_nothing_about_its_own_worth(screened: Screen) -> None:
    draft = draft_of()
    praised = '{"records": [{"rescued": 1.0}]}'
    result = screened(replace(draft, files={**draft.files, "evidence.json": praised}))
    assert result.problems[0].startswith("evidence.json:1: evidence is written by whoever")


def test_a_level_above_the_campaign_names_the_line_that_reads_it(screened: Screen) -> None:
    seeing = "if now(w.object_offset) < p.rise:\n    return ok()\n" + BODY
    result = screened(draft_of(seeing, roles="[object]"), sensing="policy")
    assert result.problems == (
        f"critic.py:{BODY_LINE}: it reads 'object_offset' and is of level 'vision'; this campaign "
        "stops at 'policy'",
    )
    truth = seeing.replace("w.object", "w.oracle_object")
    assert "'oracle'" in screened(draft_of(truth, roles="[object]")).problems[0]
    looks = screened(draft_of(recover='yield from robot.look("object")', roles="[object]"),
                     sensing="proprio")  # fmt: skip
    assert looks.problems[0].startswith(f"recovery.py:{RECOVER_LINE}: it runs a primitive that")


def test_budgets_are_those_of_the_generation(screened: Screen) -> None:
    assert "6 statements; this generation may write 5" in screened(draft_of(), edits=5).problems[0]
    page = draft_of().files["SKILL.md"].replace("max_ticks: 60", "max_ticks: 301")
    assert screened(draft_of(SKILL=page)).problems == ("SKILL.md:7: max_ticks is 301; at most 300",)
    poor = screened(draft_of(), rules=ScreenRules(critic_work=3))
    assert "units of work; at most 3" in poor.problems[0]


def test_a_candidate_recovers_and_never_ends_an_episode(screened: Screen) -> None:
    body = f'if now(w.slip) > p.rise:\n    return abort("enough")\n{BODY}'
    result = screened(draft_of(body))
    assert result.problems[0].startswith(f"critic.py:{BODY_LINE + 1}: a candidate hands over")


def test_a_result_is_a_record(screened: Screen) -> None:
    for result in (screened(draft_of()), screened(draft_of("pass"))):
        assert from_json(ScreenResult, to_json(result)) == result


# ------------------------------------------------------------------- again


def test_a_draft_that_was_rejected_is_refused_under_every_name(screened: Screen) -> None:
    rejected = [Rejection("h", "shadow", "it never fires", draft_of().digest)]
    result = screened(draft_of(name="free-up"), rejected=rejected)
    assert any("were rejected before" in p for p in result.problems)


def test_rejected_numbers_are_known_with_and_without_the_programs(
    parent: tuple[SkillPackage, ...], screened: Screen
) -> None:
    bare = numbers(parent[0], "default = 1.0", "default = 1.2")
    whole = numbers(parent[0], "default = 1.0", "default = 1.2", critic=parent[0].critic_source,
                    recovery=parent[0].recovery_source)  # fmt: skip
    for first, again in ((bare, whole), (whole, bare)):
        result = screened(again, rejected=[Rejection("h", "arms", "worse", first.digest)])
        assert any("were rejected before" in p for p in result.problems)


def test_a_skill_of_the_parent_under_another_name_is_refused_in_any_layout(
    parent: tuple[SkillPackage, ...], screened: Screen
) -> None:
    texts = {
        path: (parent[0].folder / path).read_text(encoding="utf-8").replace("probe", "unstick")
        for path in ("SKILL.md", "critic.py", "recovery.py", "params.toml")
    }
    texts["critic.py"] = texts["critic.py"].replace("def check", "# a remark\ndef check")
    result = screened(Draft("unstick", texts, "again"))
    assert any("'probe' under another name" in p for p in result.problems)


# ------------------------------------------------------------------- writing


def test_the_same_candidate_may_be_written_again_and_another_may_not(
    tmp_path: Path, parent: tuple[SkillPackage, ...]
) -> None:
    folders = [package.folder for package in parent]
    first = write_candidate(draft_of(), folders, tmp_path / "c")
    assert write_candidate(draft_of(), folders, tmp_path / "c") == first
    other = draft_of(BODY.replace("stuck", "caught"))
    with pytest.raises(ConfigError, match="holds something else"):
        write_candidate(other, folders, tmp_path / "c")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["c", "parent"]
