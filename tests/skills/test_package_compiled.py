"""Compiled skills: numbers in bounds, a new robot for each recovery, and motions on the toy."""

from __future__ import annotations

import re
from pathlib import Path
from textwrap import dedent

import pytest

from tests.primitives import test_parts as parts
from tests.primitives.toy_recoveries import Run, perform
from zetta.critics.critic import is_disarmed
from zetta.primitives.robot import Robot
from zetta.runtime.core import Motion, Outcome, Skill
from zetta.runtime.errors import ConfigError
from zetta.runtime.signals import SignalHistory
from zetta.skills.compiled import CompiledSkill, compile_skill
from zetta.skills.package import load_skill
from zetta.skills.shelf import library_folder
from zetta.skills.template import write_template

ROOT = Path(__file__).parents[2]


def compiled(name: str, robot: Robot | None = None, **numbers: float) -> CompiledSkill:
    """Return a skill of the library; `robot` is what every recovery gets."""

    def make() -> Robot:
        assert robot is not None
        return robot

    package = load_skill(library_folder() / name)
    return compile_skill(package, numbers, control_hz=20.0, robot=make)


def history(**values: float) -> SignalHistory:
    """Return a past in which each signal had one value all the time."""
    past = SignalHistory(tuple(values), 20.0)
    for _ in range(past.ticks):
        past.push(list(values.values()))  # type: ignore[arg-type]
    return past


def recovered(name: str, first: str = "", holding: float = 0.0) -> Run:
    """Run a skill's recovery on the toy, after a primitive of its own if one is named."""
    window = history(holding=holding)

    def recovery(robot: Robot) -> Motion:
        if first:
            before: Outcome = yield from robot.grasp(first)
            assert before.completed
        return (yield from compiled(name, robot).recover(window))

    return perform(recovery)


def test_a_compiled_skill_is_what_the_arbiter_asks_for() -> None:
    skill: Skill = compiled("regrasp")

    assert skill.name == "regrasp"
    assert skill.max_ticks == 240


@pytest.mark.parametrize("name", ["regrasp", "pick-up-again", "wrong-object"])
def test_skills_that_fetch_the_object_bring_it_where_it_belongs(name: str) -> None:
    assert recovered(name).result.success


def test_reseat_ends_with_the_object_on_the_receptacle() -> None:
    run = recovered("reseat", first="object", holding=1.0)

    assert run.result.success


def test_restage_ends_above_the_object() -> None:
    run = recovered("restage")
    (thing,) = (mark for mark in run.env.landmarks() if mark.name in run.env.toy.task.instruction
                and "plate" not in mark.name)  # fmt: skip

    assert run.outcome is not None
    assert run.outcome.completed, run.outcome.reason
    assert abs(run.hand[:2] - thing.position[:2]).max() < 0.02
    assert 0.05 < run.hand[2] - (thing.position[2] + thing.extent[2] / 2.0) < 0.11


def test_wrong_object_sets_down_what_it_holds_first() -> None:
    assert recovered("wrong-object", first="object", holding=1.0).result.success


def test_fresh_sample_moves_nothing() -> None:
    run = recovered("fresh-sample")

    assert run.outcome is not None
    assert run.outcome.completed
    assert 3 <= run.result.ticks <= 6


def test_open_drawer_lets_go_first_and_ends_with_an_open_drawer() -> None:
    bench = parts.drawer(0.30)
    outcome = bench.run(compiled("open-drawer", parts.robot()).recover(history(closed_for=1.0)))

    assert outcome.completed, outcome.reason
    assert bench.estimates["part"].position[1] > 0.2


def test_open_drawer_tries_a_locked_drawer_twice_and_does_not_complete() -> None:
    bench = parts.drawer(0.0)
    outcome = bench.run(compiled("open-drawer", parts.robot()).recover(history(closed_for=0.0)))

    assert not outcome.completed


def test_close_drawer_ends_with_a_shut_drawer() -> None:
    bench = parts.pushed(0.1)
    window = history(holding=0.0, part_moved=0.15)
    outcome = bench.run(compiled("close-drawer", parts.robot()).recover(window))

    assert outcome.completed, outcome.reason
    assert bench.estimates["part"].position[1] == pytest.approx(0.1)


def test_turn_knob_ends_with_a_turned_knob() -> None:
    bench, turned_by = parts.knob(3.0)
    outcome = bench.run(compiled("turn-knob", parts.robot()).recover(history(closed_for=0.0)))

    assert outcome.completed, outcome.reason
    assert turned_by() > 0.7


def test_each_recovery_gets_a_robot_of_its_own() -> None:
    made: list[object] = []

    def make() -> Robot:
        made.append(object())
        return made[-1]  # type: ignore[return-value]

    package = load_skill(library_folder() / "regrasp")
    skill = compile_skill(package, control_hz=20.0, robot=make)
    skill.recover(history(holding=0.0))
    skill.recover(history(holding=0.0))

    assert len(made) == 2


def test_numbers_are_given_by_name_and_within_bounds() -> None:
    skill = compiled("regrasp", near=0.05)

    assert skill.parameters["near"] == 0.05
    assert skill.parameters["depth"] == 0.03
    with pytest.raises(ConfigError, match=r"regrasp.*near"):
        compiled("regrasp", near=9.0)
    with pytest.raises(ConfigError, match="did you mean 'near'"):
        compiled("regrasp", neer=0.05)


def test_what_is_unknown_neither_starts_nor_ends_a_recovery() -> None:
    skill = compiled("regrasp")
    nothing = history(holding=float("nan"), object_confidence=float("nan"))

    assert not skill.precondition(nothing)
    assert not skill.reentry(nothing)
    assert not skill.precondition(history(elapsed=1.0))
    assert is_disarmed(skill.critic.judge(history(elapsed=1.0)))


def test_the_skill_of_the_guide_is_one(tmp_path: Path) -> None:
    folder = write_template("hold-tight", tmp_path)
    guide = (ROOT / "docs" / "skills.md").read_text(encoding="utf-8")
    block = r"<!-- file: skills/hold-tight/(\S+) -->\n    ```\w+\n(.*?)^    ```"
    files = {name: dedent(text) for name, text in re.findall(block, guide, re.M | re.S)}
    assert list(files) == ["critic.py", "params.toml", "recovery.py"]
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    page = (folder / "SKILL.md").read_text(encoding="utf-8")
    (folder / "SKILL.md").write_text(page.replace("roles: []", "roles: [object]"), encoding="utf-8")

    package = load_skill(folder)
    skill = compile_skill(package, control_hz=20.0, robot=lambda: pytest.fail("moved"))
    slipping = history(holding=1.0, slip=0.0)
    for k in range(12):
        slipping.push([1.0, 0.001 * k])  # type: ignore[arg-type]
    verdict = skill.critic.judge(slipping)

    assert package.level == "vision"
    assert (verdict.decision, verdict.skill) == ("recover", "hold-tight")
    assert skill.precondition(slipping)


def test_the_front_matter_of_the_guide_is_read(tmp_path: Path) -> None:
    folder = write_template("hold-tight", tmp_path)
    guide = (ROOT / "docs" / "skills.md").read_text(encoding="utf-8")
    (head,) = re.findall(r"^```yaml\n(.*?)^```", guide, re.M | re.S)
    (folder / "SKILL.md").write_text(head.replace("level: vision  ", "level: proprio"))

    page = load_skill(folder).page
    assert page.excludes == ("part", "steps")
    assert page.provenance.made_by == "hand"
