"""Corrections: the policy drives into its own mistakes, then the expert shows the way out.

One such round (DAgger, Ross et al. 2011) is worth more than many further demonstrations.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from zetta.runtime.core import Init, Policy, Scene
from zetta.runtime.drivers import PolicyDriver
from zetta.sims.libero.collect import SAVE_EVERY, STRIDE, TRAINING_INITS, recording_path
from zetta.sims.libero.demonstrations import (
    Disturbance,
    Recorder,
    Recording,
    RecordingSpec,
    drive,
    read,
    refuse_evaluation_init,
    save,
)
from zetta.sims.libero.env import LiberoEnv
from zetta.sims.libero.experts import Expert
from zetta.sims.libero.world import World

FIRST_HANDOVER, LAST_HANDOVER = 10, 110
"""Range of ticks at which the expert takes over."""
NOISE = 0.5
"""Level of the disturbance while the expert corrects."""


def correct(env: LiberoEnv, policy: Policy, spec: RecordingSpec) -> Recording | None:
    """Let `policy` drive for a random time, then the expert; None when the expert fails too.

    Raises:
        ConfigError: the scene is kept for evaluation.
    """
    refuse_evaluation_init(spec.init)
    rng = np.random.default_rng([spec.noise_seed, 3])
    step = env.reset(Scene(env.task, Init(spec.init), 0))
    expert = Expert(World(env.control))
    recorder = Recorder(env, expert)
    driver = PolicyDriver(policy, env, env.task.instruction, spec.noise_seed)
    driver.reset()
    for _ in range(int(rng.integers(FIRST_HANDOVER, LAST_HANDOVER))):
        # Stored as float32 and executed as stored, like everything in a recording.
        action = driver.next_action(step.proprio).astype(np.float32).astype(np.float64)
        recorder.tick(step.proprio, action, action, labelled=False)
        step = env.step(action)
        if step.success:
            return None  # nothing was wrong
    return drive(env, expert, recorder, Disturbance(spec.noise, spec.noise_seed), step, spec)


def collect_corrections(
    suite: str,
    task: int,
    wanted: int,
    folder: Path,
    policy: Policy,
    round_: int,
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
        on_recording: called after each attempt.
    """
    path = recording_path(folder, suite, task, f"correction{round_}")
    kept = list(read(path)) if path.exists() else []
    if len(kept) >= wanted:
        return len(kept)
    base = 100_000 * round_
    attempt = kept[-1].spec.noise_seed + 1 - base if kept else 0
    last = attempt + 3 * wanted
    env = LiberoEnv(suite, task)
    try:
        while len(kept) < wanted and attempt < last:
            init = TRAINING_INITS[(attempt * STRIDE + 3 * round_) % len(TRAINING_INITS)]
            spec = RecordingSpec(suite, task, init, base + attempt, NOISE, detour=0.0)
            attempt += 1
            made = correct(env, policy, spec)
            on_recording(spec, made)
            if made is not None:
                kept.append(replace(made, spec=spec))
                if len(kept) % SAVE_EVERY == 0:
                    save(path, kept)
    finally:
        env.close()
    if kept:
        save(path, kept)
    return len(kept)


def main(arguments: list[str]) -> None:
    """Run as `python -m zetta.sims.libero.corrections POLICY_DIR ROUND FOLDER WANTED TASK …`."""
    from zetta.runtime.policies.tiny.serve import load_from

    policy = load_from(Path(arguments[0]))
    round_, folder, wanted = int(arguments[1]), Path(arguments[2]), int(arguments[3])

    def report(spec: RecordingSpec, made: Recording | None) -> None:
        ticks = "none" if made is None else f"{int(made.labelled.sum())} labelled ticks"
        print(f"{spec.suite}#{spec.task} init {spec.init} {spec.noise_seed}: {ticks}", flush=True)

    for name in arguments[4:]:
        suite, _, task = name.partition(":")
        made = collect_corrections(suite, int(task), wanted, folder, policy, round_, report)
        print(name, made, flush=True)


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
