"""What is measured about speed, and how: CPU seconds, arms alternated, ratios of medians.

Wall time on a shared machine says more about the neighbours than about the program. So every arm
runs in a process of its own (a process draws one environment), the arms take turns block by block
in the same run, and each block counts the CPU seconds of its process.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Protocol

import numpy as np

from zetta.runtime.core import Action, Env, Look, Policy, Scene, Sense, Simulator
from zetta.runtime.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured number, what it is held against, and whether it gets there."""

    name: str
    value: float
    unit: str
    baseline: float | None = None
    """The same measure under the baseline arm."""
    ratio: float | None = None
    """How many times better than the baseline; above 1 is better."""
    target: float | None = None
    """On `ratio` where there is a baseline, else on `value`."""
    higher_is_better: bool = False

    @property
    def met(self) -> bool | None:
        """Whether the target is reached; None without a target."""
        if self.target is None:
            return None
        if self.ratio is not None:
            return self.ratio >= self.target
        return self.value >= self.target if self.higher_is_better else self.value <= self.target


class TimedArm(Protocol):
    """Something that can be measured block by block."""

    def block(self) -> float:
        """Run one block and return its CPU seconds."""
        ...


def compare(
    name: str, arm: TimedArm, baseline: TimedArm, blocks: int, units: int, target: float | None
) -> Figure:
    """Alternate two arms and return how much less CPU the first one takes.

    Args:
        name: of the figure.
        arm: what is claimed to be faster.
        baseline: what it is compared with.
        blocks: blocks of each arm.
        units: ticks or pictures in a block; the figure is in milliseconds for one of them.
        target: on the ratio of medians.
    """
    own, other = [], []
    for turn in range(blocks):  # who goes first changes, so that a drift hits both alike
        if turn % 2:
            own.append(arm.block())
            other.append(baseline.block())
        else:
            other.append(baseline.block())
            own.append(arm.block())
    value, before = (1000 * median(seconds) / units for seconds in (own, other))
    return Figure(name, value, "CPU ms", before, before / value, target)


def record_actions(simulator: Simulator, env: Env, scene: Scene, most: int) -> list[list[float]]:
    """Return at most `most` actions of the scripted expert on `scene`, up to its success.

    Raises:
        ConfigError: no expert covers the task, or it needs a localiser.
    """
    step = env.reset(scene)
    motion = simulator.expert(env)
    actions: list[list[float]] = []
    wish = next(motion)
    while len(actions) < most:
        if isinstance(wish, Look):
            raise ConfigError("this expert looks for objects; give recorded actions instead")
        actions.append([float(value) for value in np.asarray(wish)])
        step = env.step(wish)
        if step.success or step.terminated or step.truncated:
            break
        try:
            wish = motion.send(Sense(step.proprio))
        except StopIteration:
            break
    motion.close()
    return actions


def replay_cpu_s(
    env: Env, scene: Scene, actions: Sequence[Action], cameras: Sequence[str], look_every: int
) -> float:
    """Return the CPU seconds of replaying `actions` with a look every so many ticks.

    The reset is not counted: it is the same in every arm.
    """
    return _replay_s(time.process_time, env, scene, actions, cameras, look_every)


def replay_wall_s(
    env: Env, scene: Scene, actions: Sequence[Action], cameras: Sequence[str], look_every: int
) -> float:
    """Return the wall seconds of the same, for an environment that works in another process."""
    return _replay_s(time.perf_counter, env, scene, actions, cameras, look_every)


def _replay_s(
    clock: Callable[[], float],
    env: Env,
    scene: Scene,
    actions: Sequence[Action],
    cameras: Sequence[str],
    look_every: int,
) -> float:
    env.reset(scene)
    start = clock()
    for index, action in enumerate(actions):
        if index % look_every == 0:
            env.observe(cameras)
        env.step(action)
    return clock() - start


def pictures_cpu_s(env: Env, cameras: Sequence[str], pictures: int) -> float:
    """Return the CPU seconds of drawing `pictures` pictures of the present moment, in turn."""
    start = time.process_time()
    for index in range(pictures):
        env.observe([cameras[index % len(cameras)]])
    return time.process_time() - start


@dataclass(frozen=True, slots=True)
class Latency:
    """How long one answer takes, in milliseconds."""

    cpu_p50_ms: float
    wall_p50_ms: float
    wall_p99_ms: float


def policy_latency(policy: Policy, env: Env, scene: Scene, calls: int, warm_up: int = 5) -> Latency:
    """Return the latency of `policy` on a real observation of `scene`; the first calls are free."""
    env.reset(scene)
    observation = env.observe([camera.name for camera in policy.spec.cameras], policy.spec.depth)
    policy.reset(observation.instruction, seed=0)
    cpu, wall = [], []
    for _ in range(warm_up + calls):
        cpu_start, wall_start = time.process_time(), time.perf_counter()
        policy.infer(observation)
        cpu.append(1000 * (time.process_time() - cpu_start))
        wall.append(1000 * (time.perf_counter() - wall_start))
    walls = np.array(wall[warm_up:])
    return Latency(median(cpu[warm_up:]), float(np.median(walls)), float(np.quantile(walls, 0.99)))
