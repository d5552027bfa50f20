"""What a draft must not know: scenes, clocks, tables of cases, and where zero is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.skills.evolve.conftest import Screen
from tests.skills.evolve.drafts import (
    BODY,
    BODY_LINE,
    PARAMETERS,
    RECOVER_LINE,
    draft_of,
    episodes,
    watched,
)
from zetta.skills.evolve import permutation
from zetta.skills.evolve.authors import Draft
from zetta.skills.evolve.leaks import LeakRules
from zetta.skills.evolve.permutation import permuted_triggers
from zetta.skills.evolve.screen import ScreenRules, screen
from zetta.skills.package import load_skill
from zetta.skills.shelf import library_folder, package_folders

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


def test_a_table_is_found_behind_names_that_change_and_behind_crossings(screened: Screen) -> None:
    rows = "\n".join(
        f"a = {v}\nb = a + 0.004\nif x > a and x < b:\n    return ok()"
        for v in (0.1, 0.2, 0.3, 0.4)
    )
    renamed = screened(draft_of(f"x = now(w.object_offset)\n{rows}\n{BODY}", roles="[object]"))
    assert any("narrow slices" in p for p in renamed.problems)
    crossed = " or ".join(
        f"crossed(w.object_offset, {v}) or crossed(w.object_offset, {v + 0.004:.3f})"
        for v in (0.1, 0.2, 0.3, 0.4)
    )
    result = screened(draft_of(f"if {crossed}:\n    return ok()\n{BODY}", roles="[object]"))
    assert any("narrow slices" in p for p in result.problems)


@pytest.mark.parametrize("first", ["now(w.slip)", "p.rise", "0.5"])
def test_names_that_double_each_other_take_no_time(screened: Screen, first: str) -> None:
    rows = "\n".join(f"x{k + 1} = x{k} + x{k}" for k in range(90))
    body = f"x0 = {first}\n{rows}\nif x90 < 0.5 and 0.5 > x89 + x90:\n    return ok()\n{BODY}"
    assert screened(draft_of(body)).statements > 90


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
    monkeypatch.setattr(permutation, "axis_of", lambda s: "x" * (s.name == "stalled_for"))
    checks = permuted_triggers(package, episodes(2, 1))
    assert checks[1].differing == ("0", "1")


def test_an_episode_without_ticks_has_no_trigger(screened: Screen) -> None:
    empty = replace(watched("e", True, {"stalled_for": [0.0], "policy_drives": [1.0]}), ticks=())
    assert screened(draft_of(), episodes=[empty]).passed


def test_leak_rules_are_limits_that_may_be_set(screened: Screen) -> None:
    strict = ScreenRules(leaks=LeakRules(room=0.95))
    assert "'stall'" in screened(draft_of(), rules=strict).problems[0]
