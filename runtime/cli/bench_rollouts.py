"""`zetta bench rollouts`: how much faster two rollout processes are than one."""

from __future__ import annotations

import tempfile
import time
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Final

from zetta.runtime.benchmarks import Figure
from zetta.runtime.cli import output
from zetta.runtime.cli.episodes import FACTORY
from zetta.runtime.cli.worker_environment import pool_settings
from zetta.runtime.core import RunSpec, Sampled
from zetta.runtime.errors import InfraError
from zetta.runtime.rollouts.launchers import Job
from zetta.runtime.rollouts.pool import Pool, PoolSettings

TARGET: Final = 1.7
"""On two idle cores; the rest goes to memory and to what the pool itself does."""
SCENES: Final = 10_000
"""More than can be run in a block."""


def rollout_figures(
    sim: str, suite: str, task: int, policy: str, blocks: int, block_s: float
) -> list[Figure]:
    """Compare episodes per minute of two processes with those of one, block by block in turn.

    A block begins when all its processes work, so starting is not counted. Every block runs the
    same scenes, of one task.

    Raises:
        InfraError: an episode could not be run.
    """
    jobs = _jobs(sim, suite, task, policy)
    rates: dict[int, list[float]] = {1: [], 2: []}
    with tempfile.TemporaryDirectory(prefix="zetta-bench-") as folder:
        settings = pool_settings(sim, FACTORY, Path(folder), 1)
        for turn in range(blocks):
            for workers in (1, 2) if turn % 2 else (2, 1):
                output.note(f"block {turn + 1} of {blocks}: {workers} processes, {block_s:g} s")
                used = replace(settings, workers=workers)
                rates[workers].append(episodes_per_minute(used, jobs, block_s))
    two, one = median(rates[2]), median(rates[1])
    name = f"rollouts_{sim}_two_processes"
    return [Figure(name, two, "episodes/min", one, two / one, TARGET, higher_is_better=True)]


def episodes_per_minute(settings: PoolSettings, jobs: list[Job], block_s: float) -> float:
    """Return the rate from when every worker works, over whole episodes.

    Raises:
        InfraError: an episode could not be run, or there were too few.
    """
    begun = latest = 0.0
    episodes = 0
    with Pool(settings) as pool:
        for outcome in pool.run(jobs):
            if outcome.record is None:
                raise InfraError(f"an episode could not be run: {outcome.error}")
            now = time.monotonic()
            if begun:
                episodes, latest = episodes + 1, now
            elif pool.ticking == settings.workers:
                begun = now
            if episodes and latest - begun >= block_s:
                return 60.0 * episodes / (latest - begun)
    raise InfraError(f"{len(jobs)} episodes ended before {block_s:g} s had passed; use fewer")


def _jobs(sim: str, suite: str, task: int, policy: str) -> list[Job]:
    specs = (
        RunSpec(sim, suite, task, Sampled(), seed=seed, policy=policy) for seed in range(SCENES)
    )
    return [Job(str(spec.seed), f"{suite}/{task}", spec) for spec in specs]
