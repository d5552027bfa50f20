from __future__ import annotations

import numpy as np
import pytest

from zetta.runtime.arbiter import MotionOnly, PolicyOnly
from zetta.runtime.core import (
    Action,
    ActionChunk,
    Init,
    Look,
    Motion,
    Observation,
    Outcome,
    Scene,
    Step,
    Tick,
)
from zetta.runtime.drivers import MotionDriver
from zetta.runtime.errors import SpecMismatch
from zetta.runtime.loop import Episode
from zetta.runtime.policies.toy_reach import ToyReach
from zetta.runtime.policy_motion import policy_rows
from zetta.runtime.running_ahead import InTurn
from zetta.sims.toy import ToyEnv, ToySimulator


@pytest.fixture
def env() -> ToyEnv:
    made = ToySimulator().make("toy_pick", 0)
    made.reset(Scene(made.toy.task, Init(0)))
    return made


def rows(env: ToyEnv, motion: Motion) -> tuple[list[Action], Outcome]:
    """Run a motion in a world that stands where it is now."""
    driver, actions = MotionDriver(motion, "agent:test", env, None), []
    while not isinstance(wish := driver.next_action(env.observe().proprio), Outcome):
        actions.append(wish)
        env.step(wish)
    return actions, wish


def test_it_asks_for_the_present_before_the_policy_is_asked(env: ToyEnv) -> None:
    assert next(policy_rows(ToyReach(), env, 0, 5)) == Look(())


def test_the_policy_drives_for_its_ticks_as_it_does_in_an_episode(env: ToyEnv) -> None:
    actions, outcome = rows(env, policy_rows(ToyReach(), env, 7, 30))
    taken: list[Action] = []

    class Sink:
        def begin(self, *_: object) -> None: ...
        def end(self, *_: object) -> None: ...
        def tick(self, tick: Tick, step: Step, pose: object) -> None:
            taken.append(tick.action)

    again = ToySimulator().make("toy_pick", 0)
    scene = Scene(again.toy.task, Init(0))
    Episode(again, scene, PolicyOnly(), ToyReach(), policy_seed=7, sinks=[Sink()]).run()

    assert outcome == Outcome(True, "the policy drove for 30 ticks")
    assert len(actions) == 30
    np.testing.assert_array_equal(np.array(actions), np.array(taken[:30]))


def test_it_is_told_another_instruction_where_one_is_given(env: ToyEnv) -> None:
    own, _ = rows(env, policy_rows(ToyReach(), env, 7, 25))
    env.reset(Scene(env.toy.task, Init(0)))
    other, _ = rows(
        env, policy_rows(ToyReach(), env, 7, 25, "put the blue cube on the yellow plate")
    )

    assert not np.allclose(own, other)


def test_a_policy_of_other_arms_is_refused_before_it_drives() -> None:
    two = ToySimulator().make("toy_two_arm", 0)
    two.reset(Scene(two.toy.task, Init(0)))

    with pytest.raises(SpecMismatch):
        policy_rows(ToyReach(), two, 0, 5)


def test_it_can_be_one_part_of_a_longer_motion(env: ToyEnv) -> None:
    def motion() -> Motion:
        first = yield from policy_rows(ToyReach(), env, 0, 3)
        yield np.zeros(7)
        second = yield from policy_rows(ToyReach(), env, 1, 2)
        return Outcome(first.completed and second.completed, "both")

    scene = Scene(env.toy.task, Init(0))
    result = Episode(env, scene, MotionOnly(motion, "agent:test")).run()

    assert result.sources == {"agent:test": 6}
    assert result.detail == "agent:test completed: both"


def test_a_policy_that_thinks_beside_the_loop_is_waited_for_in_ticks_that_hold(
    env: ToyEnv,
) -> None:
    asked: list[str] = []

    class Patient(InTurn):
        def answer(self, observation: Observation, within_s: float | None) -> ActionChunk | None:
            """Answer at the third time."""
            asked.append("again")
            if len(asked) % 3:
                return None
            return super().answer(observation, None)

    policy = Patient(ToyReach())
    ticks: list[Tick] = []

    class Sink:
        def begin(self, *_: object) -> None: ...
        def end(self, *_: object) -> None: ...
        def tick(self, tick: Tick, step: Step, pose: object) -> None:
            ticks.append(tick)

    def moving() -> Motion:
        yield np.array([0.0] * 6 + [-1.0])
        return (yield from policy_rows(policy, env, 7, 3))

    arbiter = MotionOnly(moving, "agent:test")
    Episode(env, Scene(env.toy.task, Init(0)), arbiter, sinks=[Sink()]).run()
    policy.close()

    assert [tick.held for tick in ticks] == ["", *["the policy thinks"] * 2, "", "", ""]
    assert {tick.source for tick in ticks} == {"agent:test"}
