"""Whole sessions of deoxys against the twin: it does what is commanded on the wire."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

pytest.importorskip("mujoco", reason="needs MuJoCo (pip install 'zetta[libero]')")
pytest.importorskip("robosuite", reason="needs robosuite (pip install 'zetta[libero]')")

from tests.hw_drivers.twin.wire_parts import TICK_S, FrankaWire, apart
from zetta.hw_drivers.arm import ArmReading, PoseTarget
from zetta.hw_drivers.deoxys.arm_codec import command_bytes
from zetta.hw_drivers.deoxys.conventions import delta_goal, gripper_of, joint_goal
from zetta.hw_drivers.deoxys.gripper_codec import gripper_bytes
from zetta.hw_drivers.deoxys.messages import (
    ArmCommand,
    CartesianGoal,
    CartesianVelocity,
    Controller,
    GripperControl,
    Homing,
    JointGoal,
    JointImpedance,
    JointPosition,
    Motion,
    Move,
    NoControl,
    Osc,
    RobotMode,
    Stop,
)
from zetta.hw_drivers.deoxys.robot_side import EMPTY_TICKS, FrankaBody
from zetta.hw_drivers.deoxys.side import DeoxysSide
from zetta.hw_drivers.deoxys.state_codec import read_state, state_bytes
from zetta.hw_drivers.frames import Pose, product, rotation, rotation_vector
from zetta.hw_drivers.twin.world import HOME_POS, HOME_QUAT, TwinWorld
from zetta.runtime.core import Array
from zetta.runtime.errors import SafetyStop

HOME = np.array(HOME_POS)
DOWN = np.array(HOME_QUAT)


@pytest.fixture(scope="module")
def world() -> TwinWorld:
    return TwinWorld()


@pytest.fixture
def wire(world: TwinWorld) -> Iterator[FrankaWire]:
    world.set_scene(0)
    made = FrankaWire(world)
    _is_a_body(made.body)
    yield made
    made.close()


def _is_a_body(body: FrankaBody) -> None:
    """The type checker compares them where this is called."""


def by(*way: float) -> Array:
    return np.array(way)


def absolute(pos: Array, quat: Array = DOWN) -> Osc:
    return Osc(CartesianGoal((*pos.tolist(), *rotation_vector(quat).tolist()), is_delta=False))


def drive(wire: FrankaWire, motion: Motion, ticks: int) -> None:
    wire.ticks(lambda: wire.session.move(motion), ticks)


def reach(wire: FrankaWire, pos: Array, quat: Array = DOWN) -> None:
    """Command one pose at every tick until the twin itself is there."""

    def there(seen: ArmReading) -> bool:
        return apart(seen, pos, quat) < (2e-3, 0.1) and apart(seen, pos, quat)[1] < 0.01

    seen = wire.ticks(lambda: wire.session.move(absolute(pos, quat)), 60, there)
    assert there(seen), apart(seen, pos, quat)


def stands(wire: FrankaWire) -> Array:
    """See that the arm comes to rest and does not move any more; return where."""
    place = wire.lets(0.6).ee_pos
    assert wire.lets(0.2).ee_pos == pytest.approx(place, abs=5e-4)
    return place


def test_the_hand_goes_to_every_pose_that_the_wire_asks_for(wire: FrankaWire) -> None:
    wire.use(Controller.OSC_POSE)
    for shift, turn in (
        ((0.05, 0.0, -0.05), (0.0, 0.0, 0.0)),
        ((0.1, 0.12, -0.08), (0.0, 0.0, 0.5)),
        ((0.0, -0.1, 0.05), (0.15, -0.1, -0.4)),
        ((0.0, 0.0, 0.0), (0.0, 0.0, 0.0)),
    ):
        pos, quat = HOME + by(*shift), product(rotation(np.array(turn)), DOWN)
        reach(wire, pos, quat)
        seen, told = wire.world.reading(0.0), wire.session.state()
        # What the wire tells is what the twin measures, and not its transpose.
        assert apart(seen, told.ee_pos, told.ee_quat) == pytest.approx((0.0, 0.0), abs=4e-3)
        assert told.joint_pos == pytest.approx(seen.joint_pos, abs=4e-3)
        assert told.mode == "moving"
    assert wire.body.followed > 30
    assert wire.body.ignored == 0
    assert not wire.robot.refused


def test_displacements_are_those_of_the_wire_in_the_base_frame(wire: FrankaWire) -> None:
    wire.use(Controller.OSC_POSE)
    drive(wire, Osc(delta_goal((0.2, 0, 0, 0, 0, 0))), 10)
    ahead = wire.lets(0.3).ee_pos - HOME
    assert 0.02 < ahead[0] <= 0.1 + 1e-3  # ten times at most 1 cm, less what it lags behind
    assert np.abs(ahead[1:]).max() < 4e-3
    drive(wire, Osc(delta_goal((0, 0, 0, 0, 0, 0.2))), 5)
    seen = wire.lets(0.3)
    turned = rotation_vector(product(seen.ee_quat, DOWN * np.array((-1.0, -1.0, -1.0, 1.0))))
    assert turned[2] > 0.1
    assert np.abs(turned[:2]).max() < 0.03


def test_two_of_the_controllers_turn_less_than_they_are_asked_to(wire: FrankaWire) -> None:
    leaning = product(rotation(np.array((0.2, 0.0, 0.3))), DOWN)
    wire.use(Controller.OSC_POSITION)
    drive(wire, absolute(HOME + by(0.0, 0.05, 0.0), leaning), 30)
    assert apart(wire.world.reading(0.0), HOME + by(0.0, 0.05, 0.0), DOWN)[1] < 0.02
    wire.use(Controller.OSC_YAW)
    yaw = Osc(CartesianGoal((*HOME.tolist(), 0.2, 0.0, 0.3), is_delta=False))
    drive(wire, yaw, 30)
    upright = product(rotation(np.array((0.0, 0.0, 0.3))), DOWN)
    assert apart(wire.world.reading(0.0), HOME, upright) == pytest.approx((0.0, 0.0), abs=5e-3)


@pytest.mark.parametrize("controller", [Controller.JOINT_POSITION, Controller.JOINT_IMPEDANCE])
def test_joint_goals_reach_the_joints_in_radians(wire: FrankaWire, controller: Controller) -> None:
    kind = JointPosition if controller is Controller.JOINT_POSITION else JointImpedance
    wire.session.use(controller)
    q = wire.world.home + np.array((0.2, -0.1, 0.1, 0.15, -0.2, 0.1, 0.3))
    drive(wire, kind(joint_goal(q.tolist())), 40)
    assert wire.world.reading(0.0).joint_pos == pytest.approx(q, abs=5e-3)
    drive(wire, kind(JointGoal((0.1, *[0.0] * 6), is_delta=True)), 1)
    assert wire.lets(0.5).joint_pos[0] == pytest.approx(q[0] + 0.1, abs=5e-3)


def test_a_velocity_goes_on_until_the_next_command(wire: FrankaWire) -> None:
    wire.use(Controller.CARTESIAN_VELOCITY)
    up = CartesianVelocity(CartesianGoal((0.0, 0.0, 0.05, 0.0, 0.0, 0.0)))
    drive(wire, up, 16)
    risen = wire.world.reading(0.0).ee_pos - HOME
    assert risen[2] == pytest.approx(0.05, abs=0.01)
    assert np.abs(risen[:2]).max() < 5e-3


def test_silence_ends_the_control_after_twenty_ticks_and_the_arm_stands(wire: FrankaWire) -> None:
    wire.use(Controller.OSC_POSE)
    drive(wire, absolute(HOME + by(0.0, 0.2, 0.0)), 3)
    wire.lets(TICK_S * (EMPTY_TICKS - 1))
    assert wire.robot.running
    wire.lets(TICK_S)
    assert not wire.robot.running
    stands(wire)
    assert wire.session.state().mode == "idle"
    reach(wire, HOME)
    assert wire.robot.begun == 2


def test_a_stop_ends_the_motion_where_it_is(wire: FrankaWire) -> None:
    wire.use(Controller.OSC_POSE)
    drive(wire, absolute(HOME + by(0.0, 0.3, 0.0)), 3)
    wire.ticks(lambda: wire.session.stop("enough"))
    assert 0.01 < stands(wire)[1] < 0.25
    with pytest.raises(SafetyStop, match="enough"):
        wire.session.move(absolute(HOME))
    wire.session.recovered_by("Ada")
    wire.use(Controller.OSC_POSE)
    reach(wire, HOME)


@pytest.mark.parametrize("event", ["reflex", "press_stop"])
def test_an_arm_that_has_stopped_itself_follows_nothing_until_it_is_recovered(
    wire: FrankaWire, event: str
) -> None:
    wire.use(Controller.OSC_POSE)
    drive(wire, absolute(HOME + by(0.0, 0.3, 0.0)), 4)
    getattr(wire.body, event)()
    place = stands(wire)
    with pytest.raises(SafetyStop):
        wire.session.move(absolute(HOME))
    # A client that does not look goes on commanding, and the arm does not move all the same.
    raw = command_bytes(ArmCommand(Controller.OSC_POSE, absolute(HOME)))
    wire.ticks(lambda: wire.session._out.send(raw), 5)
    assert wire.body.ignored == 5
    assert wire.lets(0.3).ee_pos == pytest.approx(place, abs=2e-3)
    with pytest.raises(SafetyStop, match="still reports"):
        wire.session.recovered_by("Ada")
    wire.body.recover()
    wire.lets(0.05)
    wire.session.recovered_by("Ada")
    wire.use(Controller.OSC_POSE)
    reach(wire, HOME)


# ------------------------------------------------------------------------------- fingers


def test_the_fingers_go_where_they_are_told_at_their_speed(wire: FrankaWire) -> None:
    wire.session.gripper(Move(0.04, 0.1))
    assert wire.grips(0.2).gripper_opening == pytest.approx(0.06, abs=0.012)
    assert wire.lets(1.0).gripper_opening == pytest.approx(0.04, abs=1e-3)
    assert wire.session.gripper_arrived
    assert not wire.session.held
    wire.session.gripper(gripper_of(1.0))
    assert wire.grips().gripper_opening == pytest.approx(0.0, abs=2e-3)
    wire.session.gripper(gripper_of(-1.0))
    assert wire.grips().gripper_opening == pytest.approx(0.08, abs=1e-3)
    seen = wire.world.reading(0.0)
    assert apart(seen, HOME, DOWN) == pytest.approx((0.0, 0.0), abs=2e-3)  # the arm stood still


def lifted(wire: FrankaWire) -> tuple[str, float]:
    """Take hold of a thing and lift it; return its name and its height."""
    name = "red cube"
    pose = wire.world.truth()[name]
    yaw = 2.0 * np.arctan2(pose.quat[2], pose.quat[3])
    yaw = (yaw + np.pi / 4) % (np.pi / 2) - np.pi / 4  # it looks the same after a quarter turn
    hand = product(rotation(np.array((0.0, 0.0, yaw))), DOWN)
    wire.use(Controller.OSC_POSE)
    reach(wire, pose.pos + by(0.0, 0.0, 0.1), hand)
    reach(wire, pose.pos, hand)
    wire.session.gripper(gripper_of(1.0))
    wire.grips(0.8)
    reach(wire, pose.pos + by(0.0, 0.0, 0.12), hand)
    return name, float(wire.world.truth()[name].pos[2])


def test_a_thing_is_held_until_the_controller_is_changed_as_the_published_client_does(
    wire: FrankaWire,
) -> None:
    name, height = lifted(wire)
    assert height > 0.08
    state = wire.session.state()
    assert state.holding
    assert state.gripper_opening > 0.01
    with pytest.raises(SafetyStop, match="put it down first"):
        wire.use(Controller.JOINT_IMPEDANCE)
    for dropping in (Stop(), Homing()):
        with pytest.raises(SafetyStop, match="by opening"):
            wire.session.gripper(dropping)
    wire.lets(0.2)
    assert wire.world.truth()[name].pos[2] == pytest.approx(height, abs=5e-3)
    # The published client opens the gripper at every change of its controller, then idles.
    wire.session._fingers_out.send(gripper_bytes(GripperControl(Move(0.08))))
    wire.session._out.send(command_bytes(ArmCommand(Controller.NO_CONTROL, NoControl())))
    wire.grips()
    assert wire.world.truth()[name].pos[2] < 0.06


def test_a_stop_leaves_the_fingers_alone_and_a_stop_of_the_gripper_opens_them(
    wire: FrankaWire,
) -> None:
    name, height = lifted(wire)
    wire.ticks(lambda: wire.session.stop("enough"))
    wire.lets(0.6)
    assert wire.world.truth()[name].pos[2] == pytest.approx(height, abs=1e-2)
    # As published, the gripper program takes a stop for a homing.
    wire.session._fingers_out.send(gripper_bytes(GripperControl(Stop())))
    wire.grips(1.0)
    assert wire.world.truth()[name].pos[2] < 0.06


# --------------------------------------------------------------------------------- border


def test_the_pose_on_the_wire_is_column_after_column(wire: FrankaWire) -> None:
    state = read_state(state_bytes(wire.body.state()))
    seen = wire.world.reading(0.0)
    matrix = np.array(state.O_T_EE).reshape(4, 4).T
    assert matrix[:3, 3] == pytest.approx(seen.ee_pos)
    assert state.O_T_EE[12:15] == pytest.approx(tuple(seen.ee_pos))
    assert matrix == pytest.approx(Pose(seen.ee_pos, seen.ee_quat).transform(), abs=1e-9)
    assert state.mode is RobotMode.IDLE


def test_velocities_and_clock_are_those_of_the_twin(wire: FrankaWire) -> None:
    wire.use(Controller.JOINT_IMPEDANCE)
    q = wire.world.home + np.array((0.3, *[0.0] * 6))
    drive(wire, JointImpedance(joint_goal(q.tolist())), 2)
    moving = wire.body.state()
    assert 0.1 < moving.dq[0] < 2.5
    wire.lets(1.0)
    later = wire.body.state()
    assert later.time_s - moving.time_s == pytest.approx(1.0, abs=0.02)
    assert abs(later.dq[0]) < 0.05


def test_behind_our_side_it_takes_poses_as_any_arm(wire: FrankaWire) -> None:
    side = DeoxysSide(wire.session, "franka-twin")
    goal = PoseTarget(HOME + by(0.1, -0.1, -0.1), DOWN, 0.08)
    wire.ticks(lambda: side.send(goal), 60)
    assert apart(wire.world.reading(0.0), goal.ee_pos, goal.ee_quat)[0] < 4e-3
    assert side.read().ee_pos == pytest.approx(goal.ee_pos, abs=4e-3)
    wire.ticks(side.hold, 5)
    place = wire.world.reading(0.0).ee_pos
    wire.ticks(side.hold, 10)
    assert wire.world.reading(0.0).ee_pos == pytest.approx(place, abs=1e-3)
