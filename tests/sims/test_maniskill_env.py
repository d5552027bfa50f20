"""What only ManiSkill has: its experts, its hidden goal, tasks that it registers, no device."""

from __future__ import annotations

import os
from collections.abc import Iterator

import numpy as np
import pytest
from apart_sims import installed

from zetta.runtime.cli.sims_venv import venv_of
from zetta.runtime.core import Look, Sampled, Scene, Sense, Simulator
from zetta.runtime.errors import ConfigError, InfraError
from zetta.sims.remote import RemoteEnv, RemoteSettings

pytestmark = [pytest.mark.sims, pytest.mark.vulkan, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def simulator() -> Simulator:
    return installed("maniskill")


@pytest.fixture(scope="module")
def cube(simulator: Simulator) -> Iterator[RemoteEnv]:
    made = simulator.make("maniskill", 0)
    assert isinstance(made, RemoteEnv)
    yield made
    made.close()


def test_the_expert_brings_the_cube_to_its_goal(cube: RemoteEnv, simulator: Simulator) -> None:
    step = cube.reset(Scene(simulator.task("maniskill", 0), Sampled(), 7))
    motion, sense = simulator.expert(cube), None
    for _ in range(100):
        order = next(motion) if sense is None else motion.send(sense)
        assert not isinstance(order, Look)
        step = cube.step(order)
        sense = Sense(step.proprio)
        if step.success:
            break
    assert step.success
    assert step.terminated


@pytest.mark.slow
def test_the_goal_that_maniskill_hides_is_drawn(cube: RemoteEnv, simulator: Simulator) -> None:
    cube.reset(Scene(simulator.task("maniskill", 0), Sampled(), 100))
    goal = next(mark for mark in cube.landmarks() if mark.name == "green ball")
    for camera in ("left", "right"):
        seen = cube.observe([camera], depth=True)
        own = np.linalg.inv(seen.cameras[camera].T_world_cam) @ np.append(goal.position, 1.0)
        u, v, w = seen.cameras[camera].intrinsics @ own[:3]
        red, green, blue = seen.images[camera][round(v / w), round(u / w)].astype(int)
        assert green > 1.5 * max(red, blue), camera
        front = float(seen.depth[camera][round(v / w), round(u / w)])
        assert abs(front + goal.extent[0] / 2 - own[2]) < 0.01, camera


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("TwoRobotPickCube-v1", "one arm"),
        ("OpenCabinetDoor-v1", "download_asset"),
        ("PickClutterYCB-v1", r"bin/python -m mani_skill\.utils\.download_asset"),
        ("PickCub-v1", "did you mean 'PickCube-v1'"),
    ],
)
def test_tasks_that_cannot_be_driven_say_why(simulator: Simulator, name: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        simulator.make(f"maniskill:{name}", 0)


@pytest.mark.slow
def test_without_a_device_the_line_that_brings_one_is_told(simulator: Simulator) -> None:
    settings = RemoteSettings(
        python=str(venv_of("maniskill").python),
        lent=True,
        environment={**os.environ, "VK_DRIVER_FILES": "/none", "VK_ICD_FILENAMES": "/none"},
    )
    with pytest.raises(InfraError, match="zetta sims check maniskill"):
        RemoteEnv("maniskill", "maniskill", 1, settings=settings)
