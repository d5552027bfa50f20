"""A LeKiwi behind the arm server: joint targets, a hold of its own, poses by a chain."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pytest

from tests.hw_drivers.arm_parts import served
from tests.hw_drivers.chain_parts import write_five
from tests.hw_drivers.test_lekiwi_session import until
from zetta.hw_drivers.arm import JointTarget, PoseTarget, RobotSide
from zetta.hw_drivers.kinematic_side import KinematicSide
from zetta.hw_drivers.lekiwi.host import LekiwiHost, PointLekiwi
from zetta.hw_drivers.lekiwi.messages import SO_ARM
from zetta.hw_drivers.lekiwi.session import LekiwiSession
from zetta.hw_drivers.lekiwi.side import LekiwiArm, LekiwiSide
from zetta.hw_drivers.zmq_arm import ZmqArm, clear_stop
from zetta.runtime import registry
from zetta.runtime.core import read_only
from zetta.runtime.errors import ConfigError, ConnectionLost, SpecMismatch, Timeout

WITHIN_S = 10.0
GOAL = JointTarget(read_only([0.4, -0.3, 0.2, 0.1, -0.2]), 0.035)
Rig: TypeAlias = tuple[LekiwiSide, LekiwiHost, PointLekiwi]


@pytest.fixture
def rig() -> Iterator[Rig]:
    body = PointLekiwi()
    host = LekiwiHost(body)
    session = LekiwiSession(host.command_endpoint, host.observation_endpoint, max_age_s=5.0)
    host.start()
    try:
        session.connect(WITHIN_S)
        side = LekiwiSide(session, LekiwiArm("lekiwi-1"))
        _is_a_robot_side(side)
        yield side, host, body
    finally:
        session.close()
        host.close()


def _is_a_robot_side(side: RobotSide) -> None:
    """The type checker compares them where this is called."""


def reach(side: LekiwiSide, goal: JointTarget) -> None:
    def there() -> bool:
        side.send(goal)
        seen = side.read()
        gripped = abs(seen.gripper_opening - goal.gripper_opening) < 1e-3
        return gripped and bool(np.allclose(seen.joint_pos, goal.joint_pos, atol=1e-3))

    until(there, "the arm to arrive")


def test_a_far_joint_target_is_approached_in_steps_and_reached(rig: Rig) -> None:
    side, _, body = rig
    assert side.facts.accepts == ("joints",)
    reach(side, GOAL)
    seen = side.read()
    assert seen.mode == "moving"
    assert seen.gripper_opening == pytest.approx(0.035, abs=1e-3)
    assert np.isnan(seen.ee_pos).all()  # the wire does not tell, so nothing is claimed
    before = np.zeros(5)
    for row in body.commands:
        assert np.abs(np.array(row.joints) - before).max() <= math.radians(10.0) + 0.2
        assert row.base == (0.0, 0.0, 0.0)
        before = np.array(row.joints)
    assert body.driven_m == 0.0


def test_the_wire_carries_degrees_and_hundredths_and_the_side_radians_and_metres(rig: Rig) -> None:
    side, host, _ = rig
    reach(side, GOAL)
    raw = host._body.row()
    assert raw.joints[0] == pytest.approx(0.4, abs=1e-3)
    assert raw.gripper == pytest.approx(0.5, abs=2e-2)
    assert side.read().joint_pos[0] == pytest.approx(0.4, abs=1e-3)


def test_the_speed_of_the_gripper_is_told_between_two_observations_too(rig: Rig) -> None:
    side, _, _ = rig
    shut = JointTarget(read_only([0.0] * 5), 0.0)

    def told_twice() -> bool:
        side.send(shut)
        first, second = side.read(), side.read()
        return first.t == second.t and first.gripper_velocity == second.gripper_velocity < 0.0

    until(told_twice, "one observation that is looked at twice while the gripper closes")


def test_a_hold_keeps_the_place_where_it_began(rig: Rig) -> None:
    side, _, body = rig
    side.hold()
    assert body.commands == []  # an arm that was never moved is left alone
    side.send(GOAL)
    until(lambda: bool(body.commands), "the command")
    side.hold()
    place = side._place
    assert place is not None

    def kept() -> bool:
        side.hold()
        return len(body.commands) > 4 and body.commands[-1].joints == pytest.approx(place.joints)

    until(kept, "the host is told the place again and again")
    assert side.read().mode == "holding"
    assert side._place is place


def test_a_stop_lasts_until_it_is_cleared(rig: Rig) -> None:
    side, _, body = rig
    side.send(GOAL)
    side.stop()
    side.send(GOAL)
    side.hold()
    assert side.read().mode == "stopped"
    place = side._place
    assert place is not None
    told = len(body.commands)
    until(lambda: side.stop() is None and len(body.commands) > told + 2, "the place is repeated")
    assert body.commands[-1].joints == pytest.approx(place.joints)
    side.clear()
    assert side.read().mode == "holding"
    reach(side, GOAL)


def test_poses_need_kinematics_and_strange_targets_are_refused(rig: Rig) -> None:
    side, _, body = rig
    with pytest.raises(SpecMismatch, match="declare its kinematics"):
        side.send(PoseTarget(np.zeros(3), np.array((0.0, 0.0, 0.0, 1.0)), 0.0))
    assert body.commands == []


def test_a_host_that_goes_away_is_an_error_and_not_an_old_reading(rig: Rig) -> None:
    side, host, _ = rig
    side._session._max_age_s = 0.05
    side.send(GOAL)
    host.close()
    until(lambda: _old(side), "the reading grows old")
    with pytest.raises(Timeout):
        side.send(GOAL)
    until(lambda: _unheard(side), "a hold that nobody hears")


def _unheard(side: LekiwiSide) -> bool:
    side._told_at = -math.inf
    try:
        side.hold()
    except ConnectionLost:
        return True
    return False


def _old(side: LekiwiSide) -> bool:
    try:
        side.read()
    except Timeout:
        return True
    return False


def test_a_whole_link_of_ours_drives_it_and_its_watchdog_holds_it(rig: Rig) -> None:
    side, _, body = rig
    with served(side) as running, contextlib.closing(ZmqArm(running.url)) as arm:
        assert arm.connect(WITHIN_S).accepts == ("joints",)

        def there() -> bool:
            arm.command(GOAL, ttl_s=1.0)
            seen = arm.state(WITHIN_S)
            return bool(np.allclose(seen.joint_pos, GOAL.joint_pos, atol=1e-2))

        until(there, "the arm to arrive")
        with pytest.raises(SpecMismatch, match="takes joints targets"):
            arm.command(PoseTarget(np.zeros(3), np.array((0.0, 0.0, 0.0, 1.0)), 0.0))
        until(lambda: arm.state(WITHIN_S).mode == "holding", "silence is a hold")
        arm.stop("enough")
        until(lambda: arm.state(WITHIN_S).mode == "stopped", "the stop")
        told = len(body.commands)
        until(lambda: len(body.commands) > told + 2, "the place is kept on the wire")
        clear_stop(running.url, "Ada")


FILE = """
host = "127.0.0.1"
degrees = {degrees}
base = false
command_port = {command}
observation_port = {observation}
[arm]
robot = "so101"
gripper_max_m = 0.08
[kinematics]
mjcf = "five.xml"
site = "grip"
joints = ["pan", "lift", "elbow", "wrist", "roll"]
rotation_m = 0.01
"""


def test_a_declared_so101_takes_poses(tmp_path: Path) -> None:
    pytest.importorskip("mujoco", reason="needs MuJoCo (pip install mujoco)")
    write_five(tmp_path)
    body = PointLekiwi()
    host = LekiwiHost(body, layout=SO_ARM)
    host.start()
    ports = [end.rpartition(":")[2] for end in (host.command_endpoint, host.observation_endpoint)]
    file = tmp_path / "so101.toml"
    file.write_text(FILE.format(degrees="true", command=ports[0], observation=ports[1]))
    side = registry.arm(f"lekiwi:{file}")
    try:
        assert isinstance(side, KinematicSide)
        start = side.read()
        assert np.isfinite(start.ee_pos).all()
        goal = PoseTarget(start.ee_pos + np.array((0.0, 0.05, 0.04)), start.ee_quat, 0.04)

        def there() -> bool:
            side.send(goal)
            return bool(np.linalg.norm(side.read().ee_pos - goal.ee_pos) < 5e-3)

        until(there, "the hand to arrive")
        assert body.commands[-1].gripper == pytest.approx(0.5)
    finally:
        side.close()  # type: ignore[attr-defined]
        host.close()


def test_a_host_that_does_not_send_degrees_is_refused_before_anything_is_opened(
    tmp_path: Path,
) -> None:
    file = tmp_path / "arm.toml"
    file.write_text(FILE.format(degrees="false", command=1, observation=2))
    with pytest.raises(ConfigError, match="use_degrees"):
        registry.arm(f"lekiwi:{file}")
    file.write_text('host = "127.0.0.1"')
    with pytest.raises(ConfigError, match="degrees"):
        registry.arm(f"lekiwi:{file}")
    with pytest.raises(ConfigError, match="cannot read"):
        registry.arm("lekiwi:nowhere.toml")
    file.write_text('host = "127.0.0.1"\ndegrees = true\ncommand_port = 1\nobservation_port = 2\n'
                    "connect_s = 0.05")  # fmt: skip
    with pytest.raises(Timeout, match="host at"):
        registry.arm(f"lekiwi:{file}")


@pytest.mark.parametrize("odd", [{"gripper_max_m": 0.0}, {"max_step_deg": 90.0}])
def test_an_odd_arm_is_refused(odd: dict[str, float]) -> None:
    with pytest.raises(ConfigError):
        LekiwiArm(**odd)  # type: ignore[arg-type]
