"""How the tiny localiser is made from nothing: pictures, training, export; what is there is kept.

The figures of a finished one come from `python -m zetta.primitives.localize.tiny.score`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from zetta.runtime.cli import output
from zetta.runtime.cli.train_recipe import Job, Stage, run_stage

NAME: Final = "localizer"
PICTURES: Final = {
    **{f"libero_object:{task}": 100 for task in range(10)},
    # All tasks of these suites show the same things; they differ in where fixtures stand.
    **{f"libero_{suite}:{task}": 300 for suite in ("spatial", "goal") for task in (0, 3, 5)},
    # Two of the ten scenes show nothing that others do not.
    **{f"libero_10:{task}": 80 for task in (0, 2, 3, 4, 5, 6, 8, 9)},
}
"""Training pictures by `suite:index`. Their scenes are scattered anew; none is the benchmark's."""
STEPS: Final = 4000


def stages(out: Path, minutes: float | None) -> tuple[Stage, ...]:
    """Return the stages in order.

    Args:
        out: folder of pictures, trainings and the finished localiser.
        minutes: wall time of the training; None takes all its steps.
    """
    data = out / "data"
    draw = tuple(
        Job(
            f"draw {task}",
            "zetta.sims.libero.sightings",
            ("scattered", str(data), str(count), task),
        )
        for task, count in PICTURES.items()
    )
    weights = out / "training" / "weights.safetensors"
    budget = () if minutes is None else ("--minutes", f"{minutes:g}")
    train = Job(
        "train localizer",
        "zetta.primitives.localize.tiny.train",
        ("--out", str(weights.parent), "--data", str(data), "--steps", str(STEPS), *budget),
        weights,
    )
    export = Job(
        "export localizer",
        "zetta.primitives.localize.tiny.export",
        (str(weights), str(out / "weights"), "zetta train localizer"),
        out / "weights" / "manifest.json",
    )
    return (("draw pictures", draw), ("train", (train,)), ("export", (export,)))


def make(out: Path, minutes: float | None, workers: int) -> Path:
    """Make the localiser, continuing what is there, and return the folder of its weights.

    Raises:
        WorkerDied: a job failed; what it saved is kept.
    """
    plan = stages(out, minutes)
    for number, (name, jobs) in enumerate(plan, start=1):
        with output.progress(f"{number}/{len(plan)} {name}", len(jobs)) as advance:
            run_stage(jobs, out / "logs", workers, advance)
    return out / "weights"
