from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from zetta.runtime import registry
from zetta.runtime.core import Init, Layout, Policy, Sampled, Scene
from zetta.runtime.errors import ConfigError, SpecMismatch
from zetta.runtime.policies import toy_sight
from zetta.runtime.policies.toy_reach import load
from zetta.sims.toy import ToyEnv, ToySimulator
from zetta.sims.toy_faults import ToyFaults

SIM = ToySimulator()


def drive(
    env: ToyEnv, policy: Policy, layout: Layout, seed: int, ticks: int = 1000
) -> tuple[bool, list[float]]:
    """Return success and the dispersion of every chunk."""
    step = env.reset(Scene(replace(env.toy.task, max_steps=80), layout, seed))
    policy.reset(env.toy.task.instruction, seed)
    spread: list[float] = []
    while not (step.terminated or step.truncated) and ticks > 0:
        chunk = policy.infer(env.observe(["front"], depth=True))
        spread.append(chunk.dispersion)
        for row in chunk.actions[: policy.spec.replan_steps]:
            if not (step.terminated or step.truncated):
                step = env.step(row)
                ticks -= 1
    return step.success, spread


@cache
def outcomes(name: str) -> tuple[bool, ...]:
    env = SIM.make("toy_swap", 1)
    return tuple(drive(env, load(name), Sampled(), seed)[0] for seed in range(10))


def test_without_errors_it_solves_what_it_sees() -> None:
    assert sum(outcomes("toy/reach-exact")) >= 9


def test_with_errors_it_fails_sometimes_and_not_always() -> None:
    assert 2 <= sum(outcomes("toy/reach")) <= 9


def test_more_error_means_more_failures() -> None:
    assert sum(outcomes("toy/reach-clumsy")) < sum(outcomes("toy/reach"))


@pytest.mark.parametrize(("suite", "index"), [("toy_distractors", 2), ("toy_stack", 0)])
def test_it_follows_the_instruction_among_other_things(suite: str, index: int) -> None:
    assert drive(SIM.make(suite, index), load("toy/reach-exact"), Init(1), 0)[0]


def test_it_sees_things_where_they_are() -> None:
    env = SIM.make("toy_distractors", 0)
    for k in range(5):
        env.reset(Scene(env.toy.task, Init(k)))
        seen = env.observe(["front"], depth=True)
        table, found = toy_sight.blobs(
            seen.images["front"], seen.depth["front"], seen.cameras["front"]
        )
        assert table == pytest.approx(0.4, abs=1e-4)
        places = {(b.colour, b.flat): b.position for b in found}
        for thing in env.toy.things:
            error = places[(thing.colour, thing.fixed)] - env.truth().objects[thing.name][:3]
            assert np.abs(error[:2]).max() < 0.013
            assert error[2] == pytest.approx(thing.half_height, abs=0.008)


def test_equal_seeds_give_equal_episodes_and_other_seeds_other_chunks() -> None:
    env = SIM.make("toy_pick", 0)
    env.reset(Scene(env.toy.task, Init(0)))
    seen = env.observe(["front"], depth=True)
    policy = load("toy/reach")
    chunks = []
    for seed in (1, 1, 2):
        policy.reset(env.toy.task.instruction, seed)
        chunks.append(policy.infer(seen))
    np.testing.assert_array_equal(chunks[0].actions, chunks[1].actions)
    assert chunks[0].dispersion == chunks[1].dispersion > 0.0
    assert (chunks[0].actions != chunks[2].actions).any()


def test_dispersion_is_zero_without_errors() -> None:
    _, spread = drive(SIM.make("toy_pick", 0), load("toy/reach-exact"), Init(0), 0)
    assert spread
    assert not any(spread)


def test_after_a_reset_with_the_item_in_hand_it_goes_on_to_the_target() -> None:
    env = SIM.make("toy_pick", 0)
    policy = load("toy/reach-exact")
    drive(env, policy, Init(0), 0, ticks=32)
    assert env.truth().objects["red_cube"][2] > 0.45
    policy.reset(env.toy.task.instruction, 5)
    step = env.step(np.array([0, 0, 0, 0, 0, 0, 1.0]))
    while not (step.terminated or step.truncated):
        for row in policy.infer(env.observe(["front"], depth=True)).actions[:4]:
            if not step.terminated:
                step = env.step(row)
    assert step.success
    assert step.proprio.t < 4.0


def test_with_a_black_camera_it_keeps_still_and_says_so() -> None:
    env = SIM.make("toy_pick", 0, faults=ToyFaults(camera_black_at=0))
    success, spread = drive(env, load("toy/reach"), Init(0), 0, ticks=40)
    assert not success
    assert min(spread) >= 0.1
    assert np.linalg.norm(env.observe().proprio.arms[0].ee_pos - env.toy.arms[0].home) < 1e-9


def test_a_shifted_calibration_makes_it_miss() -> None:
    env = SIM.make("toy_pick", 0, faults=ToyFaults(camera_shift_x=0.04))
    assert not drive(env, load("toy/reach-exact"), Init(0), 0)[0]


@pytest.mark.parametrize("instruction", ["", "put it there", "put the red cube away"])
def test_instructions_it_cannot_read_are_refused(instruction: str) -> None:
    with pytest.raises(ConfigError, match="red cube on the green plate"):
        load("toy/reach").reset(instruction, 0)


def test_missing_depth_and_a_second_arm_are_refused() -> None:
    env = SIM.make("toy_pick", 0)
    env.reset(Scene(env.toy.task, Init(0)))
    policy = load("toy/reach")
    with pytest.raises(SpecMismatch, match="reset"):
        policy.infer(env.observe(["front"], depth=True))
    policy.reset(env.toy.task.instruction, 0)
    with pytest.raises(SpecMismatch, match="depth"):
        policy.infer(env.observe(["front"]))
    pair = SIM.make("toy_two_arm", 0)
    pair.reset(Scene(pair.toy.task, Init(0)))
    with pytest.raises(SpecMismatch, match="one arm"):
        policy.infer(pair.observe(["front"], depth=True))


def test_random_actions_are_smooth_and_differ_by_seed() -> None:
    env = SIM.make("toy_pick", 0)
    env.reset(Scene(env.toy.task, Init(0)))
    policy = registry.policy("random")
    runs = []
    for seed in (0, 1):
        policy.reset("anything", seed)
        runs.append(np.concatenate([policy.infer(env.observe()).actions for _ in range(5)]))
    assert np.abs(np.diff(runs[0], axis=0)).max() <= 0.4 + 1e-9
    assert (runs[0] != runs[1]).any()
    with pytest.raises(ConfigError):
        policy.reset(" ", 0)


def test_random_actions_fit_several_arms_by_their_names() -> None:
    pair = SIM.make("toy_two_arm", 0)
    assert registry.policy("random@left,right").spec.action == pair.spec.action
    with pytest.raises(ConfigError, match="random@right,left"):
        registry.policy("random@left")


def test_names_choose_the_size_of_the_errors() -> None:
    specs = [registry.policy(n).spec for n in ("toy/reach", "toy/reach-exact", "toy/reach-clumsy")]
    assert len({spec.digest for spec in specs}) == len(specs)
    assert len({replace(spec, name="", digest="") for spec in specs}) == 1
    with pytest.raises(ConfigError, match="toy/reach"):
        load("toy/reech")
