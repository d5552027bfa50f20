from __future__ import annotations

import math

import numpy as np
import pytest
from twin_parts import NEEDS, hand_at, take_and_lift

from zetta.hw_drivers.arm import JointTarget
from zetta.hw_drivers.twin.scene import arm_model
from zetta.hw_drivers.twin.things import AREA_HIGH, AREA_LOW, THINGS, places
from zetta.hw_drivers.twin.world import HOME_POS, HOME_QUAT, TwinWorld
from zetta.primitives.motions_reach import panda_reach
from zetta.runtime.core import ArmState, Array
from zetta.runtime.errors import ConfigError, SpecMismatch

pytestmark = NEEDS


@pytest.fixture(scope="module")
def world() -> TwinWorld:
    return TwinWorld()


def place(world: TwinWorld) -> Array:
    return world.reading(0.0).ee_pos


def test_things_stand_apart_and_within_the_area_for_every_seed() -> None:
    for seed in range(40):
        drawn = places(seed)
        for name, one in drawn.items():
            assert AREA_LOW[0] <= one.x <= AREA_HIGH[0]
            assert AREA_LOW[1] <= one.y <= AREA_HIGH[1]
            for other, two in drawn.items():
                gap = THINGS[name].room + THINGS[other].room
                assert name == other or math.hypot(one.x - two.x, one.y - two.y) > gap + 0.04


def test_a_negative_seed_is_refused(world: TwinWorld) -> None:
    with pytest.raises(ConfigError, match="0 or greater"):
        world.set_scene(-1)


def test_a_scene_begins_with_the_hand_at_home_and_everything_at_rest(world: TwinWorld) -> None:
    world.set_scene(4)
    before = world.truth()
    np.testing.assert_allclose(place(world), HOME_POS, atol=1e-4)
    world.advance(0.5)
    for name, pose in world.truth().items():
        np.testing.assert_allclose(pose.pos, before[name].pos, atol=1e-4)
        assert pose.pos[2] == pytest.approx(THINGS[name].size[2] / 2.0, abs=1e-3)


def test_equal_orders_give_equal_states_bit_by_bit(world: TwinWorld) -> None:
    def run(one: TwinWorld) -> bytes:
        one.set_scene(1)
        for k in range(6):
            one.target(hand_at((0.45, 0.02 * k, 0.25 - 0.02 * k), 0.01 * k))
            one.advance(0.05)
        return one.state().tobytes()

    first = run(world)
    assert run(world) == first
    assert run(TwinWorld(9)) == first


def test_a_state_that_is_taken_up_again_goes_on_as_it_would_have(world: TwinWorld) -> None:
    world.set_scene(2)
    world.target(hand_at((0.5, 0.1, 0.2), 0.02))
    world.advance(0.1)
    kept = world.state()
    world.advance(0.2)
    onward = world.state().tobytes()
    world.restore(2, kept)
    world.advance(0.2)
    assert world.state().tobytes() == onward
    with pytest.raises(SpecMismatch, match="not one of this twin"):
        world.restore(2, kept[:-1])


def test_a_step_of_five_centimetres_is_gone_in_three_tenths_of_a_second(world: TwinWorld) -> None:
    world.set_scene(0)
    goal = np.array(HOME_POS) + np.array([0.03, 0.04, 0.0])
    world.target(hand_at(goal))
    world.advance(0.3)
    assert np.linalg.norm(place(world) - goal) < 2e-3
    world.advance(1.0)
    assert np.linalg.norm(place(world) - goal) < 1e-4
    np.testing.assert_allclose(np.abs(world.reading(0.0).ee_quat), np.abs(HOME_QUAT), atol=1e-3)


def test_joint_targets_are_followed_too(world: TwinWorld) -> None:
    world.set_scene(0)
    goal = world.home + np.array([0.2, 0.1, -0.1, 0.1, 0.1, -0.1, 0.3])
    world.target(JointTarget(goal, 0.03))
    world.advance(1.5)
    reading = world.reading(0.0)
    np.testing.assert_allclose(reading.joint_pos, goal, atol=2e-3)
    assert reading.gripper_opening == pytest.approx(0.03, abs=2e-3)


def test_what_is_out_of_reach_is_approached_and_left_again(world: TwinWorld) -> None:
    world.set_scene(0)
    model = arm_model()
    for far in ((1.3, 0.0, 0.5), (0.5, 0.9, 0.6), (-0.6, 0.1, 0.4)):
        world.target(hand_at(far))
        for _ in range(40):
            world.advance(0.05)
            reading = world.reading(0.0)
            assert (reading.joint_pos > model.low - 0.01).all()
            assert (reading.joint_pos < model.high + 0.01).all()
        world.target(hand_at(HOME_POS))
        world.advance(4.0)
        assert np.linalg.norm(place(world) - HOME_POS) < 2e-3, far


def test_a_target_below_the_table_presses_and_does_not_shake(world: TwinWorld) -> None:
    world.set_scene(0)
    world.target(hand_at((0.34, 0.0, -0.2), 0.0))
    world.advance(2.5)
    first = place(world)
    world.advance(0.5)
    assert np.linalg.norm(place(world) - first) < 1e-3
    assert 0.0 < first[2] < 0.02


def test_a_cube_is_taken_and_held(world: TwinWorld) -> None:
    world.set_scene(3)
    lifted = take_and_lift(world, "red cube", 0.10)
    assert lifted[2] > 0.11
    assert world.touches_hand("red cube")
    assert not world.touches_hand("green cube")
    assert world.reading(0.0).gripper_opening == pytest.approx(0.045, abs=2e-3)
    world.advance(2.0)
    assert np.linalg.norm(world.truth()["red cube"].pos - lifted) < 1e-3
    assert world.speed_of("red cube") < 1e-2


def test_stuck_fingers_stay_where_they_are(world: TwinWorld) -> None:
    world.set_scene(0)
    world.stuck_gripper = True
    world.target(hand_at(HOME_POS, 0.0))
    world.advance(0.6)
    assert world.reading(0.0).gripper_opening == pytest.approx(0.08, abs=1e-3)
    world.stuck_gripper = False
    world.target(hand_at(HOME_POS, 0.0))
    world.advance(0.6)
    assert world.reading(0.0).gripper_opening < 2e-3


def test_the_conventions_are_those_of_the_panda_that_skills_know(world: TwinWorld) -> None:
    world.set_scene(0)
    reading = world.reading(0.0)
    state = ArmState(reading.ee_pos, reading.ee_quat, reading.joint_pos, reading.gripper_opening)
    # The skill's own table of the arm finds the shoulder where the base says that it is.
    np.testing.assert_allclose(panda_reach(state).shoulder, (0.0, 0.0, 0.333), atol=5e-3)


def test_the_kinematics_that_are_told_are_those_that_move(world: TwinWorld) -> None:
    import mujoco

    world.set_scene(0)
    world.target(hand_at((0.5, -0.2, 0.15), yaw=0.5))
    world.advance(1.0)
    reading, told = world.reading(0.0), arm_model()
    model = mujoco.MjModel.from_xml_string(told.mjcf)
    data = mujoco.MjData(model)
    data.qpos[:] = reading.joint_pos
    mujoco.mj_kinematics(model, data)
    np.testing.assert_allclose(data.site(told.site).xpos, reading.ee_pos, atol=1e-5)
    quat = np.zeros(4)
    mujoco.mju_mat2Quat(quat, data.site(told.site).xmat)
    assert abs(np.roll(quat, -1) @ reading.ee_quat) == pytest.approx(1.0, abs=1e-6)
