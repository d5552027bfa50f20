"""An arm as an environment: conventions, refusals, and the loop on it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.hw_drivers.arm_parts import Served, kernel_for, served, told, until
from tests.hw_drivers.camera_parts import HEIGHT, WIDTH, Still, camera_setup, picture
from zetta.hw_drivers.arm import ArmReading
from zetta.hw_drivers.arm_env import ArmEnv
from zetta.hw_drivers.arm_setup import ActionSetup, ArmSetup, CameraSetup, read_setup
from zetta.hw_drivers.cameras import Frame
from zetta.hw_drivers.frames import Pose, matrix, product, rotation, rotation_vector
from zetta.hw_drivers.simple_side import GRIPPER_MAX, HOME, SimpleSide
from zetta.hw_drivers.zmq_arm import ZmqArm, clear_stop
from zetta.runtime.arbiter import MotionOnly
from zetta.runtime.core import Env, Init, Look, Motion, Outcome, Scene, Task
from zetta.runtime.errors import ConfigError, InfraError, SafetyStop, SpecMismatch, Timeout
from zetta.runtime.loop import Episode
from zetta.runtime.pacing import MonotonicClock
from zetta.runtime.transport import Dealer

QUARTER = (0.0, 0.0, 0.5**0.5, 0.5**0.5)
SETUP = ArmSetup(
    "bench arm",
    base_pos=(1.0, 2.0, 0.5),
    base_quat=QUARTER,
    max_state_age_s=10.0,  # the machine that tests may be busy
    command_ttl_s=0.9,
)
SCENE = Scene(Task("arm", 0, "put the bowl on the plate", 5), Init(0))
IDLE = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, -1.0])


@pytest.fixture
def running() -> Iterator[Served]:
    with served(SimpleSide()) as started:
        yield started


def env_of(running: Served, setup: ArmSetup = SETUP, **other: object) -> ArmEnv:
    return ArmEnv(ZmqArm(running.url), setup, **other)  # type: ignore[arg-type]


@pytest.fixture
def env(running: Served) -> Iterator[ArmEnv]:
    made = env_of(running)
    yield made
    made.close()


def test_step_tells_what_the_robot_refused_since_the_last_one() -> None:
    side = SimpleSide()
    with served(side, guard=kernel_for(side)) as running:
        env = env_of(running)  # no kernel of its own
        assert env.reset(SCENE).guard == ""
        far = np.array([8.0, 0.0, 0.0, 0.0, 0.0, 0.0, -1.0])
        told_of: list[str] = []

        def refused() -> bool:
            step = env.step(far)
            told_of.append(step.guard)
            if step.truncated:
                env.reset(SCENE)
            return bool(step.guard)

        until(refused, "the robot's side refuses a leap")
        env.close()
    assert told_of[-1].startswith("refused at the robot: ")


def test_arm_is_an_environment_that_stops_at_vision(env: ArmEnv) -> None:
    assert isinstance(env, Env)
    assert env.spec.sensing == "vision"
    assert env.spec.action.kind == "delta_pose"
    assert env.spec.action.frame == "world"
    assert env.spec.versions == {"simple": "1", "arm": "simple", "hand_mm": "80"}


def test_reset_moves_nothing_and_step_knows_no_success(running: Served, env: ArmEnv) -> None:
    assert isinstance(running.side, SimpleSide)
    step = env.reset(SCENE)
    assert told(running.side) == []
    assert step.proprio.t == 0.0
    for k in range(5):
        step = env.step(IDLE)
        assert (step.success, step.terminated, step.truncated) == (False, False, k == 4)
    until(lambda: env.observe().proprio.t > 0.0, "time passes by the robot's clock")
    assert step.truth is None
    with pytest.raises(SpecMismatch, match="the episode ended"):
        env.step(IDLE)
    assert not env.reset(SCENE).truncated


def test_proprioception_is_in_the_world(env: ArmEnv) -> None:
    arm = env.reset(SCENE).proprio.arms[0]
    x, y, z = HOME
    np.testing.assert_allclose(arm.ee_pos, (1.0 - y, 2.0 + x, 0.5 + z), atol=1e-12)
    turned = matrix(np.array(QUARTER)) @ np.diag((1.0, -1.0, -1.0))
    np.testing.assert_allclose(matrix(arm.ee_quat), turned, atol=1e-12)
    assert not arm.ee_pos.flags.writeable


def test_delta_starts_from_what_was_seen_and_not_from_where_the_arm_has_gone(
    running: Served, env: ArmEnv
) -> None:
    side = running.side
    assert isinstance(side, SimpleSide)
    env.reset(SCENE)
    seen = env.step(np.array([1.0, 0.0, 0.0, 0.0, 0.0, 0.0, -1.0])).proprio.arms[0]
    until(lambda: np.abs(side.read().ee_pos - HOME).max() > 0.02, "the arm goes on")
    env.step(IDLE)
    until(lambda: len(side.targets) == 2, "the second target")
    based = SETUP.T_world_base.inverse() @ Pose(seen.ee_pos, seen.ee_quat)
    np.testing.assert_allclose(side.targets[1].ee_pos, based.pos, atol=1e-9)


UNIT = st.floats(-1.0, 1.0)


@given(st.tuples(*[UNIT] * 7), st.tuples(*[UNIT] * 3), st.tuples(*[UNIT] * 3))
def test_delta_in_the_world_becomes_a_target_in_the_base(
    row: tuple[float, ...], pos: tuple[float, ...], turn: tuple[float, ...]
) -> None:
    env = ArmEnv.__new__(ArmEnv)
    env._setup, env._spec = SETUP, SETUP.spec({})
    env._facts = SimpleSide().facts
    env._T_base_world = SETUP.T_world_base.inverse()
    reading = ArmReading(0.0, np.zeros(6), np.array(pos), rotation(np.array(turn)), 0.0)
    action = np.array(row)

    target = env.target(action, reading)

    before = SETUP.T_world_base @ Pose(reading.ee_pos, reading.ee_quat)
    after = SETUP.T_world_base @ Pose(target.ee_pos, target.ee_quat)
    np.testing.assert_allclose(after.pos - before.pos, 0.05 * action[:3], atol=1e-9)
    back = before.quat * np.array([-1.0, -1.0, -1.0, 1.0])
    np.testing.assert_allclose(
        rotation_vector(product(after.quat, back)), 0.5 * action[3:6], atol=1e-6
    )
    assert target.gripper_opening == pytest.approx(GRIPPER_MAX * (1.0 - row[6]) / 2.0)


def test_target_pose_reaches_what_it_names(running: Served) -> None:
    reach = ActionSetup(
        "target_pose", reach_low=(0.0, 0.0, 0.0), reach_high=(2.0, 3.0, 2.0), gripper_open=1.0,
        gripper_close=0.0,
    )  # fmt: skip
    env = env_of(running, replace(SETUP, action=reach))
    scene = Scene(replace(SCENE.task, max_steps=10_000), Init(0))
    start = env.reset(scene).proprio.arms[0]
    goal = start.ee_pos + np.array([0.02, -0.03, 0.05])
    row = np.array([*goal, *rotation_vector(start.ee_quat), 0.25])
    deadline = time.monotonic() + 20.0
    while np.abs(env.step(row).proprio.arms[0].ee_pos - goal).max() > 1e-3:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    np.testing.assert_allclose(
        env.observe().proprio.arms[0].gripper_opening, 0.25 * GRIPPER_MAX, atol=5e-3
    )
    env.close()


@pytest.mark.parametrize(
    "bad", [np.zeros(6), np.zeros(8), np.full(7, np.nan), np.array([np.inf] * 7)]
)
def test_action_of_another_length_is_refused_and_nothing_is_sent(
    running: Served, env: ArmEnv, bad: np.ndarray
) -> None:
    assert isinstance(running.side, SimpleSide)
    env.reset(SCENE)
    with pytest.raises(SpecMismatch, match="7 finite numbers"):
        env.step(bad)
    assert told(running.side) == []


def test_stop_ends_the_episode_and_reset_waits_for_a_person(running: Served, env: ArmEnv) -> None:
    env.reset(SCENE)
    env.step(IDLE)
    env._arm.stop("a hand in the way")
    with pytest.raises(SafetyStop, match="a hand in the way"):
        until(lambda: bool(env.step(IDLE)) and False, "the step refuses")
    with pytest.raises(SafetyStop, match="then clear it"):
        until(lambda: bool(env.reset(SCENE)) and False, "the reset refuses")
    clear_stop(running.url, "Ada")
    until(lambda: _resets(env), "a reset takes the arm up again")


def _resets(env: ArmEnv) -> bool:
    try:
        env.reset(SCENE)
    except SafetyStop:
        return False
    return True


def test_homing_goes_slowly_to_the_declared_place(running: Served) -> None:
    assert isinstance(running.side, SimpleSide)
    at = SETUP.T_world_base @ Pose(np.array([0.41, 0.0, 0.32]), np.array([1.0, 0.0, 0.0, 0.0]))
    home = replace(SETUP, home_pos=tuple(at.pos), home_quat=tuple(at.quat))
    env = env_of(running, home, home_at_reset=True)
    arm = env.reset(SCENE).proprio.arms[0]
    np.testing.assert_allclose(arm.ee_pos, at.pos, atol=4e-3)
    steps = np.diff([target.ee_pos for target in running.side.targets], axis=0)
    assert np.abs(steps).max() < 0.015
    env.close()
    with pytest.raises(ConfigError, match="has no home"):
        env_of(running, SETUP, home_at_reset=True)


def test_loop_drives_the_arm_at_its_rate(running: Served) -> None:
    env = env_of(running)
    scene = Scene(replace(SCENE.task, max_steps=12), Init(0))
    seen = []

    def motion() -> Motion:
        sense = yield Look(())
        seen.append(sense.proprio.arms[0].ee_pos)
        for _ in range(10):
            sense = yield np.array([0.0, 0.0, 0.5, 0.0, 0.0, 0.0, -1.0])
        seen.append(sense.proprio.arms[0].ee_pos)
        return Outcome(True)

    result = Episode(env, scene, MotionOnly(motion, "oracle:up"), clock=MonotonicClock()).run()
    env.close()
    assert result.detail == "oracle:up completed"
    assert result.ticks == 10
    assert not result.success
    assert seen[1][2] - seen[0][2] > 0.02


# ------------------------------------------------------------------------------- cameras


def test_observation_holds_fresh_pictures_with_their_calibration(running: Served) -> None:
    T = np.eye(4)
    T[2, 3] = 0.1
    wrist = replace(
        camera_setup(), mount="wrist", depth=True, T_parent_cam=tuple(map(tuple, T.tolist()))
    )
    setup = replace(SETUP, cameras={"front": camera_setup(), "wrist": wrist})
    depth = np.full((HEIGHT, WIDTH), 0.5, np.float32)
    stills = {
        "front": Still("front", Frame(picture(1), 0.0)),
        "wrist": Still("wrist", Frame(picture(2), 0.0, depth)),
    }
    env = env_of(running, setup, sources=stills)
    env.reset(SCENE)
    seen = env.observe(("front", "wrist"), depth=True)
    assert seen.instruction == SCENE.task.instruction
    np.testing.assert_array_equal(seen.images["front"], picture(1))
    assert not seen.images["front"].flags.writeable
    assert set(seen.depth) == {"wrist"}
    np.testing.assert_array_equal(seen.cameras["front"].T_world_cam, np.eye(4))
    hand = seen.proprio.arms[0]
    # The hand looks down, so what is 0.1 m before the camera's mount is 0.1 m below the hand.
    np.testing.assert_allclose(
        seen.cameras["wrist"].T_world_cam[:3, 3], hand.ee_pos - (0.0, 0.0, 0.1), atol=1e-9
    )
    assert env.observe().images == {}

    stills["wrist"].age = 0.7
    with pytest.raises(InfraError, match=r"'wrist' is 0\.7 s old"):
        env.observe(("front", "wrist"))
    with pytest.raises(ConfigError, match="did you mean 'front'"):
        env.observe(("frnt",))
    stills["front"].frame = Frame(picture()[:-1], 0.0)
    with pytest.raises(InfraError, match="'front' gives pictures of shape"):
        env.observe(("front",))
    stills["wrist"].age, stills["wrist"].frame = 0.0, Frame(picture(), 0.0)
    with pytest.raises(InfraError, match="'wrist' is declared with depth"):
        env.observe(("wrist",), depth=True)
    env.close()
    assert all(still.closed for still in stills.values())


def test_a_camera_that_falls_silent_between_two_looks_is_noticed(
    running: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    still = Still("front", Frame(picture(1), 0.0))
    setup = replace(SETUP, cameras={"front": camera_setup()})
    env = env_of(running, setup, sources={"front": still})
    env.reset(SCENE)
    still.age = 0.3
    assert env.watch() == ""  # nobody has looked, so nobody goes by what it shows
    still.age = 0.0
    env.observe(("front",))
    still.age = 0.3
    assert "the camera 'front' is 0.3 s old" in env.watch()
    monkeypatch.setattr("zetta.hw_drivers.arm_env.BLIND_S", -1.0)
    with pytest.raises(InfraError, match=r"0\.3 s old"):
        env.watch()
    still.age = 0.0
    assert env.watch() == ""
    env.close()


def test_an_arm_that_is_asked_to_hold_does_so_itself_until_the_next_command(
    running: Served, env: ArmEnv
) -> None:
    assert isinstance(running.side, SimpleSide)
    env.reset(SCENE)
    env.step(IDLE)
    until(lambda: told(running.side)[-1:] == ["send"], "the command")
    why = "nobody sees it: " + 100 * "x"
    step = env.hold(why)
    assert not step.truncated
    until(lambda: told(running.side)[-1] == "hold", "the hold")
    assert running.server.counts["watchdog"] == 0
    until(lambda: env._arm.state(10.0).reason == why, "the reason")
    env.step(IDLE)
    until(lambda: told(running.side)[-1] == "send", "the next command")


def test_a_stranger_cannot_make_an_arm_hold(running: Served, env: ArmEnv) -> None:
    env.reset(SCENE)
    env.step(IDLE)
    until(lambda: told(running.side)[-1:] == ["send"], "the command")
    stranger = Dealer(running.url)
    with pytest.raises(Timeout):  # what has no answer is not answered to strangers either
        stranger.call("hold", {"lease": "none", "why": "a joke"}, 0.2)
    stranger.close()
    env.step(IDLE)
    until(lambda: told(running.side).count("send") >= 2, "the next command")
    assert "a joke" not in env._arm.state(10.0).reason


def test_declared_camera_without_a_source_is_refused(running: Served) -> None:
    with pytest.raises(ConfigError, match=r"declares the cameras \['front'\]"):
        env_of(running, replace(SETUP, cameras={"front": camera_setup()}))


# -------------------------------------------------------------------------------- set-up

GOOD = """
name = "bench arm"
control_hz = 20
base_pos = [0.0, 0.0, 0.1]

[action]
kind = "target_pose"
reach_low = [0.2, -0.4, 0.0]
reach_high = [0.7, 0.4, 0.6]

[cameras.front]
source = "usb:0"
height = 480
width = 640
intrinsics = [[600, 0, 320], [0, 600, 240], [0, 0, 1]]
T_parent_cam = [[1, 0, 0, 0.5], [0, -1, 0, 0], [0, 0, -1, 0.8], [0, 0, 0, 1]]
"""


def test_setup_is_read_from_toml(tmp_path: Path) -> None:
    file = tmp_path / "arm.toml"
    file.write_text(GOOD)
    setup = read_setup(file)
    assert setup.spec({}).camera("front").height == 480
    assert setup.spec({}).action.high[:3] == (0.7, 0.4, 0.6)
    assert isinstance(setup.cameras["front"], CameraSetup)

    measured = tmp_path / "calibration.toml"
    measured.write_text(
        "[cameras.front]\nheight=480\nwidth=640\n"
        "intrinsics=[[610,0,321],[0,611,241],[0,0,1]]\n"
        "T_parent_cam=[[1,0,0,0.5],[0,-1,0,0],[0,0,-1,0.9],[0,0,0,1]]\n"
    )
    camera = read_setup(file, measured).cameras["front"].camera("front", np.eye(4))
    assert camera.intrinsics[0, 0] == 610.0
    assert camera.T_world_cam[2, 3] == 0.9


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('name = "bench arm"', "", "name"),
        ("control_hz = 20", "control_hz = 0", "control_hz is a finite number above 0"),
        ("control_hz", "contol_hz", "contol_hz"),
        ("[0.0, 0.0, 0.1]", "[0.0, 0.1]", "base_pos are 3 finite numbers"),
        ("reach_low = [0.2, -0.4, 0.0]", "", "reach_low and reach_high"),
        ("[0.7, 0.4, 0.6]", "[0.1, 0.4, 0.6]", "two corners"),
        ("width = 640", "width = 320", "another size"),
        ("[0, -1, 0, 0]", "[0, 1, 0, 0]", "the rotation of T_parent_cam is none"),
        ("[600, 0, 320]", "[0, 0, 320]", "intrinsics are"),
        ("height = 480", "height = ", "cannot read"),
    ],
)
def test_odd_setup_is_refused_by_name(tmp_path: Path, old: str, new: str, said: str) -> None:
    file = tmp_path / "arm.toml"
    file.write_text(GOOD.replace(old, new))
    with pytest.raises(ConfigError, match=said):
        read_setup(file)
