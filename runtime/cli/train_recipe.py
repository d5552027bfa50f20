"""How the embedded policy is made from nothing: stages of jobs; what is there is not made again.

Every job is a process of its own: a process draws one environment only, and a killed job loses
nothing that it has saved.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, TypeAlias

from zetta.runtime.errors import ConfigError, WorkerDied, suggest

Variant: TypeAlias = Literal["tiny", "tiny-shuffled"]
SUITES: Final = ("libero_object", "libero_spatial", "libero_goal")
TASKS_PER_SUITE: Final = 10
SCANNED_SUITE: Final = "libero_object"
_SHUFFLED_PREFIX: Final = "shuffled-"
_LIBC: Final = ctypes.CDLL(None)
_PR_SET_PDEATHSIG: Final = 1
"""Of `prctl(2)`."""
_THREAD_LIMITS: Final = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


@dataclass(frozen=True, slots=True)
class Recipe:
    """What a variant is made of."""

    variant: Variant
    tasks: tuple[str, ...]
    """`suite:index` of every task with demonstrations."""
    scanned: tuple[str, ...]
    """`suite:index` of every scene that is shuffled, scanned and demonstrated anew."""
    demonstrations: int = 26
    shuffled: int = 30
    """Demonstrations in shuffled layouts of a scene."""
    scans: int = 48
    rounds: int = 1
    """Rounds of corrections after the first training."""
    corrections: int = 10
    steps: int = 16_000
    """Batches of the first training; each round trains half as long again."""


@dataclass(frozen=True, slots=True)
class Job:
    """One process and what it leaves behind."""

    what: str
    module: str
    arguments: tuple[str, ...]
    product: Path | None = None
    """The job is skipped when this exists; None lets the job itself decide."""


Stage: TypeAlias = tuple[str, tuple[Job, ...]]


def recipe(variant: str) -> Recipe:
    """Return the recipe of a variant.

    Raises:
        ConfigError: there is no such variant.
    """
    tasks = tuple(f"{suite}:{i}" for suite in SUITES for i in range(TASKS_PER_SUITE))
    scenes = tuple(f"{SCANNED_SUITE}:{i}" for i in range(TASKS_PER_SUITE))
    recipes = {
        "tiny": Recipe("tiny", tasks, ()),
        "tiny-shuffled": Recipe("tiny-shuffled", tasks, scenes),
    }
    if variant not in recipes:
        raise ConfigError(f"unknown variant {variant!r}; {suggest(variant, recipes)}")
    return recipes[variant]


def stages(made: Recipe, recordings: Path, out: Path) -> tuple[Stage, ...]:
    """Return the stages in order.

    Args:
        made: the recipe.
        recordings: folder of recordings; those that are there are used.
        out: folder of shards, trainings and the finished policy.
    """
    listed: list[Stage] = [
        ("record demonstrations", tuple(_record(made, recordings, t) for t in made.tasks)),
        ("record shuffled layouts", tuple(_shuffle(made, recordings, t) for t in made.scanned)),
        ("scan shuffled layouts", tuple(_scan(made, recordings, t) for t in made.scanned)),
        ("draw pictures", tuple(_draw(recordings, out, n) for n in _names(made, 0))),
        ("train", (_train(made, out, 0),)),
        ("export", (_export(made, out, 0),)),
    ]
    for number in range(1, made.rounds + 1):
        listed += [
            (f"correct, round {number}", _correct(made, recordings, out, number)),
            ("draw pictures", tuple(_draw(recordings, out, n) for n in _names(made, number))),
            ("train", (_train(made, out, number),)),
            ("export", (_export(made, out, number),)),
        ]
    return tuple((name, jobs) for name, jobs in listed if jobs)


def run_stage(
    jobs: Sequence[Job],
    logs: Path,
    workers: int,
    on_finished: Callable[[int, str], None] = lambda finished, what: None,
) -> None:
    """Run the jobs of a stage, `workers` at a time.

    Raises:
        WorkerDied: a job failed; the others are ended, and what they saved is kept.
    """
    logs.mkdir(parents=True, exist_ok=True)
    waiting = [job for job in jobs if job.product is None or not job.product.exists()]
    finished = len(jobs) - len(waiting)
    on_finished(finished, "")
    running: list[tuple[Job, subprocess.Popen[bytes]]] = []
    try:
        while waiting or running:
            while waiting and len(running) < workers:
                job = waiting.pop(0)
                running.append((job, _start(job, logs)))
            time.sleep(0.2)
            for job, process in [pair for pair in running if pair[1].poll() is not None]:
                running.remove((job, process))
                if process.returncode != 0:
                    raise WorkerDied(
                        f"{job.what} ended with code {process.returncode}; see "
                        f"{_log(job, logs)}; run the same command again to continue"
                    )
                finished += 1
                on_finished(finished, job.what)
    finally:
        for _, process in running:
            process.terminate()


def _start(job: Job, logs: Path) -> subprocess.Popen[bytes]:
    with _log(job, logs).open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-W", "ignore", "-m", job.module, *job.arguments],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env={**os.environ, **dict.fromkeys(_THREAD_LIMITS, "1")},
            preexec_fn=_end_with_parent,
        )


def _end_with_parent() -> None:
    # Else a job would go on writing beside the job of whoever continues after a kill.
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _log(job: Job, logs: Path) -> Path:
    return logs / f"{job.what.replace(' ', '-').replace(':', '-').replace('#', '-')}.log"


def _record(made: Recipe, recordings: Path, task: str) -> Job:
    arguments = ("demo", str(recordings), str(made.demonstrations), task)
    return Job(f"record {task}", "zetta.sims.libero.collect", arguments)


def _shuffle(made: Recipe, recordings: Path, task: str) -> Job:
    arguments = ("shuffled", str(recordings), str(made.shuffled), task)
    return Job(f"record shuffled {task}", "zetta.sims.libero.collect", arguments)


def _scan(made: Recipe, recordings: Path, task: str) -> Job:
    arguments = ("scan", str(recordings), str(made.scans), task)
    return Job(f"scan {task}", "zetta.sims.libero.collect", arguments)


def _names(made: Recipe, number: int) -> tuple[str, ...]:
    """Return the recordings that round `number` adds."""
    kinds: tuple[tuple[str, tuple[str, ...]], ...]
    kinds = (("demo", made.tasks), ("shuffled", made.scanned), ("scan", made.scanned))
    if number:
        corrected = f"correction{number}"
        kinds = ((corrected, made.tasks), (_SHUFFLED_PREFIX + corrected, made.scanned))
    return tuple(f"{kind}-{task.replace(':', '-')}" for kind, tasks in kinds for task in tasks)


def _draw(recordings: Path, out: Path, name: str) -> Job:
    arguments = (str(recordings / f"{name}.npz"), str(_shard(out, name)))
    return Job(f"draw {name}", "zetta.sims.libero.shards", arguments)


def _shard(out: Path, name: str) -> Path:
    return out / "shards" / name


def _train(made: Recipe, out: Path, number: int) -> Job:
    shards = [str(_shard(out, n)) for r in range(number + 1) for n in _names(made, r)]
    folder = out / f"training{number}"
    steps = made.steps if number == 0 else made.steps // 2
    arguments = ["--out", str(folder), "--steps", str(steps), "--shards", *shards]
    if number:
        arguments += ["--init", str(out / f"training{number - 1}" / "weights.safetensors")]
    return Job(
        f"train round {number}",
        "zetta.runtime.policies.tiny.train",
        tuple(arguments),
        folder / "weights.safetensors",
    )


def _export(made: Recipe, out: Path, number: int) -> Job:
    weights = out / f"training{number}" / "weights.safetensors"
    folder = out / f"policy{number}"
    return Job(
        f"export round {number}",
        "zetta.runtime.policies.tiny.export",
        (str(weights), str(folder), f"zetta/{made.variant}, round {number}"),
        folder / "manifest.json",
    )


def _correct(made: Recipe, recordings: Path, out: Path, number: int) -> tuple[Job, ...]:
    policy = str(out / f"policy{number - 1}")
    common = (policy, str(number), str(recordings), str(made.corrections))
    wanted: list[tuple[str, str, tuple[str, ...]]] = [(t, "", ()) for t in made.tasks]
    wanted += [(t, _SHUFFLED_PREFIX, ("--shuffled",)) for t in made.scanned]
    return tuple(
        Job(
            f"{kind}correct {task} round {number}",
            "zetta.sims.libero.corrections",
            (*common, task, *flags),
        )
        for task, kind, flags in wanted
    )
