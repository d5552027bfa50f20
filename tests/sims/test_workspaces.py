"""Where hands may be, as environments declare it, also through a worker."""

from __future__ import annotations

import numpy as np
import pytest

from zetta.runtime.arm_model import ArmModels
from zetta.runtime.core import Init, Scene
from zetta.runtime.errors import ConfigError
from zetta.runtime.workspace import BoundedEnv, Box
from zetta.sims.remote import RemoteEnv
from zetta.sims.toy import ToySimulator


def test_the_toy_can_not_leave_its_workspace_and_gets_to_its_corners() -> None:
    env = ToySimulator().make("toy_pick", 0)
    assert isinstance(env, BoundedEnv)
    box = env.workspace(0)
    assert box is not None
    for seed in range(4):
        env.reset(Scene(env.toy.task, Init(0)))
        push = np.append(np.where(np.random.default_rng(seed).random(6) < 0.5, -1.0, 1.0), -1.0)
        push[3:6] = 0.0
        for _ in range(25):
            reached = env.step(push).proprio.arms[0].ee_pos
            assert box.holds(reached, 1e-9)
        assert reached[:2] == pytest.approx(np.where(push[:2] > 0, box.high[:2], box.low[:2]))


def test_each_arm_of_the_toy_has_its_own_workspace_and_no_joints() -> None:
    env = ToySimulator().make("toy_two_arm", 0)
    left, right = env.workspace(0), env.workspace(1)
    assert left is not None
    assert right is not None
    assert left.low[1] > right.low[1]
    assert env.workspace(2) is None
    assert not isinstance(env, ArmModels)


def test_a_remote_environment_tells_what_the_one_inside_tells() -> None:
    env = RemoteEnv("toy", "toy_two_arm", 0)
    try:
        inside = ToySimulator().make("toy_two_arm", 0)
        assert env.workspace(1) == inside.workspace(1)
        assert env.workspace(5) is None
        assert env.arm_model(0) is None
    finally:
        env.close()


def test_a_box_clips_and_says_how_far_a_point_is_outside() -> None:
    box = Box((0.0, 0.0, 0.0), (1.0, 2.0, 3.0))
    outside = np.array([0.5, -0.25, 4.0])
    assert box.nearest(outside).tolist() == [0.5, 0.0, 3.0]
    assert box.excess(outside).tolist() == [0.0, -0.25, 1.0]
    assert not box.holds(outside)
    assert box.holds(outside, 1.0)
    assert str(box) == "x 0 to 100, y 0 to 200, z 0 to 300 cm"


@pytest.mark.parametrize("high", [(1.0, 0.0, 1.0), (1.0, float("nan"), 1.0)])
def test_an_empty_box_is_refused(high: tuple[float, float, float]) -> None:
    with pytest.raises(ConfigError, match="from its low to its high corner"):
        Box((0.0, 0.0, 0.0), high)
