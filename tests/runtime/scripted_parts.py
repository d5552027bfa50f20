"""Parts with a script: a policy, an arbiter and a sink whose doings a test can foresee."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from zetta.runtime.core import (
    ActionChunk,
    Array,
    CameraSpec,
    Continue,
    EnvSpec,
    EpisodeResult,
    Init,
    Observation,
    Outcome,
    PolicySpec,
    Proprio,
    Recovery,
    Ruling,
    Scene,
    Step,
    Tick,
    Verdict,
)
from zetta.sims.toy import ToyEnv, ToySimulator, action_spec

HORIZON, REPLAN = 6, 4
FRONT = CameraSpec("front", 48, 64)


def toy(max_steps: int = 12) -> tuple[ToyEnv, Scene]:
    """Return a toy world and a scene with a budget of `max_steps`."""
    simulator = ToySimulator()
    task = replace(simulator.task("toy_pick", 0), max_steps=max_steps)
    return simulator.make("toy_pick", 0), Scene(task, Init(0))


class ScriptedPolicy:
    """Row `r` of its `c`-th chunk raises the arm by `(c + 1) / 100 + r / 1000`."""

    def __init__(self, replan_steps: int = REPLAN, **changes: object) -> None:
        spec = PolicySpec("scripted", action_spec(), (FRONT,), replan_steps, HORIZON)
        self.spec = replace(spec, **changes)
        self.resets: list[tuple[str, int]] = []
        self.seen: list[Observation] = []

    def reset(self, instruction: str, seed: int) -> None:
        self.resets.append((instruction, seed))

    def infer(self, observation: Observation) -> ActionChunk:
        self.seen.append(observation)
        return ActionChunk(self.rows(len(self.seen) - 1), observation.proprio.t, dispersion=0.25)

    def rows(self, chunk: int) -> Array:
        rows = np.zeros((HORIZON, 7))
        rows[:, 2] = (chunk + 1) / 100 + np.arange(HORIZON) / 1000
        return rows

    def close(self) -> None:
        pass


class FixedRows(ScriptedPolicy):
    """Every chunk is `chunk`, whatever its shape."""

    def __init__(self, chunk: Array) -> None:
        super().__init__()
        self._chunk = chunk

    def rows(self, chunk: int) -> Array:
        return self._chunk


class ScriptedArbiter:
    """Rules as told at the given ticks and continues at all others."""

    def __init__(self, rulings: Mapping[int, Ruling] | None = None) -> None:
        self.rulings = rulings or {}
        self.driving: list[str] = []
        self.signals: list[Mapping[str, float]] = []
        self.ended: list[tuple[str, Outcome]] = []

    def begin(self, scene: Scene) -> None:
        pass

    def rule(
        self, index: int, proprio: Proprio, signals: Mapping[str, float], driving: str
    ) -> tuple[Ruling, tuple[Verdict, ...]]:
        self.driving.append(driving)
        self.signals.append(signals)
        ruling = self.rulings.get(index, Continue())
        verdicts = () if isinstance(ruling, Continue) else (Verdict("recover", f"tick {index}"),)
        return ruling, verdicts

    def motion_ended(self, source: str, outcome: Outcome) -> None:
        self.ended.append((source, outcome))

    def recoveries(self) -> tuple[Recovery, ...]:
        return ()


class Notebook:
    """A sink that keeps everything."""

    def __init__(self) -> None:
        self.ticks: list[Tick] = []
        self.steps: list[Step] = []
        self.poses: list[Array | None] = []
        self.results: list[EpisodeResult] = []

    def begin(self, scene: Scene, spec: EnvSpec, instruction: str, step: Step) -> None:
        self.settled = step

    def tick(self, tick: Tick, step: Step, pose: Array | None) -> None:
        self.ticks.append(tick)
        self.steps.append(step)
        self.poses.append(pose)

    def end(self, result: EpisodeResult, pose: Array | None) -> None:
        self.results.append(result)
        self.last_pose = pose

    def rises(self) -> list[float]:
        """Return the commanded rise of every tick."""
        return [round(float(tick.action[2]), 6) for tick in self.ticks]

    def sources(self) -> Sequence[str]:
        return [tick.source for tick in self.ticks]
