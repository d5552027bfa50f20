"""How strict a skill must be on tasks that it is new to: from successes of the parent there."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Final

from zetta.runtime.cli import output
from zetta.runtime.cli.evolve_episodes import Errand
from zetta.runtime.cli.evolve_rollouts import Rollouts, workers_of
from zetta.runtime.cli.evolve_world import SHOWN
from zetta.runtime.core import RunSpec
from zetta.runtime.episode_log import read_episode
from zetta.skills.evolve.briefs import watched_episode
from zetta.skills.evolve.calibration_stage import CalibratedNumbers, as_strict, calibrated_numbers
from zetta.skills.evolve.candidates import write_package
from zetta.skills.evolve.transfer import fresh_seeds
from zetta.skills.package import SkillPackage, load_skill
from zetta.skills.package_files import PARAMETERS, read_files

FOLDER: Final = "calibration"


def recalibrated(
    package: SkillPackage,
    base: RunSpec,
    tasks: Sequence[tuple[str, int]],
    scenes: int,
    key: str,
    folder: Path,
    workers: int,
) -> tuple[SkillPackage, CalibratedNumbers]:
    """Return a skill as strict as successes on its new tasks ask for.

    Args:
        package: the skill.
        base: what the parent runs under; suite, task and seeds are set here.
        tasks: suites and numbers of the new tasks.
        scenes: fresh scenes, over all tasks; no comparison ever meets them again.
        key: from which they are derived.
        folder: of the transfer.
        workers: processes that run episodes.
    """
    place = folder / FOLDER
    place.mkdir(exist_ok=True)
    specs = _specs(package, base, tasks, scenes, key)
    logs = [place / "logs" / f"{k:03d}" for k in range(scenes)]
    pool = workers_of(base.sim, workers, place)
    label = f"{key}/{package.digest}/{scenes}"
    wanted = [(spec, Errand(log=str(log.resolve()))) for spec, log in zip(specs, logs, strict=True)]
    with (
        output.progress("calibration", scenes) as advance,
        closing(Rollouts(place, label, pool, lambda done, _, what: advance(done, what))) as runs,
    ):
        records = runs.run(wanted)
    successes = [
        watched_episode(log.name, True, read_episode(log), base.sensing)
        for log, record in zip(logs, records, strict=True)
        if record is not None and record.success and not record.success_at_reset
    ]
    numbers = calibrated_numbers(package, successes)
    if not numbers.level:
        return package, numbers
    return _stricter(package, numbers, place / "package"), numbers


def _specs(
    package: SkillPackage, base: RunSpec, tasks: Sequence[tuple[str, int]], scenes: int, key: str
) -> list[RunSpec]:
    seeds = fresh_seeds(key, package.digest, "calibration", 2 * scenes)
    options = {**base.options, **SHOWN}
    specs = []
    for k in range(scenes):
        suite, task = tasks[k % len(tasks)]
        scene, draw = seeds[2 * k : 2 * k + 2]
        specs.append(
            replace(base, suite=suite, task=task, seed=scene, policy_seed=draw, options=options)
        )
    return specs


def _stricter(package: SkillPackage, numbers: CalibratedNumbers, folder: Path) -> SkillPackage:
    """Write the package with other default numbers, unsigned, and return it."""
    contents = dict(read_files(package.folder).contents)
    text = as_strict(contents[PARAMETERS].decode("utf-8"), numbers.values)
    place = folder / package.name
    if not place.exists():
        write_package(place, {**contents, PARAMETERS: text.encode()}, None)
    return load_skill(place)
