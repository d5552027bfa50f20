"""What a tick costs beside the policy, the simulator and the cameras."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from zetta.runtime.benchmarks import Figure
from zetta.runtime.cli.deploy import deploy
from zetta.runtime.core import (
    Action,
    ActionChunk,
    Env,
    EnvSpec,
    Init,
    Observation,
    Policy,
    PolicySpec,
    RunSpec,
    Scene,
    Step,
)
from zetta.runtime.loop import Episode
from zetta.runtime.registry import policy, simulator

P50_TARGET_MS: Final = 0.3
P99_TARGET_MS: Final = 1.0


@dataclass(slots=True)
class _Elsewhere:
    """CPU seconds spent in what is not counted."""

    spent: float = 0.0


class _TimedEnv:
    """An environment whose steps and pictures are not counted."""

    def __init__(self, env: Env, elsewhere: _Elsewhere) -> None:
        self._env, self._elsewhere = env, elsewhere

    @property
    def spec(self) -> EnvSpec:
        return self._env.spec

    def reset(self, scene: Scene) -> Step:
        return self._env.reset(scene)

    def step(self, action: Action) -> Step:
        start = time.process_time()
        step = self._env.step(action)
        self._elsewhere.spent += time.process_time() - start
        return step

    def observe(self, cameras: Sequence[str] = (), depth: bool = False) -> Observation:
        start = time.process_time()
        observation = self._env.observe(cameras, depth)
        self._elsewhere.spent += time.process_time() - start
        return observation

    def close(self) -> None:
        self._env.close()


class _TimedPolicy:
    """A policy whose inference is not counted."""

    def __init__(self, inner: Policy, elsewhere: _Elsewhere) -> None:
        self._inner, self._elsewhere = inner, elsewhere

    @property
    def spec(self) -> PolicySpec:
        return self._inner.spec

    def reset(self, instruction: str, seed: int) -> None:
        self._inner.reset(instruction, seed)

    def infer(self, observation: Observation) -> ActionChunk:
        start = time.process_time()
        chunk = self._inner.infer(observation)
        self._elsewhere.spent += time.process_time() - start
        return chunk

    def close(self) -> None:
        self._inner.close()


def tick_figures(blocks: int) -> list[Figure]:
    """Time ticks of toy episodes under the starter bundle, critics judging at every one.

    Neither steps, pictures and inference nor the looks of vision signals are counted.
    """
    spent: list[float] = []
    for k in range(blocks + 1):
        ticks = _tick_times(Init(k))
        if k:  # the first episode warms up
            spent += ticks
    times = 1e3 * np.array(spent)
    return [
        Figure("tick_p50", float(np.quantile(times, 0.5)), "CPU ms", target=P50_TARGET_MS),
        Figure("tick_p99", float(np.quantile(times, 0.99)), "CPU ms", target=P99_TARGET_MS),
    ]


def _tick_times(layout: Init) -> list[float]:
    spec = RunSpec(
        "toy", "toy_pick", 0, layout, policy="toy/reach", bundle="starter", options=SHADOW
    )
    toy = simulator("toy")
    scene = Scene(toy.task(spec.suite, spec.task), layout)
    elsewhere = _Elsewhere()
    env = _TimedEnv(toy.make(spec.suite, spec.task), elsewhere)
    driver = _TimedPolicy(policy(spec.policy), elsewhere)
    deployed = deploy(spec, env, scene, driver.spec)
    assert deployed.signals is not None
    episode = Episode(env, scene, deployed.arbiter, driver, signals=deployed.signals)
    times = []
    with episode:
        episode.begin()
        while episode.result is None:
            before, looks = elsewhere.spent, deployed.signals.looks
            start = time.process_time()
            episode.tick()
            took = time.process_time() - start - (elsewhere.spent - before)
            if deployed.signals.looks == looks:
                times.append(took)
    return times


SHADOW: Final[Mapping[str, str]] = {"shadow": "yes"}
