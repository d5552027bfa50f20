"""`deoxys:PC,NUC` through the registry."""

from __future__ import annotations

import pytest

from tests.hw_drivers.test_deoxys_session import TICK_S
from zetta.hw_drivers.deoxys.point_franka import PointFranka
from zetta.hw_drivers.deoxys.robot_side import DeoxysRobotSide
from zetta.hw_drivers.deoxys.side import DeoxysSide
from zetta.hw_drivers.links import check_foreign_bind
from zetta.runtime import registry
from zetta.runtime.errors import ConfigError, Timeout


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("deoxys:", "expected deoxys:172"),
        ("deoxys:127.0.0.1", "expected deoxys:172"),
        ("deoxys:127.0.0.1,127.0.0.1@port=1", "did you mean 'ports'"),
        ("deoxys:127.0.0.1,127.0.0.1@robot", "needs a value"),
        ("deoxys:127.0.0.1,127.0.0.1@ports=1:2:3", "expected four"),
        ("deoxys:127.0.0.1,127.0.0.1@ports=1:2:3:70000", "expected four"),
        ("deoxys:127.0.0.1,127.0.0.1@ports=1:2:x:4", "expected four"),
        ("deoxys:127.0.0.1,127.0.0.1@private_network=yes", "is 0 or 1"),
        ("deoxys:172.16.0.1,172.16.0.3", "private_network=True"),
        ("deoxys:127.0.0.1,127.0.0.1@ports=0:1:0:2,connect_s=soon", "seconds"),
    ],
)
def test_a_name_that_is_not_right_is_explained(name: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        registry.arm(name)


def test_an_arm_that_is_not_there_is_a_time_out_and_frees_its_ports() -> None:
    for _ in range(2):
        with pytest.raises(Timeout, match="within"):
            registry.arm("deoxys:127.0.0.1,127.0.0.1@ports=0:1:0:2,connect_s=0.05")


def test_a_named_arm_is_connected_and_ready() -> None:
    robot = DeoxysRobotSide(PointFranka(), tick_s=TICK_S)
    state, fingers = (
        int(endpoint.rpartition(":")[2])
        for endpoint in (robot.state_endpoint, robot.gripper_state_endpoint)
    )
    # Two free ports for the command sockets, which the robot's side has to know beforehand.
    free = DeoxysRobotSide(PointFranka())
    command, gripper = (
        int(endpoint.rpartition(":")[2])
        for endpoint in (free.state_endpoint, free.gripper_state_endpoint)
    )
    free.close()
    check_foreign_bind(f"tcp://127.0.0.1:{command}", private_network=False)
    robot.follow(f"tcp://127.0.0.1:{command}", f"tcp://127.0.0.1:{gripper}")
    robot.start()
    ports = f"{command}:{state}:{gripper}:{fingers}"
    try:
        side = registry.arm(f"deoxys:127.0.0.1,127.0.0.1@robot=left,ports={ports},connect_s=20")
        try:
            assert isinstance(side, DeoxysSide)
            assert side.facts.robot == "left"
        finally:
            side.close()  # type: ignore[attr-defined]
    finally:
        robot.close()
