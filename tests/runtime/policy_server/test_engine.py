"""The engine: order, deadlines, isolation of sessions, and an end that leaves nobody waiting."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from served_observations import observed

from zetta.runtime import registry
from zetta.runtime.core import ActionChunk, Observation, Policy, Proprio
from zetta.runtime.errors import ConfigError, ConnectionLost, InfraError, SpecMismatch, Timeout
from zetta.runtime.policies.echo import EchoEpisode, EchoPolicy
from zetta.runtime.policies.random_actions import RandomPolicy
from zetta.runtime.policy_server.engine import Engine
from zetta.runtime.policy_server.limits import ServingLimits
from zetta.runtime.policy_server.seats import BatchPolicy

WAIT_S = 10.0
"""Longest that a test waits for a future; it never should."""


class GatedPolicy(EchoPolicy):
    """An echo that stands still until it is let through, and keeps what it was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.begun, self.go = threading.Event(), threading.Event()
        self.asked: list[tuple[float, ...]] = []

    def infer_batch(
        self, episodes: Sequence[EchoEpisode], observations: Sequence[Observation], rows: int
    ) -> list[ActionChunk]:
        self.asked.append(tuple(seen.proprio.t for seen in observations))
        self.begun.set()
        assert self.go.wait(WAIT_S)
        return super().infer_batch(episodes, observations, rows)


@pytest.fixture
def start() -> Iterator[Callable[..., Engine]]:
    engines: list[Engine] = []

    def begin(policy: Any, **limits: Any) -> Engine:
        engines.append(Engine(policy, ServingLimits(**limits)))
        return engines[-1]

    yield begin
    for engine in engines:
        engine.stop()


def opened(engine: Engine, seed: int = 0, priority: int = 0) -> int:
    session = engine.open("robot", priority)
    engine.reset(session, "lift the cube", seed).result(WAIT_S)
    return session


def chunks(policy: Policy, seed: int, count: int) -> list[bytes]:
    policy.reset("lift the cube", seed)
    seen = [observed(policy.spec, k, k) for k in range(count)]
    return [policy.infer(observation).actions.tobytes() for observation in seen]


@pytest.mark.parametrize("name", ["echo", "random", "zetta/tiny"])
def test_sessions_that_take_turns_get_what_each_would_get_alone(
    name: str, start: Callable[..., Engine]
) -> None:
    alone = [chunks(registry.policy(name), seed, 3) for seed in (1, 2)]
    engine = start(lambda: registry.policy(name))
    sessions = [opened(engine, seed) for seed in (1, 2)]

    served: list[list[bytes]] = [[], []]
    for k in range(3):
        for own, session in zip(served, sessions, strict=True):
            future = engine.infer(session, observed(engine.spec, k, k), None)
            own.append(future.result(WAIT_S).actions.tobytes())

    assert served == alone


@pytest.mark.parametrize("name", ["echo", "zetta/tiny"])
@pytest.mark.parametrize("count", [2, 3, 5, 8])
def test_a_batch_agrees_with_its_rows_one_by_one(name: str, count: int) -> None:
    policy = registry.policy(name)
    assert isinstance(policy, BatchPolicy)
    seen = [observed(policy.spec, k, k) for k in range(count)]

    together = policy.infer_batch([policy.begin("lift it", k) for k in range(count)], seen, 8)

    for k, chunk in enumerate(together):
        policy.reset("lift it", k)
        single = policy.infer(seen[k])
        np.testing.assert_allclose(chunk.actions, single.actions, rtol=1e-5, atol=1e-6)
        assert chunk.t_obs == single.t_obs


def test_the_time_of_a_call_that_does_not_end_is_told_and_that_of_none_is_zero() -> None:
    policy, clock = GatedPolicy(), [0.0]
    engine = Engine(policy, clock=lambda: clock[0])
    session = opened(engine)
    future = engine.infer(session, observed(policy.spec, 0.0), None)
    assert policy.begun.wait(WAIT_S)
    clock[0] = 40.0
    assert engine.busy_s == 40.0

    policy.go.set()
    future.result(WAIT_S)
    engine.drain(WAIT_S)
    assert engine.busy_s == 0.0
    engine.stop()


def test_what_waits_while_the_policy_computes_is_served_in_one_batch(
    start: Callable[..., Engine],
) -> None:
    policy = GatedPolicy()
    engine = start(policy)
    sessions = [opened(engine, k) for k in range(4)]
    futures = [engine.infer(sessions[0], observed(policy.spec, 0.0), None)]
    assert policy.begun.wait(WAIT_S)

    futures += [engine.infer(s, observed(policy.spec, float(s)), None) for s in sessions[1:]]
    policy.go.set()
    given = [future.result(WAIT_S) for future in futures]

    assert policy.asked[0] == (0.0,)
    assert sum(len(batch) for batch in policy.asked) == 4
    assert len(policy.asked) <= 3
    assert [chunk.t_obs for chunk in given] == [0.0, *map(float, sessions[1:])]
    assert engine.stats.inferences == 4


def test_a_request_whose_deadline_passed_is_never_begun(start: Callable[..., Engine]) -> None:
    policy = GatedPolicy()
    engine = start(policy)
    first, second = opened(engine), opened(engine)
    running = engine.infer(first, observed(policy.spec, 1.0), None)
    assert policy.begun.wait(WAIT_S)

    late = engine.infer(second, observed(policy.spec, 2.0), 0.0)
    policy.go.set()

    assert running.result(WAIT_S).t_obs == 1.0
    with pytest.raises(Timeout, match="deadline"):
        late.result(WAIT_S)
    assert policy.asked == [(1.0,)]
    assert engine.stats.late == 1


def test_a_session_has_one_request_at_a_time(start: Callable[..., Engine]) -> None:
    policy = GatedPolicy()
    engine = start(policy)
    first, second = opened(engine), opened(engine)
    engine.infer(first, observed(policy.spec), None)
    assert policy.begun.wait(WAIT_S)
    engine.infer(second, observed(policy.spec), None)

    with pytest.raises(ConfigError, match="one at a time"):
        engine.infer(second, observed(policy.spec), None)
    policy.go.set()


def test_a_bad_observation_fails_alone(start: Callable[..., Engine]) -> None:
    engine = start(EchoPolicy)
    session = opened(engine)
    good = observed(engine.spec)
    blind = Observation(good.proprio, good.instruction)
    armless = Observation(Proprio(0.0, ()), good.instruction, good.images)

    for bad, why in ((blind, "needs the picture"), (armless, "at least one arm")):
        with pytest.raises(SpecMismatch, match=why):
            engine.infer(session, bad, None).result(WAIT_S)

    assert engine.infer(session, good, None).result(WAIT_S).t_obs == 0.0


def test_infer_before_reset_fails_alone(start: Callable[..., Engine]) -> None:
    engine = start(EchoPolicy)
    ready, unready = opened(engine), engine.open("robot")

    with pytest.raises(SpecMismatch, match="before the first infer"):
        engine.infer(unready, observed(engine.spec), None).result(WAIT_S)
    with pytest.raises(ConfigError, match="instruction is empty"):
        engine.reset(unready, " ", 0).result(WAIT_S)
    with pytest.raises(SpecMismatch, match="before the first infer"):
        engine.infer(unready, observed(engine.spec), None).result(WAIT_S)

    engine.infer(ready, observed(engine.spec), None).result(WAIT_S)


def test_a_policy_that_breaks_is_said_to_its_sessions_and_the_engine_goes_on(
    start: Callable[..., Engine],
) -> None:
    class Broken(RandomPolicy):
        def infer(self, observation: Observation) -> ActionChunk:
            raise ZeroDivisionError("inside")

    engine = start(Broken)
    session = opened(engine)

    with pytest.raises(InfraError, match="ZeroDivisionError: inside"):
        engine.infer(session, observed(engine.spec), None).result(WAIT_S)
    engine.reset(session, "lift it", 0).result(WAIT_S)
    assert engine.stats.failed == 1


def test_sessions_are_limited_and_become_free_again(start: Callable[..., Engine]) -> None:
    engine = start(EchoPolicy, max_sessions=2)
    first = engine.open("left arm")
    engine.open("right arm")

    with pytest.raises(ConfigError, match=r"all 2 sessions are taken \(left arm, right arm\)"):
        engine.open("third")
    engine.close(first)
    engine.close(first)

    assert engine.open("third") not in (first, 0)
    with pytest.raises(ConnectionLost, match="no session"):
        engine.infer(first, observed(engine.spec), None)


def test_one_instance_of_a_policy_that_does_not_batch_has_one_session(
    start: Callable[..., Engine],
) -> None:
    engine = start(RandomPolicy())
    engine.open("first")

    with pytest.raises(ConfigError, match="all 1 sessions"):
        engine.open("second")


def test_instances_are_made_as_needed_and_given_on(start: Callable[..., Engine]) -> None:
    made: list[RandomPolicy] = []

    def make() -> RandomPolicy:
        made.append(RandomPolicy())
        return made[-1]

    engine = start(make)
    first, _ = opened(engine), opened(engine)
    assert len(made) == 2
    engine.close(first)
    opened(engine)

    assert len(made) == 2


def test_draining_finishes_what_was_begun_and_takes_nothing_new(
    start: Callable[..., Engine],
) -> None:
    policy = GatedPolicy()
    engine = start(policy)
    session = opened(engine)
    running = engine.infer(session, observed(policy.spec), None)
    assert policy.begun.wait(WAIT_S)
    policy.go.set()

    engine.drain(WAIT_S)

    assert running.done()
    with pytest.raises(ConnectionLost, match="ending"):
        engine.open("late")
    with pytest.raises(ConnectionLost, match="ending"):
        engine.infer(session, observed(policy.spec), None)


def test_stopping_leaves_nobody_waiting(start: Callable[..., Engine]) -> None:
    policy = GatedPolicy()
    engine = start(policy)
    first, second = opened(engine), opened(engine)
    running = engine.infer(first, observed(policy.spec), None)
    assert policy.begun.wait(WAIT_S)
    waiting = engine.infer(second, observed(policy.spec), None)
    policy.go.set()

    engine.stop()
    engine.stop()

    assert running.done()
    assert waiting.done()


def test_a_policy_that_cannot_be_loaded_says_why_at_once() -> None:
    with pytest.raises(ConfigError, match="unknown policy"):
        Engine(lambda: registry.policy("no such"))


@pytest.mark.parametrize(
    ("limits", "why"),
    [
        ({"max_sessions": 0}, "at least 1 session"),
        ({"max_rows": 3}, "1, 2, 4, 8 rows"),
        ({"idle_s": 0.0}, "idle time above 0"),
        ({"max_wait_s": float("nan")}, "below 10 s"),
    ],
)
def test_limits_that_make_no_sense_are_refused(limits: dict[str, Any], why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        ServingLimits(**limits)
