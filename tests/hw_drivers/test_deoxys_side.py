"""A deoxys arm behind the arm server: the same link, leases and latched stop as any other arm."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TypeAlias

import numpy as np
import pytest

from tests.hw_drivers.arm_parts import served
from tests.hw_drivers.test_deoxys_session import TICK_S, WITHIN_S, open_session, until
from zetta.hw_drivers.arm import JointTarget, PoseTarget, RobotSide
from zetta.hw_drivers.deoxys.messages import Grasp, Move
from zetta.hw_drivers.deoxys.point_franka import PointFranka
from zetta.hw_drivers.deoxys.robot_side import DeoxysRobotSide
from zetta.hw_drivers.deoxys.side import STEP_M, DeoxysSide
from zetta.hw_drivers.zmq_arm import ZmqArm
from zetta.runtime.core import read_only
from zetta.runtime.errors import SafetyStop, SpecMismatch

Rig: TypeAlias = tuple[DeoxysSide, DeoxysRobotSide, PointFranka]


@pytest.fixture
def rig() -> Iterator[Rig]:
    body = PointFranka()
    robot = DeoxysRobotSide(body, tick_s=TICK_S)
    session = open_session(robot)
    robot.follow(session.command_endpoint, session.gripper_endpoint)
    robot.start()
    try:
        session.connect(WITHIN_S)
        side = DeoxysSide(session, "franka-1")
        _is_a_robot_side(side)
        yield side, robot, body
    finally:
        session.close()
        robot.close()


def _is_a_robot_side(side: RobotSide) -> None:
    """The type checker compares them where this is called."""


def target(side: DeoxysSide, dx: float, opening: float = 0.08) -> PoseTarget:
    seen = side.read()
    return PoseTarget(read_only(seen.ee_pos + np.array((dx, 0.0, 0.0))), seen.ee_quat, opening)


def test_a_far_target_is_approached_in_steps_and_reached(rig: Rig) -> None:
    side, _, body = rig
    assert side.facts.gripper_max == pytest.approx(0.08)
    far = target(side, 0.2)

    def there() -> bool:
        side.send(far)
        seen = side.read()
        return seen.mode == "moving" and bool(np.allclose(seen.ee_pos, far.ee_pos, atol=1e-3))

    until(there, "the arm to arrive")
    assert np.allclose(np.abs(side.read().ee_quat), np.abs(far.ee_quat), atol=1e-6)
    first = body.commands[0].motion.goal.values  # type: ignore[union-attr]
    assert first[0] <= 0.4 + STEP_M + 1e-6


def test_a_hold_keeps_the_place_and_the_control_alive(rig: Rig) -> None:
    side, robot, body = rig
    side.hold()
    assert body.commands == []  # an arm that was never moved is left alone
    side.send(target(side, 0.02))
    until(lambda: robot.begun == 1, "the control to begin")
    side.hold()
    goal = side._goal
    told = len(body.commands)
    until(lambda: side.hold() is None and len(body.commands) > told + 25, "many ticks of holding")
    assert side._goal is goal


def test_small_openings_grasp_and_wider_ones_move(rig: Rig) -> None:
    side, _, body = rig
    side.send(target(side, 0.01, opening=0.04))
    until(lambda: body.fingers == [Move(0.04)], "the fingers to be told")

    def grasped() -> bool:
        side.send(target(side, 0.0, opening=0.0))
        return body.fingers[-1] == Grasp()

    until(grasped, "the grasp")
    assert body.fingers == [Move(0.04), Grasp()]


def test_a_stop_is_one_termination_and_stays_until_it_is_cleared(rig: Rig) -> None:
    side, robot, _ = rig
    side.send(target(side, 0.03))
    until(lambda: robot.begun == 1, "the control to begin")
    for _ in range(50):  # the server says it in every turn
        side.stop()
    until(lambda: not robot.running, "the control to end")
    assert side.read().mode == "stopped"
    assert "server of the arm" in side.read().reason
    with pytest.raises(SafetyStop):
        side.send(target(side, 0.01))
    side.hold()
    side.clear()
    before = robot.begun

    def again() -> bool:
        side.send(target(side, 0.01))
        return robot.begun > before

    until(again, "the control to begin again")


def test_a_reflex_is_a_stop_that_is_not_cleared_while_it_lasts(rig: Rig) -> None:
    side, _, body = rig
    side.send(target(side, 0.03))
    body.reflex()
    until(lambda: side.read().mode == "stopped", "the reflex")
    assert "cartesian reflex" in side.read().reason
    with pytest.raises(SafetyStop, match="cartesian reflex"):
        side.send(target(side, 0.01))
    side.stop()
    with pytest.raises(SafetyStop, match="still reports"):
        side.clear()
    body.recover()
    until(lambda: side._session.state().mode == "idle", "the recovery")
    side.clear()
    assert side.read().reason == ""


def test_a_whole_link_of_ours_drives_it_and_stops_it(rig: Rig) -> None:
    side, robot, _ = rig
    with served(side) as running, contextlib.closing(ZmqArm(running.url)) as arm:
        assert arm.connect(WITHIN_S).model == "Franka behind deoxys"
        start = arm.state(WITHIN_S)
        goal = PoseTarget(read_only(start.ee_pos + np.array((0.0, 0.0, -0.1))), start.ee_quat, 0.08)

        def there() -> bool:
            arm.command(goal, ttl_s=1.0)
            return bool(np.allclose(arm.state(WITHIN_S).ee_pos, goal.ee_pos, atol=2e-3))

        until(there, "the arm to arrive")
        arm.stop("enough")
        until(lambda: not robot.running, "the control to end")
        until(lambda: arm.state(WITHIN_S).mode == "stopped", "the stop to be reported")


def test_joint_targets_are_refused(rig: Rig) -> None:
    side, _, _ = rig
    with pytest.raises(SpecMismatch, match="pose targets"):
        side.send(JointTarget(read_only([0.0] * 7), 0.08))
