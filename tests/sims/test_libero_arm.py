"""The arm of a LIBERO simulation as kinematics: it stands where the simulator says."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import pytest

from zetta.primitives.kinematics import Kinematics
from zetta.primitives.motions_frames import angle_between, matrix_of
from zetta.runtime.arm_model import ArmModel, ArmModels
from zetta.runtime.core import ArmState, Array, Init, Scene
from zetta.runtime.wire import from_wire, to_wire
from zetta.runtime.workspace import BoundedEnv

if TYPE_CHECKING:
    from zetta.sims.libero.env import LiberoEnv

pytestmark = pytest.mark.libero
pytest.importorskip("libero", reason="needs LIBERO: pip install 'zetta[libero]'")
pytest.importorskip("mink", reason="needs mink: pip install 'zetta[drive]'")

WITHIN, TURN_WITHIN = 1e-3, math.radians(0.2)


@pytest.fixture(scope="module")
def env() -> Iterator[LiberoEnv]:
    from zetta.sims.libero.env import LiberoEnv

    made = LiberoEnv("libero_spatial", 0)
    made.reset(Scene(made.task, Init(0)))
    yield made
    made.close()


@pytest.fixture(scope="module")
def solver(env: LiberoEnv) -> Kinematics:
    model = env.arm_model(0)
    assert model is not None
    return Kinematics(model)


def assert_agrees(solver: Kinematics, arm: ArmState) -> None:
    position, rotation = solver.forward(arm.joint_pos)
    assert float(np.linalg.norm(position - arm.ee_pos)) < WITHIN
    assert angle_between(rotation, matrix_of(arm.ee_quat)) < TURN_WITHIN


def at_joints(env: LiberoEnv, joints: Array) -> ArmState:
    """Put the arm there without any physics and ask the simulator where its hand is."""
    pose = env.pose().copy()
    pose[: len(joints)] = joints  # the arm's joints come first in LIBERO's models
    env.show(pose)
    return env.observe().proprio.arms[0]


def test_it_agrees_with_the_simulator_at_random_joint_angles(
    env: LiberoEnv, solver: Kinematics
) -> None:
    model = env.arm_model(0)
    assert model is not None
    rng = np.random.default_rng(0)
    for _ in range(50):
        arm = at_joints(env, rng.uniform(model.low, model.high))
        assert_agrees(solver, arm)


def test_it_agrees_with_the_simulator_along_an_episode(env: LiberoEnv, solver: Kinematics) -> None:
    step = env.reset(Scene(env.task, Init(1)))
    rng = np.random.default_rng(1)
    for _ in range(12):
        row = np.append(rng.uniform(-1.0, 1.0, 6) * [1, 1, 1, 0.4, 0.4, 0.4], -1.0)
        for _ in range(5):
            step = env.step(row)
            assert_agrees(solver, step.proprio.arms[0])


def test_the_arm_survives_the_wire(env: LiberoEnv, solver: Kinematics) -> None:
    assert isinstance(env, ArmModels)
    told = from_wire(ArmModel, to_wire(env.arm_model(0)))
    joints = np.array([0.1, -0.2, 0.3, -2.0, 0.1, 2.0, 0.5])
    for ours, theirs in zip(solver.forward(joints), Kinematics(told).forward(joints), strict=True):
        assert ours.tolist() == theirs.tolist()


def test_the_workspace_lies_over_the_table_in_front_of_the_arm(env: LiberoEnv) -> None:
    assert isinstance(env, BoundedEnv)
    step = env.reset(Scene(env.task, Init(0)))
    box = env.workspace(0)
    assert box is not None
    assert env.workspace(1) is None
    assert box.low[2] == pytest.approx(0.905, abs=0.003)  # the table top is at 0.90 m
    assert box.holds(step.proprio.arms[0].ee_pos)
    assert step.truth is not None
    bowl = step.truth.objects["akita_black_bowl_1"][:3]
    assert box.holds(bowl + np.array([0.0, 0.0, 0.05]))
