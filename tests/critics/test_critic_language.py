"""What the language takes and what it says about everything else."""

from __future__ import annotations

import pytest
from critic_texts import BODY_LINE, HEAD, PARAMETERS, critic_of, firing_when, problems_of

from zetta.critics.language import CheckedCritic, analyse_critic
from zetta.critics.operators import OPERATORS
from zetta.critics.problems import Problem
from zetta.runtime.signals import SIGNALS

GOOD = (
    "now(w.ee_speed) < p.near",
    "0.01 < now(w.ee_speed) <= 0.5",
    "held(0.1 < w.ee_speed < 0.5, p.patience)",
    "held(w.ee_speed > 0.1 and not w.lift > 0.2 or w.slip > 0.1, seconds=0.5)",
    "now(w.ee_z) < now(w.object_z) + p.near",
    "now(w.object_z) + 0.02 > ago(w.ee_z, 0.5)",
    "now(w.ee_z) - now(w.object_z) < 0.05",
    "held(w.ee_z - w.object_z < 0.05)",
    "delta(w.ee_z, 0.5) < -0.02",
    "crossed(w.ee_z, now(w.object_z) + 0.05, 0.5)",
    "crossed(w.ee_speed, 0.05)",
    "max(now(w.ee_z), now(w.object_z)) > now(w.receptacle_z)",
    "hypot(now(w.ee_x) - now(w.object_x), now(w.ee_y) - now(w.object_y)) > 0.1",
    "spread(w.ee_x) + path_length(w.ee_y, 1) > +0.1 * 2 / 3",
    "abs(rate(w.ee_z, 0.2)) > 0.1 if now(w.holding) > 0.5 else True",
    "now(w.ee_speed > 0.1) and now(w.holding) == 1 and now(w.slip) != 0",
    "since(w.holding > 0.5, w.gripper_closing > 0.5, 1.0)",
    "count(w.gripper_closing > 0.5) >= 3 or share(w.holding > 0.5, 0) > 0.5",
    "rose(w.holding > 0.5, 0x1)",
)


@pytest.mark.parametrize("condition", GOOD)
def test_ordinary_condition_is_accepted(condition: str) -> None:
    assert problems_of(firing_when(condition)) == ()


def test_every_operator_occurs_in_an_accepted_condition() -> None:
    text = " ".join(GOOD)
    rest = ("mean", "minimum", "maximum", "once", "min")

    assert all(f"{name}(" in text for name in OPERATORS if name not in rest)
    for name in ("mean", "minimum", "maximum"):
        assert problems_of(firing_when(f"{name}(w.slip, 1) > 0.5")) == ()
    assert problems_of(firing_when("once(min(w.slip, w.lift) > 0.5)")) == ()


WRONG = {
    # condition: part of the reason
    "w.ee_speed < 0.1": "write now(w.ee_speed < 0.1), held(w.ee_speed < 0.1)",
    "w.holding": "'if' wants a condition; w.holding is a series of values; write now(w.holding)",
    "now(w.holding)": "is a number; compare it, as in now(w.holding) > a number",
    "not now(w.holding)": "'not' wants a condition",
    "now(w.holding) and True": "'and' wants conditions; now(w.holding) is a number",
    "now(w.holding) > 0.5 and w.slip > 1": "joins a condition and a series of conditions",
    "held(w.holding)": "compare it, as in w.holding > a number",
    "held(now(w.holding) > 0.5)": "wants a series of conditions; now(w.holding) > 0.5 is a cond",
    "mean(now(w.slip)) > 1": "write w.slip",
    "mean(w.slip > 1) > 1": "wants a series of values; w.slip > 1 is a series of conditions",
    "now(0.5) > 1": "wants a series; 0.5 is a number already",
    "(w.slip > 1) + 1 > 1": "'+' wants numbers",
    "True > 0.5": "a comparison wants numbers; True is a condition",
    "-(w.slip > 1) > 1": "a sign wants numbers",
    "abs(True) > 1": "abs wants numbers",
    "1.0 if now(w.slip) else 2.0": "'if' wants a condition",
    "(1.0 if True else False) > 0": "chooses between two numbers or two conditions",
    "now(w.object_distnce) > 1": "no signal 'object_distnce'; did you mean 'object_distance'",
    "now(w.nothing_like_it_at_all) > 1": "zetta critics docs lists them",
    "now(w.slip) > p.neer": "no parameter 'neer'; did you mean 'near'?",
    "helt(w.slip > 1)": "no operator 'helt'; did you mean 'held'",
    "mean(w.slip, 1, 2) > 1": "mean(x, seconds) takes no more than 2 values; got 3",
    "mean() > 1": "mean(x, seconds): x is missing",
    "since(w.slip > 1) > 1": "since(a, b, seconds): b is missing",
    "mean(w.slip, 2.5) > 1": "a window has 0 to WINDOW_S = 2 s",
    "mean(w.slip, -1) > 1": "a window has 0 to WINDOW_S = 2 s",
    "mean(w.slip, p.long) > 1": "p.long reaches 9 s",
    "mean(w.slip, p.near) > 1": "p.near is in m; seconds are wanted",
    "mean(w.slip, now(w.slip)) > 1": "seconds is a number or p.<name>",
    "mean(w.slip, 1 / 20) > 1": "seconds is a number or p.<name>",
    "x > 1": "the name 'x' was never set",
}


@pytest.mark.parametrize("condition", list(WRONG))
def test_wrong_condition_is_explained(condition: str) -> None:
    problems = problems_of(firing_when(condition))

    assert [problem.line for problem in problems] == [BODY_LINE]
    assert WRONG[condition] in problems[0].reason


SCENE_CONSTANTS = (
    "now(w.ee_z) < 0.9",
    "0.9 > now(w.ee_z)",
    "now(w.ee_z) < p.near",
    "held(w.ee_x > 0.1)",
    "now(w.object_x) == 0.25",
    "0.1 < now(w.ee_y) < 0.2",
    "mean(w.receptacle_y) > 0.1",
    "minimum(w.ee_z, 1) > 0.1",
    "now(w.other_ee_z) > 0.1",
    "now(w.oracle_object_x) > 0.1",
    "crossed(w.ee_z, 0.9)",
    "crossed(w.ee_speed, now(w.ee_z))",
    "now(w.ee_z) - 0.9 > 0",
    "now(w.ee_z) + 0.0 > 0.9",
    "now(w.ee_z) * 1 > 0.9",
    "now(w.ee_z) / 1 > 0.9",
    "-now(w.ee_z) < -0.9",
    "abs(now(w.ee_z)) > 0.9",
    "hypot(now(w.ee_x), now(w.ee_y)) > 0.5",
    "max(now(w.ee_z), 0.9) > now(w.object_z)",
    "0.9 - now(w.ee_z) < 0",
    "now(w.ee_z) + now(w.ee_z) > 1.8",
    "(now(w.ee_z) if True else 0.9) > now(w.object_z)",
    "now(w.ee_x) < now(w.ee_y)",
    "now(w.ee_x) - now(w.ee_y) < 0.1",
)


@pytest.mark.parametrize("condition", SCENE_CONSTANTS)
def test_number_that_belongs_to_one_scene_is_refused(condition: str) -> None:
    problems = problems_of(firing_when(condition))

    assert [problem.line for problem in problems] == [BODY_LINE]
    assert "belongs to one scene" in problems[0].reason


def test_place_stays_a_place_behind_a_local_name() -> None:
    body = "z = now(w.ee_z)\nif z > 0.9:\n    return recover('high')\nreturn ok()"

    assert "belongs to one scene" in problems_of(critic_of(body))[0].reason


BODIES = {
    # statements of check: (line within them, part of the reason)
    "if now(w.slip) > 1:\n    return ok()": (2, "check can end without a verdict"),
    "if now(w.slip) > 1:\n    return ok()\nelse:\n    x = 1.0": (4, "can end without a verdict"),
    "return": (1, "got nothing"),
    "return True": (1, "got True"),
    "return ok": (1, "got ok"),
    "return recover()": (1, 'write: return recover("why")'),
    "return ok(1)": (1, "write: return ok()"),
    'return recover("")': (1, "1 to 200 characters"),
    'return recover("' + "a" * 201 + '")': (1, "1 to 200 characters"),
    "if now(w.slip) > 1:\n    x = 1.0\nif x > 1:\n    return ok()\nreturn recover('a')": (
        3, "set on one way",
    ),
    "x = 1.0\nif now(w.slip) > 1:\n    x = True\nif x:\n    return ok()\nreturn recover('a')": (
        4, "not the same sort",
    ),
    "x = w.slip\nif now(w.slip) > 1:\n    x = w.lift\nif now(x) > 1:\n    return ok()\n"
    "return recover('a')": (4, "not the same series"),
    "x += 1\nreturn recover('a')": (1, "'x' was never set"),
}  # fmt: skip


@pytest.mark.parametrize("body", list(BODIES))
def test_wrong_body_is_explained_at_its_line(body: str) -> None:
    line, reason = BODIES[body]

    problems = problems_of(critic_of(body))

    assert [problem.line for problem in problems] == [BODY_LINE + line - 1]
    assert reason in problems[0].reason


def test_all_problems_are_told_at_once_in_their_order() -> None:
    body = "a = w.nothing\nb = now(w.slip) ** 2\nc = open('x')\nreturn recover('a')"

    assert [p.line for p in problems_of(critic_of(body))] == [8, 9, 10]


def test_name_that_a_wrong_line_would_have_set_is_not_a_second_problem() -> None:
    body = "a = now(w.nothing)\nif a > 1:\n    return ok()\nreturn recover('a')"

    assert [p.line for p in problems_of(critic_of(body))] == [8]


def test_problem_prints_as_file_line_and_reason() -> None:
    assert str(Problem(7, "no", "a/critic.py")) == "a/critic.py:7: no"
    assert str(problems_of("x")[0]).startswith("critic.py:1: ")


def test_critic_that_recovers_says_how() -> None:
    source = firing_when("now(w.slip) > 1").replace('SKILL = "regrasp"\n', "")

    assert "SKILL does not say how" in problems_of(source)[0].reason
    assert problems_of(source.replace("recover(", "abort(")) == ()


def test_critic_that_can_only_pass_is_refused() -> None:
    assert "always passes" in problems_of(critic_of("return ok()"))[0].reason


def test_wrong_parameter_of_the_window_is_no_problem_where_it_fits() -> None:
    longer = firing_when("mean(w.slip, p.long) > 1").replace("WINDOW_S = 2.0", "WINDOW_S = 5.0")

    assert "p.long reaches 9 s" in problems_of(longer)[0].reason


@pytest.mark.parametrize(
    ("condition", "level"),
    [
        ("now(w.ee_speed) > 1", "proprio"),
        ("now(w.dispersion) > 1 and now(w.ee_speed) > 1", "policy"),
        ("now(w.ee_speed) > 1 or now(w.object_distance) > 1", "vision"),
        ("now(w.oracle_object_distance) > 1 or now(w.object_distance) > 1", "oracle"),
        ("True", "proprio"),
    ],
)
def test_level_is_that_of_the_highest_signal(condition: str, level: str) -> None:
    checked = analyse_critic(firing_when(condition), "critic.py", SIGNALS, PARAMETERS)

    assert isinstance(checked, CheckedCritic)
    assert checked.level == level


def test_signals_of_arming_and_of_ages_belong_to_the_critic() -> None:
    constants = 'SKILL = "regrasp"\nARMED_WHEN = "now(w.dispersion) > 0.1"\nMAX_AGE_S = 1\n'
    source = firing_when("now(w.object_to_receptacle) > 1")
    source = source.replace('SKILL = "regrasp"\n', constants)
    checked = analyse_critic(source, "critic.py", SIGNALS, PARAMETERS)

    assert isinstance(checked, CheckedCritic)
    assert set(checked.signals) == {
        "dispersion", "object_to_receptacle", "object_age", "receptacle_age",
    }  # fmt: skip


def test_head_of_the_test_programs_has_the_lines_that_tests_count_on() -> None:
    assert HEAD.count("\n") == BODY_LINE - 1
