from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pytest
from toy_commands import Bench, bench

from zetta.primitives import commands as c
from zetta.primitives.command_equipment import Equipment
from zetta.primitives.command_motions import Executor
from zetta.primitives.motions_frames import DOWN, angle_between, matrix_of
from zetta.runtime.core import ActionSpec, Array, Look, Motion, Outcome
from zetta.runtime.errors import SpecMismatch
from zetta.runtime.policies.toy_reach import ToyReach
from zetta.runtime.policy_motion import policy_rows
from zetta.runtime.workspace import Box

ROOM = Box((-0.15, -0.25, 0.45), (0.15, 0.25, 0.70))


@pytest.fixture
def one() -> Bench:
    return bench()


@pytest.fixture
def two() -> Bench:
    return bench("toy_two_arm")


def hand(made: Bench, arm: int = 0) -> Array:
    return made.step.proprio.arms[arm].ee_pos


def turn(made: Bench, arm: int = 0) -> Array:
    return matrix_of(made.step.proprio.arms[arm].ee_quat)


# --------------------------------------------------------------------------- move


def test_a_move_goes_straight_from_the_live_pose_and_says_how_far_off_it_ended(one: Bench) -> None:
    start = hand(one)
    result = one.do(c.Move((0.05, 0.08, -0.06)))

    assert (result.completed, result.stop) == (True, "reached")
    assert result.asked == pytest.approx((0.05, 0.08, -0.06))
    assert result.moved == pytest.approx(tuple(hand(one) - start))
    assert result.error == pytest.approx(np.linalg.norm(hand(one) - start - [0.05, 0.08, -0.06]))
    assert result.error < 0.006
    assert result.ticks == len(one.felt)
    assert result.detail.startswith("moved x +5.")
    assert result.detail.endswith(" cm off")


def test_each_command_begins_at_the_live_pose_and_leaves_the_orientation(one: Bench) -> None:
    one.do(c.Rotate("yaw", 0.5))
    before = turn(one)
    one.do(c.Move((0.1, 0.0, 0.0)))

    assert angle_between(before, turn(one)) < 0.02


def test_a_move_in_the_frame_of_the_gripper_goes_where_the_hand_points(one: Bench) -> None:
    one.do(c.Point("down45"))
    result = one.do(c.Move((0.0, 0.0, 0.06), "gripper"))

    assert result.asked is not None
    assert result.asked == pytest.approx((0.042, 0.0, -0.042), abs=3e-3)
    assert result.error is not None
    assert result.error < 0.006


def test_a_move_in_the_frame_of_a_camera_goes_right_and_up_in_the_picture(one: Bench) -> None:
    pose = one.env.observe(["front"]).cameras["front"].T_world_cam
    result = one.do(c.Move((0.05, 0.03, 0.02), "camera", "front"))

    assert result.asked == pytest.approx(tuple(pose[:3, :3] @ [0.05, -0.03, 0.02]))


def test_a_hand_that_lands_on_the_table_says_that_its_descent_ended_early(one: Bench) -> None:
    one.do(c.Move((0.0, 0.0, -0.1)))
    result = one.do(c.Move((0.0, 0.0, -0.2)))

    assert (result.completed, result.stop) == (False, "contact")
    assert "the descent ended early" in result.detail
    assert result.error == pytest.approx(0.2 + result.moved[2], abs=1e-6)  # type: ignore[index]


def test_a_hand_that_cannot_move_at_all_says_so(one: Bench) -> None:
    one.do(c.Move((-0.15, 0.0, 0.0)))
    result = one.do(c.Move((-0.1, 0.0, 0.0)))

    assert not result.completed
    assert result.detail.startswith("it did not move, 10.0 cm short")


def test_until_contact_is_completed_when_something_stopped_the_hand(one: Bench) -> None:
    landed = one.do(c.Move((0.0, 0.0, -0.2), until_contact=True))
    one.do(c.Home())
    free = one.do(c.Move((0.0, 0.0, -0.05), until_contact=True))

    assert (landed.completed, landed.stop) == (True, "contact")
    assert (free.completed, free.stop) == (False, "reached")
    assert "no contact within" in free.detail


# --------------------------------------------------------------------------- the workspace


def test_a_target_outside_of_the_workspace_is_refused_before_anything_moves() -> None:
    made = bench(workspace=ROOM)
    result = made.do(c.Move((0.0, 0.0, 0.1)))

    assert (result.completed, result.stop, result.ticks) == (False, "limit", 0)
    assert "outside of the workspace (x -15 to 15, y -25 to 25, z 45 to 70 cm)" in result.detail
    assert made.felt == []


def test_a_search_for_contact_ends_where_the_workspace_does() -> None:
    made = bench(workspace=ROOM)
    result = made.do(c.Move((0.0, 0.0, -0.2), until_contact=True))

    assert (result.completed, result.stop) == (False, "limit")
    assert "where the workspace ends" in result.detail
    assert hand(made)[2] > ROOM.low[2] - 0.005


def test_what_stands_outside_of_the_workspace_is_not_gone_to() -> None:
    made = bench(workspace=Box((-0.15, -0.10, 0.40), (0.0, 0.04, 0.70)))
    result = made.do(c.GoAbove("yellow plate"))

    assert (result.completed, result.stop) == (False, "limit")
    assert "the workspace ends there" in result.detail
    assert hand(made)[0] < 0.01


def test_the_policy_is_kept_inside_too() -> None:
    def away(ticks: int, instruction: str) -> Motion:
        for _ in range(ticks):
            yield np.array([1.0, 1.0, -1.0, 0.0, 0.0, 0.0, -1.0])
        return Outcome(True, "drove")

    made = bench(workspace=ROOM, policy=away)
    result = made.do(c.RunPolicy(40))

    assert result.completed
    assert max(float(np.max(p.arms[0].ee_pos - ROOM.high)) for p in made.felt) < 0.01
    assert min(float(np.min(p.arms[0].ee_pos - ROOM.low)) for p in made.felt) > -0.01


# --------------------------------------------------------------------------- turns and home


def test_a_rotation_turns_about_an_axis_of_the_world_through_the_grip_site(one: Bench) -> None:
    before, start = turn(one), hand(one)
    result = one.do(c.Rotate("roll", math.radians(30)))

    relative = turn(one) @ before.T
    assert result.completed
    assert result.turned == pytest.approx(math.radians(30), abs=0.06)
    assert relative[0, 0] == pytest.approx(1.0, abs=1e-3), "x stays where it is"
    assert np.linalg.norm(hand(one) - start) < 0.006
    assert result.turn_error is not None
    assert result.turn_error < 0.06


@pytest.mark.parametrize("name", c.DIRECTIONS)
def test_the_hand_points_in_each_preset_direction(one: Bench, name: c.Direction) -> None:
    one.do(c.Rotate("yaw", 0.4))
    result = one.do(c.Point(name))
    angle = math.pi / 2.0 if name == "forward" else math.radians(float(name[4:] or 0.0))

    assert result.completed
    expected = math.cos(angle) * DOWN + math.sin(angle) * np.array([1.0, 0.0, 0.0])
    assert turn(one)[:, 2] == pytest.approx(expected, abs=0.07)


def test_home_is_where_the_episode_began(one: Bench) -> None:
    start, before = hand(one), turn(one)
    one.do(c.Move((0.15, 0.1, -0.1)))
    one.do(c.Rotate("yaw", 0.8))
    result = one.do(c.Home())

    assert result.completed
    assert np.linalg.norm(hand(one) - start) < 0.015
    assert angle_between(before, turn(one)) < 0.1


def test_the_way_home_rises_before_it_goes_over(one: Bench) -> None:
    one.do(c.GoToGrasp("red cube"))
    low, begun = hand(one), len(one.felt)
    one.do(c.Home())

    for proprio in one.felt[begun:]:
        x, y, z = proprio.arms[0].ee_pos
        if math.hypot(x - low[0], y - low[1]) > 0.03:
            assert z > low[2] + 0.06, "it has risen over its neighbours first"


# --------------------------------------------------------------------------- the gripper


@pytest.mark.parametrize("share", [0.0, 0.25, 0.5, 0.8, 1.0])
def test_the_fingers_open_to_a_share_and_stay_so_through_a_move(one: Bench, share: float) -> None:
    result = one.do(c.Gripper(share))
    one.do(c.Move((0.05, 0.0, 0.0)))

    assert result.completed
    assert result.grasp is not None
    assert one.step.proprio.arms[0].gripper_opening == pytest.approx(0.08 * share, abs=0.006)


def test_closing_on_nothing_does_what_it_says_and_holds_nothing(one: Bench) -> None:
    result = one.do(c.Gripper(0.0))

    assert result.completed
    assert result.grasp is not None
    assert result.grasp.grip == "empty"
    assert "closed on nothing" in result.summary


def test_results_carry_evidence_as_long_as_the_gripper_is_commanded_closed(one: Bench) -> None:
    assert one.do(c.Move((0.03, 0.0, 0.0))).grasp is None
    one.do(c.Gripper(0.0))
    assert one.do(c.Move((0.03, 0.0, 0.0))).grasp is not None
    one.do(c.Gripper(1.0))
    assert one.do(c.Move((0.03, 0.0, 0.0))).grasp is None


# --------------------------------------------------------------------------- what needs no arm


def test_waiting_holds_still_for_its_time(one: Bench) -> None:
    start = hand(one)
    result = one.do(c.Wait(0.5))

    assert (result.completed, result.ticks) == (True, 10)
    assert np.linalg.norm(hand(one) - start) < 1e-3


def test_done_does_nothing(one: Bench) -> None:
    result = one.do(c.Done())

    assert (result.completed, result.ticks) == (True, 0)


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        (c.BaseMove("x", 0.1), "has no mobile base"),
        (c.BaseTurn(0.1), "has no mobile base"),
        (c.RunPolicy(10), "no policy here"),
        (c.RunSkill("regrsp"), "no skill 'regrsp'"),
        (c.Move((0.5, 0.0, 0.0)), "move x got 50 cm; expected -20 to 20"),
        (c.Move((math.nan, 0.0, 0.0)), "move x got nan"),
        (c.Rotate("yaw", 3.0), "expected -90 to 90"),
        (c.Gripper(1.5), "expected 0 to 1"),
        (c.Wait(100.0), "expected 0 to 5"),
        (c.Home("left"), "no arm 'left'; known: arm"),
        (c.Both(c.Home(), c.Home()), "both commands are for one arm"),
    ],
)
def test_what_cannot_be_done_here_is_refused_in_a_sentence(
    one: Bench, command: c.Command, reason: str
) -> None:
    result = one.do(command)

    assert (result.completed, result.stop, result.ticks) == (False, "refused", 0)
    assert reason in result.detail


def test_a_skill_that_is_nearly_named_right_is_suggested() -> None:
    made = bench(skills=lambda name: iter(()), skill_names=("regrasp", "reseat"))

    assert "did you mean 'regrasp'?" in made.do(c.RunSkill("regrsp")).detail


def test_a_skill_runs_as_a_command() -> None:
    def skill(name: str) -> Motion:
        yield Look(())
        yield np.zeros(7)
        return Outcome(True, f"{name} is over")

    result = bench(skills=skill, skill_names=("regrasp",)).do(c.RunSkill("regrasp"))

    assert (result.completed, result.detail, result.ticks) == (True, "regrasp is over", 1)


def test_the_policy_drives_for_its_ticks_and_a_command_goes_on_from_there() -> None:
    made: Bench = bench(
        policy=lambda ticks, words: policy_rows(ToyReach(), made.env, 3, ticks, words)
    )
    start = hand(made)
    result = made.do(c.RunPolicy(12, "put the blue cube on the yellow plate"))
    there = hand(made)
    made.do(c.Move((0.0, 0.0, 0.05)))

    assert (result.completed, result.ticks) == (True, 12)
    assert result.moved == pytest.approx(tuple(there - start))
    assert np.linalg.norm(there - start) > 0.05
    assert hand(made) - there == pytest.approx([0.0, 0.0, 0.05], abs=0.006)


# --------------------------------------------------------------------------- results


def test_notices_of_the_parser_are_passed_on(one: Bench) -> None:
    result = one.do(c.Move((0.02, 0.0, 0.0)), "x 35 cm was clipped to 20 cm")

    assert result.notices == ("x 35 cm was clipped to 20 cm",)
    assert "clipped" in result.summary


def test_a_command_that_takes_too_many_ticks_is_interrupted(one: Bench) -> None:
    result = one.do(c.Wait(5.0), most_ticks=7)

    assert (result.completed, result.stop, result.ticks) == (False, "timeout", 7)
    assert "interrupted after 7 ticks" in result.detail


def test_a_command_that_is_closed_ends_at_once(one: Bench) -> None:
    steps: Iterator[object] = one.executor.run(c.Parsed(c.Wait(1.0)))
    assert next(steps) == Look(())
    steps.close()  # type: ignore[attr-defined]

    assert list(steps) == []


def test_actions_that_are_no_poses_in_the_world_are_refused() -> None:
    action = ActionSpec("delta_pose", ("x",) * 7, (-1.0,) * 7, (1.0,) * 7, (0.05,) * 7, "base")

    with pytest.raises(SpecMismatch, match="world frame"):
        Executor(Equipment(action, ("arm",), 20.0, lambda errand, arm: None))  # type: ignore


# --------------------------------------------------------------------------- two arms


def test_with_two_arms_a_command_has_to_say_which(two: Bench) -> None:
    result = two.do(c.Move((0.05, 0.0, 0.0)))

    assert (result.completed, result.stop) == (False, "refused")
    assert result.detail == "say which arm: left or right"


def test_one_arm_moves_and_the_other_stays_where_the_last_command_left_it(two: Bench) -> None:
    two.do(c.Move((0.05, 0.0, -0.05), arm="left"))
    left = hand(two, 0)
    two.do(c.Gripper(0.0, "left"))
    two.do(c.Move((0.05, 0.0, -0.05), arm="right"))

    assert np.linalg.norm(hand(two, 0) - left) < 1e-3
    assert two.step.proprio.arms[0].gripper_opening < 0.001, "still commanded closed"


def test_both_arms_move_in_the_same_ticks(two: Bench) -> None:
    first, second = c.Move((0.1, 0.0, -0.1), arm="left"), c.Move((0.1, 0.0, 0.0), arm="right")
    left, right = hand(two, 0), hand(two, 1)
    result = two.do(c.Both(first, second))

    assert result.completed
    assert hand(two, 0) - left == pytest.approx([0.1, 0.0, -0.1], abs=0.006)
    assert hand(two, 1) - right == pytest.approx([0.1, 0.0, 0.0], abs=0.006)
    assert result.ticks < 10
    assert result.detail.startswith("left ok: moved")
    assert "right ok: moved" in result.detail


def test_an_arm_that_has_ended_holds_until_the_other_has(two: Bench) -> None:
    result = two.do(c.Both(c.Move((0.0, 0.0, 0.02), arm="left"), c.Gripper(0.0, "right")))
    where = [proprio.arms[0].ee_pos for proprio in two.felt]

    assert result.completed
    assert result.ticks > 12
    assert np.linalg.norm(where[-1] - where[5]) < 2e-3


def test_when_one_arm_fails_the_joint_result_names_it(two: Bench) -> None:
    result = two.do(c.Both(c.Pick("fish", "left"), c.Move((0.05, 0.0, 0.0), arm="right")))

    assert (result.completed, result.stop) == (False, "not found")
    assert "left FAILED (not found): the fish was not found; right ok" in result.detail


def test_two_arms_do_two_errands_at_once(two: Bench) -> None:
    picked = two.do(c.Both(c.Pick("red cube", "left"), c.Pick("blue cube", "right")))
    placed = two.do(
        c.Both(c.Place("green plate", arm="left"), c.Place("yellow plate", arm="right"))
    )
    truth = two.env.truth()

    assert picked.completed, picked.detail
    assert placed.completed, placed.detail
    assert all(truth.predicates.values())
    assert picked.ticks + placed.ticks < 80
