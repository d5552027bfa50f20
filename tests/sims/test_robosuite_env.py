"""The conventions that the robosuite adapter declares, checked on the simulated robot itself."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from apart_sims import installed, told_by
from scipy.spatial.transform import Rotation

from zetta.runtime.core import Action, Env, Init, Observation, Scene, Simulator, Step
from zetta.sims.remote import RemoteEnv

pytestmark = [pytest.mark.sims, pytest.mark.timeout(300)]
TICKS = 8


@pytest.fixture(scope="module")
def simulator() -> Simulator:
    return installed("robosuite")


TWO_ARMS = pytest.param("robosuite_two_arm", marks=pytest.mark.slow)


@pytest.fixture(scope="module", params=["robosuite_one_arm", TWO_ARMS])
def env(simulator: Simulator, request: pytest.FixtureRequest) -> Iterator[RemoteEnv]:
    made = simulator.make(request.param, 0)
    assert isinstance(made, RemoteEnv)
    yield made
    made.close()


@pytest.fixture(scope="module")
def lift(simulator: Simulator) -> Iterator[RemoteEnv]:
    made = simulator.make("robosuite_one_arm", 0)
    assert isinstance(made, RemoteEnv)
    yield made
    made.close()


def begun(env: Env, simulator: Simulator) -> Step:
    suite = "robosuite_one_arm" if len(env.spec.arms) == 1 else "robosuite_two_arm"
    return env.reset(Scene(simulator.task(suite, 0), Init(0)))


def row(env: Env, arm: int, column: int, value: float) -> Action:
    action = np.zeros(env.spec.action.size)
    action[6::7] = env.spec.action.gripper_open
    action[7 * arm + column] = value
    return action


def held(env: Env, action: Action, ticks: int = TICKS) -> Step:
    return [env.step(action) for _ in range(ticks)][-1]


@pytest.mark.parametrize("axis", range(3), ids="xyz")
@pytest.mark.parametrize("sign", [1.0, -1.0], ids=["plus", "minus"])
def test_a_translation_moves_the_commanded_hand_along_that_world_axis(
    env: RemoteEnv, simulator: Simulator, axis: int, sign: float
) -> None:
    for arm in range(len(env.spec.arms)):
        before = begun(env, simulator).proprio.arms
        after = held(env, row(env, arm, axis, 0.4 * sign)).proprio.arms
        way = after[arm].ee_pos - before[arm].ee_pos
        assert sign * way[axis] > 0.03
        assert np.abs(np.delete(way, axis)).max() < 0.4 * sign * way[axis]
        for other in set(range(len(env.spec.arms))) - {arm}:
            assert np.linalg.norm(after[other].ee_pos - before[other].ee_pos) < 0.01


@pytest.mark.parametrize("axis", range(3), ids="xyz")
def test_a_rotation_turns_the_commanded_hand_about_that_world_axis(
    env: RemoteEnv, simulator: Simulator, axis: int
) -> None:
    for arm in range(len(env.spec.arms)):
        before = begun(env, simulator).proprio.arms[arm].ee_quat
        after = held(env, row(env, arm, 3 + axis, 0.2)).proprio.arms[arm].ee_quat
        turn = (Rotation.from_quat(after) * Rotation.from_quat(before).inv()).as_rotvec()
        assert turn[axis] > 0.1
        assert np.abs(np.delete(turn, axis)).max() < 0.4 * turn[axis]


def test_the_gripper_closes_and_opens_as_declared(env: RemoteEnv, simulator: Simulator) -> None:
    action = env.spec.action
    for arm in range(len(env.spec.arms)):
        begun(env, simulator)
        closed = held(env, row(env, arm, 6, action.gripper_close), 15).proprio.arms[arm]
        opened = held(env, row(env, arm, 6, action.gripper_open), 15).proprio.arms[arm]
        assert closed.gripper_opening < 0.01
        assert opened.gripper_opening > 0.07


def test_what_exceeds_the_limits_is_clipped_to_them(env: RemoteEnv, simulator: Simulator) -> None:
    begun(env, simulator)
    within = held(env, row(env, 0, 0, 1.0), 3).proprio.arms[0].ee_pos
    begun(env, simulator)
    beyond = held(env, row(env, 0, 0, 1000.0), 3).proprio.arms[0].ee_pos
    np.testing.assert_array_equal(within, beyond)


def test_hands_begin_inside_their_workspace_and_above_the_table(
    env: RemoteEnv, simulator: Simulator
) -> None:
    for arm, state in enumerate(begun(env, simulator).proprio.arms):
        box = env.workspace(arm)
        assert box is not None
        assert box.holds(state.ee_pos)
        assert Rotation.from_quat(state.ee_quat).as_matrix()[2, 2] < -0.9  # it points down


def test_arms_are_called_by_their_sides(env: RemoteEnv, simulator: Simulator) -> None:
    arms = begun(env, simulator).proprio.arms
    if len(arms) == 2:
        places = dict(zip(env.spec.arms, (arm.ee_pos[1] for arm in arms), strict=True))
        assert places["right"] < 0.0 < places["left"]


def test_the_kinematics_that_are_told_are_those_of_the_arm(
    env: RemoteEnv, simulator: Simulator
) -> None:
    mujoco = pytest.importorskip("mujoco", reason="needs zetta[libero] or zetta[drive]")
    for index, state in enumerate(begun(env, simulator).proprio.arms):
        told = env.arm_model(index)
        assert told is not None
        model = mujoco.MjModel.from_xml_string(told.mjcf)
        posed = mujoco.MjData(model)
        for name, angle in zip(told.joints, state.joint_pos, strict=True):
            posed.qpos[model.joint(name).qposadr[0]] = angle
        mujoco.mj_kinematics(model, posed)
        grip = told.T_world_base @ np.append(posed.site(told.site).xpos, 1.0)
        np.testing.assert_allclose(grip[:3], state.ee_pos, atol=1e-4)


def pixel(seen: Observation, camera: str, point: np.ndarray) -> tuple[int, int, float]:
    """Return row, column and depth of a world point in a picture."""
    calibration = seen.cameras[camera]
    own = np.linalg.inv(calibration.T_world_cam) @ np.append(point, 1.0)
    u, v, w = calibration.intrinsics @ own[:3]
    return round(v / w), round(u / w), float(own[2])


def test_a_thing_is_seen_where_calibration_and_depth_say(
    lift: RemoteEnv, simulator: Simulator
) -> None:
    begun(lift, simulator)
    cube = lift.landmarks()[0]
    top = cube.position + np.array([0.0, 0.0, cube.extent[2] / 2])
    for camera in ("agentview", "wrist"):
        seen = lift.observe([camera], depth=True)
        line, column, depth = pixel(seen, camera, top)
        red, green, blue = seen.images[camera][line, column].astype(int)
        assert red > 1.8 * max(green, blue), camera
        assert abs(seen.depth[camera][line, column] - depth) < 0.005, camera


def test_pictures_are_upright(lift: RemoteEnv, simulator: Simulator) -> None:
    begun(lift, simulator)
    seen = lift.observe(["agentview", "wrist"])
    low, high = np.array([0.0, 0.0, 0.85]), np.array([0.0, 0.0, 0.95])
    assert pixel(seen, "agentview", high)[0] < pixel(seen, "agentview", low)[0]
    image = seen.images["wrist"].astype(int)
    # The dark fingers reach into the wrist's picture from below.
    assert image[-20:].mean() < 0.7 * image[:100].mean()


@pytest.fixture(scope="module")
def answers() -> dict[str, dict[str, bool]]:
    told: dict[str, dict[str, bool]] = told_by(
        "robosuite", Path(__file__).with_name("robosuite_child.py")
    )
    return told


@pytest.mark.slow
def test_every_task_is_exact(answers: dict[str, dict[str, bool]]) -> None:
    wrong = {
        task: [name for name, holds in told.items() if not holds] for task, told in answers.items()
    }
    assert len(wrong) == 13
    assert {task: names for task, names in wrong.items() if names} == {}
