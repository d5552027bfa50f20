"""Briefs for the author `search`: drawn by hand, and of toy episodes with a camera that is off."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np

from zetta.runtime.cli.assemble import Assembler
from zetta.runtime.cli.branching import BranchFactory
from zetta.runtime.core import (
    ArmState,
    Array,
    EnvSpec,
    EpisodeResult,
    Proprio,
    RunSpec,
    Sampled,
    Scene,
    Step,
    Tick,
    read_only,
)
from zetta.runtime.signals import ORACLE, names_up_to
from zetta.runtime.snapshot_ring import SnapshotRing, run_with_snapshots
from zetta.skills.evolve.authors import Brief, ProgramTrial, WatchedEpisode
from zetta.skills.evolve.branches import FRESH_SAMPLE, UNCHANGED, Change, Continuation, branch
from zetta.skills.evolve.diagnosis import ClusterDiagnosis
from zetta.skills.evolve.recovery_programs import PROGRAMS, program_package

HZ = 20.0
TICKS = 160
CHANCES = {"regrasp": 0.8, "fetch": 0.7, "rise": 0.4, "unchanged": 0.05, "fresh sample": 0.1}
HAND = (ArmState(read_only(np.zeros(3)), read_only([1.0, 0, 0, 0]), read_only(np.zeros(7)), 0.08),)
CLUSTER = ClusterDiagnosis(0, 20, "grasped", 70.0, "object_offset", "f0", 0.9, (), ())
TOY = RunSpec(
    "toy", "toy_pick", 0, Sampled(), policy="toy/reach", sensing="oracle",
    options={
        "signals": "yes", "toy_faults": "camera_shift_y=0.020", "recovery_share": "0.7",
    },
)  # fmt: skip


def drawn(name: str, fails: bool, rng: np.random.Generator) -> WatchedEpisode:
    """Return an episode in which the hand closes on the object, or on nothing beside it."""
    t, close = np.arange(TICKS), int(rng.integers(50, 70))
    rows = {signal: np.zeros(TICKS) for signal in names_up_to("vision")}
    way = np.clip((t - close - 20) * 0.01, 0.0, 0.3)
    rows["policy_drives"] += 1.0
    rows["object_confidence"] += 0.9
    rows["receptacle_confidence"] += 0.9
    offset = np.clip(0.3 * (1.0 - t / close), 0.0, 1.0) + (way if fails else 0.0)
    rows["object_offset"] = np.abs(offset + rng.normal(0.0, 0.003, TICKS))
    rows["object_distance"] = rows["object_offset"] + 0.02
    rows["open_for"] = np.where(t < close, t / HZ + 0.05, 0.0)
    rows["closed_for"] = np.where(t >= close, (t - close) / HZ + 0.05, 0.0)
    rows["command_gripper"] = (t >= close) * 1.0
    rows["closed_on_nothing" if fails else "holding"] = (t > close + 8) * 1.0
    rows["object_to_receptacle"] = 0.3 - (0.0 if fails else 1.0) * way
    rows["receptacle_offset"] = 0.3 - way
    ticks = tuple(
        Tick(k, Proprio(k / HZ, HAND), read_only(np.zeros(7)), "policy",
             {signal: float(values[k]) for signal, values in rows.items()})
        for k in range(TICKS)
    )  # fmt: skip
    return WatchedEpisode(
        name, "put the red cube on the green plate", not fails, HZ, 300, ticks,
        "grasped" if fails else "", close + 9 if fails else None,
    )  # fmt: skip


def drawn_brief(failures: int = 16, successes: int = 30, seed: int = 0) -> Brief:
    """Return a brief of drawn episodes; recoveries that begin late succeed half as often."""
    rng = np.random.default_rng(seed)
    failed = tuple(drawn(f"f{k}", True, rng) for k in range(failures))
    solved = tuple(drawn(f"s{k}", False, rng) for k in range(successes))
    trials = [
        drawn_trial(program, chance, episode, (episode.divergence or 0) + late, rng)
        for episode in failed[:8]
        for late in (-10, 5, 40)
        for program, chance in CHANCES.items()
    ]
    return Brief(CLUSTER, failed, (), solved, tuple(trials), (), "vision", 120, seed=3)


def drawn_trial(
    program: str, chance: float, episode: WatchedEpisode, at: int, rng: np.random.Generator
) -> ProgramTrial:
    chance = chance if at <= (episode.divergence or 0) + 20 else chance / 2.0
    name = f"{episode.name}/{at}/{program}"
    runs = tuple(
        Continuation(name, at, change_of(program), k, bool(rng.random() < chance), 99, 9, f"{k}")
        for k in range(4)
    )
    return ProgramTrial(program, episode.name, at, episode.max_steps, runs)


def change_of(program: str, skill: str = "") -> Change:
    known = {"unchanged": UNCHANGED, "fresh sample": FRESH_SAMPLE}
    return known.get(program) or Change("recovery", skill or program)


class _Memory:
    """A sink that keeps the ticks."""

    def __init__(self) -> None:
        self.ticks: list[Tick] = []

    def begin(self, scene: Scene, spec: EnvSpec, instruction: str, step: Step) -> None:
        self.scene, self.spec, self.instruction = scene, spec, instruction

    def tick(self, tick: Tick, step: Step, pose: Array | None) -> None:
        seen = {k: v for k, v in tick.signals.items() if not k.startswith(ORACLE)}
        self.ticks.append(replace(tick, signals=seen))

    def end(self, result: EpisodeResult, pose: Array | None) -> None:
        self.result = result


def toy_brief(
    folder: Path, seeds: Iterable[int], programs: Iterable[str], branched: int = 4, runs: int = 2
) -> Brief:
    """Return a brief of toy episodes whose camera is off, with branches of some failures."""
    for name in programs:
        package = folder / f"try-{name}"
        package.mkdir()
        for path, text in program_package(PROGRAMS[name], package.name).items():
            (package / path).write_text(text, encoding="utf-8")
    assembler = Assembler()
    failed, solved, trials = list[WatchedEpisode](), list[WatchedEpisode](), list[ProgramTrial]()
    try:
        for seed in seeds:
            spec = replace(TOY, seed=seed, policy_seed=seed)
            ring, memory = SnapshotRing(every=10), _Memory()
            run_with_snapshots(assembler.assemble(spec, sinks=[memory]).episode, ring)
            closed = [t.index for t in memory.ticks if t.signals["closed_for"] > 0.5]
            success = memory.result.success
            at = closed[0] if closed else len(memory.ticks) // 2
            episode = WatchedEpisode(
                f"e{seed}", memory.instruction, success, memory.spec.control_hz,
                memory.scene.task.max_steps, tuple(memory.ticks), "" if success else "grasped",
                None if success else at,
            )  # fmt: skip
            (solved if success else failed).append(episode)
            if success or len(failed) > branched:
                continue
            snapshot = ring.before(at)
            factory = BranchFactory(assembler, spec, str(folder))
            for program in ("unchanged", "fresh sample", *programs):
                change = change_of(program, f"try-{program}")
                done = branch(snapshot, change, range(runs), factory, at=at)
                trials.append(ProgramTrial(program, episode.name, at, episode.max_steps, done))
    finally:
        assembler.close()
    return Brief(
        CLUSTER, tuple(failed), (), tuple(solved), tuple(trials), (), "vision", 120, seed=1
    )
