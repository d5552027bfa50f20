"""Toy episodes in which a known fault begins at a known tick: they score the diagnosis.

Every fault is run beside its twin: the same scene and policy seed without the fault. The toy is
deterministic, so the first tick at which the two worlds differ by more than `APART_M` is when the
fault began to tell, whoever asks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from zetta.runtime import registry
from zetta.runtime.cli.assemble import find_scene
from zetta.runtime.cli.deploy import deploy
from zetta.runtime.core import (
    Array,
    EnvSpec,
    EpisodeResult,
    RunSpec,
    Sampled,
    Scene,
    Step,
    Tick,
    Truth,
)
from zetta.runtime.episode_log import EpisodeHeader, RunFacts
from zetta.runtime.loop import Episode
from zetta.sims.toy import ToySimulator
from zetta.sims.toy_faults import ToyFaults
from zetta.skills.evolve.observed import ObservedEpisode, observe

SUITE: Final = "toy_swap"
EXACT, ERRING = "toy/reach-exact", "toy/reach"
"""One that makes no errors of its own, and one whose grasp and release scatter. Only scenes that it
solves without the fault are used, so what fails was planted."""
APART_M: Final = 0.005
"""Twins have parted when a hand, a finger or a thing is this far from its twin."""
SUCCESS_SEED, FAULT_SEED = 50_000, 60_000
"""Scenes of successes and of faults are different ones."""
TRIES: Final = 6
"""A fault that a policy survives is planted again in the next scene, up to so many times."""
OTHER_ITEM: Final = {"red": "blue", "blue": "red"}
OTHER_PLATE: Final = {"green": "yellow", "yellow": "green"}


@dataclass(frozen=True, slots=True)
class Planted:
    """A failure whose cause is known."""

    episode: ObservedEpisode
    fault: str
    onset: int
    """First tick before which the twins had parted."""
    missing: str
    """The milestone that this fault makes impossible."""


@dataclass(frozen=True, slots=True)
class _Wish:
    """What shall go wrong in one episode."""

    faults: ToyFaults
    instruction: str | None = None
    """What the policy is told instead."""


@dataclass(frozen=True, slots=True)
class _Run:
    episode: ObservedEpisode
    poses: Array
    """Before each action. Shape (T, N)."""


class _Memory:
    """A sink that keeps an episode."""

    def __init__(self) -> None:
        self.ticks: list[Tick] = []
        self.poses: list[Array] = []
        self.truths: list[Truth | None] = []
        self.result: EpisodeResult | None = None

    def begin(self, scene: Scene, spec: EnvSpec, instruction: str, step: Step) -> None:
        self.scene, self.spec, self.instruction = scene, spec, instruction
        self.truths.append(step.truth)

    def tick(self, tick: Tick, step: Step, pose: Array | None) -> None:
        assert pose is not None
        self.ticks.append(tick)
        self.truths.append(step.truth)
        self.poses.append(pose)

    def end(self, result: EpisodeResult, pose: Array | None) -> None:
        self.result = result


def _slip(run: _Run, rng: np.random.Generator) -> _Wish | None:
    carried = _carried(run)
    return _Wish(ToyFaults(slip_at=int(rng.choice(carried[: len(carried) // 2]))))


def _stuck_open(run: _Run, rng: np.random.Generator) -> _Wish | None:
    return _Wish(ToyFaults(gripper_stuck_at=int(rng.integers(0, 12))))


def _stuck_closed(run: _Run, rng: np.random.Generator) -> _Wish | None:
    return _Wish(ToyFaults(gripper_stuck_at=int(rng.choice(_carried(run)))))


def _knock(run: _Run, rng: np.random.Generator) -> _Wish | None:
    """Shove the item while the hand is coming down on it, too late to be noticed."""
    lowest = int(run.episode.hands[:, 0, 2].argmin())
    angle = rng.uniform(0.0, 2.0 * np.pi)
    return _Wish(
        ToyFaults(
            knock_at=max(lowest - int(rng.integers(0, 3)), 1),
            knock_x=0.06 * float(np.cos(angle)),
            knock_y=0.06 * float(np.sin(angle)),
        )
    )


def _shifted_camera(run: _Run, rng: np.random.Generator) -> _Wish | None:
    angle = rng.uniform(0.0, 2.0 * np.pi)
    x, y = 0.045 * float(np.cos(angle)), 0.045 * float(np.sin(angle))
    return _Wish(ToyFaults(camera_shift_x=x, camera_shift_y=y))


def _wrong_object(run: _Run, rng: np.random.Generator) -> _Wish | None:
    return _Wish(ToyFaults(), _exchanged(run.episode.instruction, OTHER_ITEM))


def _wrong_target(run: _Run, rng: np.random.Generator) -> _Wish | None:
    return _Wish(ToyFaults(), _exchanged(run.episode.instruction, OTHER_PLATE))


def _exchanged(instruction: str, other: Mapping[str, str]) -> str:
    return " ".join(other.get(word, word) for word in instruction.split())


FAULTS: Final[Mapping[str, tuple[str, Callable[[_Run, np.random.Generator], _Wish | None]]]] = {
    "slip": ("at target", _slip),
    "fingers stuck open": ("grasped", _stuck_open),
    "fingers stuck closed": ("released", _stuck_closed),
    "knocked away": ("grasped", _knock),
    "camera shifted": ("grasped", _shifted_camera),
    "wrong object": ("reached", _wrong_object),
    "wrong target": ("at target", _wrong_target),
}
"""Fault, the milestone it makes impossible, and how it is planted into a run without it."""


class FaultyWorlds:
    """Runs toy episodes with and without faults."""

    def __init__(self, policy: str = EXACT) -> None:
        self._toy = ToySimulator()
        self._name, self._policy = policy, registry.policy(policy)
        self._tasks = self._toy.suites()[SUITE]

    def successes(self, count: int, seed: int = SUCCESS_SEED) -> Iterator[ObservedEpisode]:
        """Yield so many episodes that solve their task, tasks in turn, from a seed upwards."""
        found = 0
        while found < count:
            run = self._run(seed, None)
            seed += 1
            if run.episode.success:
                found += 1
                yield run.episode

    def failures(self, fault: str, count: int) -> Iterator[Planted]:
        """Yield failures of one fault, at most `count`; fewer when the policy survives them."""
        place = list(FAULTS).index(fault)
        missing, plant = FAULTS[fault]
        found = 0
        for seed in range(FAULT_SEED, FAULT_SEED + count * TRIES):
            rng = np.random.default_rng([seed, place])
            seed += 10_000 * place
            twin = self._run(seed, None)
            wish = plant(twin, rng) if twin.episode.success else None
            if wish is None:
                continue
            run = self._run(seed, wish)
            if not run.episode.success:
                found += 1
                yield Planted(run.episode, fault, _onset(run, twin), missing)
            if found == count:
                return

    def _run(self, seed: int, wish: _Wish | None) -> _Run:
        index = seed % self._tasks
        faults = None if wish is None else wish.faults
        env = self._toy.make(SUITE, index, faults=faults)
        spec = RunSpec(
            "toy", SUITE, index, Sampled(), seed, self._name, seed, sensing="oracle",
            options={"signals": "yes"},
        )  # fmt: skip
        scene = find_scene(self._toy, spec)
        deployed = deploy(spec, env, scene, self._policy.spec)
        memory = _Memory()
        Episode(
            env, scene, deployed.arbiter, self._policy, policy_seed=seed,
            instruction=None if wish is None else wish.instruction,
            signals=deployed.signals, sinks=[memory],
        ).run()  # fmt: skip
        assert memory.result is not None
        header = EpisodeHeader(
            scene, memory.instruction, env.spec, RunFacts(self._name), memory.result, True, "toy"
        )
        name = f"{SUITE}/{index}/{seed}"
        return _Run(observe(name, header, memory.ticks, memory.truths), np.array(memory.poses))


def _carried(run: _Run) -> npt.NDArray[np.intp]:
    """Return the ticks at which the item is held clear of the table, one tick of grace taken."""
    item = run.episode.truths[0].predicates
    name = next(iter(item)).split()[1]
    heights = np.array([truth.objects[name][2] for truth in run.episode.truths[:-1]])
    up = np.flatnonzero(heights - heights[0] > 0.03)
    return up[: max(len(up) - 8, 1)]


def _onset(run: _Run, twin: _Run) -> int:
    """Return the first tick before which two runs of one scene had parted."""
    shared = min(len(run.poses), len(twin.poses))
    # Positions, openings: all metres; angles and rates of a pose do not exceed them in what parts.
    apart = np.abs(run.poses[:shared, 1:] - twin.poses[:shared, 1:])
    apart[:, 8] = 0.0  # finger speed, m/s
    far = np.flatnonzero(apart.max(axis=1) > APART_M)
    return int(far[0]) if len(far) else shared
