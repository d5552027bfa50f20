"""Loading a skill package: what is accepted, and what is refused in one sentence with its line."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from zetta.primitives.roles import parse_instruction
from zetta.runtime.errors import ConfigError, ScreenError
from zetta.skills.compiled import run_windows
from zetta.skills.package import SkillPackage, inspect, load_skill
from zetta.skills.package_files import FILE_MOST, read_files
from zetta.skills.shelf import find_package, library_folder, package_folders, shelve
from zetta.skills.template import write_template


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a fresh package, named `probe`."""
    return write_template("probe", tmp_path)


def edited(folder: Path, file: str, old: str, new: str) -> None:
    """Change a file of the package."""
    text = (folder / file).read_text(encoding="utf-8")
    assert old in text
    (folder / file).write_text(text.replace(old, new, 1), encoding="utf-8")


def refusal(folder: Path) -> str:
    """Return why the package is refused."""
    with pytest.raises(ScreenError) as refused:
        load_skill(folder)
    return str(refused.value)


def fits(package: SkillPackage, instruction: str) -> bool:
    return package.fits(parse_instruction(instruction))


def test_a_new_package_passes_its_checks_and_its_windows(folder: Path) -> None:
    package = load_skill(folder)
    outcomes = run_windows(package)

    assert package.name == "probe"
    assert package.level == "proprio"
    assert package.signed.state == "unsigned"
    assert package.notices == ()
    assert [(o.window, o.passed) for o in outcomes] == [("fires", True), ("silent", True)]


def test_template_refuses_a_name_that_is_none_and_a_package_that_exists(folder: Path) -> None:
    with pytest.raises(ConfigError, match="pick-up-again"):
        write_template("../escape", folder.parent)
    with pytest.raises(ConfigError, match="exists already"):
        write_template("probe", folder.parent)


# ------------------------------------------------------------------------------- files


@pytest.mark.parametrize("name", ["critic.py", "recovery.py", "params.toml", "evidence.json"])
def test_a_missing_file_is_named(folder: Path, name: str) -> None:
    (folder / name).unlink()

    assert name in refusal(folder)


def test_a_folder_without_a_page_is_no_package(folder: Path) -> None:
    (folder / "SKILL.md").unlink()

    assert "is no skill package" in refusal(folder)
    assert "does not exist" in refusal(folder / "nowhere")
    assert "is a file" in refusal(folder / "critic.py")


@pytest.mark.parametrize(
    "name", ["helper.py", "run.sh", "module.so", "critic.pyc", "weights.pkl", "replay/critic.py"]
)
def test_a_file_of_an_executable_kind_is_refused(folder: Path, name: str) -> None:
    (folder / name).write_bytes(b"pass\n")

    assert Path(name).name in refusal(folder)


def test_a_page_of_another_plain_kind_is_kept_and_hashed(folder: Path) -> None:
    before = load_skill(folder).digest
    (folder / "notes.txt").write_text("why", encoding="utf-8")

    assert load_skill(folder).digest != before


def test_links_are_refused_wherever_they_lead(folder: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret.json"
    secret.write_text("{}", encoding="utf-8")
    (folder / "replay" / "leak.json").symlink_to(secret)

    assert "leak.json is a link" in refusal(folder)


def test_a_linked_replay_folder_is_refused(folder: Path, tmp_path: Path) -> None:
    (folder / "replay").rename(tmp_path / "elsewhere")
    (folder / "replay").symlink_to(tmp_path / "elsewhere")

    assert "is a link" in refusal(folder)


def test_a_device_or_pipe_does_not_hang_the_reader(folder: Path) -> None:
    os.mkfifo(folder / "notes.txt")

    assert "is no plain file" in refusal(folder)


def test_a_large_file_is_refused_without_being_read_whole(folder: Path) -> None:
    with (folder / "notes.txt").open("wb") as file:
        file.truncate(FILE_MOST + 1)

    assert "notes.txt is larger than 1,000,000 bytes" in refusal(folder)


def test_a_folder_beside_replay_is_refused(folder: Path) -> None:
    (folder / "more").mkdir()

    assert "more is a folder" in refusal(folder)


def test_hidden_files_and_caches_are_left_out_with_a_notice(folder: Path) -> None:
    before = load_skill(folder)
    (folder / ".DS_Store").write_bytes(b"\0")
    (folder / "__pycache__").mkdir()
    (folder / "__pycache__" / "critic.pyc").write_bytes(b"\0")
    after = load_skill(folder)

    assert after.digest == before.digest
    assert [".DS_Store" in n or "__pycache__" in n for n in after.notices] == [True, True]


def test_every_file_but_the_signature_is_hashed(folder: Path) -> None:
    seen = {load_skill(folder).digest}
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    for path in files:
        path.write_bytes(path.read_bytes() + b"\n")
        seen.add(read_files(folder).digest)
    (folder / "signature.json").write_text("anything", encoding="utf-8")
    seen.add(read_files(folder).digest)

    assert len(files) == 7
    assert len(seen) == 1 + len(files)


def test_the_hash_tells_names_from_contents(folder: Path) -> None:
    before = read_files(folder).digest
    (folder / "replay" / "silent.json").rename(folder / "replay" / "still.json")

    assert read_files(folder).digest != before


def test_the_hash_does_not_depend_on_where_the_package_lies(folder: Path, tmp_path: Path) -> None:
    before = load_skill(folder).digest
    moved = tmp_path / "deeper" / "probe"
    moved.parent.mkdir()
    folder.rename(moved)

    assert load_skill(moved).digest == before


# ------------------------------------------------------------------------------- page


@pytest.mark.parametrize(
    ("old", "new", "line", "reason"),
    [
        ("---\nname", "name", 1, "the first line is not ---"),
        ("name: probe", "name: other", 2, "'other' and its folder 'probe'"),
        ("name: probe", "name: Pro be", 2, "lower-case words"),
        ("version: 0.1.0", "version: one", 3, "three numbers"),
        ("version: 0.1.0\n", "", 1, "'version' is missing"),
        ("max_ticks: 60", "max_ticks: 0", 7, "1 to 600"),
        ("max_ticks: 60", "max_ticks: 1e9", 7, "1 to 600"),
        ("max_ticks: 60", "max_ticks: [60]", 7, "no text"),
        ("max_ticks", "max_tick", 7, "did you mean 'max_ticks'?"),
        ("roles: []", "roles: [objekt]", 6, "did you mean 'object'?"),
        ("roles: []", "roles: object", 6, "no list"),
        ("roles: []", "roles: [object, object]", 6, "twice"),
        ("roles: []", "roles: [", 8, "no YAML"),
        ("roles: []", "roles: [[object]]", 6, "a word, a list of words"),
        ("roles: []", "roles: []\nroles: []", 7, "a second time"),
        ("roles: []", "roles: []\nlevel: vision", 7, "the programs read and call what needs"),
        ("made_by: hand", "made_by: magic", 10, "made_by is 'magic'"),
        ("  author: your name\n", "", 8, "lacks the line 'author'"),
        ("date: 20", "date: yesterday 20", 11, "expected a day"),
        ("version: 0.1.0", "version: &a 0.1.0\nlicense: *b", 4, "no YAML"),
    ],
)
def test_bad_front_matter_names_its_line(
    folder: Path, old: str, new: str, line: int, reason: str
) -> None:
    edited(folder, "SKILL.md", old, new)

    message = refusal(folder)
    assert message.startswith(f"{folder / 'SKILL.md'}:{line}: ")
    assert reason in message


def test_values_are_taken_as_written_not_as_yaml_would_guess(folder: Path) -> None:
    edited(folder, "SKILL.md", "author: your name", "author: no")
    edited(folder, "SKILL.md", "version: 0.1.0", "version: 1.10.0")

    page = load_skill(folder).page
    assert (page.provenance.author, page.version) == ("no", "1.10.0")


def test_an_endless_page_and_deep_yaml_are_refused(folder: Path) -> None:
    edited(folder, "SKILL.md", "roles: []", "roles: " + "[" * 5000)
    assert "SKILL.md:" in refusal(folder)
    edited(folder, "SKILL.md", "roles: ", "roles: " + "x" * 20_000)
    assert "16,384 bytes" in refusal(folder)


# ------------------------------------------------------------------------------- programs


def test_a_problem_in_a_program_names_file_and_line(folder: Path) -> None:
    edited(folder, "critic.py", "w.stalled_for", "w.stalled_four")
    edited(folder, "recovery.py", "robot.retreat", "robot.retreet")

    lines = refusal(folder).splitlines()
    assert any("critic.py:9: " in line and "stalled_for" in line for line in lines)
    assert any("recovery.py:9: " in line and "retreat" in line for line in lines)


def test_a_default_out_of_bounds_names_its_line(folder: Path) -> None:
    edited(folder, "params.toml", "default = 0.08", "default = 0.8")

    assert "params.toml:8: " in refusal(folder)


def test_the_critic_names_its_own_skill(folder: Path) -> None:
    edited(folder, "critic.py", '"probe"', '"another"')

    assert "critic.py:4: SKILL is 'another' and the skill is 'probe'" in refusal(folder)


def test_a_critic_that_only_aborts_is_no_skill(folder: Path) -> None:
    edited(folder, "critic.py", 'SKILL = "probe"\n', "")
    edited(folder, "critic.py", "recover(", "abort(")

    assert "it never recovers" in refusal(folder)


def test_a_role_that_is_worked_on_must_be_declared(folder: Path) -> None:
    edited(folder, "recovery.py", "robot.retreat(p.rise)", 'robot.grasp("object")')

    assert "roles lacks 'object', which recovery.py hands to a primitive" in refusal(folder)


def test_a_role_that_is_only_looked_at_may_be_declared_as_optional(folder: Path) -> None:
    edited(folder, "critic.py", "now(w.stalled_for)", "now(w.object_distance)")
    assert "roles lacks 'object', which object_distance is about" in refusal(folder)

    edited(folder, "SKILL.md", "roles: []", "roles: []\nuses: [object]")
    package = load_skill(folder)
    assert package.level == "vision"
    assert package.fits(None)
    assert fits(package, "turn on the stove")


def test_the_level_is_computed_from_what_is_read_and_called(folder: Path) -> None:
    edited(folder, "SKILL.md", "roles: []", "roles: [object]")
    edited(folder, "recovery.py", "robot.retreat(p.rise)", 'robot.above("object", p.rise)')

    assert load_skill(folder).level == "vision"


def test_a_number_that_nobody_reads_is_told(folder: Path) -> None:
    edited(folder, "recovery.py", "p.rise", "0.1")

    assert any("nothing reads 'rise'" in n for n in load_skill(folder).notices)


def test_evidence_is_a_list_of_records(folder: Path) -> None:
    (folder / "evidence.json").write_text("[]", encoding="utf-8")
    assert "evidence.json:1: " in refusal(folder)
    (folder / "evidence.json").write_text('{"records": [\n', encoding="utf-8")
    assert "evidence.json:2: this is no JSON" in refusal(folder)


def test_all_problems_are_told_at_once(folder: Path) -> None:
    edited(folder, "SKILL.md", "version: 0.1.0", "version: one")
    edited(folder, "critic.py", "w.stalled_for", "w.stalled_four")
    (folder / "replay" / "fires.json").write_text("{}", encoding="utf-8")

    problems = inspect(folder).problems
    assert [Path(p.split(":")[0]).name for p in problems] == [
        "SKILL.md", "critic.py", "fires.json",
    ]  # fmt: skip


def test_roles_and_errands_decide_where_a_skill_belongs(folder: Path) -> None:
    edited(folder, "SKILL.md", "roles: []", "roles: [object]\nexcludes: [part, steps]")
    package = load_skill(folder)

    assert fits(package, "put the can in the basket")
    assert fits(package, "pick up the can")
    assert not fits(package, "turn on the stove")
    assert not fits(package, "open the top drawer and put the bowl inside")
    assert not fits(package, "put the can and the box in the basket")


def test_verbs_decide_where_a_skill_belongs(folder: Path) -> None:
    edited(folder, "SKILL.md", "roles: []", "roles: [part]\nverbs: [open, pull]")
    package = load_skill(folder)

    assert package.page.verbs == ("open", "pull")
    assert fits(package, "open the top drawer")
    assert fits(package, "open the top drawer and put the bowl inside")
    assert not fits(package, "close the top drawer")
    assert not fits(package, "put the can in the basket")


def test_the_verb_that_counts_is_of_the_errand_that_the_role_comes_from(folder: Path) -> None:
    edited(folder, "SKILL.md", "roles: []", "roles: [part]\nverbs: [close]")
    package = load_skill(folder)

    assert fits(package, "put the bowl in the drawer and close it")
    assert fits(package, "close the bottom drawer and open the top drawer")
    assert not fits(package, "open the top drawer and close the bottom drawer")


def test_a_skill_without_roles_goes_by_any_errand(folder: Path) -> None:
    edited(folder, "SKILL.md", "roles: []", "roles: []\nverbs: [place]")
    package = load_skill(folder)

    assert fits(package, "open the top drawer and put the bowl inside")
    assert not fits(package, "open the top drawer")
    assert not package.fits(None), "nothing is known of what is asked"


def test_an_unknown_verb_is_refused_with_its_line(folder: Path) -> None:
    edited(folder, "SKILL.md", "max_ticks", "verbs: [opens]\nmax_ticks")

    assert "SKILL.md:7: verbs names 'opens'; " in refusal(folder)
    assert "open" in refusal(folder).split(";")[1]


# ------------------------------------------------------------------------------- shelves


def test_two_packages_of_one_name_are_an_error_that_names_both(folder: Path) -> None:
    twin = write_template("regrasp", folder.parent)

    with pytest.raises(ConfigError) as refused:
        shelve([folder.parent])
    assert str(twin) in str(refused.value)
    assert str(library_folder() / "regrasp") in str(refused.value)


def test_a_folder_given_twice_is_no_collision(folder: Path) -> None:
    shelf = shelve([folder.parent, folder, folder.parent])

    assert shelf["probe"] == folder


def test_the_current_folder_is_not_searched(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder.parent.parent)

    assert "probe" not in shelve([])
    with pytest.raises(ConfigError, match="there is no skill 'probe'"):
        find_package("probe")


def test_a_name_means_the_library_even_beside_a_folder_of_that_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = write_template("regrasp", tmp_path)
    monkeypatch.chdir(tmp_path)

    assert find_package("regrasp") == library_folder() / "regrasp"
    assert find_package("./regrasp") == own


def test_a_folder_that_is_none_is_said(tmp_path: Path) -> None:
    for call in (package_folders, lambda p: find_package(str(p))):
        refuse: Callable[[Path], object] = call
        with pytest.raises(ConfigError, match="does not exist"):
            refuse(tmp_path / "nowhere")
