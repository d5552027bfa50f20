from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from toy_recoveries import fed, perform

from zetta.primitives import motions
from zetta.primitives.grasps import PIN_FINGERS
from zetta.primitives.motions import Arm
from zetta.primitives.motions_frames import (
    DOWN,
    angle_between,
    downward,
    facing,
    half_turn,
    matrix_of,
    travel_of,
    turned,
    yaw_of,
)
from zetta.primitives.motions_gripper import Grip
from zetta.primitives.motions_reach import panda_reach
from zetta.primitives.robot import Robot
from zetta.runtime.core import (
    ActionSpec,
    ArmState,
    Motion,
    Outcome,
    Proprio,
    Sense,
    read_only,
)
from zetta.runtime.errors import SpecMismatch
from zetta.sims.toy import ToySimulator, action_spec
from zetta.sims.toy_physics import HOME_QUAT
from zetta.sims.toy_tasks import TABLE_Z


def test_a_move_arrives_and_says_how_near() -> None:
    run = perform(lambda robot: robot.move_by(0.06, -0.05, -0.04), eyes=False)
    start = run.ticks[0].proprio.arms[0].ee_pos

    assert run.outcome is not None
    assert run.outcome.completed
    assert run.outcome.reason.startswith("reached the end of the move, 0.")
    np.testing.assert_allclose(run.hand - start, [0.06, -0.05, -0.04], atol=motions.WITHIN)


def test_a_move_into_the_end_of_the_reach_says_that_it_stalled_and_how_short() -> None:
    run = perform(lambda robot: robot.move_by(0.0, 0.0, 0.30), eyes=False)

    # The arm's ceiling is 10 cm above its home.
    assert run.outcome == Outcome(
        False, "stalled 20.0 cm short of the end of the move after 10.0 cm"
    )
    assert run.result.ticks < 40


def test_contact_is_felt_on_the_table() -> None:
    def down(robot: Robot) -> Motion:
        yield from robot.move_by(0.10, 0.0, 0.0)  # away from what stands on the table
        return (yield from robot.until_contact(0.0, 0.0, -0.30))

    run = perform(down, eyes=False)

    assert run.outcome is not None
    assert run.outcome.completed
    assert run.outcome.reason.startswith("contact after 22.")
    assert run.hand[2] == pytest.approx(TABLE_Z + 0.012, abs=1e-3)


def test_no_contact_in_free_air_is_no_success() -> None:
    run = perform(lambda robot: robot.until_contact(0.0, 0.05, -0.05), eyes=False)

    assert run.outcome is not None
    assert not run.outcome.completed
    assert run.outcome.reason.startswith("no contact within ")


def test_a_wall_at_once_is_contact_after_nothing() -> None:
    def twice(robot: Robot) -> Motion:
        yield from robot.move_by(0.0, 0.0, 0.2)
        return (yield from robot.until_contact(0.0, 0.0, 0.05))

    run = perform(twice, eyes=False)

    assert run.outcome == Outcome(True, "contact after 0.0 cm")


def test_turning_and_pointing_down_reach_their_orientation() -> None:
    def turn(robot: Robot) -> Motion:
        return (yield from robot.turn_by(0.6))

    run = perform(turn, eyes=False)
    quat = run.env.observe().proprio.arms[0].ee_quat

    assert run.outcome is not None
    assert run.outcome.completed
    assert yaw_of(matrix_of(quat)) == pytest.approx(0.6, abs=motions.TURN_WITHIN)


def test_a_tilted_hand_is_pointed_down_without_turning_about_the_vertical() -> None:
    env = ToySimulator().make("toy_pick", 0)
    perform_on = Arm(env.spec.action, 0, 20.0, PIN_FINGERS)
    tilted = turned(matrix_of(np.array(HOME_QUAT)), np.array([0.0, 1.0, 0.0]), 0.4)

    np.testing.assert_allclose(downward(tilted)[:, 2], DOWN, atol=1e-12)
    assert yaw_of(downward(tilted)) == pytest.approx(yaw_of(tilted), abs=1e-9)
    assert angle_between(downward(tilted), tilted) == pytest.approx(0.4, abs=1e-9)
    assert perform_on.closing is False


def test_hold_lasts_as_long_as_it_says_and_keeps_the_gripper_command() -> None:
    def close_and_hold(robot: Robot) -> Motion:
        yield from robot.close()
        return (yield from robot.hold(0.5))

    run = perform(close_and_hold, eyes=False)

    assert run.outcome == Outcome(True, "held for 0.5 s")
    assert [tick.action[6] for tick in run.ticks[-10:]] == [1.0] * 10


def test_every_motion_without_eyes_ends_within_its_bound() -> None:
    """Fed forever with the same sense, as by an arm that does not move at all."""
    robot = Robot(action_spec(), hand=PIN_FINGERS)
    state = ArmState(np.array([0.0, 0.0, 0.5]), np.array(HOME_QUAT), np.zeros(5), 0.05)
    sense = Sense(Proprio(0.0, (state,)))
    outcomes = [
        fed(motion, sense)
        for motion in (
            robot.move_by(0.1, 0.0, 0.0),
            robot.turn_by(1.0),
            robot.retreat(),
            robot.open(),
            robot.close(),
            robot.until_contact(0.0, 0.1, 0.0),
        )
    ]

    assert [outcome.completed for outcome in outcomes] == [False] * 4 + [True, True]
    assert "stalled 10.0 cm short" in outcomes[0].reason
    assert "57 degrees" in outcomes[1].reason
    assert outcomes[5].reason == "contact after 0.0 cm"


@pytest.mark.parametrize(("scale", "closes"), [(0.05, 1.0), (0.02, -1.0)])
def test_actions_follow_the_declared_scale_and_gripper_sign(scale: float, closes: float) -> None:
    spec = replace(
        action_spec(),
        scale=(scale,) * 3 + (0.5,) * 3 + (1.0,),
        gripper_open=-closes,
        gripper_close=closes,
    )
    arm = Arm(spec, 0, 20.0, PIN_FINGERS)
    state = ArmState(np.zeros(3), np.array(HOME_QUAT), np.zeros(5), 0.03)
    sense = Sense(Proprio(0.0, (state,)))
    start = arm.start()
    next(start)
    with pytest.raises(StopIteration):
        start.send(sense)
    action = next(arm.toward(np.array([0.01, 0.0, 0.0]), arm.rotation))

    assert isinstance(action, np.ndarray)
    assert action[0] == pytest.approx(min(1.0, 1.5 * 0.01 / scale))
    assert action[6] == closes, "half closed fingers hold what they hold"


def test_actions_in_another_frame_or_without_poses_are_refused() -> None:
    joints = ActionSpec("joint_position", ("a",) * 7, (-1.0,) * 7, (1.0,) * 7, (1.0,) * 7)

    with pytest.raises(SpecMismatch, match="in the world frame, the actions are in 'tool'"):
        Arm(replace(action_spec(), frame="tool"), 0, 20.0, PIN_FINGERS)
    with pytest.raises(SpecMismatch, match="no conversion"):
        Arm(joints, 0, 20.0, PIN_FINGERS)


def opened(*openings: float) -> list[bool]:
    """Feed openings to a grip that began with the first; return when it counts as lost."""
    arm = Arm(action_spec(), 0, 20.0, PIN_FINGERS)

    def feel(opening: float) -> None:
        state = ArmState(np.zeros(3), np.array(HOME_QUAT), np.zeros(5), opening)
        arm.sense = Sense(Proprio(0.0, (state,)))

    feel(openings[0])
    grip = Grip(arm)
    lost = []
    for opening in openings[1:]:
        feel(opening)
        lost.append(grip.lost())
    return lost


def test_one_low_reading_is_no_loss_and_a_lasting_one_is() -> None:
    assert opened(0.05, 0.0, 0.05, 0.049) == [False] * 3
    assert opened(0.05, 0.02, 0.01, 0.005) == [False, False, True]


def test_a_thin_rim_that_settles_in_the_fingers_is_still_held() -> None:
    assert opened(0.009, 0.006, 0.005, 0.0045, 0.0044, 0.0044) == [False] * 5
    assert opened(0.009, 0.001, 0.001, 0.001) == [False, False, True]


@pytest.mark.parametrize("yaw", [0.0, 0.3, -1.2, math.pi / 2])
def test_yaw_and_travel_of_a_downward_hand_agree(yaw: float) -> None:
    rotation = facing(travel_of(yaw), DOWN)

    assert np.linalg.det(rotation) == pytest.approx(1.0)
    assert yaw_of(rotation) == pytest.approx(yaw)
    assert yaw_of(facing(-travel_of(yaw), DOWN)) == pytest.approx(half_turn(yaw))


def test_the_reach_of_a_panda_follows_from_its_joints_and_not_from_its_base() -> None:
    # Home of the robot in LIBERO; the wrist of a downward hand is 20.4 cm over the grip site.
    joints = read_only([0.0, -0.161, 0.0, -2.44459747, 0.0, 2.2267522, math.pi / 4])
    quat = read_only(Rotation.from_matrix(facing(travel_of(0.0), DOWN)).as_quat())
    here = panda_reach(ArmState(read_only([0.0, 0.0, 1.0]), quat, joints, 0.08))
    there = panda_reach(ArmState(read_only([0.3, 0.2, 0.7]), quat, joints, 0.08))

    assert here.wrist[2] == pytest.approx(1.0 + 0.204, abs=0.01)
    np.testing.assert_allclose(there.wrist - here.wrist, [0.3, 0.2, -0.3], atol=1e-9)
    np.testing.assert_allclose(there.shoulder - here.shoulder, [0.3, 0.2, -0.3], atol=1e-9)


def test_the_reach_of_a_panda_is_not_read_from_another_arm() -> None:
    with pytest.raises(SpecMismatch, match="a Panda has 7 joints and this arm reports 5"):
        panda_reach(ArmState(np.zeros(3), np.array(HOME_QUAT), np.zeros(5), 0.05))


def test_a_straight_panda_is_not_stretched_further_but_may_go_sideways() -> None:
    joints = read_only([0.0, 0.6, 0.0, -0.45, 0.0, 1.5, math.pi / 4])
    quat = read_only(Rotation.from_matrix(facing(travel_of(0.0), DOWN)).as_quat())
    reach = panda_reach(ArmState(read_only([0.0, 0.0, 1.0]), quat, joints, 0.08))
    outward = reach.wrist - reach.shoulder
    outward /= np.linalg.norm(outward)
    sideways = np.cross(outward, [0.0, 0.0, 1.0])

    assert float(np.linalg.norm(reach.wrist - reach.shoulder)) > 0.68
    assert float(reach.bent(0.03 * outward) @ outward) <= 0.0
    np.testing.assert_allclose(
        reach.bent(0.03 * sideways) @ sideways, 0.03 * np.linalg.norm(sideways) ** 2
    )
