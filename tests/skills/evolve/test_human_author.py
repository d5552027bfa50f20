"""The author `human`: a folder, one draft after the other."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.skills.evolve.drafts import draft_of
from tests.skills.evolve.search_briefs import CLUSTER
from zetta.runtime.errors import ConfigError
from zetta.skills.evolve.authors import Brief, Draft, NoDraft, Rejection
from zetta.skills.evolve.draft_check import load_draft, write_draft
from zetta.skills.evolve.human_author import HumanAuthor
from zetta.skills.evolve.screen import screen
from zetta.skills.package import SkillPackage
from zetta.skills.template import write_template


def brief(parent: tuple[SkillPackage, ...] = (), *rejected: str) -> Brief:
    told = tuple(Rejection("h", "screen", "r", digest) for digest in rejected)
    return Brief(CLUSTER, (), (), (), (), parent, "vision", 120, rejected=told)


def proposed(author: HumanAuthor, told: Brief) -> Draft:
    draft = author.propose(told)
    assert isinstance(draft, Draft), draft
    return draft


@pytest.fixture
def drafts(tmp_path: Path) -> Path:
    folder = tmp_path / "drafts"
    write_template("b-second", folder)
    write_template("a-first", folder)
    text = (folder / "b-second" / "params.toml").read_text().replace("0.08", "0.09")
    (folder / "b-second" / "params.toml").write_text(text)
    (folder / ".hidden").mkdir()
    (folder / "notes.txt").write_text("for me")
    return folder


def test_drafts_come_in_the_order_of_their_names_until_all_are_rejected(drafts: Path) -> None:
    author = HumanAuthor(drafts)
    first = proposed(author, brief())
    assert first.name == "a-first"
    assert proposed(author, brief()).digest == first.digest
    second = proposed(author, brief((), first.digest))
    assert second.name == "b-second"
    nothing = author.propose(brief((), first.digest, second.digest))
    assert isinstance(nothing, NoDraft)
    assert f"zetta skills new NAME --out {drafts}" in nothing.reason
    assert "'grasped'" in nothing.reason


def test_a_draft_that_was_changed_after_its_rejection_is_a_new_one(drafts: Path) -> None:
    author = HumanAuthor(drafts)
    first = proposed(author, brief())
    path = drafts / "a-first" / "params.toml"
    path.write_text(path.read_text().replace("default = 1.0", "default = 1.5"))
    again = proposed(author, brief((), first.digest))
    assert again.name == "a-first"
    assert again.digest != first.digest


def test_what_the_parent_holds_is_passed_over_and_its_new_numbers_are_not(
    drafts: Path, parent: tuple[SkillPackage, ...]
) -> None:
    author = HumanAuthor(drafts)
    for name in ("a-first", "b-second"):
        shutil.rmtree(drafts / name)
    shutil.copytree(parent[0].folder, drafts / parent[0].name)
    (drafts / parent[0].name / "evidence.json").write_text('{"records": [{"gain": 1}]}')
    assert isinstance(author.propose(brief(parent)), NoDraft)
    numbers = drafts / parent[0].name / "params.toml"
    numbers.write_text(numbers.read_text().replace("default = 1.0", "default = 1.5"))
    assert proposed(author, brief(parent)).name == parent[0].name


def test_the_draft_is_the_package_with_its_windows_and_without_evidence(
    drafts: Path, tmp_path: Path
) -> None:
    draft = proposed(HumanAuthor(drafts), brief())
    assert set(draft.files) == {
        "SKILL.md", "critic.py", "recovery.py", "params.toml", "replay/fires.json",
        "replay/silent.json",
    }  # fmt: skip
    assert draft.hypothesis.startswith("Say in one sentence")
    assert screen(draft, tmp_path / "candidate", (), (), "vision", 120).passed


def test_a_folder_that_is_no_package_is_left_out_and_named(drafts: Path) -> None:
    shutil.rmtree(drafts / "b-second")
    (drafts / "a-first" / "critic.py").unlink()
    nothing = HumanAuthor(drafts).propose(brief())
    assert isinstance(nothing, NoDraft)
    assert "a-first lacks critic.py" in nothing.reason


def test_a_package_that_is_wrong_goes_to_the_screen_which_says_why(drafts: Path) -> None:
    (drafts / "a-first" / "critic.py").write_text("import os\n")
    (drafts / "a-first" / "SKILL.md").write_text("nothing")
    draft = proposed(HumanAuthor(drafts), brief())
    assert draft.hypothesis == "the draft a-first"


def test_links_are_not_followed(drafts: Path, tmp_path: Path) -> None:
    write_draft(draft_of(), tmp_path / "elsewhere")
    shutil.rmtree(drafts / "a-first")
    (drafts / "a-first").symlink_to(tmp_path / "elsewhere")
    assert proposed(HumanAuthor(drafts), brief()).name == "b-second"


def test_a_draft_can_be_loaded_as_it_was_written(drafts: Path) -> None:
    draft = proposed(HumanAuthor(drafts), brief())
    files = {**draft.files, "evidence.json": '{"records": []}\n'}
    assert load_draft(Draft(draft.name, files, "h")).name == "a-first"


@pytest.mark.parametrize(("name", "what"), [("gone", "does not exist"), ("file", "is a file")])
def test_a_folder_that_is_none_is_told(tmp_path: Path, name: str, what: str) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match=what):
        HumanAuthor(tmp_path / name)
