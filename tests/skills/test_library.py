"""The skills that come with zetta: what each must see, and what none may take for a failure."""

from __future__ import annotations

from collections.abc import Callable

import library_windows
import numpy as np
import part_windows
import pytest

from zetta.critics.critic import is_disarmed, load_critic
from zetta.primitives.robot import Robot
from zetta.primitives.roles import parse_instruction
from zetta.runtime.core import SENSING_LEVELS, Sensing, Verdict
from zetta.runtime.signals import SignalHistory
from zetta.skills.compiled import compile_skill, run_windows
from zetta.skills.package import SkillPackage, load_skill
from zetta.skills.rehearsals import HZ, Rehearsal
from zetta.skills.shelf import library_folder, shelve

NAMES = (
    "close-drawer", "fresh-sample", "open-drawer", "pick-up-again", "regrasp", "reseat", "restage",
    "turn-knob", "wrong-object",
)  # fmt: skip
PARTS = ("close-drawer", "open-drawer", "turn-knob")
WATCHERS = library_folder().parents[1] / "critics" / "library"


def package(name: str) -> SkillPackage:
    return load_skill(library_folder() / name)


def test_the_library_holds_these_skills() -> None:
    assert tuple(sorted(shelve([]))) == NAMES
    assert sorted(library_windows.WINDOWS) == sorted(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_skill_is_made_by_hand_and_senses_no_truth(name: str) -> None:
    skill = package(name)

    assert skill.page.provenance.made_by == "hand"
    assert skill.page.level == skill.level
    assert SENSING_LEVELS.index(skill.level) <= SENSING_LEVELS.index("vision")
    assert skill.notices == ()
    assert all(p.doc and p.low < p.high for p in skill.parameters.values())


@pytest.mark.parametrize("name", NAMES)
def test_every_window_is_met(name: str) -> None:
    outcomes = run_windows(package(name))

    assert [f"{o.window}: {o.said}" for o in outcomes if not o.passed] == []
    assert sum(o.expect == "fires" for o in outcomes) >= 2
    assert sum(o.expect == "silent" for o in outcomes) >= 3


@pytest.mark.parametrize("name", NAMES)
def test_windows_on_file_are_those_that_are_drawn(name: str) -> None:
    skill = package(name)
    drawn = {d.name: d for d in library_windows.WINDOWS[name]()}

    assert sorted(drawn) == [w.name for w in skill.windows]
    for window in skill.windows:
        again = drawn[window.name].rehearsal.window(
            window.name, window.expect, skill.signals, drawn[window.name].what
        )
        assert window.expect == drawn[window.name].expect
        for signal, values in window.signals.items():
            np.testing.assert_allclose(values, again.signals[signal], atol=6e-5)


@pytest.mark.parametrize("name", NAMES)
def test_the_ordinary_is_left_alone_whatever_the_seed(name: str) -> None:
    for seed in range(3):
        rehearsal = library_windows.ordinary(seed=100 + seed)
        window = rehearsal.window("ordinary", "silent", package(name).signals, "")
        assert firing_ticks(name, rehearsal) == [], f"{name} fires on {window.source}"


@pytest.mark.parametrize("name", NAMES)
def test_a_doubtful_sighting_starts_nothing(name: str) -> None:
    skill = package(name)
    if skill.level != "vision":
        return
    for drawn in library_windows.WINDOWS[name]():
        if drawn.expect == "fires":
            drawn.rehearsal.confidence = 0.4
            assert firing_ticks(name, drawn.rehearsal) == [], drawn.name


def firing_ticks(name: str, rehearsal: Rehearsal) -> list[int]:
    """Return the ticks at which a skill would start."""
    skill = compile_skill(package(name), control_hz=HZ, robot=no_robot)
    computed = rehearsal.signals()
    history = SignalHistory(tuple(computed), HZ)
    ticks = []
    for tick, row in enumerate(np.stack(list(computed.values()), axis=1)):
        history.push(row)
        decision = skill.critic.judge(history).decision
        if decision == "recover" and skill.precondition(history):
            ticks.append(tick)
    return ticks


def no_robot() -> Robot:
    raise AssertionError("nothing is to move")


def at_end(rehearsal: Rehearsal) -> SignalHistory:
    """Return the window as it is after the last tick."""
    computed = rehearsal.signals()
    history = SignalHistory(tuple(computed), HZ)
    for row in np.stack(list(computed.values()), axis=1):
        history.push(row)
    return history


def reentry(name: str, rehearsal: Rehearsal) -> bool:
    return compile_skill(package(name), control_hz=HZ, robot=no_robot).reentry(at_end(rehearsal))


def test_the_policy_goes_on_once_something_is_held() -> None:
    empty, full = library_windows.scene(), library_windows.scene()
    for rehearsal in (empty, full):
        library_windows.approach(rehearsal)
    empty.close(1.0)
    library_windows.take(full)

    for name in ("regrasp", "pick-up-again", "wrong-object"):
        assert not reentry(name, empty)
        assert reentry(name, full)


def test_the_policy_goes_on_above_the_object() -> None:
    aside, above, low = (library_windows.scene() for _ in range(3))
    aside.to("object", 0.08, 1.0, aside=(0.08, 0.0))
    above.to("object", 0.08, 1.0)
    low.to("object", -0.01, 1.0)

    assert [reentry("restage", r) for r in (aside, above, low)] == [False, True, False]


def test_the_policy_goes_on_once_the_object_is_released_over_the_receptacle() -> None:
    held, released, elsewhere = (library_windows.scene() for _ in range(3))
    for rehearsal in (held, released, elsewhere):
        library_windows.approach(rehearsal)
        library_windows.take(rehearsal)
    for rehearsal in (held, released):
        library_windows.carry(rehearsal)
    for rehearsal in (released, elsewhere):
        rehearsal.open()

    assert [reentry("reseat", r) for r in (held, released, elsewhere)] == [False, True, False]


def test_the_policy_goes_on_once_the_drawer_has_moved() -> None:
    shut, ajar, opened = (part_windows.drawer(100 + k) for k in range(3))
    for rehearsal, way in ((shut, 0.0), (ajar, 0.05), (opened, 0.14)):
        part_windows.reach(rehearsal)
        part_windows.slide(rehearsal, way, 1.0)
        rehearsal.wait(0.6)

    for name in ("open-drawer", "close-drawer"):
        assert [reentry(name, r) for r in (shut, ajar, opened)] == [False, False, True]


def test_the_policy_goes_on_once_the_hand_has_let_go_of_the_knob() -> None:
    held, released, elsewhere = (part_windows.turns() for _ in range(3))
    released.open()
    elsewhere.open()
    elsewhere.move(0.1, 0.0, 0.3, 1.0)

    assert [reentry("turn-knob", r) for r in (held, released, elsewhere)] == [False, True, False]


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("open-drawer", part_windows.opens),
        ("close-drawer", part_windows.shuts),
        ("turn-knob", part_windows.turns),
    ],
)
def test_work_on_a_part_is_left_alone_whatever_the_seed(
    name: str, make: Callable[[int], Rehearsal]
) -> None:
    for seed in range(100, 103):
        assert firing_ticks(name, make(seed)) == []


@pytest.mark.parametrize(
    ("instruction", "names"),
    [
        ("open the top drawer", {"open-drawer"}),
        ("open the top drawer and put the bowl inside", set()),
        ("close the top drawer", {"close-drawer"}),
        ("put the bowl in the drawer and close it", set()),
        ("close the bottom drawer and open the top drawer", set()),
        ("turn off the stove", {"turn-knob"}),
        ("turn on the stove and put the pot on it", set()),
        ("put the bowl on the plate", set()),
    ],
)
def test_parts_are_worked_only_where_the_instruction_says_so(
    instruction: str, names: set[str]
) -> None:
    roles = parse_instruction(instruction)

    assert {name for name in PARTS if package(name).fits(roles)} == names


@pytest.mark.parametrize(
    "name", ["close-drawer", "open-drawer", "pick-up-again", "regrasp", "reseat", "wrong-object"]
)
def test_what_would_start_a_skill_is_not_yet_its_re_entry(name: str) -> None:
    skill = compile_skill(package(name), control_hz=HZ, robot=no_robot)
    for window in package(name).windows:
        if window.expect != "fires":
            continue
        history = SignalHistory(tuple(window.signals), window.control_hz)
        for row in np.stack(list(window.signals.values()), axis=1):
            history.push(row)
            if skill.critic.judge(history).decision == "recover" and skill.precondition(history):
                assert not skill.reentry(history), window.name


# ------------------------------------------------------------------------- out_of_reach


def last_verdict(rehearsal: Rehearsal) -> Verdict:
    return load_critic(WATCHERS / "out_of_reach.py", HZ).judge(at_end(rehearsal))


def thrown(x: float, y: float, z: float) -> Rehearsal:
    """Return a scene in which the object suddenly lies elsewhere, and the hand waits."""
    rehearsal: Rehearsal = library_windows.scene()
    rehearsal.wait(1.0)
    rehearsal.places["object"] += np.array([x, y, z])
    rehearsal.wait(4.0)
    return rehearsal


def test_an_object_on_the_floor_ends_the_episode() -> None:
    verdict = last_verdict(thrown(0.5, 0.0, -0.9))

    assert (verdict.decision, verdict.reason) == ("abort", "the object lies far below the hand")


def test_an_object_beyond_reach_ends_the_episode() -> None:
    assert last_verdict(thrown(1.0, 0.4, 0.0)).decision == "abort"


@pytest.mark.parametrize("place", [(0.2, 0.2, 0.0), (0.0, 0.0, 0.0), (0.25, 0.0, -0.03)])
def test_an_object_that_can_be_reached_does_not(place: tuple[float, float, float]) -> None:
    verdict = last_verdict(thrown(*place))

    assert verdict.decision == "pass"
    assert not is_disarmed(verdict)


def test_an_ordinary_run_is_never_aborted() -> None:
    critic = load_critic(WATCHERS / "out_of_reach.py", HZ)
    for make, _ in library_windows.SILENT.values():
        computed = make().signals()
        history = SignalHistory(tuple(computed), HZ)
        for row in np.stack(list(computed.values()), axis=1):
            history.push(row)
            assert critic.judge(history).decision == "pass"


def test_levels_of_the_library_are_these() -> None:
    levels: dict[str, Sensing] = {name: package(name).level for name in NAMES}

    assert levels.pop("fresh-sample") == "policy"
    assert set(levels.values()) == {"vision"}
    assert load_critic(WATCHERS / "out_of_reach.py", HZ).level == "vision"
