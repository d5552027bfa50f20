"""Collect demonstrations task by task; a killed run continues where its file ends."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

from zetta.sims.libero.demonstrations import Recording, RecordingSpec, read, record, save
from zetta.sims.libero.env import LiberoEnv
from zetta.sims.libero.habits import habits
from zetta.sims.libero.layouts import Shuffle
from zetta.sims.libero.scans import read_scans, save_scans, scan

TRAINING_INITS = tuple(range(10, 50))
HABIT_INITS = TRAINING_INITS[::4]
STRIDE = 7
"""Init states are walked in this stride, so that few demonstrations already spread over them."""
SAVE_EVERY = 4
DEMO, SHUFFLED, SCAN = "demo", "shuffled", "scan"
"""Kinds of recordings, and how the names of their files begin."""


def recording_path(folder: Path, suite: str, task: int, kind: str) -> Path:
    """Return where the recordings of a task are kept."""
    return folder / f"{kind}-{suite}-{task}.npz"


def collect(
    suite: str,
    task: int,
    wanted: int,
    folder: Path,
    shuffled: bool = False,
    on_recording: Callable[[RecordingSpec, Recording | None], None] = lambda spec, made: None,
) -> int:
    """Record until `wanted` successful demonstrations of a task are on disk.

    Args:
        suite: suite name.
        task: task index.
        wanted: number of recordings.
        folder: where recordings are kept.
        shuffled: whether layouts are shuffled and any of their objects is asked for.
        on_recording: called after each attempt.

    Returns:
        The number of recordings on disk; fewer than `wanted` when the expert fails too often.
    """
    path = recording_path(folder, suite, task, SHUFFLED if shuffled else DEMO)
    kept = list(read(path)) if path.exists() else []
    if len(kept) >= wanted:
        return len(kept)
    attempt = kept[-1].spec.noise_seed + 1 if kept else 0
    last = attempt + 3 * wanted
    env = LiberoEnv(suite, task)
    try:
        usual = None if shuffled else habits(env, HABIT_INITS)
        while len(kept) < wanted and attempt < last:
            init = TRAINING_INITS[attempt * STRIDE % len(TRAINING_INITS)]
            layout = attempt if shuffled else None
            spec = RecordingSpec(suite, task, init, attempt, shuffle=layout)
            attempt += 1
            made = record(env, spec, usual)
            on_recording(spec, made)
            if made is not None:
                kept.append(made)
                if len(kept) % SAVE_EVERY == 0:
                    save(path, kept)
    finally:
        env.close()
    save(path, kept)
    return len(kept)


def collect_scans(suite: str, task: int, wanted: int, folder: Path) -> int:
    """Scan shuffled layouts of a task until `wanted` are on disk; return their number."""
    path = recording_path(folder, suite, task, SCAN)
    kept = list(read_scans(path)) if path.exists() else []
    if len(kept) >= wanted:
        return len(kept)
    seed = kept[-1].shuffle.seed + 1 if kept else 0
    last = seed + 2 * wanted
    env = LiberoEnv(suite, task)
    try:
        while len(kept) < wanted and seed < last:
            made = scan(env, Shuffle(TRAINING_INITS[seed * STRIDE % len(TRAINING_INITS)], seed))
            seed += 1
            if made is not None:
                kept.append(made)
                if len(kept) % SAVE_EVERY == 0:
                    save_scans(path, kept)
    finally:
        env.close()
    save_scans(path, kept)
    return len(kept)


def main(arguments: Sequence[str]) -> None:
    """Collect from the command line."""
    parser = argparse.ArgumentParser(prog="python -m zetta.sims.libero.collect")
    parser.add_argument("kind", choices=(DEMO, SHUFFLED, SCAN))
    parser.add_argument("folder", type=Path, help="where recordings are kept")
    parser.add_argument("wanted", type=int, help="recordings of each task")
    parser.add_argument("tasks", nargs="+", metavar="SUITE:TASK")
    given = parser.parse_args(arguments)

    def report(spec: RecordingSpec, made: Recording | None) -> None:
        ticks = "failed" if made is None else f"{len(made.actions)} ticks"
        print(
            f"{spec.suite}#{spec.task} init {spec.init} seed {spec.noise_seed}: {ticks}", flush=True
        )

    for name in given.tasks:
        suite, _, task = name.partition(":")
        if given.kind == SCAN:
            count = collect_scans(suite, int(task), given.wanted, given.folder)
        else:
            shuffled = given.kind == SHUFFLED
            count = collect(suite, int(task), given.wanted, given.folder, shuffled, report)
        print(name, count, flush=True)


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
