"""Whole episodes of the scripted experts, without pictures."""

from collections.abc import Iterator

import numpy as np
import pytest

from zetta.runtime.core import Init, Scene, Sense

pytestmark = pytest.mark.libero
pytest.importorskip("libero", reason="needs LIBERO: pip install 'zetta[libero]'")

INIT = 12


@pytest.fixture(scope="module")
def env() -> Iterator[object]:
    from zetta.sims.libero.env import LiberoEnv

    made = LiberoEnv("libero_goal", 0)
    yield made
    made.close()


def drive(env: object, goal: list[list[str]], disturb: bool = False) -> tuple[bool, list[str]]:
    """Let the expert reach `goal` in the scene of libero_goal; return success and its phases."""
    from zetta.sims.libero.experts import Expert
    from zetta.sims.libero.world import World

    step = env.reset(Scene(env.task, Init(INIT), 0))
    env.control.env.parsed_problem["goal_state"] = goal
    expert = Expert(World(env.control))
    rng = np.random.default_rng(0)
    motion, phases = expert.motion(), []
    wanted = next(motion)
    for _ in range(300):
        assert wanted.shape == (7,)
        assert np.all(np.abs(wanted) <= 1.0)
        assert np.isfinite(expert.focus).all()
        if not phases or phases[-1] != expert.phase:
            phases.append(expert.phase)
        noise = rng.normal(0, 0.1, 7) * [1, 1, 1, 0.1, 0.1, 0.1, 0] * disturb
        step = env.step(np.clip(wanted + noise, -1, 1))
        if step.success:
            return True, phases
        wanted = motion.send(Sense(step.proprio))
    return False, phases


def test_bowl_reaches_the_plate_in_spite_of_noise(env: object) -> None:
    success, phases = drive(env, [["on", "akita_black_bowl_1", "plate_1"]], disturb=True)
    assert success
    assert phases[:3] == ["approach", "descend", "close"]


def test_drawer_is_pulled_open(env: object) -> None:
    success, phases = drive(env, [["open", "wooden_cabinet_1_middle_region"]])
    assert success
    assert phases[-1] == "pull"


def test_stove_is_turned_on(env: object) -> None:
    success, phases = drive(env, [["turnon", "flat_stove_1"]])
    assert success
    assert phases[-1] == "twist"


def test_goal_without_operation_is_refused_in_one_sentence(env: object) -> None:
    from zetta.runtime.errors import ConfigError
    from zetta.sims.libero.experts import Expert
    from zetta.sims.libero.world import World

    env.control.env.parsed_problem["goal_state"] = [["open", "plate_1"]]
    motion = Expert(World(env.control)).motion()
    with pytest.raises(ConfigError, match="plate_1"):
        next(motion)


def test_a_habit_is_one_manner_for_all_layouts_until_it_fails(env: object) -> None:
    from zetta.sims.libero.errands import begin
    from zetta.sims.libero.expert_carrying import PickPlace
    from zetta.sims.libero.expert_motions import Arm, Intent
    from zetta.sims.libero.expert_places import grip_style, placing
    from zetta.sims.libero.habits import habits
    from zetta.sims.libero.world import Goal, World

    bowl = "akita_black_bowl_1"
    env.control.env.parsed_problem["goal_state"] = [["on", bowl, "plate_1"]]
    usual = habits(env, (10, 23))
    assert usual.keys() == {bowl}

    world = World(env.control)
    goal = Goal("on", bowl, "plate_1")
    yaw, side, aside = usual[bowl]
    for habit in ((yaw, side, aside), (yaw, -side, aside)):
        begin(env, 36)
        task = PickPlace(
            Arm(world, Intent()), bowl, grip_style(world, goal), placing(world, goal), habit=habit
        )
        assert task.plan().manner == habit
    # What has just failed is not tried again for the sake of habit.
    task._failed.append((yaw, -side))
    task._grasp = None
    assert task.plan().manner == usual[bowl]
