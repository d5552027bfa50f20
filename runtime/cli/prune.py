"""`zetta skills prune`: which skills of a bundle can go? Each is left out once, on fresh scenes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Final

import typer

from zetta.runtime.cli import output
from zetta.runtime.cli.assemble import find_simulator
from zetta.runtime.cli.at_home import judged_here
from zetta.runtime.cli.evaluation_request import default_policy
from zetta.runtime.cli.evolve_episodes import Errand
from zetta.runtime.cli.evolve_rollouts import Rollouts, workers_of
from zetta.runtime.cli.evolve_world import outcome_of
from zetta.runtime.cli.home import home_library
from zetta.runtime.cli.number_lists import named_values
from zetta.runtime.cli.options import check_options, sensing_level
from zetta.runtime.cli.run_plan import meant_tasks
from zetta.runtime.cli.scene_keys import folder_key
from zetta.runtime.core import RunSpec, Sampled
from zetta.runtime.errors import ConfigError, suggest
from zetta.runtime.records import to_json
from zetta.runtime.rollouts.factory import EpisodeRecord
from zetta.skills.bundles import NO_BUNDLE, LoadedBundle, load_bundle, pinned
from zetta.skills.evolve.candidates import bundle_name
from zetta.skills.evolve.gate_run import Trial
from zetta.skills.evolve.pruning import Pruned, PruneLimits, first_to_go, judge_leaving_out
from zetta.skills.evolve.transfer import fresh_seeds
from zetta.skills.evolve.worlds import is_checked

ANSWER: Final = "prune.json"


@dataclass(frozen=True, slots=True)
class Asked:
    """What decides a pruning."""

    bundle: LoadedBundle
    base: RunSpec
    tasks: tuple[int, ...]
    scenes: int
    margin: float
    key: str


def command(
    bundle: Annotated[str, typer.Argument(metavar="BUNDLE", help="library, starter, a folder …")],
    suite: Annotated[str, typer.Option(help="Suite of the fresh scenes.")],
    tasks: Annotated[str, typer.Option(help="Its tasks, such as 0-4; all by default.")] = "",
    sim: Annotated[str, typer.Option(help="Simulator.")] = "libero",
    policy: Annotated[str, typer.Option(help="Policy; the simulator's own by default.")] = "",
    sensing: Annotated[str, typer.Option(help="Highest level that may be read.")] = "vision",
    scenes: Annotated[int, typer.Option(help="Fresh scenes, over all tasks.")] = 120,
    margin: Annotated[float, typer.Option(help="Loss of success that is borne, a share.")] = 0.05,
    option: Annotated[list[str] | None, typer.Option(help="Further NAME=VALUE.")] = None,
    seed: Annotated[str, typer.Option(help="Words that fix the scenes; drawn by default.")] = "",
    workers: Annotated[int, typer.Option(help="Simulator processes at once.")] = 1,
    out: Annotated[
        Path | None, typer.Option(help="Folder; one with a pruning is gone on with.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Run a bundle whole and without each of its skills, and say which one can go."""
    if scenes < 1 or workers < 1 or not 0.0 < margin < 1.0:
        raise ConfigError(
            f"--scenes and --workers are at least 1 and --margin is a share; got {scenes}, "
            f"{workers}, {margin:g}"
        )
    simulator = find_simulator(sim)
    known = simulator.suites()
    if suite not in known:
        raise ConfigError(f"{sim} has no suite {suite!r}; {suggest(suite, known)}")
    loaded = load_bundle(pinned(bundle, home_library()), library=home_library())
    if not loaded.packages:
        raise ConfigError(f"the bundle {bundle!r} has no skill that could be left out")
    numbers = meant_tasks(tasks or "all", simulator, suite)
    base = RunSpec(
        sim, suite, numbers[0], Sampled(), policy=policy or default_policy(sim),
        bundle=_without(loaded, ""), sensing=sensing_level(sensing),
        options=named_values(tuple(option or ())),
    )  # fmt: skip
    base = judged_here(base)
    check_options(base)
    folder = output.run_folder("prune", out, resume=True)
    asked = Asked(loaded, base, numbers, scenes, margin, folder_key(folder, seed))
    judged, rollouts = _judged(asked, folder, workers)
    _tell(asked, judged, rollouts, folder, as_json)


def _judged(asked: Asked, folder: Path, workers: int) -> tuple[tuple[Pruned, ...], int]:
    """Run the whole bundle and then what its runs leave to be run, and judge."""
    names = [package.name for package in asked.bundle.packages]
    trials = _trials(asked)
    label = f"{asked.key}/{asked.bundle.digest}"
    with output.progress("prune", len(trials) * (len(names) + 1)) as advance:
        done = [0]

        def told(count: int, total: int, what: str) -> None:
            advance(done[0] + count, what)

        with closing(
            Rollouts(folder, label, workers_of(asked.base.sim, workers, folder), told)
        ) as rollouts:
            whole = _run(asked, rollouts, trials, "")
            found = {}
            for name in names:
                done[0] += len(trials)
                found[name] = _left_out(asked, rollouts, trials, whole, name)
            spent = rollouts.spent.rollouts
    outcomes = {name: [outcome_of(each) for each in records] for name, records in found.items()}
    limits = PruneLimits(margin=asked.margin)
    return judge_leaving_out(trials, [outcome_of(r) for r in whole], outcomes, limits), spent


def _left_out(
    asked: Asked,
    rollouts: Rollouts,
    trials: Sequence[Trial],
    whole: Sequence[EpisodeRecord | None],
    name: str,
) -> list[EpisodeRecord | None]:
    """Return runs without a skill.

    Where it did nothing its bundle's run is the same, action for action: those are not run, except
    a tenth of them that checks it.
    """
    same = {
        trial: record
        for trial, record in zip(trials, whole, strict=True)
        if record is not None
        and all(each.skill != name for each in record.recoveries)
        and not is_checked(trial.scene)
    }
    rest = [trial for trial in trials if trial not in same]
    ran = dict(zip(rest, _run(asked, rollouts, rest, name), strict=True))
    return [same.get(trial) or ran.get(trial) for trial in trials]


def _run(
    asked: Asked, rollouts: Rollouts, trials: Sequence[Trial], without: str
) -> list[EpisodeRecord | None]:
    bundle = _without(asked.bundle, without)
    return rollouts.run(
        [
            (
                replace(
                    asked.base, task=t.task, seed=t.scene, policy_seed=t.policy_seed, bundle=bundle
                ),
                Errand(),
            )
            for t in trials
        ]
    )


def _without(bundle: LoadedBundle, name: str) -> str:
    """Return the name of a bundle without one of its skills."""
    kept = [package for package in bundle.packages if package.name != name]
    if not kept:
        return NO_BUNDLE
    return "+".join(bundle_name(package.folder.parent, [package.name]) for package in kept)


def _trials(asked: Asked) -> tuple[Trial, ...]:
    digest = asked.bundle.digest
    seeds = fresh_seeds(asked.key, digest, "scene", asked.scenes)
    policy = fresh_seeds(asked.key, digest, "policy", asked.scenes)
    return tuple(
        Trial(scene, draw, asked.tasks[k % len(asked.tasks)])
        for k, (scene, draw) in enumerate(zip(seeds, policy, strict=True))
    )


def _tell(
    asked: Asked, judged: Sequence[Pruned], rollouts: int, folder: Path, as_json: bool
) -> None:
    going = first_to_go(judged)
    answer: dict[str, output.Json] = {
        "bundle": asked.bundle.name,
        "digest": asked.bundle.digest,
        "goes": going,
        "skills": to_json(tuple(judged)),
        "scenes": asked.scenes,
        "sensing": asked.base.sensing,
        "rollouts": rollouts,
        "command": output.command_line(),
        "out": str(folder),
    }
    text = json.dumps(answer, indent=1, allow_nan=False) + "\n"
    (folder / ANSWER).write_text(text, encoding="utf-8")
    if as_json:
        output.emit(answer)
        return
    columns = ["skill", "verdict", "only with it", "only without", "scenes", "ticks without / with",
               "p adjusted", "why"]  # fmt: skip
    output.answer(output.table(columns, [_row(each) for each in judged]))
    if going is None:
        output.answer(f"every skill stays ({asked.scenes} fresh scenes)")
    else:
        output.answer(
            f"{going} can go: zetta skills retire {going}; one goes at a time, so prune again after"
        )


def _row(each: Pruned) -> tuple[str, ...]:
    without, counts = each.without, each.without.counts
    return (
        without.skill, each.decision, str(counts.harms), str(counts.wins), str(counts.pairs),
        f"{without.ratio:.2f}", f"{each.p_adjusted:.3g}", each.reason,
    )  # fmt: skip
