"""The static screen: what a draft may be, what it must not know, and that the parent stays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.skills.evolve.drafts import (
    BODY,
    BODY_LINE,
    PARAMETERS,
    RECOVER_LINE,
    draft_of,
    episodes,
    parents,
    watched,
)
from zetta.runtime.core import Sensing
from zetta.runtime.errors import ConfigError
from zetta.skills.bundles import load_bundle
from zetta.skills.evolve.authors import Draft, Rejection
from zetta.skills.evolve.candidates import bundle_name, write_candidate
from zetta.skills.evolve.leaks import LeakRules
from zetta.skills.evolve.permutation import permuted_triggers
from zetta.skills.evolve.screen import ScreenResult, ScreenRules, screen
from zetta.skills.package import SkillPackage, load_skill
from zetta.skills.package_files import read_files
from zetta.skills.shelf import library_folder, package_folders

Screen = Callable[..., ScreenResult]


@pytest.fixture
def parent(tmp_path: Path) -> tuple[SkillPackage, ...]:
    return parents(tmp_path / "parent")


@pytest.fixture
def screened(tmp_path: Path, parent: tuple[SkillPackage, ...]) -> Screen:
    """Return a screen of drafts against the parent."""

    def run(draft: Draft, sensing: Sensing = "vision", edits: int = 120, **more: object) -> object:
        rejected = more.pop("rejected", ())
        return screen(draft, tmp_path / "candidate", parent, rejected, sensing, edits, **more)  # type: ignore[arg-type]

    return run  # type: ignore[return-value]


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


# ------------------------------------------------------------------- leaks


@pytest.mark.parametrize("signal", ["elapsed", "budget_used", "skill_share"])
def test_the_clock_of_the_episode_is_refused_wherever_it_is_read(
    screened: Screen, signal: str
) -> None:
    clocked = screened(draft_of(f"if now(w.{signal}) < p.stall:\n    return ok()\n" + BODY))
    assert clocked.problems[0].startswith(f"critic.py:{BODY_LINE}: {signal} counts the ticks")
    waits = f"if now(w.{signal}) > p.stall:\n    return\n{'yield from robot.retreat(p.rise)'}"
    assert screened(draft_of(recover=waits)).problems[0].startswith(f"recovery.py:{RECOVER_LINE}:")
    armed = (
        draft_of()
        .files["critic.py"]
        .replace(
            'SKILL = "unstick"\n', f'SKILL = "unstick"\nARMED_WHEN = "now(w.{signal}) > 1.0"\n'
        )
    )
    assert screened(draft_of(critic=armed)).problems[0].startswith("critic.py:5: ")


@pytest.mark.parametrize(
    "body",
    [
        "if now(w.ee_x) < 0.31:\n    return ok()",
        "if now(w.ee_z) - p.rise < 0.31:\n    return ok()",
        "if abs(now(w.object_x) - 0.1) < 0.01:\n    return ok()",
        "if held(w.receptacle_y > p.rise, 0.5):\n    return ok()",
        "if mean(w.other_ee_x) * 2 < 1.0:\n    return ok()",
        "if hypot(now(w.ee_x), now(w.ee_y)) < 0.3:\n    return ok()",
    ],
)
def test_a_place_in_the_world_compared_with_a_number_is_refused(
    screened: Screen, body: str
) -> None:
    result = screened(draft_of(f"{body}\n{BODY}", roles="[object, receptacle]"))
    assert result.problems[0].startswith(f"critic.py:{BODY_LINE}: "), result


def test_distances_between_things_are_no_places(screened: Screen) -> None:
    body = "if now(w.ee_z) - now(w.object_z) > p.rise:\n    return ok()\n" + BODY
    assert screened(draft_of(body, roles="[object]")).passed


@pytest.mark.parametrize(
    "table",
    [
        " or ".join(f"now(w.object_offset) == {v}" for v in (0.11, 0.23, 0.35, 0.47)),
        " or ".join(f"{v} < now(w.object_offset) < {v + 0.004:.3f}" for v in (0.1, 0.2, 0.3, 0.4)),
        " or ".join(f"abs(now(w.object_offset) - {v}) < 0.004" for v in (0.1, 0.2, 0.3, 0.4)),
        " or ".join(f"(0 - 0.004 < x - {v} and x - {v} < 0.004)" for v in (0.1, 0.2, 0.3, 0.4)),
        " or ".join(f"(x > {v} and x < {v + 0.004:.3f})" for v in (0.1, 0.2, 0.3, 0.4)),
        " or ".join(f"{v * 3:.3f} < x * 3 < {v * 3 + 0.01:.3f}" for v in (0.1, 0.2, 0.3, 0.4)),
        " or ".join(
            f"(mean(w.object_offset, {k / 10}) > {k / 10} and x < {k / 10 + 0.004})"
            for k in (1, 2, 3, 4)
        ),
    ],
)
def test_a_table_of_cases_is_refused(screened: Screen, table: str) -> None:
    body = f"x = now(w.object_offset)\nif {table}:\n    return ok()\n{BODY}"
    result = screened(draft_of(body, roles="[object]"))
    assert any("narrow slices" in p and p.startswith("critic.py:") for p in result.problems), result


def test_a_ladder_of_narrow_steps_is_a_table_and_wide_steps_are_none(screened: Screen) -> None:
    def ladder(step: float) -> str:
        steps = [f"if x < {0.2 + k * step:.3f}:\n    y = {k % 2}" for k in range(6)]
        rows = "\n".join(steps)
        return f"x = now(w.object_offset)\ny = 0\n{rows}\nif y > 0:\n    return ok()\n{BODY}"

    narrow = screened(draft_of(ladder(0.01), roles="[object]"))
    assert any("narrow slices" in p for p in narrow.problems)
    assert screened(draft_of(ladder(0.1), roles="[object]")).problems == ()


def test_more_numbers_than_a_rule_needs_are_refused(screened: Screen) -> None:
    body = "x = now(w.ee_speed)\n" + "\n".join(f"x = x + {k}.25" for k in range(25))
    result = screened(draft_of(f"{body}\nif x > 3:\n    return ok()\n{BODY}"))
    assert any("more than 24 different numbers" in p for p in result.problems)


def test_a_parameter_without_room_is_a_constant(screened: Screen) -> None:
    tight = PARAMETERS.replace("low = 0.5\nhigh = 3.0", "low = 0.99\nhigh = 1.01")
    result = screened(draft_of(params=tight))
    assert result.problems[0].startswith("params.toml:1: 'stall' may go from 0.99 to 1.01")


SECRETS = ("libero_spatial/7", "9f86d081884c7d659a2feaa0c55ad015", 3217654091834, 0.123456, 0.1)


@pytest.mark.parametrize(
    ("file", "words"),
    [
        ("SKILL.md", "seen in LIBERO_spatial/7"),
        ("critic.py", "# 9f86d081 is where it happens"),
        ("recovery.py", "# 3217654091834"),
        ("params.toml", "# 3_217_654_091_834"),
        ("SKILL.md", "0x2ed2b0fbd8a"),
        ("params.toml", "# about 0.12346"),
        ("critic.py", "# -1.23456e-1"),
        ("evidence.json", '{"records": []} 3217654091834'),
    ],
)
def test_a_secret_of_a_scene_is_found_in_every_file(
    screened: Screen, file: str, words: str
) -> None:
    draft = draft_of()
    text = draft.files.get(file, "") + f"\n{words}\n"
    if "0x" in words:
        text = text.replace(words, hex(3217654091834))
    result = screened(replace(draft, files={**draft.files, file: text}), secrets=SECRETS)
    line = len(text.splitlines())
    assert f"{file}:{line}: this names a scene, a seed or a constant of one" in result.problems


def test_plain_numbers_and_short_words_are_nobodys_secret(screened: Screen) -> None:
    draft = draft_of()
    text = draft.files["SKILL.md"] + "\nAt 0.1 m, 0.12 m or 12 cm; libero in general.\n"
    assert screened(draft_of(SKILL=text), secrets=SECRETS).passed


def test_no_skill_of_the_library_is_a_table_or_has_too_many_numbers(tmp_path: Path) -> None:
    """The clock apart, which the screen came after, the library would pass the leak screen."""
    for folder in package_folders(library_folder()):
        files = {
            p: (folder / p).read_text(encoding="utf-8")
            for p in ("SKILL.md", "critic.py", "recovery.py", "params.toml")
        }
        result = screen(Draft(folder.name, files, "h"), tmp_path / folder.name, (), (), "vision",
                        120)  # fmt: skip
        assert [p for p in result.problems if "counts the ticks" not in p] == []


# ------------------------------------------------------------------- logs


def test_a_rule_about_the_robot_does_not_notice_names_order_or_origin(
    tmp_path: Path, screened: Screen
) -> None:
    logs = episodes(2, 2)
    near = "if now(w.object_distance) > 1.0:\n    return ok()\n" + BODY

    assert screened(draft_of(near, roles="[object]"), episodes=logs).passed

    checks = permuted_triggers(load_skill(tmp_path / "candidate" / "unstick"), logs)
    assert [check.differing for check in checks] == [(), ()]


def test_a_signal_that_tells_scenes_apart_is_found_by_permuting_it(
    tmp_path: Path, screened: Screen
) -> None:
    screened(draft_of())
    package = load_skill(tmp_path / "candidate" / "unstick")
    logs = episodes(2, 2)
    checks = permuted_triggers(package, logs, identity=("stalled_for",))
    assert checks[-1].what == "who is who"
    assert checks[-1].differing


def test_a_signal_that_follows_the_origin_is_found_by_moving_it(
    tmp_path: Path, screened: Screen, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Nothing built in lets a critic know a place; a shift of a distance stands in for a leak.
    screened(draft_of())
    package = load_skill(tmp_path / "candidate" / "unstick")
    from zetta.skills.evolve import permutation

    monkeypatch.setattr(permutation, "axis_of", lambda s: "x" * (s.name == "stalled_for"))
    checks = permuted_triggers(package, episodes(2, 1))
    assert checks[1].differing == ("0", "1")


def test_an_episode_without_ticks_has_no_trigger(screened: Screen) -> None:
    empty = replace(watched("e", True, {"stalled_for": [0.0], "policy_drives": [1.0]}), ticks=())
    assert screened(draft_of(), episodes=[empty]).passed


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


def test_leak_rules_are_limits_that_may_be_set(screened: Screen) -> None:
    strict = ScreenRules(leaks=LeakRules(room=0.95))
    assert "'stall'" in screened(draft_of(), rules=strict).problems[0]
