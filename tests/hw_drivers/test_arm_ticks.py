"""The loop on an arm whose policy or localizer is late: the ticks go on and hold it."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import numpy as np
import pytest

from tests.hw_drivers.arm_parts import Served, told, until
from zetta.hw_drivers.arm import OPEN
from zetta.hw_drivers.arm_env import ArmEnv
from zetta.hw_drivers.arm_messages import Endpoints
from zetta.hw_drivers.arm_server import ArmServer, ServerSettings
from zetta.hw_drivers.arm_setup import ArmSetup
from zetta.hw_drivers.simple_side import HOME, SimpleSide
from zetta.hw_drivers.zmq_arm import ZmqArm
from zetta.runtime.arbiter import MotionOnly, PolicyOnly
from zetta.runtime.core import (
    ActionChunk,
    ActionSpec,
    Array,
    EnvSpec,
    EpisodeResult,
    Estimate,
    HeightGrid,
    Init,
    Look,
    Motion,
    Observation,
    Outcome,
    PolicySpec,
    Scene,
    Step,
    Task,
    Tick,
    read_only,
)
from zetta.runtime.errors import ConnectionLost
from zetta.runtime.looking import LooksAside
from zetta.runtime.loop import Episode
from zetta.runtime.pacing import MonotonicClock
from zetta.runtime.running_ahead import InTurn, RunsAhead

SETUP = ArmSetup("bench arm", max_state_age_s=10.0, command_ttl_s=0.9)
REPLAN, HORIZON, HELD = 4, 8, 6
"""Rows that are used, rows of a chunk, and ticks that an inference or a look takes."""


class Patience:
    """A sink that lets somebody go on whenever the arm was held for `HELD` ticks in a row."""

    def __init__(self) -> None:
        self.ticks: list[Tick] = []
        self.allowed = threading.Event()
        self._row = 0

    def wait(self) -> None:
        assert self.allowed.wait(60.0)
        self.allowed.clear()

    def begin(self, scene: Scene, spec: EnvSpec, instruction: str, step: Step) -> None: ...

    def tick(self, tick: Tick, step: Step, pose: Array | None) -> None:
        self.ticks.append(tick)
        self._row = self._row + 1 if tick.held else 0
        if self._row == HELD:
            self.allowed.set()

    def end(self, result: EpisodeResult, pose: Array | None) -> None: ...


class Slow:
    """Lowers the arm; every inference but the first takes `HELD` held ticks."""

    def __init__(self, action: ActionSpec, patience: Patience, lasts: int = 9) -> None:
        self.spec = PolicySpec("slow", action, (), REPLAN, HORIZON)
        self._patience, self._lasts = patience, lasts
        self.inferred = 0

    def reset(self, instruction: str, seed: int) -> None: ...

    def infer(self, observation: Observation) -> ActionChunk:
        self.inferred += 1
        if self.inferred > 1:
            self._patience.wait()
        if self.inferred > self._lasts:
            raise ConnectionLost("the policy at tcp://127.0.0.1:5601 went away")
        rows = np.zeros((HORIZON, 7))
        rows[:, 2], rows[:, 6] = -0.2, -1.0
        return ActionChunk(rows, observation.proprio.t)

    def close(self) -> None: ...


class Eye:
    """Finds everything, after `HELD` held ticks."""

    level = "vision"
    cameras = ()

    def __init__(self, patience: Patience) -> None:
        self._patience = patience

    def locate(self, observation: Observation, roles: Sequence[str]) -> Mapping[str, Estimate]:
        self._patience.wait()
        here = read_only(HOME)
        t = observation.proprio.t
        return {role: Estimate(role, here, here, 0.0, 1.0, t, "vision") for role in roles}

    def heights(self, observation: Observation) -> HeightGrid | None:
        return None


def scene(ticks: int) -> Scene:
    return Scene(Task("arm", 0, "put the bowl on the plate", ticks), Init(0))


@contextmanager
def arm() -> Iterator[tuple[ArmEnv, Served, SimpleSide]]:
    """Serve an arm whose watchdog outlasts the pauses of a busy machine, and not a late policy."""
    side = SimpleSide()
    settings = ServerSettings(Endpoints.on(port=0), watchdog_s=1.0, lease_s=5.0)
    server, ended = ArmServer(side, OPEN, settings), threading.Event()
    thread = threading.Thread(target=server.serve, args=(ended.is_set,), daemon=True)
    thread.start()
    running = Served(server, side, thread, ended)
    env = ArmEnv(ZmqArm(running.url), SETUP)
    try:
        yield env, running, side
    finally:
        env.close()
        running.end()


def held_rows(ticks: Sequence[Tick]) -> list[list[Tick]]:
    """Return the runs of held ticks."""
    rows: list[list[Tick]] = [[]]
    for tick in ticks:
        if tick.held:
            rows[-1].append(tick)
        elif rows[-1]:
            rows.append([])
    return [row for row in rows if row]


@pytest.mark.parametrize("ahead", [False, True])
def test_arm_is_held_by_ticks_while_its_policy_thinks(ahead: bool) -> None:
    patience = Patience()
    with arm() as (env, running, _):
        slow = Slow(env.spec.action, patience)
        policy = RunsAhead(slow) if ahead else InTurn(slow)
        clock = MonotonicClock()
        result = Episode(env, scene(36), PolicyOnly(), policy, sinks=[patience], clock=clock).run()
        watchdog = running.server.counts["watchdog"]
        patience.allowed.set()
        policy.close()

    rows = held_rows(patience.ticks)
    assert watchdog == 0
    assert len(rows) >= 2
    assert all(len(row) >= HELD for row in rows[:-1])  # the last one may end with the episode
    assert result.held_ticks == sum(len(row) for row in rows)
    assert result.sources == {"policy": 36}
    assert {tick.held for row in rows for tick in row} == {"the policy thinks"}
    assert all(tick.action[6] == -1.0 for row in rows for tick in row)


def test_arm_stands_still_while_it_is_held() -> None:
    patience = Patience()
    with arm() as (env, _, _):
        policy = InTurn(Slow(env.spec.action, patience))
        clock = MonotonicClock()
        Episode(env, scene(24), PolicyOnly(), policy, sinks=[patience], clock=clock).run()
        patience.allowed.set()
        policy.close()

    for row in held_rows(patience.ticks):
        heights = [float(tick.proprio.arms[0].ee_pos[2]) for tick in row]
        assert max(heights) - min(heights) < 0.02


def test_arm_is_held_by_ticks_while_a_motion_looks() -> None:
    patience, senses = Patience(), list[float]()

    def motion() -> Motion:
        for _ in range(3):
            yield np.array([0.0, 0.0, -0.2, 0.0, 0.0, 0.0, -1.0])
        sense = yield Look(("object",))
        senses.append(sense.proprio.t - sense.estimates["object"].t)
        yield np.array([0.0, 0.0, -0.2, 0.0, 0.0, 0.0, -1.0])
        return Outcome(True)

    with arm() as (env, running, _):
        aside, arbiter = LooksAside(Eye(patience)), MotionOnly(motion, "skill:look")
        clock = MonotonicClock()
        Episode(env, scene(30), arbiter, localizer=aside, sinks=[patience], clock=clock).run()
        watchdog = running.server.counts["watchdog"]
        aside.close()

    (row,) = held_rows(patience.ticks)
    assert watchdog == 0
    assert len(row) >= HELD
    assert {tick.held for tick in row} == {"the localizer looks"}
    assert senses[0] > 0.0  # the motion goes on from the present, not from when it began to look


@pytest.mark.parametrize("ahead", [False, True])
def test_policy_that_dies_ends_the_episode_with_its_error_and_the_arm_held(ahead: bool) -> None:
    patience = Patience()
    with arm() as (env, running, side):
        slow = Slow(env.spec.action, patience, lasts=1)
        policy = RunsAhead(slow) if ahead else InTurn(slow)
        episode = Episode(
            env, scene(90), PolicyOnly(), policy, sinks=[patience], clock=MonotonicClock()
        )
        with pytest.raises(ConnectionLost, match="went away"):
            episode.run()
        watchdog = running.server.counts["watchdog"]
        env.close()
        until(lambda: told(side)[-1] == "hold", "the program let go, the arm holds")
        policy.close()

    assert watchdog == 0
    assert episode.result is not None
    assert episode.result.reason == "error"
    assert patience.ticks[-1].held == "the policy thinks"
