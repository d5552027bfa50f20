"""What is robosuite's own; what every simulator owes is asked in `test_robosuite_contract.py`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from apart_sims import installed, told_by
from scipy.spatial.transform import Rotation

from zetta.runtime.core import Env, Init, Observation, Scene, Simulator, Step
from zetta.sims.remote import RemoteEnv

pytestmark = [pytest.mark.sims, pytest.mark.timeout(300)]


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


def test_hands_begin_pointing_down_with_a_workspace_and_kinematics(
    env: RemoteEnv, simulator: Simulator
) -> None:
    for arm, state in enumerate(begun(env, simulator).proprio.arms):
        assert env.workspace(arm) is not None
        assert env.arm_model(arm) is not None
        assert Rotation.from_quat(state.ee_quat).as_matrix()[2, 2] < -0.9  # it points down


def test_arms_are_called_by_their_sides(env: RemoteEnv, simulator: Simulator) -> None:
    arms = begun(env, simulator).proprio.arms
    if len(arms) == 2:
        places = dict(zip(env.spec.arms, (arm.ee_pos[1] for arm in arms), strict=True))
        assert places["right"] < 0.0 < places["left"]


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
