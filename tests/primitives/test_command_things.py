from __future__ import annotations

import numpy as np
import pytest
from toy_commands import Bench, bench

from zetta.primitives import commands as c
from zetta.primitives.robot import Robot
from zetta.primitives.roles import Errand, Phrase, parse_instruction
from zetta.runtime.core import Array, Motion, Outcome, Sampled
from zetta.sims.toy_faults import ToyFaults

TOLD = parse_instruction("put the red cube on the green plate").steps[0]


def thing(made: Bench, name: str) -> Array:
    return made.env.truth().objects[name][:3]


def hand(made: Bench) -> Array:
    return made.step.proprio.arms[0].ee_pos


@pytest.mark.parametrize("told", [True, False])
@pytest.mark.parametrize("suite", ["toy_pick", "toy_swap", "toy_distractors"])
def test_pick_and_place_solve_the_task_whether_or_not_the_instruction_is_known(
    suite: str, told: bool
) -> None:
    for seed in range(4):
        made = bench(suite, seed, Sampled(), seed, told=told)
        item, target = made.env.toy.goals[0].item, made.env.toy.goals[0].target
        picked = made.do(c.Pick(item.replace("_", " ")))
        placed = made.do(c.Place(target.replace("_", " ")))

        assert picked.completed, picked.detail
        assert placed.completed, placed.detail
        assert all(made.env.truth().predicates.values())


def test_commands_in_one_motion_do_the_same_as_each_in_its_own() -> None:
    made = bench(layout=Sampled(), seed=1)
    lines = [c.Parsed(c.Pick("red cube")), c.Parsed(c.Place("green plate")), c.Parsed(c.Home())]
    results = made.do_all(lines)

    assert [result.completed for result in results] == [True] * 3
    assert "the red cube is seen 0." in results[1].detail
    assert "beside the middle of the green plate" in results[1].detail
    assert all(made.env.truth().predicates.values())


def test_a_picked_thing_is_held_by_all_evidence() -> None:
    result = bench().do(c.Pick("red cube"))

    assert result.grasp is not None
    assert (result.grasp.grip, result.grasp.lifted, result.grasp.seen) == ("held", True, True)
    assert "gripper held (4.0 cm between the fingers" in result.summary


def test_a_hand_that_holds_something_is_not_sent_to_pick_another() -> None:
    made = bench()
    made.do(c.Pick("red cube"))
    ticks = len(made.felt)
    for command in (c.Pick("blue cube"), c.GoToGrasp("blue cube"), c.Open("top drawer")):
        result = made.do(command)
        assert (result.stop, len(made.felt)) == ("refused", ticks)
        assert "seems to hold the red cube" in result.detail

    made.do(c.Gripper(1.0))
    assert made.do(c.Pick("blue cube")).completed


def test_a_thing_that_slips_on_the_way_is_told_as_slipped_and_no_longer_held() -> None:
    made = bench(faults=ToyFaults(slip_at=26))
    picked = made.do(c.Pick("red cube"))
    placed = made.do(c.Place("green plate"))

    assert picked.completed
    assert (placed.completed, placed.stop) == (False, "slipped")
    assert "short of the green plate" in placed.detail
    assert placed.grasp is not None
    assert placed.grasp.grip == "empty"


def test_placing_with_an_empty_hand_says_so() -> None:
    result = bench().do(c.Place("green plate"))

    assert (result.completed, result.stop) == (False, "slipped")
    assert result.detail == "nothing is held"


def test_what_is_not_there_is_not_found_under_the_name_it_was_given() -> None:
    result = bench().do(c.Pick("fish"))

    assert (result.completed, result.stop, result.ticks) == (False, "not found", 0)
    assert result.detail == "the fish was not found"


def test_what_an_earlier_command_found_is_not_taken_for_what_this_one_names() -> None:
    """The loop remembers estimates by role; both things are the `object` of their command."""
    made = bench()
    results = made.do_all([c.Parsed(c.GoAbove("blue cube")), c.Parsed(c.GoAbove("fish"))])

    assert [result.completed for result in results] == [True, False]
    assert results[1].stop == "not found"
    assert results[1].ticks == 0


def test_going_above_a_thing_keeps_a_hands_breadth() -> None:
    made = bench()
    result = made.do(c.GoAbove("blue cube"))
    x, y, z = hand(made) - thing(made, "blue_cube")

    assert result.completed
    assert "the point above the blue cube" in result.detail
    assert np.hypot(x, y) < 0.012
    assert z == pytest.approx(0.10, abs=0.012)


def test_going_to_a_thing_lines_up_so_that_closing_takes_it() -> None:
    made = bench()
    lined_up = made.do(c.GoToGrasp("blue cube"))
    closed = made.do(c.Gripper(0.0))
    raised = made.do(c.Move((0.0, 0.0, 0.1)))
    placed = made.do(c.Place("yellow plate"))

    assert lined_up.completed
    assert closed.grasp is not None
    assert closed.grasp.grip == "held"
    assert raised.grasp is not None
    assert raised.grasp.lifted
    assert placed.completed, placed.detail
    away = thing(made, "blue_cube") - thing(made, "yellow_plate")
    assert np.linalg.norm(away[:2]) < 0.02


def test_commands_are_the_primitives_of_recovery_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[str] = []
    for name in ("above", "descend", "grasp", "place", "pull", "press", "turn", "push"):
        own = getattr(Robot, name)

        def noted(self: Robot, *roles: str, name: str = name, own: object = own) -> object:
            called.append(f"{name} {' '.join(roles)}")
            return own(self, *roles)  # type: ignore[operator]

        monkeypatch.setattr(Robot, name, noted)
    made = bench()
    for command in (
        c.GoAbove("red cube"), c.GoToGrasp("red cube"), c.Open("top drawer"),
        c.Close("top drawer"), c.TurnKnob("stove"), c.Push("blue cube", "yellow plate"),
        c.Gripper(1.0), c.Pick("red cube"), c.Place("green plate"),
    ):  # fmt: skip
        made.do(command)

    assert called == [
        "above object", "descend object", "pull part", "press part", "turn part", "push object",
        "grasp object", "place receptacle",
    ]  # fmt: skip


# --------------------------------------------------------------------------- eyes


def test_an_errand_that_is_bound_again_keeps_its_robot_and_tracks() -> None:
    made = bench()
    made.do(c.Pick("red cube"))
    robot, tracks = made.sight.bind(TOLD), made.sight.state().tracks
    made.do(c.GoAbove("green plate"))

    assert made.sight.bind(TOLD) is robot
    assert set(tracks.tracks) == set(made.sight.state().tracks.tracks) == {"object", "receptacle"}


def test_another_errand_keeps_the_tracks_of_what_both_name_and_what_is_held() -> None:
    made = bench(told=False)
    made.do(c.Pick("red cube"))
    before = made.sight.state()
    made.sight.bind(TOLD)
    after = made.sight.state()

    assert before.held is not None
    assert before.held.load is not None
    assert after.held == before.held
    assert after.tracks.tracks == before.tracks.tracks
    assert set(after.last_seen) == {"object"}


def test_a_thing_that_plays_another_role_now_is_not_mistaken_for_its_successor() -> None:
    made = bench(told=False)
    made.do(c.GoAbove("green plate"))
    made.sight.bind(Errand("pick", Phrase("blue cube")))
    assert made.sight.state().tracks.tracks == {}
    assert made.sight.state().last_seen == {}

    made.do(c.GoAbove("green plate"))
    made.sight.bind(TOLD)
    assert set(made.sight.state().tracks.tracks) == {"receptacle"}, "it was the object before"


def test_skills_find_the_things_of_the_instruction_after_commands_about_others() -> None:
    made = bench()
    made.do(c.GoAbove("yellow plate"))
    assert made.sight.bound == ("object",)
    made.sight.bind_instruction()

    assert made.sight.bound == ("object", "receptacle")
    seen = made.sight.look()
    assert seen["receptacle"].position == pytest.approx(thing(made, "green_plate"))


def test_a_grip_that_others_made_is_not_opened_by_the_next_command() -> None:
    made = bench(layout=Sampled(), seed=1)
    made.do(c.Home())
    made.do(c.GoToGrasp("red cube"))
    made._drive(_closed())
    made.executor.others_drove()
    made.do(c.Move((0.0, 0.0, 0.1)))

    assert thing(made, "red_cube")[2] > 0.48


def _closed() -> Motion:
    """Close the gripper, as a policy might."""
    for _ in range(20):
        yield np.array([0.0] * 6 + [1.0])
    return Outcome(True)
