"""The client: the same actions as in process, and never one that was not asked for."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from open_doors import LONG_S, Served, served
from served_observations import observed
from server_processes import ServerProcess, free_port

from zetta.runtime import registry
from zetta.runtime.arbiter import PolicyOnly
from zetta.runtime.core import (
    Action,
    ActionChunk,
    Array,
    EnvSpec,
    EpisodeResult,
    Init,
    Observation,
    Policy,
    Scene,
    Step,
    Tick,
)
from zetta.runtime.errors import (
    ConfigError,
    ConnectionLost,
    InfraError,
    SpecMismatch,
    Timeout,
)
from zetta.runtime.loop import Episode
from zetta.runtime.policies.echo import EchoPolicy
from zetta.runtime.policies.random_actions import RandomPolicy
from zetta.runtime.policies.served import ServedPolicy, parse
from zetta.runtime.policies.toy_reach import ToyReach
from zetta.runtime.shared_frames import FOLDER, PREFIX
from zetta.sims.toy import ToySimulator


class Deeds:
    """A sink that keeps every action."""

    def __init__(self) -> None:
        self.actions: list[Action] = []

    def begin(self, scene: Scene, spec: EnvSpec, instruction: str, step: Step) -> None:
        pass

    def tick(self, tick: Tick, step: Step, pose: Array | None) -> None:
        self.actions.append(tick.action)

    def end(self, result: EpisodeResult, pose: Array | None) -> None:
        pass


def played(policy: Policy, seed: int, sink: Deeds | None = None) -> list[bytes]:
    """Run an episode of the toy and return its actions."""
    deeds = sink or Deeds()
    simulator = ToySimulator()
    env = simulator.make("toy_pick", 0)
    scene = Scene(simulator.task("toy_pick", 0), Init(seed))
    Episode(env, scene, PolicyOnly(), policy, policy_seed=seed, sinks=[deeds]).run()
    return [action.tobytes() for action in deeds.actions]


@pytest.fixture(scope="module")
def toy() -> Iterator[Served]:
    with served(ToyReach) as place:
        yield place


@pytest.mark.parametrize("shared", [True, False], ids=["shared memory", "frames"])
def test_a_served_policy_acts_as_in_process(toy: Served, shared: bool) -> None:
    policy = toy.client(shared=shared)

    for seed in (0, 1):
        assert played(policy, seed) == played(ToyReach(), seed)
    assert policy.shares_memory is shared
    assert list(FOLDER.glob(f"{PREFIX}{os.getpid()}-*")) == []  # no name is left to be forgotten
    assert policy.late == 0
    policy.close()
    policy.close()


def test_the_command_finds_it_by_its_name(toy: Served) -> None:
    policy = registry.policy(
        f"zmq://{toy.endpoint.removeprefix('tcp://')}@within=5,robot=left,priority=2"
    )

    assert isinstance(policy, Policy)
    assert policy.spec == ToyReach().spec
    policy.close()


def test_two_robots_on_one_server_do_not_disturb_each_other(toy: Served) -> None:
    found: dict[int, list[bytes]] = {}

    def play(seed: int) -> None:
        policy = toy.client()
        found[seed] = played(policy, seed)
        policy.close()

    threads = [threading.Thread(target=play, args=(seed,)) for seed in (2, 3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LONG_S)

    assert found == {seed: played(ToyReach(), seed) for seed in (2, 3)}


def test_what_the_policy_refuses_is_said_as_in_process(toy: Served) -> None:
    policy = toy.client()
    with pytest.raises(SpecMismatch, match="before the first infer"):
        policy.infer(observed(EchoPolicy().spec))
    with pytest.raises(ConfigError, match="does not understand"):
        policy.reset("dance", 0)
    policy.reset("put the red cube on the green plate", 0)
    with pytest.raises(SpecMismatch, match="'front'"):
        policy.infer(observed(EchoPolicy().spec))
    policy.close()


class Sleepy(RandomPolicy):
    """Sleeps at its first inference until it is woken."""

    wake = threading.Event()
    naps = 1

    def infer(self, observation: Observation):  # type: ignore[no-untyped-def]
        if Sleepy.naps:
            Sleepy.naps -= 1
            Sleepy.wake.wait(LONG_S)
        return super().infer(observation)


def test_a_late_answer_is_a_timeout_and_is_never_used() -> None:
    with served(Sleepy) as place:
        policy = place.client(within_s=0.2)
        policy.reset("lift it", 5)
        with pytest.raises(Timeout, match="did not answer infer"):
            policy.infer(observed(policy.spec, t=1.0))
        Sleepy.wake.set()
        with pytest.raises(ConnectionLost, match="reset first"):
            policy.infer(observed(policy.spec, t=2.0))
        policy.reset("lift it", 5)
        again = policy.infer(observed(policy.spec, t=3.0))

        np.testing.assert_array_equal(again.actions, alone("lift it", 5, 3.0).actions)
        assert again.t_obs == 3.0
        assert policy.reconnections == 1
        policy.close()


def test_a_pause_beyond_the_idle_time_loses_the_episode_and_a_reset_goes_on() -> None:
    with served(RandomPolicy, idle_s=1.0) as place:
        policy = place.client()
        for seed in (5, 6):
            before = place.door.counts.expired
            policy.reset("lift it", seed)  # the second opens a session again
            got = policy.infer(observed(policy.spec, t=1.0))
            np.testing.assert_array_equal(got.actions, alone("lift it", seed, 1.0).actions)
            wait_for(lambda before=before: place.door.counts.expired > before)
        with pytest.raises(ConnectionLost, match=r"silent for 1 s .*with a reset"):
            policy.infer(observed(policy.spec, t=2.0))
        with pytest.raises(ConnectionLost, match="reset first"):
            policy.infer(observed(policy.spec, t=3.0))
        assert (policy.late, place.engine.stats.sessions) == (0, 0)
        policy.close()


def alone(instruction: str, seed: int, t: float) -> ActionChunk:
    """Return the first chunk of an episode in process."""
    policy = RandomPolicy()
    policy.reset(instruction, seed)
    return policy.infer(observed(policy.spec, t=t))


def wait_for(so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + LONG_S
    while not so():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_server_that_was_replaced_loses_the_episode_and_serves_the_next() -> None:
    port = free_port()
    with served(ToyReach, bind=f"tcp://127.0.0.1:{port}") as first:
        policy = first.client(within_s=5.0)
        policy.reset("put the red cube on the green plate", 0)
    with served(ToyReach, bind=f"tcp://127.0.0.1:{port}"):
        with pytest.raises(ConnectionLost):
            policy.infer(toy_seen())
        assert played(policy, 0) == played(ToyReach(), 0)
    with served(RandomPolicy, bind=f"tcp://127.0.0.1:{port}"):
        with pytest.raises(SpecMismatch, match="now serves random"):
            policy.reset("put the red cube on the green plate", 0)
        policy.close()


def toy_seen() -> Observation:
    env = ToySimulator().make("toy_pick", 0)
    env.reset(Scene(ToySimulator().task("toy_pick", 0), Init(0)))
    return env.observe(["front"], depth=True)


def test_where_no_server_is_the_message_says_how_to_start_one() -> None:
    with pytest.raises(Timeout, match=r"zetta serve --policy NAME --bind tcp://127\.0\.0\.1:9"):
        registry.policy("zmq://127.0.0.1:9@within=0.05")


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("zmq:127.0.0.1:5601", "expected zmq://HOST:PORT"),
        ("zmq://", "expected zmq://HOST:PORT"),
        ("zmq://a:1@speed=3", "speed"),
        ("zmq://a:1@within=soon", "where seconds belong"),
        ("zmq://a:1@within=0", "waited for"),
        ("zmq://a:1@priority=high", "whole number"),
    ],
)
def test_names_that_are_none_are_refused(name: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        parse(name)


# --------------------------------------------------------------------------- real deaths


class Killer(Deeds):
    """Kills the server after a tick and starts another one in its place."""

    def __init__(self, server: ServerProcess, at: int, port: int, wait: bool) -> None:
        super().__init__()
        self.server, self._tick, self._port, self._wait = server, at, port, wait

    def tick(self, tick: Tick, step: Step, pose: Array | None) -> None:
        super().tick(tick, step, pose)
        if tick.index == self._tick:
            self.server.end(signal.SIGKILL)
            self.server = ServerProcess("toy/reach", self._port)
            if self._wait:
                self.server.wait_ready()


def killed_over_and_over(times: int) -> None:
    port = free_port()
    server = ServerProcess("toy/reach", port)
    server.wait_ready()
    clean = {seed: played(ToyReach(), seed) for seed in range(4)}
    policy = ServedPolicy(parse(f"zmq://127.0.0.1:{port}@within=20"))
    rng = np.random.default_rng(0)
    for k in range(times):
        seed, at, wait = k % 4, int(rng.integers(0, 40)), bool(k % 2)
        killer = Killer(server, at, port, wait)
        with pytest.raises(InfraError):
            played(policy, seed, killer)
        done = [action.tobytes() for action in killer.actions]
        server = killer.server
        if not wait:
            server.wait_ready()
        assert at < len(done) <= at + policy.spec.replan_steps
        assert done == clean[seed][: len(done)]
    assert played(policy, 0) == clean[0]
    policy.close()
    code, said = server.end(signal.SIGTERM)
    assert code == 0, said


def test_a_server_killed_in_mid_episode_costs_that_episode_and_no_action_is_stale() -> None:
    killed_over_and_over(1)


@pytest.mark.slow
def test_a_server_killed_in_mid_episode_twenty_times_never_lets_a_stale_action_through() -> None:
    killed_over_and_over(20)


def test_a_server_that_stood_still_answers_nobody_afterwards() -> None:
    port = free_port()
    server = ServerProcess("toy/reach", port)
    server.wait_ready()
    policy = ServedPolicy(parse(f"zmq://127.0.0.1:{port}@within=1"))
    policy.reset("put the red cube on the green plate", 0)
    server.send(signal.SIGSTOP)
    with pytest.raises(Timeout):
        policy.infer(toy_seen())
    server.send(signal.SIGCONT)

    assert played(policy, 1) == played(ToyReach(), 1)
    policy.close()
    assert server.end(signal.SIGINT)[0] == 130
