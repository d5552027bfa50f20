"""What is RoboCasa's own: a base that rolls, kitchens from scenes, the words of an episode."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from apart_sims import installed

from zetta.runtime.core import Action, Init, Sampled, Scene, Simulator
from zetta.runtime.errors import InfraError
from zetta.runtime.stepping import Stepper
from zetta.sims.remote import RemoteEnv
from zetta.sims.robocasa.robot import ACTION, REST

pytestmark = [pytest.mark.sims, pytest.mark.timeout(300)]
SUITE, CLOSE_DRAWER = "robocasa_bundled", 1


@pytest.fixture(scope="module")
def simulator() -> Simulator:
    return installed("robocasa")


@pytest.fixture(scope="module")
def env(simulator: Simulator) -> Iterator[RemoteEnv]:
    made = simulator.make(SUITE, CLOSE_DRAWER)
    assert isinstance(made, RemoteEnv)
    yield made
    made.close()


@pytest.fixture
def scene(simulator: Simulator) -> Scene:
    return Scene(simulator.task(SUITE, CLOSE_DRAWER), Init(0))


def at_rest(**columns: float) -> Action:
    row = np.array([*[0.0] * 6, -1.0, *REST])
    for name, value in columns.items():
        row[ACTION.names.index(name)] = value
    return row


def moved(env: RemoteEnv, scene: Scene, row: Action, ticks: int = 12) -> tuple[float, float, float]:
    """Return how the base moved: ahead, to its left and about the vertical."""
    before = env.reset(scene).proprio.base
    after = [env.step(row) for _ in range(ticks)][-1].proprio.base
    assert before is not None
    assert after is not None
    dx, dy, yaw = after - before
    c, s = math.cos(before[2]), math.sin(before[2])
    return c * dx + s * dy, c * dy - s * dx, math.remainder(yaw, 2 * math.pi)


def test_the_base_rolls_where_its_columns_say(env: RemoteEnv, scene: Scene) -> None:
    back, aside, turned = moved(env, scene, at_rest(base_vx=-1.0, base_mode=1.0))
    assert back < -0.15
    assert abs(aside) + abs(turned) < 0.05
    ahead, left, turned = moved(env, scene, at_rest(base_vy=1.0, base_mode=1.0))
    assert left > 0.15
    assert abs(ahead) + abs(turned) < 0.05
    _, _, turned = moved(env, scene, at_rest(base_vyaw=1.0, base_mode=1.0))
    assert turned > 0.2


def test_what_rests_stays_where_it_is(env: RemoteEnv, scene: Scene) -> None:
    assert np.abs(moved(env, scene, at_rest(), 20)).max() < 0.005
    start = env.reset(scene).proprio.arms[0].ee_pos
    end = [env.step(at_rest()) for _ in range(20)][-1].proprio.arms[0].ee_pos
    assert np.linalg.norm(end - start) < 0.02


def test_the_torso_lifts_the_hand(env: RemoteEnv, scene: Scene) -> None:
    start = env.reset(scene).proprio.arms[0].ee_pos
    end = [env.step(at_rest(torso=1.0)) for _ in range(10)][-1].proprio.arms[0].ee_pos
    assert end[2] - start[2] > 0.05


def test_the_loop_holds_a_robot_with_a_base(env: RemoteEnv, scene: Scene) -> None:
    from zetta.runtime.drivers import Late

    step, last = env.reset(scene), at_rest()
    stepper = Stepper(env, None)
    held, why = stepper.action(Late("thinking"), "policy", step, last)
    assert why == "thinking"
    np.testing.assert_array_equal(held[7:], REST)


def test_the_instruction_is_that_of_the_episode(env: RemoteEnv, simulator: Simulator) -> None:
    task = simulator.task(SUITE, CLOSE_DRAWER)
    said = {env.instruction(Scene(task, Sampled(), seed)) for seed in range(4)}
    assert said <= {"Close the left drawer.", "Close the right drawer."}
    scene = Scene(task, Init(1))
    assert env.instruction(scene) == env.observe().instruction
    start = env.pose()
    np.testing.assert_array_equal(start, (env.reset(scene), env.pose())[1])


def test_inits_go_through_the_kitchens(env: RemoteEnv, scene: Scene) -> None:
    """Four kitchens: pictures of the first four inits differ, those of equal scenes do not."""
    looks = []
    for k in (0, 1, 2, 3, 0):
        env.reset(replace(scene, layout=Init(k)))
        looks.append(env.observe(["agentview_left"]).images["agentview_left"].tobytes())
    assert len(set(looks)) == 4
    assert looks[0] == looks[4]


def test_a_scene_that_was_built_anew_is_drawn_as_in_a_process_of_its_own(
    env: RemoteEnv, simulator: Simulator, scene: Scene
) -> None:
    """The renderer goes from world to world; a stale one would show the world before."""
    pictures = []
    fresh = simulator.make(SUITE, CLOSE_DRAWER)
    try:
        for one in (env, fresh):
            one.reset(replace(scene, layout=Init(3)))
            pictures.append(one.observe(["agentview_right", "wrist"], depth=True))
    finally:
        fresh.close()
    for camera in ("agentview_right", "wrist"):
        np.testing.assert_array_equal(*(p.images[camera] for p in pictures))
        np.testing.assert_array_equal(*(p.depth[camera] for p in pictures))


def test_results_say_that_tasks_are_modified(env: RemoteEnv) -> None:
    assert "modified" in env.spec.versions["tasks"]
    assert env.spec.versions["praxis-robosuite"] == "1.5.2.post1"


def test_tasks_of_the_benchmark_need_assets(
    simulator: Simulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ROBOCASA_ASSETS_PATH", raising=False)
    with pytest.raises(InfraError, match="zetta sims assets robocasa"):
        simulator.make("robocasa_target", 6)


@pytest.mark.slow
@pytest.mark.parametrize("index", [0, 1, 3], ids=["OpenDrawer", "CloseDrawer", "CloseCabinet"])
def test_the_expert_solves_the_first_kitchen(simulator: Simulator, index: int) -> None:
    from zetta.runtime.core import Look, Sense

    made = simulator.make(SUITE, index)
    try:
        step = made.reset(Scene(simulator.task(SUITE, index), Init(0)))
        motion = simulator.expert(made)
        wish = next(motion)
        while not (step.success or step.truncated):
            assert not isinstance(wish, Look)
            step = made.step(wish)
            wish = motion.send(Sense(step.proprio))
        assert step.success
    finally:
        made.close()
