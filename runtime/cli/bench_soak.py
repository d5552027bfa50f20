"""`zetta bench soak`: rollouts at full speed for a while; does anything grow?"""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

from zetta.runtime.benchmarks import Figure
from zetta.runtime.cli import output
from zetta.runtime.cli.episodes import FACTORY
from zetta.runtime.cli.worker_environment import pool_settings
from zetta.runtime.core import RunSpec, Sampled
from zetta.runtime.errors import ConfigError, InfraError
from zetta.runtime.rollouts.launchers import Job
from zetta.runtime.rollouts.pool import Pool
from zetta.runtime.soak import Sample, Slope, sample, slope
from zetta.skills.bundles import NO_BUNDLE

SIM, SUITE, POLICY = "toy", "toy_pick", "toy/reach"
WORKERS: Final = 2
SAMPLE_S: Final = 1.0
MOST_EPISODES_PER_S: Final = 40
"""More than two workers can run, so that the jobs outlast the time."""
SHORTEST_MINUTES: Final = 1.0
MEMORY_MB_PER_HOUR: Final = 10.0
"""100 MB in a night, where one worker of LIBERO takes 1.3 to 2.2 GB and lives for one task."""
COUNT_PER_HOUR: Final = 1.0
MEGABYTE: Final = 1e6


def soak_figures(minutes: float, bundle: str = NO_BUNDLE) -> list[Figure]:
    """Run toy episodes on two workers for so many minutes and return what grows, and how fast.

    Raises:
        ConfigError: too short to see anything.
        InfraError: an episode could not be run.
    """
    if minutes < SHORTEST_MINUTES:
        raise ConfigError(f"--minutes must be at least {SHORTEST_MINUTES:g}, got {minutes:g}")
    samples, episodes = _watched(60.0 * minutes, bundle)
    rate = 60.0 * episodes / (samples[-1].time_s - samples[0].time_s)
    figures = [Figure("soak_rollouts", rate, "episodes/min", higher_is_better=True)]
    for name, unit, bound, read in SERIES:
        found = slope([each.time_s for each in samples], [read(each) for each in samples])
        figures += series_figures(name, unit, bound, found)
    return figures


def series_figures(name: str, unit: str, bound: float, found: Slope) -> Iterator[Figure]:
    """Yield the growth that is certain, which has a target, and the slope with its upper end."""
    certain = 0.0 if found.negligible(bound) else found.low
    yield Figure(f"soak_{name}_certain", certain, f"{unit}/h", target=0.0)
    yield Figure(f"soak_{name}_slope", found.per_hour, f"{unit}/h")
    yield Figure(f"soak_{name}_slope_high", found.high, f"{unit}/h")


SERIES: Final[Sequence[tuple[str, str, float, Callable[[Sample], float]]]] = (
    ("pool_memory", "MB", MEMORY_MB_PER_HOUR, lambda each: each.own_bytes / MEGABYTE),
    ("worker_memory", "MB", MEMORY_MB_PER_HOUR, lambda each: each.children_bytes / MEGABYTE),
    ("open_files", "files", COUNT_PER_HOUR, lambda each: float(each.files)),
    ("shared_memory", "segments", COUNT_PER_HOUR, lambda each: float(each.segments)),
)


def _watched(length_s: float, bundle: str) -> tuple[list[Sample], int]:
    """Return the samples, from when all workers work, and the episodes that ended meanwhile."""
    jobs = _jobs(int(length_s * MOST_EPISODES_PER_S), bundle)
    begun, over, samples = threading.Event(), threading.Event(), list[Sample]()
    watcher = threading.Thread(target=_watch, args=(begun, over, length_s, samples), daemon=True)
    watcher.start()
    episodes = 0
    with tempfile.TemporaryDirectory(prefix="zetta-soak-") as folder:
        settings = pool_settings(SIM, FACTORY, Path(folder), WORKERS)
        with Pool(settings) as pool, output.progress("soaking", round(length_s)) as advance:
            for outcome in pool.run(jobs):
                if outcome.record is None:
                    raise InfraError(f"an episode could not be run: {outcome.error}")
                if over.is_set():
                    break
                if pool.ticking == WORKERS:
                    begun.set()
                episodes += begun.is_set()
                spent = samples[-1].time_s - samples[0].time_s if samples else 0.0
                advance(min(round(spent), round(length_s)), f"{episodes} episodes")
    return samples, episodes


def _watch(
    begun: threading.Event, over: threading.Event, length_s: float, samples: list[Sample]
) -> None:
    """Sample from when the workers work; the clock of the run is this thread's."""
    begun.wait()
    end = time.monotonic() + length_s
    while (now := time.monotonic()) < end:
        samples.append(sample(now))
        over.wait(SAMPLE_S)
    over.set()


def _jobs(count: int, bundle: str) -> list[Job]:
    """Return episodes of as many tasks as there are workers, each of a scene of its own."""
    specs = (
        RunSpec(SIM, SUITE, index % WORKERS, Sampled(), seed=index, policy=POLICY, bundle=bundle)
        for index in range(count)
    )
    return [Job(f"{spec.task}/{spec.seed}", f"{SUITE}/{spec.task}", spec) for spec in specs]
