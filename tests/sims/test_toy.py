from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from toy_episodes import REST, SIM, TASKS, by, openings, reach, solve, world

from zetta.runtime.core import Init, Sampled, Scene, SnapshotEnv
from zetta.runtime.errors import ConfigError, SpecMismatch
from zetta.sims.toy import ToyEnv
from zetta.sims.toy_physics import OPENING_MAX
from zetta.sims.toy_tasks import TABLE_HALF, TABLE_Z, places, toy_task

HASH_CODE = """
import hashlib, numpy as np
from zetta.runtime.core import Sampled, Scene
from zetta.sims.toy import ToySimulator
env = ToySimulator().make("toy_slip", 1)
env.reset(Scene(env.toy.task, Sampled(), 11))
digest = hashlib.sha256()
for row in np.random.default_rng(0).uniform(-1, 1, (60, 7)):
    env.step(row)
    digest.update(env.pose().tobytes())
print(digest.hexdigest())
"""


def test_toy_is_a_snapshot_env_with_the_conventions_of_libero() -> None:
    env = world()
    assert isinstance(env, SnapshotEnv)
    action = env.spec.action
    assert env.spec.control_hz == 20.0
    assert action.kind == "delta_pose"
    assert action.scale == (0.05, 0.05, 0.05, 0.5, 0.5, 0.5, 1.0)
    assert (action.gripper_open, action.gripper_close) == (-1.0, 1.0)
    assert world("toy_two_arm").spec.action.size == 14


# --------------------------------------------------------------------------- scenes


@pytest.mark.parametrize(("suite", "index"), TASKS)
def test_expert_solves_every_task(suite: str, index: int) -> None:
    for layout, seed in ((Init(4), 0), (Sampled(), 21)):
        _, steps = solve(world(suite, index, layout, seed), noise=0.05, seed=seed)
        assert steps[-1].success
        assert steps[-1].terminated
        assert not steps[-1].truncated
        assert not any(step.success for step in steps[:-1])


@example(task=("toy_distractors", 0), layout=Sampled(), seed=81)
@given(
    task=st.sampled_from(TASKS),
    layout=st.one_of(st.builds(Init, st.integers(0, 9)), st.just(Sampled())),
    seed=st.integers(0, 2**32),
)
def test_layouts_fit_on_the_table_and_nothing_touches(
    task: tuple[str, int], layout: Init | Sampled, seed: int
) -> None:
    toy = toy_task(*task)
    spots = places(toy, layout, seed)
    assert spots == places(toy, layout, seed)
    for i, (x, y, _) in enumerate(spots):
        assert abs(x) + toy.things[i].radius < TABLE_HALF[0]
        assert abs(y) + toy.things[i].radius < TABLE_HALF[1]
        for k in range(i):
            gap = np.hypot(x - spots[k][0], y - spots[k][1])
            assert gap > toy.things[i].radius + toy.things[k].radius


def test_scenes_rest_from_the_first_tick() -> None:
    for suite, index in TASKS:
        env = world(suite, index)
        before = env.truth().objects
        after = env.step(np.tile(REST, len(env.spec.arms))).truth
        assert after is not None
        for name, place in before.items():
            np.testing.assert_array_equal(after.objects[name], place)


def test_swap_gives_the_instructions_of_pick_and_nothing_its_usual_place() -> None:
    for index in range(4):
        assert (
            toy_task("toy_swap", index).task.instruction == SIM.task("toy_pick", index).instruction
        )
        for k in range(10):
            usual = places(toy_task("toy_pick", index), Init(k), 0)
            swapped = places(toy_task("toy_swap", index), Init(k), 0)
            for (x, y, _), (u, v, _) in zip(usual, swapped, strict=True):
                assert np.hypot(x - u, y - v) > 0.05


def test_equal_scenes_are_bit_equal_in_another_process() -> None:
    runs = [
        subprocess.run(
            [sys.executable, "-c", HASH_CODE], capture_output=True, text=True, check=True
        )
        for _ in range(2)
    ]
    assert len(runs[0].stdout.strip()) == 64
    assert runs[0].stdout == runs[1].stdout


def test_the_seed_of_an_init_scene_decides_chance_but_not_the_layout() -> None:
    lengths = set()
    for seed in range(6):
        env = world("toy_slip", 0, Init(2), seed)
        np.testing.assert_array_equal(env.pose(), world("toy_slip", 0, Init(2)).pose())
        lengths.add(len(solve(env)[1]))
    assert len(lengths) > 1


# --------------------------------------------------------------------------- gripper and contact


def test_closing_takes_several_ticks_and_stalls_at_the_width_of_the_thing() -> None:
    env = world("toy_distractors", 1)
    place = env.truth().objects["cyan_can"][:3]
    reach(env, place + by(0.0, 0.0, 0.1))
    reach(env, place, ticks=15)
    steps = [env.step(np.array([0, 0, 0, 0, 0, 0, 1.0])) for _ in range(25)]
    width = openings(steps)
    assert width[0] > 0.07
    assert 5 < np.argmin(width) < 20
    assert (np.diff(width) <= 0.0).all()
    assert width[-1] == 2 * 0.018
    assert steps[5].proprio.arms[0].gripper_velocity < 0.0
    assert steps[-1].proprio.arms[0].gripper_velocity == 0.0


def test_closing_on_nothing_closes_fully() -> None:
    env = world()
    steps = [env.step(np.array([0, 0, 0, 0, 0, 0, 1.0])) for _ in range(30)]
    assert openings(steps)[0] == pytest.approx(OPENING_MAX, abs=0.002)
    assert openings(steps)[-1] == 0.0


def test_closing_beside_the_thing_pushes_it_and_lifts_nothing() -> None:
    env = world()
    place = env.truth().objects["red_cube"][:3]
    reach(env, place + by(0.021, 0.01, 0.1))
    reach(env, place + by(0.021, 0.01, 0.0), ticks=15)
    reach(env, place + by(0.021, 0.01, 0.0), grip=1.0, ticks=25)
    step = reach(env, place + by(0.021, 0.01, 0.1), grip=1.0, ticks=20)
    assert step.truth is not None
    moved = step.truth.objects["red_cube"][:3] - place
    assert moved[2] == 0.0
    assert np.linalg.norm(moved[:2]) > 0.002
    assert step.proprio.arms[0].gripper_opening == 0.0


def test_a_finger_that_lands_on_the_thing_stops_there() -> None:
    env = world()
    place = env.truth().objects["red_cube"][:3]
    beside = place + by(0.0, 0.045, 0.0)
    reach(env, beside + by(0.0, 0.0, 0.1))
    step = reach(env, beside, ticks=30)
    assert step.proprio.arms[0].ee_pos[2] >= place[2] + 0.02
    assert step.truth is not None
    np.testing.assert_array_equal(step.truth.objects["red_cube"][:3], place)


def test_a_sweeping_gripper_pushes_what_stands_in_its_way() -> None:
    env = world()
    place = env.truth().objects["red_cube"][:3]
    reach(env, place + by(-0.08, -0.045, 0.1))
    reach(env, place + by(-0.08, -0.045, 0.0), ticks=15)
    step = reach(env, place + by(0.05, -0.045, 0.0), ticks=20)
    assert step.truth is not None
    assert np.linalg.norm(step.truth.objects["red_cube"][:2] - place[:2]) > 0.003


def test_a_released_thing_falls_and_comes_to_rest() -> None:
    env = world()
    place = env.truth().objects["red_cube"][:3]
    reach(env, place + by(0.0, 0.0, 0.1))
    reach(env, place, ticks=15)
    reach(env, place, grip=1.0, ticks=20)
    lifted = reach(env, place + by(0.0, 0.0, 0.2), grip=1.0, ticks=20)
    assert lifted.truth is not None
    assert lifted.truth.objects["red_cube"][2] > TABLE_Z + 0.15
    steps = [env.step(REST) for _ in range(25)]
    heights = [step.truth.objects["red_cube"][2] for step in steps if step.truth]
    assert min(heights) == pytest.approx(TABLE_Z + 0.02)
    assert heights[-1] == heights[-5] == pytest.approx(TABLE_Z + 0.02)


def test_success_waits_for_release_and_rest() -> None:
    env = world()
    _, steps = solve(env)
    on = "on red_cube green_plate"
    last, before = steps[-1], steps[-2]
    assert last.truth is not None
    assert before.truth is not None
    assert last.truth.predicates == {on: True}
    over = [
        step
        for step in steps[:-1]
        if step.truth is not None
        and np.linalg.norm(
            step.truth.objects["red_cube"][:2] - step.truth.objects["green_plate"][:2]
        )
        < 0.02
    ]
    assert over
    assert all(step.truth and not step.truth.predicates[on] for step in over)


@given(seed=st.integers(0, 2**31))
def test_the_arm_stays_inside_its_workspace_and_above_the_table(seed: int) -> None:
    env = world("toy_two_arm")
    rng = np.random.default_rng(seed)
    push = rng.uniform(-1.0, 1.0, env.spec.action.size)
    for _ in range(40):
        step = env.step(np.clip(push + rng.normal(0.0, 0.3, push.size), -1.0, 1.0))
        for arm, plan in zip(step.proprio.arms, env.toy.arms, strict=True):
            assert (arm.ee_pos >= plan.low).all()
            assert (arm.ee_pos <= plan.high).all()
            assert 0.0 <= arm.gripper_opening <= OPENING_MAX
            assert np.isclose(np.linalg.norm(arm.ee_quat), 1.0)
        assert step.truth is not None
        for thing in env.toy.things:
            assert step.truth.objects[thing.name][2] >= thing.half_height - 1e-9


def test_rotation_commands_turn_the_gripper_about_world_axes() -> None:
    env = world()
    for _ in range(3):
        step = env.step(np.array([0, 0, 0, 0, 0, 0.2, -1.0]))
    # Half of 0.5 rad x 0.2 x 3 about z, composed with the home turn of 180 degrees about x.
    expected = [np.cos(0.15), np.sin(0.15), 0.0, 0.0]
    np.testing.assert_allclose(step.proprio.arms[0].ee_quat, expected, atol=1e-12)


# --------------------------------------------------------------------------- ends


def test_truncation_is_the_budget_and_no_termination() -> None:
    env = SIM.make("toy_pick", 0)
    env.reset(Scene(replace(env.toy.task, max_steps=3), Init(0)))
    steps = [env.step(REST) for _ in range(3)]
    assert [step.truncated for step in steps] == [False, False, True]
    assert not any(step.terminated or step.success for step in steps)
    with pytest.raises(SpecMismatch, match="reset"):
        env.step(REST)
    env.reset(Scene(env.toy.task, Init(0)))
    env.step(REST)


def test_stepping_after_success_goes_on_and_after_the_budget_raises_until_a_restore() -> None:
    env = world()
    snapshot = env.snapshot()
    solve(env)
    spent = round(env.observe().proprio.t * env.spec.control_hz)
    for _ in range(spent, env.toy.task.max_steps):
        assert env.step(REST).success
    ended = env.snapshot()
    with pytest.raises(SpecMismatch, match="budget"):
        env.step(REST)
    env.restore(snapshot)
    env.step(REST)
    env.restore(ended)
    with pytest.raises(SpecMismatch, match="budget"):
        env.step(REST)


def test_step_before_reset_is_refused() -> None:
    with pytest.raises(SpecMismatch, match="reset"):
        SIM.make("toy_pick", 0).step(REST)


# --------------------------------------------------------------------------- snapshots


@given(cut=st.integers(0, 40), seed=st.integers(0, 1000))
def test_restoring_anywhere_in_an_episode_repeats_the_rest(cut: int, seed: int) -> None:
    env = world("toy_slip", 0, Sampled(), seed)
    actions, steps = solve(env)
    cut = min(cut, len(actions) - 1)
    env.reset(Scene(env.toy.task, Sampled(), seed))
    for action in actions[:cut]:
        env.step(action)
    fresh = SIM.make("toy_slip", 0)
    assert fresh.restore(env.snapshot()).proprio.t == cut / 20.0
    for action, step in zip(actions[cut:], steps[cut:], strict=True):
        again = fresh.step(action)
        assert again.success == step.success
        assert again.truth is not None
        assert step.truth is not None
        for name, place in step.truth.objects.items():
            np.testing.assert_array_equal(again.truth.objects[name], place)


def test_equal_states_have_equal_snapshots() -> None:
    assert world().snapshot() == world().snapshot()


def test_snapshot_of_another_task_is_refused_by_name() -> None:
    snapshot = world("toy_pick", 1).snapshot()
    with pytest.raises(SpecMismatch, match="same task and version"):
        world("toy_pick", 0).restore(snapshot)


def test_pose_of_another_task_is_refused() -> None:
    with pytest.raises(SpecMismatch, match="same task"):
        world("toy_two_arm").show(world("toy_pick").pose())


# --------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("suite", "index", "render", "hint"),
    [
        ("toy_pik", 0, "fast", "toy_pick"),
        ("toy_pick", 4, "fast", "0 to 3"),
        ("toy_pick", -1, "fast", "0 to 3"),
        ("toy_pick", 0, "fst", "fast"),
    ],
)
def test_unknown_names_are_refused_with_a_hint(
    suite: str, index: int, render: str, hint: str
) -> None:
    with pytest.raises(ConfigError, match=hint):
        SIM.make(suite, index, render)


def test_expert_refuses_a_foreign_environment() -> None:
    class Foreign(ToyEnv):
        """Still a toy."""

    foreign = Foreign(toy_task("toy_pick", 0))
    foreign.reset(Scene(foreign.toy.task, Init(0)))
    next(SIM.expert(foreign))
    with pytest.raises(ConfigError, match="object"):
        SIM.expert(object())  # type: ignore[arg-type]
