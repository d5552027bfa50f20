from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest

from zetta.runtime import registry
from zetta.runtime.benchmarks import (
    Figure,
    compare,
    pictures_cpu_s,
    policy_latency,
    record_actions,
    replay_cpu_s,
)
from zetta.runtime.core import Action, Env, Init, Observation, Scene, Step
from zetta.sims.toy import ToyEnv, ToySimulator
from zetta.sims.toy_tasks import toy_task

SIMULATOR = ToySimulator()
SCENE = Scene(SIMULATOR.task("toy_pick", 0), Init(0))


@dataclass
class Scripted:
    """An arm whose blocks take what is written."""

    name: str
    seconds: list[float]
    turns: list[str] = field(default_factory=list)

    def block(self) -> float:
        self.turns.append(self.name)
        return self.seconds.pop(0)


class CountingEnv(ToyEnv):
    """A toy that counts its looks and steps."""

    looks = 0
    steps = 0

    def observe(self, cameras: Sequence[str] = (), depth: bool = False) -> Observation:
        self.looks += 1
        return super().observe(cameras, depth)

    def step(self, action: Action) -> Step:
        self.steps += 1
        return super().step(action)


def toy() -> Env:
    return SIMULATOR.make("toy_pick", 0)


def test_arms_take_turns_and_one_slow_block_does_not_decide() -> None:
    turns: list[str] = []
    arm = Scripted("arm", [0.1, 0.1, 9.0], turns)
    baseline = Scripted("baseline", [0.4, 0.4, 0.4], turns)
    figure = compare("look", arm, baseline, blocks=3, units=10, target=3.5)
    assert turns == ["baseline", "arm", "arm", "baseline", "baseline", "arm"]
    assert figure.value == pytest.approx(10.0)
    assert figure.ratio == pytest.approx(4.0)
    assert figure.met is True


@pytest.mark.parametrize(
    ("figure", "met"),
    [
        (Figure("a", 5.0, "ms"), None),
        (Figure("a", 5.0, "ms", target=10.0), True),
        (Figure("a", 50.0, "ms", target=10.0), False),
        (Figure("a", 50.0, "ticks/s", target=10.0, higher_is_better=True), True),
        (Figure("a", 5.0, "ms", baseline=10.0, ratio=2.0, target=2.5), False),
    ],
)
def test_target_is_on_the_ratio_where_there_is_a_baseline_else_on_the_value(
    figure: Figure, met: bool | None
) -> None:
    assert figure.met is met


def test_recorded_actions_of_the_expert_solve_the_scene_again() -> None:
    actions = record_actions(SIMULATOR, toy(), SCENE, most=160)
    env = toy()
    env.reset(SCENE)
    successes = [env.step(np.array(action)).success for action in actions]
    assert successes[-1]
    assert not any(successes[:-1])
    assert len(record_actions(SIMULATOR, toy(), SCENE, most=5)) == 5


@pytest.mark.parametrize(("every", "looks"), [(1, 12), (4, 3), (8, 2)])
def test_replay_steps_through_every_action_and_looks_as_often_as_asked(
    every: int, looks: int
) -> None:
    env = CountingEnv(toy_task("toy_pick", 0))
    assert replay_cpu_s(env, SCENE, [np.zeros(7)] * 12, ["front", "wrist"], every) > 0
    assert (env.looks, env.steps) == (looks, 12)


def test_pictures_are_drawn_in_turn() -> None:
    env = CountingEnv(toy_task("toy_pick", 0))
    env.reset(SCENE)
    assert pictures_cpu_s(env, ["front", "wrist"], 5) > 0
    assert env.looks == 5


def test_latency_of_a_policy_is_taken_on_what_it_needs_to_see() -> None:
    policy = registry.policy("toy/reach")
    latency = policy_latency(policy, toy(), SCENE, calls=3, warm_up=1)
    assert 0 < latency.wall_p50_ms <= latency.wall_p99_ms
    assert latency.cpu_p50_ms > 0
