"""Whole sessions of LeKiwi against the twin: five joints of a Panda go where they are sent."""

from __future__ import annotations

import io
import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image as Pictures

pytest.importorskip("mujoco", reason="needs MuJoCo (pip install 'zetta[libero]')")
pytest.importorskip("robosuite", reason="needs robosuite (pip install 'zetta[libero]')")

from tests.hw_drivers.twin.wire_parts import LekiwiWire
from zetta.hw_drivers.arm import ArmReading, JointTarget
from zetta.hw_drivers.lekiwi.host import WATCHDOG_S, LekiwiBody
from zetta.hw_drivers.lekiwi.messages import JOINTS, LekiwiRow, read_picture
from zetta.hw_drivers.lekiwi.side import LekiwiArm, LekiwiSide
from zetta.hw_drivers.twin.lekiwi_body import DRIVEN, TwinLekiwi
from zetta.hw_drivers.twin.world import TwinWorld
from zetta.runtime.core import Array, Image, read_only

ROW = LekiwiRow((0.3, -0.2, 0.25, -0.3, 0.4), 0.5)
WHICH = [DRIVEN[joint] - 1 for joint in JOINTS]


@pytest.fixture(scope="module")
def world() -> TwinWorld:
    return TwinWorld()


@pytest.fixture
def wire(world: TwinWorld) -> Iterator[LekiwiWire]:
    world.set_scene(0)
    made = LekiwiWire(world)
    _is_a_body(made.body)
    yield made
    made.close()


def _is_a_body(body: LekiwiBody) -> None:
    """The type checker compares them where this is called."""


def driven(seen: ArmReading, world: TwinWorld) -> Array:
    return (seen.joint_pos - world.home)[WHICH]


def test_the_arm_goes_to_every_row_that_the_wire_asks_for(wire: LekiwiWire) -> None:
    for row in (ROW, LekiwiRow((-0.3, 0.1, -0.2, 0.3, -0.4), 1.0), LekiwiRow((0.0,) * 5, 0.25)):
        seen = wire.ticks(lambda: wire.session.send(row), 45)  # noqa: B023
        assert driven(seen, wire.world) == pytest.approx(np.array(row.joints), abs=6e-3)
        assert seen.gripper_opening == pytest.approx(0.08 * row.gripper, abs=2e-3)
        idle = [k for k in range(7) if k not in WHICH]
        assert seen.joint_pos[idle] == pytest.approx(wire.world.home[idle], abs=6e-3)
        told = wire.session.state().observation.row
        assert told.joints == pytest.approx(tuple(driven(seen, wire.world)), abs=1e-6)
    assert not wire.host.refused
    assert wire.session.refused == 0


def test_what_is_radians_here_is_degrees_on_the_wire(wire: LekiwiWire) -> None:
    # A client that sent radians would move it by half a degree, and one that read them likewise.
    raw = wire.session._layout
    assert raw.keys[0] == "arm_shoulder_pan.pos"
    quarter = replace(ROW, joints=(math.pi / 6, 0.0, 0.0, 0.0, 0.0))
    seen = wire.ticks(lambda: wire.session.send(quarter), 45)
    assert math.degrees(driven(seen, wire.world)[0]) == pytest.approx(30.0, abs=0.5)


def test_silence_stops_the_base_and_the_arm_goes_on_to_its_goal(wire: LekiwiWire) -> None:
    moving = wire.ticks(lambda: wire.session.send(ROW), 3)
    assert abs(driven(moving, wire.world)[0] - 0.3) > 0.1
    seen = wire.lets(WATCHDOG_S + 1.5)
    assert wire.host.base_stopped == 1
    assert wire.body.base_stopped == 1
    assert driven(seen, wire.world) == pytest.approx(np.array(ROW.joints), abs=6e-3)
    seen = wire.ticks(lambda: wire.session.send(replace(ROW, gripper=1.0)), 30)
    assert seen.gripper_opening == pytest.approx(0.08, abs=1e-3)


def test_a_base_that_is_not_there_is_counted_and_the_arm_moves(wire: LekiwiWire) -> None:
    driving = replace(ROW, base=(0.2, 0.0, 0.5))
    seen = wire.ticks(lambda: wire.session.send(driving), 45)
    assert wire.body.base_ignored > 30
    assert wire.session.state().observation.row.base == (0.0, 0.0, 0.0)
    assert driven(seen, wire.world) == pytest.approx(np.array(ROW.joints), abs=6e-3)


def test_a_stop_keeps_the_arm_where_it_was_seen(wire: LekiwiWire) -> None:
    far = LekiwiRow((1.2, 0.0, 0.0, 0.0, 0.0), 1.0)
    wire.ticks(lambda: wire.session.send(far), 6)
    wire.ticks(wire.session.stop)
    place = wire.lets(1.0).joint_pos
    assert 0.05 < place[0] < 1.0
    assert wire.lets(0.5).joint_pos == pytest.approx(place, abs=1e-4)


def test_behind_our_side_it_takes_joints_and_holds(wire: LekiwiWire) -> None:
    side = LekiwiSide(wire.session, LekiwiArm("lekiwi-twin", gripper_max_m=0.08))
    goal = JointTarget(read_only(ROW.joints), 0.03)
    seen = wire.ticks(lambda: side.send(goal), 75)
    assert driven(seen, wire.world) == pytest.approx(np.array(ROW.joints), abs=6e-3)
    assert side.read().gripper_opening == pytest.approx(0.03, abs=2e-3)
    side.hold()
    place = wire.lets(0.3).joint_pos
    assert wire.lets(0.3).joint_pos == pytest.approx(place, abs=1e-4)
    assert side.read().mode == "holding"
    side.stop()
    side.send(JointTarget(read_only([0.0] * 5), 0.08))
    assert wire.lets(0.5).joint_pos == pytest.approx(place, abs=2e-3)
    side.clear()
    seen = wire.ticks(lambda: side.send(JointTarget(read_only([0.0] * 5), 0.08)), 75)
    assert driven(seen, wire.world) == pytest.approx(np.zeros(5), abs=6e-3)


def test_its_pictures_come_with_red_and_blue_swapped_as_lerobots_do(world: TwinWorld) -> None:
    red: Image = read_only(np.full((16, 16, 3), (240, 10, 20)), np.uint8)
    body = TwinLekiwi(world, lambda: {"front": red})
    jpeg = body.jpegs()["front"]
    assert read_picture(jpeg)[8, 8].tolist() == pytest.approx([240, 10, 20], abs=12)
    with Pictures.open(io.BytesIO(jpeg)) as picture:
        assert picture.convert("RGB").getpixel((8, 8))[2] > 200  # type: ignore[index]
    assert set(TwinLekiwi(world).jpegs()) == {"front"}
