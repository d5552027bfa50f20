from __future__ import annotations

import numpy as np
import pytest
from twin_parts import NEEDS, hand_at

from zetta.hw_drivers.arm_limits import load_limits
from zetta.hw_drivers.twin.local import LocalArm, VirtualClock
from zetta.hw_drivers.twin.side import MOST_AT_ONCE_S, WORKSPACE, TwinSide
from zetta.hw_drivers.twin.world import HOME_POS, TwinWorld
from zetta.runtime.errors import ConfigError, SafetyStop, SpecMismatch

pytestmark = NEEDS
FAR = (0.55, 0.2, 0.2)


@pytest.fixture(scope="module")
def world() -> TwinWorld:
    return TwinWorld()


@pytest.fixture
def side(world: TwinWorld) -> TwinSide:
    world.stuck_gripper = False
    world.set_scene(0)
    return TwinSide(world, VirtualClock())


def later(side: TwinSide, seconds: float, step: float = 0.005) -> None:
    clock = side._clock
    assert isinstance(clock, VirtualClock)
    for _ in range(round(seconds / step)):
        clock.now += step
        side.read()


def speed(side: TwinSide) -> float:
    before = side.read().ee_pos
    later(side, 0.02)
    return float(np.linalg.norm(side.read().ee_pos - before)) / 0.02


def test_it_keeps_up_with_the_clock(side: TwinSide) -> None:
    later(side, 1.0, 0.0037)
    assert side.world.time == pytest.approx(side.read().t, abs=0.003)


def test_a_process_that_stood_still_loses_the_time(side: TwinSide) -> None:
    side.send(hand_at(FAR))
    later(side, 5.0, 5.0)
    assert side.world.time == pytest.approx(MOST_AT_ONCE_S)
    assert side.lost_s == pytest.approx(5.0 - MOST_AT_ONCE_S)
    assert np.linalg.norm(side.read().ee_pos - HOME_POS) < 0.08


def test_a_stop_brakes_at_once_and_is_kept_until_it_is_cleared(side: TwinSide) -> None:
    side.send(hand_at(FAR))
    later(side, 0.15)
    assert speed(side) > 0.2
    side.stop()
    later(side, 0.1)
    assert speed(side) < 0.01
    stood = side.read().ee_pos
    side.send(hand_at(FAR))
    side.hold()
    later(side, 0.5)
    assert side.read().mode == "stopped"
    assert np.linalg.norm(side.read().ee_pos - stood) < 2e-3
    side.clear()
    assert side.read().mode == "holding"
    side.send(hand_at(FAR))
    later(side, 1.5)
    assert np.linalg.norm(side.read().ee_pos - FAR) < 2e-3


def test_a_hold_comes_to_rest_without_turning_back(side: TwinSide) -> None:
    side.send(hand_at(FAR))
    later(side, 0.15)
    side.hold()
    gone = [float(side.read().ee_pos[1])]
    for _ in range(60):
        later(side, 0.01)
        gone.append(float(side.read().ee_pos[1]))
        side.hold()
    assert side.read().mode == "holding"
    assert min(np.diff(gone)) > -2e-4
    assert speed(side) < 1e-3
    assert [entry.told for entry in side.heard] == ["send", "hold"]


def test_a_reflex_stops_the_arm_until_a_person_has_cleared_it(side: TwinSide) -> None:
    side.send(hand_at(FAR))
    later(side, 0.1)
    side.reflex("it felt a hand")
    later(side, 0.2)
    assert (side.read().mode, side.read().reason) == ("stopped", "it felt a hand")
    assert speed(side) < 0.01
    with pytest.raises(SafetyStop, match="felt a hand"):
        side.send(hand_at(FAR))
    side.clear()
    side.send(hand_at(FAR))
    assert side.read().mode == "moving"


def test_another_scene_puts_the_arm_home_and_forgets_what_was_wanted(side: TwinSide) -> None:
    side.send(hand_at(FAR))
    later(side, 0.3)
    side.set_scene(7)
    later(side, 0.3)
    np.testing.assert_allclose(side.read().ee_pos, HOME_POS, atol=1e-4)
    assert side.world.seed == 7


def test_the_workspace_is_that_of_the_shipped_limits() -> None:
    limits = load_limits("panda")
    assert tuple(limits.workspace.low) == WORKSPACE.low
    assert tuple(limits.workspace.high) == WORKSPACE.high


def test_a_local_arm_takes_one_period_for_each_command(world: TwinWorld) -> None:
    arm = LocalArm(world, 20.0)
    arm.set_scene(0)
    for _ in range(30):
        arm.command(hand_at(FAR))
    assert arm.state().t == pytest.approx(1.5)
    assert np.linalg.norm(arm.state().ee_pos - FAR) < 2e-3
    with pytest.raises(SpecMismatch):
        arm.command(hand_at(FAR, opening=0.5))
    arm.stop("enough")
    with pytest.raises(SafetyStop, match="enough"):
        arm.command(hand_at(FAR))
    with pytest.raises(ConfigError, match="more than 0 Hz"):
        LocalArm(world, 0.0)
