from __future__ import annotations

import inspect
import math

import numpy as np
import pytest
from toy_recoveries import Run, grasp_and_place, perform

from zetta.primitives.catalogue import PRIMITIVES
from zetta.primitives.grasps import HANDS
from zetta.primitives.robot import Robot
from zetta.runtime.core import Init, Look, Motion, Outcome, Sampled, Scene, Sense
from zetta.runtime.errors import ConfigError, SpecMismatch
from zetta.sims.toy import ToySimulator, action_spec
from zetta.sims.toy_faults import ToyFaults
from zetta.sims.toy_physics import OPENING_MAX

SOME = {"seconds": 0.1, "role": "object", "yaw": 0.1, "dx": 0.01, "dy": 0.0, "dz": 0.0}


@pytest.mark.parametrize("name", list(PRIMITIVES))
def test_the_robot_has_each_primitive_with_the_arguments_of_the_catalogue(name: str) -> None:
    parameters = list(inspect.signature(getattr(Robot, name)).parameters.values())[1:]

    assert [(p.name, p.default) for p in parameters] == [
        (p.name, inspect.Parameter.empty if p.required else p.default)
        for p in PRIMITIVES[name].parameters
    ]


@pytest.mark.parametrize("name", list(PRIMITIVES))
def test_a_primitive_first_asks_for_the_present_and_does_nothing_before(name: str) -> None:
    arguments = {
        p.name: p.roles[0] if p.kind == "role" else SOME[p.name]
        for p in PRIMITIVES[name].parameters
        if p.required
    }
    motion = getattr(Robot(action_spec()), name)(**arguments)

    assert next(motion) == Look(())


def test_arguments_outside_the_catalogue_are_refused_before_anything_moves() -> None:
    robot = Robot(action_spec())

    with pytest.raises(ConfigError, match=r"move_by got dx = 0\.5 m; expected -0\.4 to 0\.4"):
        robot.move_by(0.5, 0.0, 0.0)
    with pytest.raises(ConfigError, match="hold got seconds = nan"):
        robot.hold(math.nan)
    with pytest.raises(ConfigError, match="grasp got the role 'objct'; did you mean 'object'"):
        robot.grasp("objct")
    with pytest.raises(ConfigError, match="pull got the role 'object'"):
        robot.pull("object")


def test_an_arm_that_the_action_does_not_drive_is_refused() -> None:
    with pytest.raises(SpecMismatch, match="got arm 1"):
        Robot(action_spec(), arm=1)


@pytest.mark.parametrize("suite", ["toy_pick", "toy_swap", "toy_distractors"])
def test_grasp_and_place_solve_what_has_no_trap(suite: str) -> None:
    runs = [perform(grasp_and_place, suite, k % 4, Sampled(), k) for k in range(8)]

    assert [run.result.success for run in runs] == [True] * 8
    assert max(run.result.ticks for run in runs) < 90


def test_the_second_arm_works_while_the_first_holds_still() -> None:
    def pick(robot: Robot) -> Motion:
        return (yield from robot.move_by(0.05, 0.02, -0.08))

    run = perform(pick, "toy_two_arm", arm=1)
    arms = [tick.proprio.arms for tick in run.ticks]

    assert run.outcome is not None
    assert run.outcome.completed
    assert arms[-1][1].ee_pos[2] < arms[0][1].ee_pos[2] - 0.06
    np.testing.assert_allclose(arms[-1][0].ee_pos, arms[0][0].ee_pos, atol=1e-6)
    assert all(tick.action[6] == -1.0 for tick in run.ticks)


def test_a_thing_that_nobody_finds_is_not_grasped() -> None:
    def push(robot: Robot) -> Motion:
        return (yield from robot.pull("part"))

    run = perform(push)

    assert run.outcome == Outcome(False, "the part was not found")
    assert run.ticks == []


def test_place_with_an_empty_hand_says_so() -> None:
    run = perform(lambda robot: robot.place("receptacle"))

    assert run.outcome == Outcome(False, "nothing is held")


def test_a_slip_on_the_way_ends_the_placing_as_dropped() -> None:
    run = perform(grasp_and_place, faults=ToyFaults(slip_at=26))

    assert run.outcome is not None
    assert not run.outcome.completed
    assert "dropped" in run.outcome.reason
    assert "short of the receptacle" in run.outcome.reason


def test_a_thing_that_is_knocked_away_while_the_hand_comes_down_is_taken_at_the_second_try() -> (
    None
):
    run = perform(grasp_and_place, faults=ToyFaults(knock_at=14, knock_y=0.05))
    closings = [
        now.action[6] > 0.0 > before.action[6]
        for before, now in zip(run.ticks, run.ticks[1:], strict=False)
    ]

    assert sum(closings) == 2
    assert run.result.success


def test_fingers_that_do_not_move_are_noticed() -> None:
    run = perform(grasp_and_place, faults=ToyFaults(gripper_stuck_at=0))

    assert run.outcome is not None
    assert not run.outcome.completed
    assert run.outcome.reason.startswith("the fingers did not move")


def test_fingers_that_do_not_open_over_the_receptacle_are_noticed() -> None:
    run = perform(grasp_and_place, faults=ToyFaults(gripper_stuck_at=33))

    assert run.outcome is not None
    assert run.outcome.reason.startswith("the fingers did not move; they are 4.0 cm apart")
    assert not run.outcome.completed


def test_a_receptacle_out_of_reach_is_told_with_what_is_left() -> None:
    # The left arm of the pair cannot reach the plate on the right.
    run = perform(grasp_and_place, "toy_two_arm", 1)

    assert run.outcome is not None
    assert not run.outcome.completed
    assert "stalled" in run.outcome.reason
    assert "short of the receptacle" in run.outcome.reason
    assert run.opening == pytest.approx(0.04, abs=2e-3), "it still holds the cube"


def test_an_interrupted_recovery_does_nothing_more() -> None:
    env = ToySimulator().make("toy_pick", 0)
    env.reset(Scene(env.toy.task, Init(0)))
    motion = Robot(env.spec.action, hand=HANDS["toy"]).move_by(0.1, 0.0, 0.0)
    next(motion)
    motion.send(Sense(env.observe().proprio))
    motion.close()

    with pytest.raises(StopIteration):
        next(motion)


def by_hand(robot: Robot) -> Motion:
    for step in (robot.above("object"), robot.descend("object"), robot.close(), robot.retreat()):
        outcome = yield from step
        if not outcome.completed:
            return outcome
    return (yield from robot.place("receptacle"))


def test_the_single_steps_do_together_what_grasp_does() -> None:
    runs = [perform(by_hand, "toy_swap", k % 4, Sampled(), k) for k in range(4)]

    assert [run.result.success for run in runs] == [True] * 4


def test_place_looks_how_a_thing_lies_in_the_hand_when_another_took_it() -> None:
    def taken_by_another(robot: Robot) -> Motion:
        yield from robot.grasp("object")
        other = Robot(action_spec(), hand=HANDS["toy"])
        return (yield from other.place("receptacle"))

    run = perform(taken_by_another)

    assert run.result.success


def test_the_robot_of_the_next_recovery_knows_how_the_last_one_took_a_thing() -> None:
    robots: list[Robot] = []

    def in_two_recoveries(first: Robot) -> Motion:
        yield from first.grasp("object")
        second = Robot(action_spec(), hand=HANDS["toy"], before=first.held)
        robots.extend((first, second))
        return (yield from second.place("receptacle"))

    run = perform(in_two_recoveries, "toy_swap")

    assert run.result.success
    first, second = robots
    assert first.held.load is not None
    assert second.held.load is first.held.load


def test_follow_ends_above_a_thing_that_was_moved() -> None:
    run = perform(lambda robot: robot.follow("object", 2.0), faults=ToyFaults(knock_at=20))
    mark = next(m for m in run.env.landmarks() if m.name == "red cube")

    assert run.outcome is not None
    assert run.outcome.completed
    assert np.linalg.norm((run.hand - mark.position)[:2]) < 0.01


def test_look_tells_how_sure_the_localizer_is() -> None:
    run = perform(lambda robot: robot.look("receptacle"))

    assert run.outcome == Outcome(True, "found the receptacle, confidence 1.00")
    assert run.ticks == []


def test_a_cube_is_pushed_along_the_table_until_it_is_near_the_plate() -> None:
    def distance(run: Run) -> float:
        marks = {m.name: m.position for m in run.env.landmarks()}
        return float(np.linalg.norm((marks["red cube"] - marks["green plate"])[:2]))

    still = perform(lambda robot: robot.hold(0.1))
    pushed = perform(lambda robot: robot.push("object"))

    assert pushed.outcome is not None
    assert distance(pushed) < distance(still) - 0.05


def test_open_and_close_tell_what_the_fingers_felt() -> None:
    def close_then_open(robot: Robot) -> Motion:
        closed = yield from robot.close()
        assert closed == Outcome(False, "closed on nothing")
        return (yield from robot.open())

    run = perform(close_then_open, eyes=False)

    assert run.outcome is not None
    assert run.outcome.completed
    assert run.opening > 0.9 * OPENING_MAX
