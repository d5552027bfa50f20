"""Corrections: the policy drives into its own mistakes, then the expert shows the way out.

One such round (DAgger, Ross et al. 2011) is worth more than many further demonstrations.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from zetta.runtime.core import Policy
from zetta.runtime.drivers import PolicyDriver
from zetta.sims.libero.collect import (
    HABIT_INITS,
    SAVE_EVERY,
    SHUFFLED,
    STRIDE,
    TRAINING_INITS,
    recording_path,
)
from zetta.sims.libero.demonstrations import (
    Recorder,
    Recording,
    RecordingSpec,
    drive,
    read,
    record,
    refuse_evaluation_init,
    save,
)
from zetta.sims.libero.env import LiberoEnv
from zetta.sims.libero.errands import begin
from zetta.sims.libero.experts import Expert, Habits
from zetta.sims.libero.habits import habits

FIRST_HANDOVER, LAST_HANDOVER = 10, 110
"""Range of ticks at which the expert takes over."""
NOISE = 0.5
"""Level of the disturbance while the expert corrects."""


def correct(
    env: LiberoEnv, policy: Policy, spec: RecordingSpec, habits: Habits | None = None
) -> Recording | None:
    """Let `policy` drive for a random time, then the expert; None when the expert fails too.

    Raises:
        ConfigError: the scene is kept for evaluation.
    """
    refuse_evaluation_init(spec.init)
    rng = np.random.default_rng([spec.noise_seed, 3])
    start = begin(env, spec.init, spec.shuffle)
    expert = Expert(start.world, habits)
    recorder = Recorder(env, expert)
    driver = PolicyDriver(policy, env, start.instruction, spec.noise_seed)
    driver.reset()
    step = start.step
    for _ in range(int(rng.integers(FIRST_HANDOVER, LAST_HANDOVER))):
        # Stored as float32 and executed as stored, like everything in a recording.
        action = driver.next_action(step.proprio).astype(np.float32).astype(np.float64)
        recorder.tick(step.proprio, action, action, labelled=False)
        step = env.step(action)
        if start.world.success():
            return None  # nothing was wrong
    return drive(env, expert, recorder, replace(start, step=step), spec)


def collect_corrections(
    suite: str,
    task: int,
    wanted: int,
    folder: Path,
    policy: Policy,
    round_: int,
    shuffled: bool = False,
    on_recording: Callable[[RecordingSpec, Recording | None], None] = lambda spec, made: None,
) -> int:
    """Record until `wanted` corrections of a task are on disk; return their number.

    Args:
        suite: suite name.
        task: task index.
        wanted: number of recordings of this round.
        folder: where recordings are kept.
        policy: the policy of the round.
        round_: number of the round; its seeds differ from those of all others.
        shuffled: whether layouts are shuffled and any of their objects is asked for.
        on_recording: called after each attempt.
    """
    kind = f"{SHUFFLED}-correction{round_}" if shuffled else f"correction{round_}"
    path = recording_path(folder, suite, task, kind)
    kept = list(read(path)) if path.exists() else []
    if len(kept) >= wanted:
        return len(kept)
    base = 100_000 * round_
    attempt = kept[-1].spec.noise_seed + 1 - base if kept else 0
    last = attempt + 3 * wanted
    env = LiberoEnv(suite, task)
    try:
        usual = None if shuffled else habits(env, HABIT_INITS)
        while len(kept) < wanted and attempt < last + (0 if kept else wanted):
            init = TRAINING_INITS[(attempt * STRIDE + 3 * round_) % len(TRAINING_INITS)]
            seed = base + attempt
            layout = seed if shuffled else None
            spec = RecordingSpec(suite, task, init, seed, NOISE, detour=0.0, shuffle=layout)
            # A policy that makes no mistake leaves the next training a demonstration.
            flawless = attempt >= last
            made = record(env, spec, usual) if flawless else correct(env, policy, spec, usual)
            attempt += 1
            on_recording(spec, made)
            if made is not None:
                kept.append(made)
                if len(kept) % SAVE_EVERY == 0:
                    save(path, kept)
    finally:
        env.close()
    if kept:
        save(path, kept)
    return len(kept)


def main(arguments: Sequence[str]) -> None:
    """Correct a policy from the command line."""
    from zetta.runtime.policies.tiny.serve import load_from

    parser = argparse.ArgumentParser(prog="python -m zetta.sims.libero.corrections")
    parser.add_argument("policy", type=Path, help="folder of an exported policy")
    parser.add_argument("round", type=int)
    parser.add_argument("folder", type=Path, help="where recordings are kept")
    parser.add_argument("wanted", type=int, help="recordings of each task")
    parser.add_argument("tasks", nargs="+", metavar="SUITE:TASK")
    parser.add_argument("--shuffled", action="store_true", help="shuffle layouts, ask for anything")
    given = parser.parse_args(arguments)
    policy = load_from(given.policy)

    def report(spec: RecordingSpec, made: Recording | None) -> None:
        ticks = "none" if made is None else f"{int(made.labelled.sum())} labelled ticks"
        print(f"{spec.suite}#{spec.task} init {spec.init} {spec.noise_seed}: {ticks}", flush=True)

    for name in given.tasks:
        suite, _, task = name.partition(":")
        made = collect_corrections(
            suite,
            int(task),
            given.wanted,
            given.folder,
            policy,
            given.round,
            given.shuffled,
            report,
        )
        print(name, made, flush=True)


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
